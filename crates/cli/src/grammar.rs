//! The language of the database commands (ovs-vsctl(8), "Database Commands"): commands of a chain,
//! names of tables, columns and records, arguments and conditions.
//!
//! Everything here is a function of texts, a schema and rows. Nothing connects or prints.

pub(crate) mod argument;
pub(crate) mod chain;
pub(crate) mod condition;
pub(crate) mod names;
pub(crate) mod record;
pub(crate) mod row_names;
pub(crate) mod where_form;
