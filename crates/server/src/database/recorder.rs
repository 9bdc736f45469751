//! The files of the flight recorder (`--record`): one recording for each database,
//! `NAME.recording`, and how recordings are replayed (`--replay`).
//!
//! The holder of a database queues the frames that its pump has recorded. A thread appends them to
//! the file, at most a hundred times a second, so a process that dies loses at most the last
//! hundredth of a second of its recording. The database does not wait for that thread. A recording
//! ends, with a warning in the log, when it reaches its maximum size, when a write fails, or when
//! the queue is full: a recording with a gap cannot be replayed. The previous run's recording is
//! kept as `NAME.recording.old`. The format is that of [`corvid_service::recording`].

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use corvid_net::errno;
use corvid_service::recording::{MAGIC, Replay};
use corvid_shell::output;
use corvid_shell::vlog::{self, Module};

/// The maximum size of the queue, bytes.
const QUEUED_BYTES_MAX: usize = 64 << 20;

/// The minimum interval between two writes: waking the thread for each batch would cost more than
/// the batch.
const WRITE_INTERVAL: Duration = Duration::from_millis(10);

/// The directory of the recordings, and the maximum size of each.
#[derive(Clone, Debug)]
pub(crate) struct RecorderSettings {
    /// The directory.
    pub(crate) directory: PathBuf,
    /// The maximum size of a recording, bytes.
    pub(crate) bytes_max: u64,
}

/// The recording of one database.
#[derive(Debug)]
pub(crate) struct Recorder {
    queue: Arc<Queue>,
    /// `None`: the recording has ended.
    thread: Option<JoinHandle<()>>,
    name: String,
    bytes: u64,
    bytes_max: u64,
}

/// The frames that the thread has not written yet.
#[derive(Debug, Default)]
struct Queue {
    pending: Mutex<Pending>,
    arrived: Condvar,
}

#[derive(Debug, Default)]
struct Pending {
    bytes: Vec<u8>,
    /// No more frames will be appended.
    is_closed: bool,
    /// A write has failed.
    has_failed: bool,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Recorder {
    /// Waits until everything is written.
    fn drop(&mut self) {
        self.queue.lock().is_closed = true;
        self.queue.arrived.notify_one();
        if let Some(thread) = self.thread.take() {
            // The panic of a thread is reported when it happens.
            let _ = thread.join();
        }
    }
}

impl Recorder {
    /// Begins the recording of the database of this name.
    ///
    /// # Errors
    /// The directory, the file or the thread cannot be created, or the previous recording cannot be
    /// renamed.
    pub(crate) fn begin(settings: &RecorderSettings, name: &str) -> std::io::Result<Recorder> {
        fs::create_dir_all(&settings.directory)?;
        let path = settings.directory.join(format!("{name}.recording"));
        if path.exists() {
            fs::rename(&path, path.with_extension("recording.old"))?;
        }
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)?;
        file.write_all(MAGIC)?;
        let queue = Arc::<Queue>::default();
        let arriving = queue.clone();
        let thread = std::thread::Builder::new()
            .name("record".to_owned())
            .spawn(move || write(&arriving, file, &path))?;
        Ok(Recorder {
            queue,
            thread: Some(thread),
            name: name.to_owned(),
            bytes: MAGIC.len() as u64,
            bytes_max: settings.bytes_max,
        })
    }

    /// Appends frames. Returns false if the recording has ended without them.
    #[must_use]
    pub(crate) fn append(&mut self, frames: &[u8]) -> bool {
        let length = frames.len();
        let mut pending = self.queue.lock();
        let why = if self.bytes + length as u64 > self.bytes_max {
            "the size limit is reached (--max-recording-size)"
        } else if pending.bytes.len() > QUEUED_BYTES_MAX {
            "the disk cannot keep up"
        } else if pending.has_failed {
            "a write failed"
        } else {
            let was_empty = pending.bytes.is_empty();
            pending.bytes.extend_from_slice(frames);
            drop(pending);
            if was_empty {
                self.queue.arrived.notify_one();
            }
            self.bytes += length as u64;
            return true;
        };
        drop(pending);
        // Dropping the handle detaches the thread, which still writes the rest of the queue.
        self.thread = None;
        let (name, bytes) = (&self.name, self.bytes);
        vlog::warn(
            Module::OvsdbServer,
            format_args!("{name}: the recording ends after {bytes} bytes: {why}"),
        );
        false
    }
}

fn write(queue: &Queue, mut file: File, path: &Path) {
    let mut batches = Vec::new();
    loop {
        let mut pending = queue.lock();
        while pending.bytes.is_empty() && !pending.is_closed {
            let woken = queue.arrived.wait(pending);
            pending = woken.unwrap_or_else(PoisonError::into_inner);
        }
        if !pending.is_closed {
            // Collects more frames until the next write is due.
            let is_open = |pending: &mut Pending| !pending.is_closed;
            let woken = queue
                .arrived
                .wait_timeout_while(pending, WRITE_INTERVAL, is_open);
            pending = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
        std::mem::swap(&mut batches, &mut pending.bytes);
        drop(pending);
        if batches.is_empty() {
            return;
        }
        if let Err(error) = file.write_all(&batches) {
            let (path, error) = (path.display(), errno::text(&error));
            vlog::warn(
                Module::OvsdbServer,
                format_args!("{path}: write failed: {error}"),
            );
            queue.lock().has_failed = true;
            return;
        }
        batches.clear();
    }
}

/// Replays every recording in a directory, and prints a line for each. Returns true if every replay
/// reproduces the recorded outputs.
#[must_use]
pub fn replay_all(directory: &Path) -> bool {
    let mut paths = match recordings(directory) {
        Ok(paths) => paths,
        Err(error) => {
            output::error_line(format_args!(
                "{}: {}",
                directory.display(),
                errno::text(&error)
            ));
            return false;
        }
    };
    paths.sort();
    if paths.is_empty() {
        output::error_line(format_args!(
            "{}: there is no recording",
            directory.display()
        ));
    }
    let mut all_good = !paths.is_empty();
    for path in paths {
        match replay(&path) {
            Ok(line) => output::line(format_args!("{}: {line}", path.display())),
            Err(problem) => {
                all_good = false;
                output::error_line(format_args!("{}: {problem}", path.display()));
            }
        }
    }
    all_good
}

fn recordings(directory: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "recording")
        {
            paths.push(path);
        }
    }
    Ok(paths)
}

/// Replays one recording. Returns a summary, or the problem.
fn replay(path: &Path) -> Result<String, String> {
    let bytes = fs::read(path).map_err(|error| errno::text(&error))?;
    let mut replay = Replay::open(&bytes).map_err(|damage| damage.0)?;
    let outcome = replay.run(&mut |_| {});
    match outcome.problem {
        None => Ok(format!(
            "{} batches with {} inputs, the same bytes",
            outcome.batches, outcome.inputs
        )),
        Some(problem) => Err(problem),
    }
}
