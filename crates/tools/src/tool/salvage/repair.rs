//! Removes everything that no database may hold, so that the rest can be loaded.
//!
//! Losing one row makes others invalid: rows that must refer to it, and rows that only it kept
//! alive. So the steps repeat until nothing changes. They terminate because each step only removes.

use std::collections::{BTreeMap, BTreeSet};

use corvid_data::{
    Atom, AtomRef, BaseType, ColumnId, Datum, DatumBuilder, RefType, TableId, Uuid, wire,
};

use super::Contents;

impl Contents {
    /// Removes rows and references until the rest satisfies the schema's constraints.
    pub(super) fn repair(&mut self) {
        loop {
            let before = self.losses.len();
            self.remove_dangling_references();
            self.remove_repeated_keys();
            self.remove_garbage();
            self.remove_surplus();
            if self.losses.len() == before {
                return;
            }
        }
    }

    /// Removes references to missing rows. A row whose column must hold such a reference is removed
    /// too.
    fn remove_dangling_references(&mut self) {
        let schema = self.schema.clone();
        for (id, table) in schema.iter() {
            for (column, described) in table.iter() {
                let column_type = &described.column_type;
                let bases = [Some(&column_type.key), column_type.value.as_ref()];
                if bases
                    .into_iter()
                    .flatten()
                    .all(|base| base.reference.is_none())
                {
                    continue;
                }
                for (uuid, kept, lost) in self.dangling(id, column, bases) {
                    let count = kept.len();
                    if column_type.admits(count) {
                        self.tables[usize::from(id.0)]
                            .entry(uuid)
                            .and_modify(|data| data[usize::from(column.0)] = kept);
                        let reason = format!("refers to rows that are lost: {}", lost.join(", "));
                        self.lose(id, uuid, column, &reason);
                    } else {
                        let reason = format!(
                            "its column {} must refer to a row, and it is lost ({})",
                            described.name,
                            lost.join(", ")
                        );
                        self.remove(id, uuid, &reason);
                    }
                }
            }
        }
    }

    /// The rows of a table with dangling references in a column: the rest of the value, and the
    /// missing targets.
    fn dangling(
        &self,
        id: TableId,
        column: ColumnId,
        bases: [Option<&BaseType>; 2],
    ) -> Vec<(Uuid, Datum, Vec<String>)> {
        let mut found = Vec::new();
        for (uuid, data) in &self.tables[usize::from(id.0)] {
            let datum = &data[usize::from(column.0)];
            let mut kept = DatumBuilder::new();
            let mut lost = Vec::new();
            for (key, value) in datum {
                let (key, value) = (key.to_owned(), value.map(AtomRef::to_owned));
                let target = self
                    .missing(bases[0], Some(&key))
                    .or_else(|| self.missing(bases[1], value.as_ref()));
                match target {
                    Some(target) => lost.push(target),
                    None => kept.push(key, value),
                }
            }
            if !lost.is_empty()
                && let Ok(kept) = kept.finish()
            {
                found.push((*uuid, kept, lost));
            }
        }
        found
    }

    /// The row to which an atom refers, as messages name it, if that row is missing.
    fn missing(&self, base: Option<&BaseType>, atom: Option<&Atom>) -> Option<String> {
        let reference = base?.reference.as_ref()?;
        let Atom::Uuid(uuid) = atom? else {
            return None;
        };
        let rows = &self.tables[usize::from(reference.table.0)];
        let is_missing = !rows.contains_key(uuid);
        is_missing.then(|| format!("{} {uuid}", reference.table_name))
    }

    /// Keeps the first of several rows with the same values in the columns of an index.
    fn remove_repeated_keys(&mut self) {
        let schema = self.schema.clone();
        for (id, table) in schema.iter() {
            for index in &table.indexes {
                let mut keys: BTreeMap<Vec<u8>, Uuid> = BTreeMap::new();
                let mut repeated = Vec::new();
                for (uuid, data) in &self.tables[usize::from(id.0)] {
                    let mut key = Vec::new();
                    for column in index {
                        let is_map = table.column(*column).column_type.is_map();
                        wire::write_datum(&mut key, &data[usize::from(column.0)], is_map);
                    }
                    if let Some(first) = keys.get(&key) {
                        repeated.push((*uuid, *first));
                    } else {
                        keys.insert(key, *uuid);
                    }
                }
                for (uuid, first) in repeated {
                    let reason = format!("it has the same key as {first}");
                    self.remove(id, uuid, &reason);
                }
            }
        }
    }

    /// Removes rows outside the root set to which nothing refers.
    fn remove_garbage(&mut self) {
        let schema = self.schema.clone();
        let mut referenced: BTreeSet<(TableId, Uuid)> = BTreeSet::new();
        for (id, table) in schema.iter() {
            for (column, described) in table.iter() {
                let column_type = &described.column_type;
                let strong = |base: &BaseType| {
                    let reference = base.reference.as_ref()?;
                    (reference.ref_type == RefType::Strong).then_some(reference.table)
                };
                let key = strong(&column_type.key);
                let value = column_type.value.as_ref().and_then(strong);
                if key.is_none() && value.is_none() {
                    continue;
                }
                for (source, data) in &self.tables[usize::from(id.0)] {
                    for (one, other) in &data[usize::from(column.0)] {
                        let targets = [(key, Some(one)), (value, other)];
                        for (table, atom) in targets {
                            let uuid = atom.and_then(AtomRef::as_uuid);
                            if let Some(target) = table.zip(uuid)
                                // A row's reference to itself keeps nothing alive.
                                && target != (id, *source)
                            {
                                referenced.insert(target);
                            }
                        }
                    }
                }
            }
        }
        for (id, table) in schema.iter() {
            if table.is_root {
                continue;
            }
            let rows = self.tables[usize::from(id.0)].keys();
            let garbage: Vec<Uuid> = rows
                .filter(|uuid| !referenced.contains(&(id, **uuid)))
                .copied()
                .collect();
            for uuid in garbage {
                self.remove(id, uuid, "no row refers to it");
            }
        }
    }

    /// Removes rows beyond the limit of their table.
    fn remove_surplus(&mut self) {
        let schema = self.schema.clone();
        for (id, table) in schema.iter() {
            let rows = self.tables[usize::from(id.0)].keys();
            let surplus: Vec<Uuid> = rows.skip(table.max_rows as usize).copied().collect();
            for uuid in surplus {
                self.remove(id, uuid, "its table allows no more rows");
            }
        }
    }
}
