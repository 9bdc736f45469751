//! A client library for OVSDB, the database of Open vSwitch and OVN.
//!
//! ```no_run
//! # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/inventory.rs.in"));
//! use corvid::blocking::Client;
//! use corvid::typed::Row;
//! use inventory::{Device, DeviceRole};        // made of a schema by `corvid_idlc`, see below
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut class = inventory::class();         // what is to be replicated: nothing but what is added
//! class.track(Device::NAME);
//! class.track(Device::ROLE);
//!
//! let mut client = Client::connect(class, "ssl:10.0.0.1:6640,ssl:10.0.0.2:6640")?;
//! client.wait_for_contents(None)?;
//! for device in Device::all(&client) {        // reads memory, asks nobody
//!     println!("{} is a {}", device.name(&client), device.role(&client));
//! }
//!
//! client.idl_mut().on_insert(|idl: &corvid::Idl, device: Device| println!("{} came", device.name(idl)));
//! client.transact(None, |idl| {
//!     let device = Device::insert(idl)?;
//!     device.set_name(idl, "core-2")?;
//!     device.set_role(idl, DeviceRole::Router)?;
//!     device.set_labels_key(idl, "rack", "b11")   // one element of a map, whatever else is in it
//! })?;
//! # Ok(())
//! # }
//! ```
//!
//! An OVSDB client does not query. It names the tables and columns that matter to it, gets their rows once, and is told of every change
//! after; so it holds a **replica**, and reading is looking at memory. To change something it opens a **transaction**, changes rows of the
//! replica as if they were its own, and commits: the server gets the difference and decides.
//!
//! # Which client
//!
//! | The program | Client |
//! |---|---|
//! | does one thing at a time | [`blocking::Client`] |
//! | has several threads that use one client | [`shared::Client`]: `Clone`, `Send`, `Sync` |
//! | has an event loop of its own | [`polled::Client`]: a descriptor and a time to wait for |
//! | runs on tokio | `tokio::Client`, with the feature `tokio` |
//! | does its input and output itself | [`Idl`]: bytes and time in, bytes out, nothing else |
//!
//! All of them hold an [`Idl`], the replica; what can be done with it is the same everywhere.
//!
//! | To | see |
//! |---|---|
//! | say what is replicated, tracked, fetched on demand | [`Class`] |
//! | read and write rows with types | [`typed`] |
//! | change something | [`txn`], [`Committed`] |
//! | have functions called for rows that come, change and go | [`handlers`] |
//! | look at what changed since the last time | [`track`] |
//! | find rows by their columns, in order | [`index`], [`typed::TypedIndex`] |
//! | see only some rows of a table | [`Condition`], [`typed::TypedCondition`] |
//! | fetch large columns when they are needed | [`fetch`] |
//! | run a daemon that writes what should be at each turn of its loop | [`IdlLoop`] |
//! | choose among servers, set up TLS, hold a lock, set probes | [`Setup`], and the setters of [`polled::Client`], which the other clients have too |
//! | know how the client stands, and why it cannot connect | [`SessionState`], [`Failure`] |
//! | know why a transaction was refused, or refuse it in the program | [`Refused`], [`Abort`] |
//! | know what was counted | [`Metrics`] |
//! | work with columns by name | [`Idl::read`], [`Idl::write`], [`data`] |
//!
//! # Types from a schema
//!
//! Rows get their types from the database's schema, by the crate `corvid-idlc` in a build script or by its program once and for all
//! (`ovsdb-idlc rust inventory.ovsschema > src/inventory.rs`). A server prints the schema of what it serves:
//! `ovsdb-client get-schema unix:/var/run/openvswitch/db.sock Open_vSwitch`.
//!
//! ```text
//! # Cargo.toml
//! [dependencies]
//! corvid = "0.1"
//!
//! [build-dependencies]
//! corvid-idlc = { version = "0.1", default-features = false }
//!
//! // build.rs
//! fn main() {
//!     println!("cargo:rerun-if-changed=inventory.ovsschema");
//!     let schema = std::fs::read_to_string("inventory.ovsschema").unwrap();
//!     let code = corvid_idlc::rust(&schema).unwrap();
//!     std::fs::write(std::env::var("OUT_DIR").unwrap() + "/inventory.rs", code).unwrap();
//! }
//!
//! // src/main.rs
//! include!(concat!(env!("OUT_DIR"), "/inventory.rs"));
//! ```
//!
//! # What is guaranteed
//!
//! - **One moment.** The replica always shows what the server held at one moment, restricted to what is replicated: the effects of a
//!   transaction become visible together, and handlers are called when all of them are there.
//! - **Read what you wrote.** When a transaction has succeeded, the replica shows it.
//! - **Connections come and go.** A lost one is made again, to whichever server of the list will do; rows stay readable meanwhile. With a
//!   server that keeps history only what was missed is sent; without, all contents are compared with what is held, and only differences
//!   are reported ([`Resync`]).
//! - **Cost follows the change.** An element that is put into a set of ten thousand costs the same as into a set of ten, here and on the wire.
//!
//! # What is not
//!
//! **A transaction is carried out at least once, not exactly once.** When the connection is lost after a transaction was sent, nobody knows
//! whether the server committed it; `transact` makes it again from what the replica shows then. A function that looks at what is there before it
//! changes it ([`Idl::verify`], an index of the schema that refuses a second row) makes that harmless; one that inserts a row blindly
//! may insert two.
//!
//! A transaction is no lock: what it writes wins over what was there, unless it says with [`Idl::verify`] what it has relied on.
//!
//! # Logging and metrics
//!
//! What there is to say goes to the [`log`](https://docs.rs/log) facade with the target [`LOG_TARGET`], and nowhere else: without a logger nothing is
//! printed. [`Idl::metrics`] gives what was counted as plain numbers, to be exported as the program does it with its own.
//!
//! # Features
//!
//! | Feature | Default | Brings |
//! |---|---|---|
//! | `tls` | yes | `ssl:` and `pssl:` remotes, by rustls. Without it such remotes fail with "Protocol not available" |
//! | `tokio` | no | `tokio::Client` |
//!
//! # Without a server
//!
//! The core is a state machine without input and output, so programs can be tested without a server:
//!
//! ```
//! # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/inventory.rs.in"));
//! use corvid::typed::{Row, TypedIndexBuilder};
//! use corvid::{Idl, Status};
//! use inventory::Device;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut class = inventory::class();
//! class.add_column(Device::NAME);
//! let by_name = TypedIndexBuilder::new().ascending(Device::NAME).build(&mut class)?;
//!
//! let mut idl = Idl::new(class, 1);
//! idl.begin()?;
//! let device = Device::insert(&mut idl)?;
//! device.set_name(&mut idl, "core-1")?;
//! assert_eq!(by_name.key(&idl).with(Device::NAME, "core-1".into()).find(&idl), Some(device));
//! assert_eq!(idl.commit()?, Status::TryAgain, "there is no server");
//! assert_eq!(Device::all(&idl).count(), 0);
//! # Ok(())
//! # }
//! ```

#[doc(inline)]
pub use corvid_driver::*;
#[doc(inline)]
pub use corvid_idl::*;

#[doc(inline)]
pub use corvid_data::{Atom, ColumnId, Datum, Real, Schema, Str, TableId, Tag, Uuid};
#[doc(inline)]
pub use corvid_session::{Clause, Condition, Function, Level, LogMessage, Options, SessionMetrics};

/// Values, rows, types and schemas.
#[doc(inline)]
pub use corvid_data as data;
/// JSON as the other modules read and write it.
#[doc(inline)]
pub use corvid_json as json;
/// Messages and the life of a connection: what notes of the session are made of.
#[doc(inline)]
pub use corvid_rpc as rpc;
/// The session: which server, conditions, the lock.
#[doc(inline)]
pub use corvid_session as session;
