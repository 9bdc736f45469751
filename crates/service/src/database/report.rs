//! The report of a database for the server's commands and its metrics: how much there is of everything, which tables are logged, the state
//! of its file.

use super::DatabaseService;
use crate::counters::Counters;
use crate::message::{FileReport, Report, TableReport, Usage};

impl DatabaseService {
    /// The report of this moment. Costs as much as there are tables.
    #[must_use]
    pub fn report(&self) -> Report {
        let schema = self.database.schema();
        let tables = schema.iter().map(|(id, table)| {
            let name = table.name.to_string();
            TableReport {
                is_logged: self.row_log.contains(&name),
                rows: self.database.row_count(id) as u64,
                name,
            }
        });
        let file = self.growth.map(|growth| {
            let (size, base, records) = growth.figures();
            FileReport {
                size,
                base,
                records,
                has_failed: self.storage_error.is_some(),
                is_rewriting: !self.rewrites.is_idle(),
            }
        });
        let in_flight = self.model.cluster();
        let in_flight = in_flight.map_or(0, |cluster| cluster.in_flight().len());
        Report {
            usage: self.usage(),
            tables: tables.collect(),
            counts: Counters {
                updates: self.monitors.notification_counts(),
                ..self.counts.clone()
            },
            pending: (self.pending.len() + in_flight) as u64,
            queued: self.barrier_queue.len() as u64,
            file,
            is_converting: self.conversion.is_some(),
            replication: self.backup_status(),
        }
    }

    /// The counters of the database, except the updates that it has composed.
    #[must_use]
    pub fn counts(&self) -> &Counters {
        &self.counts
    }

    /// `update`, `update2` and `update3` notifications composed so far.
    #[must_use]
    pub fn updates_composed(&self) -> [u64; 3] {
        self.monitors.notification_counts()
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
