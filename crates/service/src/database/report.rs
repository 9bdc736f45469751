//! What the server's commands ask of a database: how much there is of everything, and which tables are logged.

use super::DatabaseService;
use crate::message::{Report, Usage};

impl DatabaseService {
    pub(super) fn report(&self) -> Report {
        let schema = self.database.schema();
        let tables = schema.iter().map(|(_, table)| {
            let name = table.name.to_string();
            let is_logged = self.row_log.contains(&name);
            (name, is_logged)
        });
        Report {
            usage: self.usage(),
            tables: tables.collect(),
        }
    }

    fn usage(&self) -> Usage {
        let schema = self.database.schema();
        // `_uuid` and `_version` are cells too.
        let cells = schema
            .iter()
            .map(|(id, table)| self.database.row_count(id) * (table.columns().len() + 2));
        let (commits, atoms) = self.monitors.history_size();
        Usage {
            atoms: self.database.atom_count(),
            cells: cells.sum::<usize>() as u64,
            monitors: self.monitors.len() as u64,
            triggers: self.triggers.len() as u64,
            weak_references: self.database.weak_reference_count(),
            history_commits: commits as u64,
            history_atoms: atoms,
        }
    }
}
