//! The manual of `ovsdb-idlc`. `--help`, the manual page and shell completions are made from it.
//!
//! The options come from the table in [`crate::options`].

use corvid_shell::manual::{Chapter, Manual};

use crate::options;

/// Returns the whole manual.
#[must_use]
pub fn manual() -> Manual {
    Manual {
        name: "ovsdb-idlc",
        section: 1,
        purpose: "typed code for the tables of an OVSDB schema",
        usage: &["[OPTIONS] COMMAND ARG..."],
        options: options::entries(),
        commands: vec![Chapter::list(
            "Commands",
            &[
                (
                    "annotate SCHEMA ANNOTATIONS",
                    "print SCHEMA combined with ANNOTATIONS",
                ),
                (
                    "c IDL [DIRECTORY]",
                    "write a header and a source in C for IDL, a schema with or without annotations, into DIRECTORY",
                ),
                ("c-idl-header IDL", "print the header alone"),
                ("c-idl-source IDL", "print the source alone"),
                (
                    "python IDL",
                    "print a Python module for IDL, a schema with or without annotations",
                ),
                (
                    "rust IDL",
                    "print a Rust module for IDL, a schema with or without annotations",
                ),
            ],
        )],
        description: DESCRIPTION,
        chapters: vec![
            Chapter::list(
                "ENVIRONMENT",
                &[(
                    "POSIXLY_CORRECT",
                    "if set, options end at the first non-option argument",
                )],
            ),
            Chapter::list(
                "EXIT STATUS",
                &[("0", "done"), ("1", "failure; standard error says why")],
            ),
            Chapter::prose("EXAMPLES", EXAMPLES),
            Chapter::prose("SEE ALSO", "`ovsdb-server`(1), `ovsdb-client`(1)"),
        ],
        ..Manual::default()
    }
}

const DESCRIPTION: &str = "\
`{program}` reads the schema of a database and prints code for clients of it. The module that `rust` prints has a handle for the rows of each
table, with a getter and a setter for each column, changes of single elements for sets and maps, an enumeration for a column that lists its
values, and constants to make indexes and conditions of. It is built on the client library that comes with this program. The module that `python` prints
has a class for the rows of each table, for type checkers and editors, and clients that know the tables; it is built on the package `corvid`.

The code that `c` writes has the shape of that of Open vSwitch's generator: a struct for the rows of each table, filled by the library, functions to walk over them, to change
them and to look them up. It is built on `libcorvid`(3). Its names begin with the annotation `idlPrefix`, or with the name of the database, and the source includes the annotation
`idlHeader`, or the header's name. The files are `NAME-idl.h` and `NAME-idl.c`, by the name of the database in lower case.

Annotations are assignments to members of a schema, one a line, as files of that kind in Open vSwitch have them: `s[\"idlPrefix\"] = \"ovsrec_\"`. They are read,
never executed. JSON with the members that are to be merged into the schema is taken as well.";

const EXAMPLES: &str = "\
A module for the northbound database of OVN:

    ovsdb-idlc rust /usr/share/ovn/ovn-nb.ovsschema > src/northbound.rs

The same for Python:

    ovsdb-idlc python /usr/share/ovn/ovn-nb.ovsschema > northbound.py";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_missing() {
        assert_eq!(manual().complaints(), Vec::<String>::new());
    }
}
