//! Any database: its tables as cards with their counts, and the references between them as edges.

use std::collections::BTreeMap;

use corvid_data::{BaseType, RefType, Schema};

use crate::graph::{EdgeKind, Graph, Id, Kind, Node};
use crate::tables::Tables;

/// Makes the graph of a schema. Counts come from `tables`, which may have no more than these.
#[must_use]
pub fn read(schema: &Schema, tables: &Tables) -> Graph {
    let mut graph = Graph::new();
    let cards: Vec<usize> = schema
        .tables()
        .iter()
        .map(|table| {
            let name = table.name.as_str();
            let mut node = Node::new(Id::Named("table", name.to_owned()), Kind::Table, name);
            let count = tables.count(name);
            node.detail = match count {
                1 => "1 row".to_owned(),
                count => format!("{count} rows"),
            };
            node.count("columns", table.columns().len());
            if !table.is_root {
                node.fact("rows", "removed when nothing refers to them");
            }
            graph.add(node)
        })
        .collect();
    for (id, table) in schema.iter() {
        // One edge for all columns that refer to the same table.
        let mut columns: BTreeMap<usize, Vec<(&str, bool)>> = BTreeMap::new();
        for column in table.columns() {
            let bases = [
                Some(&column.column_type.key),
                column.column_type.value.as_ref(),
            ];
            for (to, is_strong) in bases.into_iter().flatten().filter_map(refers_to) {
                let Some(to) = schema.table_id(to) else {
                    continue;
                };
                let columns = columns.entry(cards[usize::from(to.0)]).or_default();
                columns.push((column.name.as_str(), is_strong));
            }
        }
        for (to, columns) in columns {
            let label = match columns.as_slice() {
                [(column, _)] => (*column).to_owned(),
                [(column, _), rest @ ..] => format!("{column} +{}", rest.len()),
                [] => String::new(),
            };
            let kind = match columns.iter().any(|(_, is_strong)| *is_strong) {
                true => EdgeKind::Reference,
                false => EdgeKind::WeakReference,
            };
            graph.join(cards[usize::from(id.0)], to, kind, label);
        }
    }
    graph
}

/// The table to which values of a type refer, and whether the reference is strong.
fn refers_to(base: &BaseType) -> Option<(&str, bool)> {
    let reference = base.reference.as_ref()?;
    Some((
        reference.table_name.as_str(),
        reference.ref_type == RefType::Strong,
    ))
}
