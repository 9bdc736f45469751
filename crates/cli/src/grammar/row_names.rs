//! Names of rows within a chain: `--id=@name` gives one, and `@name` stands for the row's UUID
//! wherever a UUID may stand, also before the command that gives the name.

use std::collections::BTreeMap;

use corvid_data::uuid::UuidSource;
use corvid_data::{Atom, BaseType, ColumnType, Datum, RefType, Reference, Uuid, text};

use crate::failure::Failure;

/// One name.
#[derive(Clone, Copy, Debug)]
struct RowName {
    uuid: Uuid,
    /// A `create` or `get` has given the name.
    is_defined: bool,
    reference: Option<Strength>,
}

/// The strongest reference to a row by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Strength {
    Weak,
    Strong,
}

/// All names of a chain.
pub(crate) struct RowNames<'u> {
    names: BTreeMap<String, RowName>,
    uuids: &'u mut dyn UuidSource,
}

impl<'u> RowNames<'u> {
    /// No names. `uuids` provides the UUIDs of new rows.
    pub(crate) fn new(uuids: &'u mut dyn UuidSource) -> RowNames<'u> {
        RowNames {
            names: BTreeMap::new(),
            uuids,
        }
    }

    /// A UUID for a row without a name.
    pub(crate) fn fresh(&mut self) -> Uuid {
        self.uuids.fresh()
    }

    /// Defines the name of a row that the chain creates. Rows of a root table need no reference.
    ///
    /// # Errors
    /// The name lacks its `@`, or is defined already.
    pub(crate) fn define(&mut self, id: &str, is_root: bool) -> Result<Uuid, Failure> {
        let (name, _) = self.entry(id)?;
        if name.is_defined {
            return Err(Failure::usage(format!(
                "row id \"{id}\" may only be specified on one --id option"
            )));
        }
        name.is_defined = true;
        if is_root {
            name.reference = Some(Strength::Strong);
        }
        Ok(name.uuid)
    }

    /// Defines the name of an existing row.
    ///
    /// # Errors
    /// As for [`RowNames::define`]; also a name that was used before this command.
    pub(crate) fn define_existing(&mut self, id: &str, uuid: Uuid) -> Result<(), Failure> {
        let (name, is_new) = self.entry(id)?;
        if name.is_defined {
            return Err(Failure::usage(format!(
                "row id \"{id}\" may only be specified on one --id option"
            )));
        }
        if !is_new {
            return Err(Failure::usage(format!(
                "row id \"{id}\" specified on \"get\" command was used before it was defined"
            )));
        }
        *name = RowName {
            uuid,
            is_defined: true,
            reference: Some(Strength::Strong),
        };
        Ok(())
    }

    fn entry(&mut self, id: &str) -> Result<(&mut RowName, bool), Failure> {
        let Some(name) = id.strip_prefix('@') else {
            return Err(Failure::usage(format!(
                "row id \"{id}\" does not begin with \"@\""
            )));
        };
        let is_new = !self.names.contains_key(name);
        let uuids = &mut *self.uuids;
        let entry = self
            .names
            .entry(name.to_owned())
            .or_insert_with(|| RowName {
                uuid: uuids.fresh(),
                is_defined: false,
                reference: None,
            });
        Ok((entry, is_new))
    }

    /// Parses a value of a column.
    ///
    /// # Errors
    /// The text is not such a value.
    pub(crate) fn read_datum(
        &mut self,
        value: &str,
        column_type: &ColumnType,
    ) -> Result<Datum, String> {
        let bases = std::iter::once(&column_type.key).chain(&column_type.value);
        let strength = bases.filter_map(strength).max();
        text::read_datum(value, column_type, &mut |name| self.mention(name, strength))
    }

    /// Parses one atom.
    ///
    /// # Errors
    /// The text is not such an atom.
    pub(crate) fn read_atom(&mut self, value: &str, base: &BaseType) -> Result<Atom, String> {
        let strength = strength(base);
        text::read_atom(value, base, &mut |name| self.mention(name, strength))
    }

    fn mention(&mut self, name: &str, strength: Option<Strength>) -> Option<Uuid> {
        let (entry, _) = self.entry(&format!("@{name}")).ok()?;
        entry.reference = entry.reference.max(strength);
        Some(entry.uuid)
    }

    /// Checks at the end of a chain that every name was defined. Returns warnings about rows that
    /// will not appear, because nothing refers to them.
    ///
    /// # Errors
    /// A name was used, but never defined.
    pub(crate) fn finish(&self) -> Result<Vec<String>, Failure> {
        let mut warnings = Vec::new();
        for (name, entry) in &self.names {
            if !entry.is_defined {
                return Err(Failure::usage(format!(
                    "row id \"@{name}\" is referenced but never created (e.g. with \"-- --id=@{name} create ...\")"
                )));
            }
            let few = match entry.reference {
                Some(Strength::Strong) => continue,
                Some(Strength::Weak) => "only a weak reference to it was",
                None => "no reference to it was",
            };
            warnings.push(format!(
                "row id \"@{name}\" was created but {few} inserted, so it will not actually appear in the database"
            ));
        }
        Ok(warnings)
    }
}

fn strength(base: &BaseType) -> Option<Strength> {
    let Reference { ref_type, .. } = base.reference.as_ref()?;
    Some(match ref_type {
        RefType::Strong => Strength::Strong,
        RefType::Weak => Strength::Weak,
    })
}
