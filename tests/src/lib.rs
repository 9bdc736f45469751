//! The harness of the end-to-end tests, which finds binaries, starts servers, talks to them, and
//! plays scripts.
//!
//! No module imports a Corvid crate. The harness judges a server only by its bytes, so an error in
//! our own reader or writer cannot hide itself. The layers, lowest first:
//!
//! - [`binary`]: the paths of our binaries and of the reference's.
//! - [`framing`]: divides a byte stream into JSON texts by counting brackets.
//! - [`client`]: a raw JSON-RPC connection.
//! - [`http`]: an HTTP request, for the health and metrics pages.
//! - [`console`], [`browser`]: a console, and a browser that shows its pages.
//! - [`database_file`]: makes an empty standalone database file from a schema.
//! - [`process`]: a server process on given files.
//! - [`cluster`]: several server processes that serve one clustered database.
//! - [`daemon`]: a server in the background.
//! - [`limited`]: a program that must end within a few minutes.
//! - [`load`]: writers on every member of a cluster.
//! - [`numbered_rows`]: clusters whose rows have numbers.
//! - [`namespaces`]: runs a test again in separate namespaces.
//! - [`network`]: separate hosts for a cluster, with cables that can be cut.
//! - [`pseudo_terminal`]: a program on a terminal, and what a person would see.
//! - [`server`]: a server under test in its own temporary directory.
//! - [`random`], [`ledger`], [`tails`], [`small_disk`], [`troubled_disk`], [`peer`]: for the tests
//!   of storage. Numbers from a seed, writers that know what the database must contain, damaged
//!   ends of files, a file system that is soon full, a disk that is slow or fails, and the
//!   reference's tool.
//! - [`script`], [`shorthand`], [`placeholder`], [`layout`], [`stage`], [`play`]: the text format
//!   of `tests/scripted`, how expectations are compared, how they are written back, and how a file
//!   is played.

pub mod binary;
pub mod browser;
pub mod client;
pub mod cluster;
pub mod console;
pub mod daemon;
pub mod database_file;
pub mod framing;
pub mod http;
pub mod layout;
pub mod ledger;
pub mod limited;
pub mod load;
pub mod losing_proxy;
pub mod namespaces;
pub mod network;
pub mod numbered_rows;
pub mod one_file;
pub mod peer;
pub mod placeholder;
pub mod play;
pub mod process;
pub mod pseudo_terminal;
pub mod random;
pub mod script;
pub mod server;
pub mod shorthand;
pub mod small_disk;
pub mod stage;
pub mod tails;
pub mod troubled_disk;
