//! Tests typed rows for the schemas of installed packages. The rows were generated when this crate
//! was built, and are compiled here; each constant must be where its name says. If a schema is not
//! installed, its test prints so and passes.

use corvid::typed::Schema;

/// Checks the ids and names of every table and column against the text of a generated module, and
/// checks that the text has no overlong lines.
fn check(schema: &Schema, code: &str) {
    for (id, table) in schema.iter() {
        let head = format!("/// A row of `{}`.", table.name);
        let begin = code.find(&head).unwrap_or_else(|| panic!("no {head}"));
        let rest = code[begin..].chars();
        let packed: String = rest.filter(|letter| !letter.is_whitespace()).collect();
        let place = packed.find("constTABLE:").expect("a number");
        let number = format!("constTABLE:TableId=TableId({});", id.0);
        assert!(packed[place..].starts_with(&number), "{}", table.name);
        let row = packed.find("///Changestorows").expect("an end");
        for (column_id, column) in table.iter() {
            let constant = format!("ColumnId({}),\"{}\"", column_id.0, column.name);
            let is_there = packed[..row].contains(&constant);
            assert!(is_there, "{} of {}", column.name, table.name);
        }
    }
    let code = code
        .lines()
        .filter(|line| !line.contains("SCHEMA") && !line.contains("///"));
    let longest = code.map(str::len).max().unwrap_or_default();
    assert!(longest < 120, "a line of {longest} letters");
}

macro_rules! packaged {
    ($name:ident, $flag:ident, $module:ident, $file:literal) => {
        #[cfg($flag)]
        mod $name {
            include!(concat!(env!("OUT_DIR"), "/", $file, ".rs"));

            #[test]
            fn its_rows_are_typed() {
                let code = include_str!(concat!(env!("OUT_DIR"), "/", $file, ".rs"));
                super::check(&$module::schema(), code);
            }
        }

        #[cfg(not($flag))]
        mod $name {
            #[test]
            fn its_rows_are_typed() {
                let _: fn(&corvid::typed::Schema, &str) = super::check;
                eprintln!(
                    "SKIPPED: the schema of {} is not installed",
                    stringify!($module)
                );
            }
        }
    };
}

packaged!(northbound, has_northbound, ovn_northbound, "has_northbound");
packaged!(southbound, has_southbound, ovn_southbound, "has_southbound");
packaged!(vswitch, has_vswitch, open_vswitch, "has_vswitch");
packaged!(vtep, has_vtep, hardware_vtep, "has_vtep");
