//! The harness of the end-to-end tests: finding binaries, starting servers, talking to them, and the scripted plays.
//!
//! Nothing here imports a Corvid crate: the harness judges a server by its bytes alone, so a fault in our own reader
//! or writer cannot hide itself. The layers, lowest first:
//!
//! - [`binary`]: where our binaries and the reference's are.
//! - [`framing`]: cuts a byte stream into JSON texts by counting brackets.
//! - [`client`]: one raw JSON-RPC connection.
//! - [`http`]: one HTTP request, for the pages of watchers.
//! - [`database_file`]: makes an empty standalone database file from a schema.
//! - [`process`]: one server process on given files.
//! - [`cluster`]: several server processes that serve one clustered database.
//! - [`daemon`]: one server in the background.
//! - [`limited`]: a program that must end in some minutes.
//! - [`load`]: writers on every member of a cluster.
//! - [`numbered_rows`]: clusters whose rows have numbers.
//! - [`namespaces`]: runs a test again in namespaces of its own.
//! - [`network`]: hosts of its own for a cluster, and cables that are cut.
//! - [`server`]: a server under test in its own temporary directory.
//! - [`random`], [`ledger`], [`tails`], [`small_disk`], [`troubled_disk`], [`peer`]: what the tests of storage share: seeded numbers, writers that
//!   know what the database must hold, damaged ends of files, a file system that is soon full, a disk that is slow or fails, and the reference's tool.
//! - [`script`], [`shorthand`], [`placeholder`], [`layout`], [`stage`], [`play`]: the text format of `tests/scripted`, how expectations
//!   are compared, how they are written back, and how a file is run.

pub mod binary;
pub mod client;
pub mod cluster;
pub mod daemon;
pub mod database_file;
pub mod framing;
pub mod http;
pub mod layout;
pub mod ledger;
pub mod limited;
pub mod load;
pub mod namespaces;
pub mod network;
pub mod numbered_rows;
pub mod peer;
pub mod placeholder;
pub mod play;
pub mod process;
pub mod random;
pub mod script;
pub mod server;
pub mod shorthand;
pub mod small_disk;
pub mod stage;
pub mod tails;
pub mod troubled_disk;
