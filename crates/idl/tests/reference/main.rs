//! The tests of `tests/replica`, unchanged, with clients of the reference server over sockets: what
//! holds with our server holds there. If the reference is not installed, the tests are skipped with
//! a message.

#[path = "../replica/answers.rs"]
mod answers;
#[path = "../replica/contents.rs"]
mod contents;
#[path = "../replica/fetching.rs"]
mod fetching;
#[path = "../replica/fixture.rs"]
mod fixture;
#[path = "../replica/heard.rs"]
mod heard;
#[path = "../replica/identities.rs"]
mod identities;
#[path = "../replica/idl_loop.rs"]
mod idl_loop;
#[path = "../replica/indexes.rs"]
mod indexes;
#[path = "../replica/partial.rs"]
mod partial;
#[path = "../replica/random.rs"]
mod random;
#[path = "../replica/references.rs"]
mod references;
#[path = "../replica/resync.rs"]
mod resync;
#[path = "../replica/schemas.rs"]
mod schemas;
mod server;
#[path = "../replica/tracking.rs"]
mod tracking;
#[path = "../replica/transactions.rs"]
mod transactions;
#[path = "../replica/typed.rs"]
mod typed;
