//! `cluster-to-standalone`: writes the contents of a member's file as a standalone database, to
//! recover a lost cluster.
//!
//! The log is replayed as a member replays it: entries that later entries supersede are omitted.
//! (The reference copies every entry, including superseded ones.) Entries at the end that are not
//! known to be committed are kept, because a lost majority may have acknowledged them; a warning
//! states their number. A gap or damage among the entries is an error; inconsistent votes and
//! commit indexes only cause warnings.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use corvid_data::{Arc, Schema};
use corvid_disk::log_file::OpenMode;
use corvid_json::{ObjectWriter, Reader, Value, write};
use corvid_log::cluster::{Data, Index, Kind, Parts, Replay};
use corvid_log::commit_client::TRANSACTION_PREFIX;
use corvid_log::commit_ids::END_LINE;
use corvid_log::{Magic, ReadError, Record, write_schema};
use corvid_net::{clock, os_name};
use corvid_shell::{output, program};
use memchr::memmem;

use super::{Invocation, Outcome};
use crate::failure::Failure;
use crate::tool::answer::Answer;
use crate::tool::cluster_file::ClusterFile;
use crate::tool::database::DatabaseFile;
use crate::tool::replacement::{Draft, Target, Wording};
use crate::uuids::RandomUuids;

/// Writes the new file. If this fails, no file remains.
pub(super) fn cluster_to_standalone(invocation: &Invocation<'_>) -> Outcome {
    let [target, source] = invocation.args else {
        return Err(Failure::new("DB CLUSTERDB expected"));
    };
    let file = DatabaseFile::open(&os_name::path(source))?;
    let target = Target::lock_new(&os_name::path(target), Wording::Tagged)?;
    if file.magic() == Magic::Standalone {
        // The reference prints this blank line too.
        return Err(Failure::of_lines("Database is not clustered db.\n"));
    }
    let mut recovery = Recovery {
        target,
        draft: None,
        pending: VecDeque::new(),
        may_name_commits: false,
    };
    let warnings = recovery.copy(ClusterFile::new(file)?)?;
    let Some(draft) = recovery.draft else {
        return Err(Failure::new(format!("{source}: there is no schema in it")));
    };
    draft.finish()?;
    for line in warnings {
        output::error_line(format_args!("{}: {source}: {line}", program::name()));
    }
    Ok(Answer::Yes)
}

/// The copy of a database from one file to the other.
struct Recovery {
    target: Target,
    /// `None` before the first schema.
    draft: Option<Draft>,
    /// Entries with data that are not known to be committed: later entries may supersede them.
    pending: VecDeque<(Index, Data)>,
    /// A comment may name commits as those of standalone files do.
    may_name_commits: bool,
}

impl Recovery {
    /// Copies all entries. Returns warnings for the user.
    fn copy(&mut self, mut file: ClusterFile) -> Result<Vec<String>, Failure> {
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
        let mut warnings = Vec::new();
        loop {
            let record = match file.records().next() {
                Ok(Some(record)) => record?,
                Ok(None) => break,
                Err(error) if is_torn(&os_name::path(&name), &error, file.records().good_end()) => {
                    warnings.push(format!(
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
                // The member's votes and commit indexes do not affect the contents.
                warnings.push(text);
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
                Kind::CommitIndex(commit) => self.write_committed(commit)?,
                _ => {}
            }
        }
        if !self.pending.is_empty() {
            warnings.push(match self.pending.len() {
                1 => "its last transaction is not known to be committed; it is included".to_owned(),
                count => format!(
                    "its last {count} transactions are not known to be committed; they are included"
                ),
            });
        }
        self.write_committed(log.end())?;
        self.end_commits()?;
        Ok(warnings)
    }

    /// Ends what the comments say about commits. The lines of a snapshot are followed by entries
    /// whose records do not name theirs, and a client may have written other lines as its own
    /// comment. A server that relied on them would execute a transaction again.
    fn end_commits(&mut self) -> Result<(), Failure> {
        let Some(draft) = self.draft.as_mut().filter(|_| self.may_name_commits) else {
            return Ok(());
        };
        let mut out = Vec::new();
        let mut record = Record::begin(&mut out, Magic::Standalone);
        let object = ObjectWriter::new(record.body());
        let mut object = object.string("_comment", END_LINE.as_bytes());
        write::integer(object.member("_date"), clock::wall_ms());
        object.end();
        record.finish();
        draft.write(&out)
    }

    /// Writes the pending entries up to `commit`.
    fn write_committed(&mut self, commit: Index) -> Result<(), Failure> {
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

    /// Writes the transaction exactly as the entry has it. It is validated when the database is
    /// opened.
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
        self.may_name_commits |= memmem::find(transaction, TRANSACTION_PREFIX.as_bytes()).is_some();
        let mut out = Vec::with_capacity(transaction.len() + 128);
        let mut record = Record::begin(&mut out, Magic::Standalone);
        // A record is one line, so that files can be cut at lines.
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

    /// An entry with only a schema converts the rows so far.
    fn convert(&mut self, schema: Schema) -> Result<(), Failure> {
        let Some(draft) = &self.draft else {
            return Err(Failure::new("a conversion precedes every schema"));
        };
        let mut uuids = RandomUuids::new()?;
        let (database, _) = DatabaseFile::open_quietly(draft.path(), OpenMode::ReadOnly)?
            .load()?
            .finish(&mut uuids)?;
        let database = database.convert(Arc::new(schema), &mut uuids)?;
        let comment = format!("converted by ovsdb-tool {}", program::VERSION);
        self.restart()?.write_database(&database, &comment)
    }

    /// Discards the records written so far: the next ones replace them.
    fn restart(&mut self) -> Result<&mut Draft, Failure> {
        self.draft = None;
        Ok(self.draft.insert(self.target.begin()?))
    }
}

/// The error about a record after `good` undamaged ones. It says how to extract those, for users
/// who have no other member's file.
fn unusable(name: &str, good: u64, problem: &str) -> Failure {
    let lines = 2 * good;
    Failure::new(format!(
        "{problem}; \"head -n {lines} {name}\" prints a file of what precedes it"
    ))
}

/// Whether the damage at `offset` is a record whose write a crash interrupted: the file ends within
/// its header line or its body. Such a record was never synced, so it was not acknowledged.
fn is_torn(path: &Path, error: &ReadError, offset: u64) -> bool {
    let Ok(tail) = read_from(path, offset) else {
        return false;
    };
    match error {
        ReadError::Header { .. } => !tail.contains(&b'\n'),
        // A damaged length may extend over undamaged records.
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
