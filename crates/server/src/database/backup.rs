//! `ovsdb-server/backup`: writes a snapshot of a database to a new file, on its own thread, while
//! the database keeps serving.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use corvid_disk::replacement::Replacement;
use corvid_engine::Snapshot;
use corvid_log::storage::RowProgress;
use corvid_log::{Stamp, write_schema, write_snapshot};
use corvid_net::{clock, errno, os_name};
use corvid_reactor::priority;

use crate::jobs::{JobKind, Jobs};
use crate::main_handle::MainHandle;

/// The comment of the record that holds the rows.
const COMMENT: &str = "produced by \"ovsdb-server/backup\"";

/// A backup to be written.
#[derive(Debug)]
pub(crate) struct Backup {
    /// The name for messages: absolute, because a daemon has left the directory that the operator
    /// takes a relative name to refer to.
    shown: String,
    /// The given name was relative, so the reply says which file it means.
    is_relative: bool,
    /// The absolute name.
    path: PathBuf,
}

impl Backup {
    /// A backup to the file of this name.
    ///
    /// # Errors
    /// The file exists, or its name cannot be made absolute.
    pub(crate) fn new(file: &str) -> Result<Backup, String> {
        let path = std::path::absolute(os_name::path(file))
            .map_err(|error| format!("I/O error: {file}: {}", errno::text(&error)))?;
        let shown = os_name::text(path.as_os_str());
        if path.exists() {
            return Err(format!("I/O error: {shown}: create failed (File exists)"));
        }
        Ok(Backup {
            shown,
            is_relative: os_name::path(file).is_relative(),
            path,
        })
    }

    /// Writes the backup on its own thread, which sends the outcome to the main thread. The
    /// server's exit cancels the backup.
    pub(crate) fn start(
        self,
        token: u64,
        snapshot: Snapshot,
        main: MainHandle,
        is_exiting: Arc<AtomicBool>,
        jobs: &Jobs,
    ) {
        let progress = Arc::new(RowProgress::new(snapshot.rows_count()));
        let job = jobs.begin_rows(&snapshot.schema().name, JobKind::Backup, &progress);
        let reporter = main.clone();
        let spawned = std::thread::Builder::new()
            .name("backup".to_owned())
            .spawn(move || {
                priority::yield_to_others();
                let outcome = self.write(&snapshot, &progress, &is_exiting);
                drop(snapshot);
                drop(job);
                main.backed_up(token, outcome);
            });
        if let Err(error) = spawned {
            reporter.backed_up(token, Err(errno::text(&error)));
        }
    }

    /// Writes the backup. Returns the text of the reply.
    fn write(
        &self,
        snapshot: &Snapshot,
        progress: &RowProgress,
        is_exiting: &AtomicBool,
    ) -> Result<String, String> {
        let written = self.try_write(snapshot, progress, is_exiting).map(|()| {
            if self.is_relative {
                format!("{}\n", self.shown)
            } else {
                String::new()
            }
        });
        written.map_err(|error| {
            if is_exiting.load(Ordering::Relaxed) {
                return format!("{}: not written: the server is exiting", self.shown);
            }
            let reason = errno::text(&error);
            format!("I/O error: {}: write failed ({reason})", self.shown)
        })
    }

    /// Writes a temporary file, which gets its name only when it is complete and synced.
    fn try_write(
        &self,
        snapshot: &Snapshot,
        progress: &RowProgress,
        is_exiting: &AtomicBool,
    ) -> std::io::Result<()> {
        let mut file = Replacement::create(&self.path)?;
        let schema = snapshot.schema();
        let mut head = Vec::new();
        write_schema(&mut head, schema);
        file.write(&head)?;
        let stamp = Stamp {
            date_ms: clock::wall_ms(),
            comment: COMMENT,
            is_diff: true,
            with_defaults: false,
        };
        let rows = |table| snapshot.rows(table).inspect(|_| progress.visit());
        write_snapshot(schema, &stamp, rows, &mut |piece| {
            if is_exiting.load(Ordering::Relaxed) {
                return Err(std::io::ErrorKind::Interrupted.into());
            }
            file.write(piece)?;
            file.write_back()
        })?;
        file.finish()
    }
}
