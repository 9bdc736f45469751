//! Two small clients on typed rows: [`watcher`] shows what happens to logical switch ports, [`groups`] keeps port groups in step with them.
//!
//! The rows that they need are generated when this crate is built, from a schema that names their columns only
//! (`schemas/northbound.ovsschema`): a client monitors only what its own schema has; the server's schema may have more.

pub mod groups;
pub mod watcher;

include!(concat!(env!("OUT_DIR"), "/example.rs"));
