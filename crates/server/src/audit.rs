//! The file of the audit trail, and the thread that writes it.
//!
//! Databases queue their entries and do not wait; the `audit` thread composes the records, appends
//! them, and reopens the file after rotation. The price is that records can be lost: when a write
//! fails, or when entries arrive faster than they are written and fill the queue
//! ([`QUEUED_BYTES_MAX`]). A warning in the log says how many were lost, and so does a record with
//! the outcome `lost` in the trail, as soon as writing succeeds again.
//!
//! [`corvid_service::audit`] composes a record. Records that arrive together are appended with one
//! write; they are not synced.

use std::fs::{File, Metadata, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use corvid_json::shown;
use corvid_net::{cleanup, clock, errno};
use corvid_service::audit::{Entry, Exclusions};
use corvid_shell::date;
use corvid_shell::vlog::{self, Module, RateLimit};
use crossbeam_channel::{Receiver, Sender};

/// The maximum size of the queue, bytes. An empty queue accepts even a larger entry.
const QUEUED_BYTES_MAX: usize = 256 << 20;

/// The number of bytes collected before a write.
const WRITE_BYTES: usize = 1 << 20;

/// How long the server's exit waits for the last records.
const FAREWELL: Duration = Duration::from_secs(5);

/// A message to the audit thread.
enum ToTrail {
    Entries(Vec<Entry>),
    Reopen(Box<dyn FnOnce(std::io::Result<()>) + Send>),
    /// New exclusions, which apply to the entries that follow.
    Exclude(Exclusions),
    /// The trail was turned on or off.
    Turned(bool),
    /// Write everything queued so far, answer, and end.
    End(Sender<()>),
}

/// The handle of the audit trail; cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct AuditLog {
    thread: Sender<ToTrail>,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    path: PathBuf,
    /// The size of the queue, bytes.
    queued: AtomicUsize,
    /// Entries dropped because the queue was full, and not reported yet.
    dropped: AtomicU64,
    /// The number of written records.
    written: AtomicU64,
    /// The number of lost records, whether or not the trail reports them yet.
    missing: AtomicU64,
}

/// The audit trail of a server, once it is open; cheap to clone. Databases hold the slot from their
/// start, so that a trail can begin at run time. A server opens at most one trail.
#[derive(Clone, Debug, Default)]
pub(crate) struct AuditSlot(Arc<OnceLock<AuditLog>>);

impl AuditSlot {
    /// The trail, if it has begun.
    pub(crate) fn get(&self) -> Option<&AuditLog> {
        self.0.get()
    }

    /// Begins the trail, as [`AuditLog::open`] does. Entries that are queued when the process ends
    /// are still written, unless SIGKILL ends it. Called by the main thread only, while there is no
    /// trail.
    ///
    /// # Errors
    /// As [`AuditLog::open`].
    pub(crate) fn begin(&self, path: &Path, exclusions: Exclusions) -> std::io::Result<()> {
        assert!(self.0.get().is_none(), "a server has one audit trail");
        let audit = AuditLog::open(path, exclusions)?;
        let last = audit.clone();
        cleanup::at_exit(move || last.close());
        // Nobody else begins a trail.
        let _ = self.0.set(audit);
        Ok(())
    }
}

impl AuditLog {
    /// The file.
    pub(crate) fn path(&self) -> &Path {
        &self.shared.path
    }

    /// Opens the file of this absolute name for appending, and starts the thread. Records omit the
    /// tables that `exclusions` name.
    ///
    /// # Errors
    /// The file cannot be opened, or the thread cannot be created.
    pub(crate) fn open(path: &Path, exclusions: Exclusions) -> std::io::Result<AuditLog> {
        let file = open(path)?;
        let is_torn = is_torn(path);
        let shared = Arc::new(Shared {
            path: path.to_owned(),
            queued: AtomicUsize::new(0),
            dropped: AtomicU64::new(0),
            written: AtomicU64::new(0),
            missing: AtomicU64::new(0),
        });
        let (thread, arrived) = crossbeam_channel::unbounded();
        let trail = Trail {
            file,
            shared: shared.clone(),
            is_torn,
            lost: 0,
        };
        std::thread::Builder::new()
            .name("audit".to_owned())
            .spawn(move || run(trail, exclusions, &arrived))?;
        Ok(AuditLog { thread, shared })
    }

    /// Queues entries. Never waits: if the queue is full, the entries are dropped and counted.
    pub(crate) fn push(&self, entries: Vec<Entry>) {
        let weight = weight(&entries);
        let before = self.shared.queued.fetch_add(weight, Ordering::Relaxed);
        let count = entries.len() as u64;
        let is_full = before > 0 && before + weight > QUEUED_BYTES_MAX;
        if is_full || self.thread.send(ToTrail::Entries(entries)).is_err() {
            self.shared.queued.fetch_sub(weight, Ordering::Relaxed);
            self.shared.dropped.fetch_add(count, Ordering::Relaxed);
            self.shared.missing.fetch_add(count, Ordering::Relaxed);
        }
    }

    /// The numbers of written and lost records since the start.
    #[must_use]
    pub(crate) fn counts(&self) -> (u64, u64) {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        (read(&self.shared.written), read(&self.shared.missing))
    }

    /// Reopens the file by its name, after rotation. Earlier entries go to the old file. `finish`
    /// gets the outcome, on the trail's thread.
    pub(crate) fn reopen(&self, finish: impl FnOnce(std::io::Result<()>) + Send + 'static) {
        // Sending fails only after the thread has ended, together with the server.
        let _ = self.thread.send(ToTrail::Reopen(Box::new(finish)));
    }

    /// Replaces the exclusions, for the entries that are queued from now on.
    pub(crate) fn exclude(&self, exclusions: Exclusions) {
        // Sending fails only after the thread has ended.
        let _ = self.thread.send(ToTrail::Exclude(exclusions));
    }

    /// Records in the trail that it was turned on or off. The databases themselves stop or start
    /// sending entries.
    pub(crate) fn turned(&self, is_on: bool) {
        // Sending fails only after the thread has ended.
        let _ = self.thread.send(ToTrail::Turned(is_on));
    }

    /// Waits until everything is written, at most [`FAREWELL`].
    pub(crate) fn close(&self) {
        let (answer, answered) = crossbeam_channel::bounded(1);
        if self.thread.send(ToTrail::End(answer)).is_ok() {
            let _ = answered.recv_timeout(FAREWELL);
        }
    }
}

fn weight(entries: &[Entry]) -> usize {
    entries.iter().map(Entry::weight).sum()
}

fn open(path: &Path) -> std::io::Result<File> {
    OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o640)
        .open(path)
}

/// Whether the file ends with an incomplete record, as after a kill or a full disk.
fn is_torn(path: &Path) -> bool {
    let last = || {
        let file = File::open(path).ok()?;
        // Only a regular file is read: the target may be a pipe.
        let metadata = file.metadata().ok().filter(Metadata::is_file)?;
        let mut last = [0];
        let end = metadata.len().checked_sub(1)?;
        file.read_exact_at(&mut last, end).ok().map(|()| last[0])
    };
    last().is_some_and(|last| last != b'\n')
}

/// The audit thread.
fn run(mut trail: Trail, mut exclusions: Exclusions, arrived: &Receiver<ToTrail>) {
    // The text to write; the buffer is reused.
    let mut text = Vec::new();
    while let Ok(first) = arrived.recv() {
        for message in std::iter::once(first).chain(arrived.try_iter()) {
            match message {
                ToTrail::Entries(entries) => {
                    let weight = weight(&entries);
                    for entry in &entries {
                        let time = rfc3339(entry.date_ms);
                        entry.write(&time, &exclusions, &mut text, &mut |text| {
                            if text.len() >= WRITE_BYTES {
                                trail.write_out(text);
                            }
                        });
                    }
                    // Entries may hold the last references to row versions, so they are freed
                    // before the next wait.
                    drop(entries);
                    let before = trail.shared.queued.fetch_sub(weight, Ordering::Relaxed);
                    assert!(
                        weight <= before,
                        "entries are counted while they are queued"
                    );
                }
                ToTrail::Reopen(finish) => {
                    trail.write_out(&mut text);
                    finish(trail.reopen());
                }
                ToTrail::Exclude(others) => exclusions = others,
                ToTrail::Turned(is_on) => {
                    let time = rfc3339(clock::wall_ms());
                    let outcome = if is_on { "on" } else { "off" };
                    let record = format!("{{\"time\":\"{time}\",\"outcome\":\"{outcome}\"}}\n");
                    text.extend_from_slice(record.as_bytes());
                }
                ToTrail::End(answer) => {
                    trail.write_out(&mut text);
                    // The sender may have stopped waiting.
                    let _ = answer.send(());
                    return;
                }
            }
        }
        trail.write_out(&mut text);
    }
}

/// The open file, and its state.
struct Trail {
    file: File,
    shared: Arc<Shared>,
    /// The file ends with an incomplete record.
    is_torn: bool,
    /// Lost records that the file does not report yet.
    lost: u64,
}

impl Trail {
    fn reopen(&mut self) -> std::io::Result<()> {
        self.file = open(&self.shared.path)?;
        self.is_torn = is_torn(&self.shared.path);
        Ok(())
    }

    /// Escapes control characters, so that none reaches the terminal of a person who reads the
    /// trail. JSON has already escaped the ASCII ones; escaping the others does not change JSON
    /// values either.
    fn escape(text: &mut Vec<u8>) {
        if text.iter().all(|byte| *byte < 0x7f) {
            return;
        }
        let mut escaped = String::with_capacity(text.len());
        let unfinished = shown::append_lines(text, &mut escaped);
        debug_assert!(unfinished.is_empty(), "records are whole");
        *text = escaped.into_bytes();
    }

    /// Writes `text`, preceded by a record about lost records if there are any, and clears `text`.
    fn write_out(&mut self, text: &mut Vec<u8>) {
        let dropped = self.shared.dropped.swap(0, Ordering::Relaxed);
        if dropped > 0 {
            self.lost += dropped;
            self.complain("the queue is full", dropped);
        }
        if text.is_empty() && self.lost == 0 {
            return;
        }
        Trail::escape(text);
        let mut before = Vec::new();
        if self.is_torn {
            before.push(b'\n');
        }
        if self.lost > 0 {
            let time = rfc3339(clock::wall_ms());
            let lost = self.lost;
            // No string in this record needs escaping.
            before.extend_from_slice(
                format!("{{\"time\":\"{time}\",\"outcome\":\"lost\",\"records\":{lost}}}\n")
                    .as_bytes(),
            );
        }
        let own = before.len();
        text.splice(0..0, before);
        let (written, outcome) = self.append(text);
        // The record about losses counts as written only if all of it is in the file; otherwise the
        // next write reports the losses again.
        if written >= own {
            self.lost = 0;
        }
        let (there, missing) = text[own..].split_at(written.saturating_sub(own));
        let records = |text: &[u8]| text.iter().filter(|byte| **byte == b'\n').count() as u64;
        let count = |cell: &AtomicU64, text| cell.fetch_add(records(text), Ordering::Relaxed);
        count(&self.shared.written, there);
        if let Err(error) = outcome {
            count(&self.shared.missing, missing);
            let records = records(missing);
            self.lost += records;
            if records > 0 {
                let error = errno::text(&error);
                self.complain(&format!("write failed ({error})"), records);
            }
        }
        text.clear();
        text.shrink_to(2 * WRITE_BYTES);
    }

    /// Writes all bytes. Returns the number of bytes written, and the error.
    fn append(&mut self, bytes: &[u8]) -> (usize, std::io::Result<()>) {
        let mut written = 0;
        while written < bytes.len() {
            match self.file.write(&bytes[written..]) {
                Ok(0) => return (written, Err(std::io::ErrorKind::WriteZero.into())),
                Ok(more) => {
                    written += more;
                    self.is_torn = bytes[written - 1] != b'\n';
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return (written, Err(error)),
            }
        }
        (written, Ok(()))
    }

    fn complain(&self, why: &str, records: u64) {
        static LIMIT: RateLimit = RateLimit::new(5, 5);
        let path = self.shared.path.display();
        let message = format_args!("audit log {path}: {why}, {records} records lost");
        vlog::warn_limited(&LIMIT, Module::OvsdbServer, message);
    }
}

/// A time as in `2026-11-21T15:00:00.000Z`.
fn rfc3339(ms: i64) -> String {
    let text = date::utc_text(ms);
    let (day, time) = text.split_once(' ').unwrap_or((&text, ""));
    format!("{day}T{time}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::io::Read;
    use std::os::fd::AsRawFd;

    use corvid_data::uuid::Uuid;
    use corvid_data::{Delta, Tag};
    use corvid_service::audit::{Action, Actor, ShortText};
    use corvid_service::server_db;

    #[test]
    fn dates_are_those_of_rfc_3339() {
        assert_eq!(rfc3339(1_700_000_000_123), "2023-11-14T22:13:20.123Z");
    }

    fn entry(what: Action) -> Entry {
        Entry {
            date_ms: 0,
            schema: corvid_data::Arc::new(server_db::schema().unwrap()),
            who: Actor::Server,
            what,
        }
    }

    fn denied(comment: &str) -> Entry {
        refused(comment, 0)
    }

    /// A denied entry with this number of operations, each with a name of one kilobyte.
    fn refused(comment: &str, operations: usize) -> Entry {
        let operation = (ShortText::of(&"x".repeat(1024)), ShortText::default());
        entry(Action::Denied {
            tag: Tag::NotAllowed,
            details: ShortText::default(),
            operations: vec![operation; operations],
            comment: ShortText::of(comment),
        })
    }

    /// An entry of this size with an empty record.
    fn heavy(record_bytes: usize) -> Entry {
        entry(Action::Committed {
            txn: Uuid::ZERO,
            delta: corvid_data::Arc::new(Delta::default()),
            record_bytes,
        })
    }

    /// The lines of the file, without their times.
    fn lines(path: &Path) -> Vec<String> {
        let text = std::fs::read_to_string(path).unwrap();
        let cut = |line: &str| {
            line.split_once("Z\",")
                .map_or(line, |(_, rest)| rest)
                .to_owned()
        };
        text.lines().map(cut).collect()
    }

    #[test]
    fn a_record_after_an_incomplete_one_begins_a_new_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.log");
        std::fs::write(&path, "{\"time\":\"19").unwrap();
        let log = AuditLog::open(&path, Exclusions::default()).unwrap();
        log.push(vec![denied("a"), denied("b")]);
        log.close();
        let lines = lines(&path);
        assert_eq!((lines.len(), lines[0].as_str()), (3, "{\"time\":\"19"));
        assert!(lines[2].ends_with("\"comment\":\"b\",\"operations\":[]}"));
        // The thread has ended, so nothing is written, and `close` does not wait.
        log.push(vec![denied("c")]);
        log.close();
        assert_eq!(self::lines(&path).len(), 3);
    }

    #[test]
    fn records_have_no_control_characters_and_keep_their_values() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.log");
        let log = AuditLog::open(&path, Exclusions::default()).unwrap();
        let comment = "a\n\u{1b}[2J\u{7f}\u{9b}m\u{202e}é";
        log.push(vec![denied(comment)]);
        log.close();
        let text = std::fs::read_to_string(&path).unwrap();
        let line = text.strip_suffix('\n').unwrap();
        assert!(!line.chars().any(shown::is_control), "{line}");
        let record = corvid_json::Value::parse(line.as_bytes()).unwrap();
        let written = record.get("comment").and_then(corvid_json::Value::as_str);
        assert_eq!(written, Some(comment));
    }

    /// An unread pipe blocks the thread.
    #[test]
    fn entries_beyond_the_queue_are_dropped_and_reported() {
        let (mut reader, writer) = std::io::pipe().unwrap();
        let path = PathBuf::from(format!("/proc/self/fd/{}", writer.as_raw_fd()));
        let log = AuditLog::open(&path, Exclusions::default()).unwrap();
        log.push(vec![refused("long", 1 << 10)]);
        // The thread is now writing the entry, and the full pipe blocks it.
        reader.read_exact(&mut [0]).unwrap();
        log.push(vec![heavy(QUEUED_BYTES_MAX / 2)]);
        log.push(vec![heavy(QUEUED_BYTES_MAX / 2), heavy(0)]);
        log.push(vec![denied("there is room for it")]);
        log.push(vec![heavy(QUEUED_BYTES_MAX)]);
        assert_eq!(log.shared.dropped.load(Ordering::Relaxed), 3);

        let (sender, received) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let mut text = Vec::new();
            let mut bytes = [0; 65536];
            while !text.ends_with(b"operations\":[]}\n") || !text.windows(5).any(|w| w == b"there")
            {
                let count = reader.read(&mut bytes).unwrap();
                text.extend_from_slice(&bytes[..count]);
            }
            sender.send(String::from_utf8(text).unwrap()).unwrap();
        });
        let text = received.recv_timeout(Duration::from_secs(60)).unwrap();
        log.close();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3);
        assert_eq!(log.counts(), (2, 3));
        assert!(lines[0].len() > 1 << 20, "{}", lines[0].len());
        assert!(
            lines[1].ends_with("\"outcome\":\"lost\",\"records\":3}"),
            "{}",
            lines[1]
        );
        assert!(lines[2].contains("there is room for it"));
        assert_eq!(log.shared.queued.load(Ordering::Relaxed), 0);
        // Larger than the queue, but the only entry in it.
        log.push(vec![heavy(2 * QUEUED_BYTES_MAX)]);
    }
}
