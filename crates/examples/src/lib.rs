//! Two small clients that use typed rows. [`watcher`] prints the changes of logical switch ports.
//! [`groups`] keeps port groups in step with these ports.
//!
//! The row types are generated when this crate is built, from a schema that has only the columns
//! they need (`schemas/northbound.ovsschema`). A client monitors only the columns in its own
//! schema; the server's schema may have more.

pub mod groups;
pub mod watcher;

include!(concat!(env!("OUT_DIR"), "/example.rs"));
