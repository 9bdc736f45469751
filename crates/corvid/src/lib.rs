//! A client library for OVSDB, the configuration database of Open vSwitch and OVN.
//!
//! ```no_run
//! # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/inventory.rs.in"));
//! use corvid::blocking::Client;
//! use corvid::typed::Row;
//! use inventory::{Device, DeviceRole, Site};  // generated from a schema, see below
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // Columns are replicated, and can be written, once they are added.
//! let mut class = inventory::class();
//! class.track(Device::NAME);                  // replicates the column and reports its changes
//! class.track(Device::ROLE);
//! class.add_column(Device::LABELS);
//! class.add_column(Site::NAME);
//! class.add_column(Site::DEVICES);
//!
//! let mut client = Client::connect(class, "unix:target/run/corvid-demo/db.sock")?;
//! client.wait_for_contents(None)?;
//! for device in Device::all(&client) {        // reads local memory
//!     println!("{} is a {}", device.name(&client), device.role(&client));
//! }
//!
//! client.idl_mut().on_insert(|idl: &corvid::Idl, device: Device| println!("{} was inserted", device.name(idl)));
//! client.transact(None, |idl| {
//!     let device = Device::insert(idl)?;
//!     device.set_name(idl, "core-2")?;
//!     device.set_role(idl, DeviceRole::Router)?;
//!     device.set_labels_key(idl, "rack", "b11")?; // one element of a map; the others are not sent
//!     let site = Site::insert(idl)?;
//!     site.set_name(idl, "lab")?;
//!     // The server deletes a device that no site refers to.
//!     site.add_devices(idl, device)
//! })?;
//! # Ok(())
//! # }
//! ```
//!
//! The example runs against the server that `make run` starts in a checkout of the repository. A
//! comma-separated list of servers, `tcp:10.0.0.1:6640,tcp:10.0.0.2:6640`, is also one remote.
//! `ssl:` remotes need a key and certificates: see the example in [`Setup`].
//!
//! An OVSDB client does not query. It names the tables and columns that it needs. The server sends
//! their rows once and then every change to them, so the client holds a **replica** and reads from
//! memory. To change something, the client opens a **transaction**, changes rows of the replica,
//! and commits. The client sends the difference to the server, which accepts or rejects it.
//!
//! # Which client
//!
//! | The program | Client |
//! |---|---|
//! | does one thing at a time | [`blocking::Client`] |
//! | has several threads that use one client | [`shared::Client`]: `Clone`, `Send`, `Sync` |
//! | has an event loop of its own | [`polled::Client`]: a descriptor and a time to wait for |
//! | runs on tokio | `tokio::Client`, with the feature `tokio` |
//! | does its own I/O | [`Idl`]: a state machine that takes bytes and the time and returns bytes |
//!
//! Each of them owns an [`Idl`], the replica, and gives access to it. Reading, transactions,
//! indexes and change tracking are methods of [`Idl`].
//!
//! | To | see |
//! |---|---|
//! | choose what is replicated, tracked or fetched on demand | [`Class`] |
//! | read and write rows with types | [`typed`] |
//! | change something | [`txn`], [`Committed`] |
//! | register callbacks for inserted, changed and deleted rows | [`handlers`] |
//! | list the changes since the last look | [`track`] |
//! | find rows by their columns, in order | [`index`], [`typed::TypedIndex`] |
//! | replicate only some rows of a table | [`Condition`], [`typed::TypedCondition`] |
//! | fetch large columns when they are needed | [`fetch`] |
//! | run a daemon that writes the desired state in each iteration of its main loop | [`IdlLoop`] |
//! | choose among servers, set up TLS, hold a lock, set probe intervals | [`Setup`], and the setters of [`polled::Client`]; the other clients have the same setters |
//! | see the state of the session, and why it cannot connect | [`SessionState`], [`Failure`] |
//! | see why the server refused a transaction, or abort one from the program | [`Refused`], [`Abort`] |
//! | see who changed what, or the contents of an earlier moment | [`blocking::Client::read_history`], [`blocking::Client::select_at`] |
//! | export metrics | [`Metrics`] |
//! | work with columns by name | [`Idl::read`], [`Idl::write`], [`data`] |
//!
//! # Types from a schema
//!
//! Rows get their types from the database's schema. The crate `corvid-idlc` generates these types
//! in a build script; its program generates them once
//! (`ovsdb-idlc rust inventory.ovsschema > src/inventory.rs`). To get the schema of a database from
//! its server, run `ovsdb-client get-schema unix:/var/run/openvswitch/db.sock Open_vSwitch`.
//!
//! ```text
//! # Cargo.toml. The package `corvid` in the public registry is another project's. Once 0.1.0 is
//! # published, `corvid-ovsdb = "0.1"` and
//! # `corvid-idlc = { version = "0.1", default-features = false }` replace the paths.
//! [dependencies]
//! corvid-ovsdb = { path = "…/crates/corvid" }
//!
//! [build-dependencies]
//! corvid-idlc = { path = "…/crates/idlc", default-features = false }
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
//! # Guarantees
//!
//! - **Atomic updates.** The replica always equals the server's contents at one moment, restricted
//!   to the replicated part. The effects of a transaction become visible together, and handlers run
//!   only after all of them are applied.
//! - **Read your writes.** Once a transaction has succeeded, the replica shows its effects.
//! - **Reconnection.** After a connection is lost, the client connects to the next suitable server
//!   in the list. Rows stay readable meanwhile. A server that keeps history sends only the missed
//!   changes. Any other server sends all contents; the client compares them with the replica and
//!   reports only the differences ([`Resync`]).
//! - **Cost follows the change.** Adding an element to a set of ten thousand costs the same as
//!   adding it to a set of ten, in memory and on the wire.
//!
//! # Limits of the guarantees
//!
//! **A transaction is carried out at least once, not exactly once.** If the connection is lost
//! after a transaction was sent, the client cannot know whether the server committed it. `transact`
//! then calls its function again, on the replica's new contents. That is harmless if the function
//! checks the contents before it changes them ([`Idl::verify`]), or if an index of the schema
//! rejects a second row. A function that inserts a row without a check may insert two.
//!
//! A transaction does not lock anything. It overwrites changes that other clients committed
//! meanwhile, unless it calls [`Idl::verify`] for the columns that it relies on.
//!
//! # Logging and metrics
//!
//! The library logs through the [`log`](https://docs.rs/log) facade with the target [`LOG_TARGET`];
//! without a logger it prints nothing. [`Idl::metrics`] returns counters as plain numbers, for
//! export with the program's own metrics.
//!
//! # Features
//!
//! | Feature | Default | Brings |
//! |---|---|---|
//! | `tls` | yes | `ssl:` and `pssl:` remotes, through rustls. Without this feature such remotes fail with "Protocol not available" |
//! | `tokio` | no | `tokio::Client` |
//!
//! # Without a server
//!
//! The core is a state machine that does no I/O, so programs can be tested without a server:
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
pub use corvid_session::{
    Clause, Condition, Function, Level, LogMessage, Options, RefusedClause, SessionMetrics,
};

/// Values, rows, types and schemas. Re-export of `corvid-data`.
#[doc(inline)]
pub use corvid_data as data;
/// JSON: a pull reader, writers and a small tree. Re-export of `corvid-json`.
#[doc(inline)]
pub use corvid_json as json;
/// JSON-RPC messages, and the states and log events of a connection.
#[doc(inline)]
pub use corvid_rpc as rpc;
/// The session: server selection, conditions, the lock and updates.
#[doc(inline)]
pub use corvid_session as session;
