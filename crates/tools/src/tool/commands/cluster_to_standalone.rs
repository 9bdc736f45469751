//! `cluster-to-standalone`: the contents of a member's file as a standalone database, for a cluster that is no more.
//!
//! The log is followed as a member would follow it: entries that later ones have superseded are left out. (The reference
//! copies every entry it meets, superseded ones too.) Entries at the end that are not known to be committed may have been
//! acknowledged by a majority that is gone, so they are kept, and the user is told how many. A gap or damage among the entries is
//! an error; votes and commit indexes that make no sense are only reported.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use corvid_data::{Arc, Schema};
use corvid_json::{Reader, Value};
use corvid_log::cluster::{Data, Index, Kind, Parts, Replay};
use corvid_log::{Magic, ReadError, Record, write_schema};
use corvid_shell::program;

use super::{Invocation, Outcome};
use crate::failure::Failure;
use crate::tool::answer::Answer;
use crate::tool::cluster_file::ClusterFile;
use crate::tool::database::DatabaseFile;
use crate::tool::replacement::{Draft, Place, Wording};
use crate::tool::uuids::RandomUuids;

/// Writes the new file; nothing is left of it after a failure.
pub(super) fn cluster_to_standalone(invocation: &Invocation<'_>) -> Outcome {
    let [target, source] = invocation.args else {
        return Err(Failure::new("DB CLUSTERDB expected"));
    };
    let file = DatabaseFile::open(Path::new(source))?.with_progress();
    let place = Place::lock_new(Path::new(target), Wording::Tagged)?;
    if file.magic() == Magic::Standalone {
        // The blank line is the reference's.
        return Err(Failure::new("Database is not clustered db.\n"));
    }
    let mut rescue = Rescue {
        place,
        draft: None,
        pending: VecDeque::new(),
    };
    let notice = rescue.follow(ClusterFile::new(file)?)?;
    let Some(draft) = rescue.draft else {
        return Err(Failure::new(format!("{source}: there is no schema in it")));
    };
    draft.finish()?;
    for line in notice {
        eprintln!("{}: {source}: {line}", program::name());
    }
    Ok(Answer::Yes)
}

/// A database on its way from one file to the other.
struct Rescue {
    place: Place,
    /// `None` before the first schema.
    draft: Option<Draft>,
    /// Entries with data that may still be superseded: those not known to be committed.
    pending: VecDeque<(Index, Data)>,
}

impl Rescue {
    /// Copies everything. Returns what the user should know.
    fn follow(&mut self, mut file: ClusterFile) -> Result<Vec<String>, Failure> {
        let name = file.name.clone();
        let Some(mut log) = Replay::new(&file.header) else {
            return Err(Failure::new(format!(
                "{name}: has not joined its cluster, so there are no contents"
            )));
        };
        if let Some(snapshot) = file.header.snapshot() {
            let parts = snapshot.data.parts();
            let whole = parts.filter(|parts| parts.schema.is_some() && parts.transaction.is_some());
            let parts = whole.ok_or_else(|| Failure::new("Invalid raft header data"))?;
            self.add(parts)?;
        }
        let mut notices = Vec::new();
        loop {
            let record = match file.records().next() {
                Ok(Some(record)) => record?,
                Ok(None) => break,
                Err(error) if is_torn(Path::new(&name), &error, file.records().good_end()) => {
                    notices.push(format!(
                        "the last record is torn and left out: {}",
                        error.to_wire(&name)
                    ));
                    break;
                }
                Err(error) => {
                    let good = file.records().number() + 1;
                    return Err(unusable(&name, good, &error.to_wire(&name).to_string()));
                }
            };
            let number = file.records().number();
            if let Err(violation) = log.apply(&record) {
                let text = violation.text(number, |sid| sid.to_string());
                if matches!(record.kind, Kind::Entry(_)) {
                    return Err(unusable(&name, number, &format!("{name}: {text}")));
                }
                // What the member promised to others, or believed of the log, does not matter any more.
                notices.push(text);
                continue;
            }
            match record.kind {
                Kind::Entry(entry) => {
                    while self
                        .pending
                        .back()
                        .is_some_and(|(index, _)| *index >= entry.index)
                    {
                        self.pending.pop_back();
                    }
                    if let Some(payload) = entry.payload {
                        self.pending.push_back((entry.index, payload.data));
                    }
                }
                Kind::CommitIndex(commit) => self.settle(commit)?,
                _ => {}
            }
        }
        if !self.pending.is_empty() {
            notices.push(match self.pending.len() {
                1 => "its last transaction is not known to be committed; it is included".to_owned(),
                count => format!(
                    "its last {count} transactions are not known to be committed; they are included"
                ),
            });
        }
        self.settle(log.end())?;
        Ok(notices)
    }

    /// Writes the pending entries up to `commit`.
    fn settle(&mut self, commit: Index) -> Result<(), Failure> {
        while let Some((index, data)) = self.pending.pop_front() {
            if index > commit {
                self.pending.push_front((index, data));
                break;
            }
            let parts = data.parts();
            self.add(parts.ok_or_else(|| Failure::new("Incorrect raft record array length"))?)?;
        }
        Ok(())
    }

    fn add(&mut self, parts: Parts<'_>) -> Result<(), Failure> {
        match (parts.schema()?, parts.transaction) {
            (None, None) => Ok(()),
            (None, Some(transaction)) => self.add_transaction(transaction),
            (Some(schema), Some(transaction)) => {
                let mut record = Vec::new();
                write_schema(&mut record, &schema);
                self.restart()?.write(&record)?;
                self.add_transaction(transaction)
            }
            (Some(schema), None) => self.convert(schema),
        }
    }

    /// The record as it stands in the entry; what it means is for whoever opens the database.
    fn add_transaction(&mut self, transaction: &[u8]) -> Result<(), Failure> {
        let Some(draft) = &mut self.draft else {
            return Err(Failure::new("a transaction precedes every schema"));
        };
        if Reader::new(transaction).begin_object().is_err() {
            return Err(Failure::new(format!(
                "not a transaction: {}",
                String::from_utf8_lossy(transaction)
            )));
        }
        let mut out = Vec::with_capacity(transaction.len() + 128);
        let mut record = Record::begin(&mut out, Magic::Standalone);
        // A record is one line, so that people can cut files by lines.
        if transaction.contains(&b'\n') {
            let json = Value::parse(transaction)
                .map_err(|error| Failure::new(format!("not a transaction: {error}")))?;
            json.write(record.body());
        } else {
            record.body().extend_from_slice(transaction);
        }
        record.finish();
        draft.write(&out)
    }

    /// An entry with a schema alone converts the rows so far.
    fn convert(&mut self, schema: Schema) -> Result<(), Failure> {
        let Some(draft) = &self.draft else {
            return Err(Failure::new("a conversion precedes every schema"));
        };
        let mut uuids = RandomUuids::new()?;
        let (database, _) = DatabaseFile::open(draft.path())?
            .load()?
            .finish(&mut uuids)?;
        let database = database.convert(Arc::new(schema), &mut uuids)?;
        let comment = format!("converted by ovsdb-tool {}", program::VERSION);
        self.restart()?.write_database(&database, &comment)
    }

    /// Drops what was written: what follows replaces it.
    fn restart(&mut self) -> Result<&mut Draft, Failure> {
        self.draft = None;
        Ok(self.draft.insert(self.place.begin()?))
    }
}

/// The error about a record behind `good` sound ones. Whoever has no other member's file will want to have those.
fn unusable(name: &str, good: u64, problem: &str) -> Failure {
    let lines = 2 * good;
    Failure::new(format!(
        "{problem}; \"head -n {lines} {name}\" prints a file of what precedes it"
    ))
}

/// Whether the damage at `offset` is a record that was being written when its writer died: the file ends within its header
/// line or its body. It was never synced, so nobody relies on it.
fn is_torn(path: &Path, error: &ReadError, offset: u64) -> bool {
    let Ok(tail) = read_from(path, offset) else {
        return false;
    };
    match error {
        ReadError::Header { .. } => !tail.contains(&b'\n'),
        // A damaged length may reach beyond records that are whole.
        ReadError::Short { .. } => !tail
            .windows(NEXT_HEADER.len())
            .any(|window| window == NEXT_HEADER),
        _ => false,
    }
}

const NEXT_HEADER: &[u8] = b"\nOVSDB CLUSTER ";

fn read_from(path: &Path, offset: u64) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(offset))?;
    let mut tail = Vec::new();
    file.read_to_end(&mut tail)?;
    Ok(tail)
}
