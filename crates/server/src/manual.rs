//! What `ovsdb-server` tells people of itself: `--help`, the manual page, completions.
//!
//! Options come from the table in [`crate::options`].

use corvid_os::manual::{Manual, shared};

use crate::options;

/// All of it.
#[must_use]
pub fn manual() -> Manual {
    Manual {
        name: "ovsdb-server",
        section: 8,
        purpose: "Open vSwitch database server",
        usage: &["[OPTIONS] [DATABASE...]"],
        introduction: "Each DATABASE is a database file (default: {dbdir}/conf.db, if none is given).",
        groups: options::GROUPS.to_vec(),
        options: options::entries(),
        notes: vec![
            shared::active_methods("Active OVSDB connection methods"),
            shared::passive_methods("Passive OVSDB connection methods"),
        ],
        ..Manual::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_has_a_meaning() {
        assert_eq!(manual().complaints(), [""; 0]);
    }
}
