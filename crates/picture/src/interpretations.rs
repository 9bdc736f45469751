//! Interpretations: what the rows of each known database mean as a network.
//!
//! [`ALL`] is the one table of them: a further database is a further file and a line here. Each
//! names the tables and columns that it reads, so that the caller monitors those alone, and tests
//! hold it to the list. Any other database is drawn from its schema by [`any::read`].

pub mod any;
pub mod northbound;
pub mod southbound;
pub mod vswitch;
pub mod vtep;

use crate::{Graph, Tables, natural};

/// The interpretation of one database.
#[derive(Clone, Copy, Debug)]
pub struct Interpretation {
    /// The name of the database's schema.
    pub database: &'static str,
    /// The heading of its picture.
    pub title: &'static str,
    /// The tables that it reads, with their columns.
    pub tables: &'static [(&'static str, &'static [&'static str])],
    /// Makes the graph.
    pub read: fn(&Tables) -> Graph,
}

/// All interpretations.
pub const ALL: &[Interpretation] = &[
    Interpretation {
        database: "OVN_Northbound",
        title: "Logical network",
        tables: northbound::TABLES,
        read: northbound::read,
    },
    Interpretation {
        database: "OVN_Southbound",
        title: "Hosts and bindings",
        tables: southbound::TABLES,
        read: southbound::read,
    },
    Interpretation {
        database: "Open_vSwitch",
        title: "Bridges of the host",
        tables: vswitch::TABLES,
        read: vswitch::read,
    },
    Interpretation {
        database: "hardware_vtep",
        title: "Hardware tunnel endpoints",
        tables: vtep::TABLES,
        read: vtep::read,
    },
];

/// The interpretation of a database, if it has its own.
#[must_use]
pub fn of(database: &str) -> Option<&'static Interpretation> {
    ALL.iter().find(|known| known.database == database)
}

/// The most values that a fact lists.
const VALUES_MAX: usize = 6;

/// The first values of a list in its own order, and how many more there are.
fn enough(values: impl IntoIterator<Item = String>) -> String {
    let mut values = values.into_iter();
    let mut text = String::new();
    for value in values.by_ref().take(VALUES_MAX) {
        if !text.is_empty() {
            text.push_str(", ");
        }
        text.push_str(&value);
    }
    match values.count() {
        0 => text,
        more => format!("{text} and {more} more"),
    }
}

/// The first values of a list without an order of its own, in their natural order, and how many
/// more there are. A set has its texts in the order of their bytes, and rows in that of UUIDs.
fn sorted(values: impl IntoIterator<Item = String>) -> String {
    let mut values: Vec<String> = values.into_iter().collect();
    values.sort_unstable_by(|a, b| natural::compare(a, b));
    enough(values)
}

/// The first value in the natural order, and how many more there are: "10.0.0.1/24 +1".
fn listed<'a>(values: impl IntoIterator<Item = &'a str>) -> String {
    let values: Vec<&str> = values.into_iter().collect();
    let first = values.iter().min_by(|a, b| natural::compare(a, b));
    let first = first.copied().unwrap_or_default();
    match values.len() {
        0 | 1 => first.to_owned(),
        count => format!("{first} +{}", count - 1),
    }
}

/// A count with its noun: "1 port", "3 ports".
fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_without_an_order_are_in_the_natural_one() {
        // As a set has them.
        let names = ["net1", "net10", "net2"];
        assert_eq!(sorted(names.map(str::to_owned)), "net1, net2, net10");
        assert_eq!(enough(names.map(str::to_owned)), "net1, net10, net2");
        assert_eq!(
            listed(["10.0.0.10/8", "10.0.0.9/8", "10.0.0.90/8"]),
            "10.0.0.9/8 +2"
        );
        assert_eq!(listed(["one"]), "one");
        assert_eq!(listed([]), "");
        let many = (0..8).rev().map(|number| format!("net{}", number * 5));
        let said = "net0, net5, net10, net15, net20, net25 and 2 more";
        assert_eq!(sorted(many), said);
    }
}
