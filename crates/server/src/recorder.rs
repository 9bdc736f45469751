//! The files of the flight recorder (`--record`): a recording for each database, `NAME.recording`, and how they are replayed (`--replay`).
//!
//! Whoever holds a database hands over what its pump has recorded; a thread appends it with one write for each batch, so what a process that
//! dies was given is in the file but for the batch at hand. Nobody waits for that thread. A recording ends, and the log says so, when it has
//! the size that was allowed, when the disk refuses it, or when more waits to be written than may: what has a gap cannot be replayed.
//! The recording of the run before is kept as `NAME.recording.old`. What a recording is, is told in [`corvid_service::recording`].

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use corvid_os::errno;
use corvid_os::vlog::{self, Module};
use corvid_service::recording::{MAGIC, Replay};
use crossbeam_channel::{Receiver, Sender};

/// What may wait to be written, bytes.
const QUEUED_BYTES_MAX: usize = 64 << 20;

/// Where recordings are kept, and how long each may be.
#[derive(Clone, Debug)]
pub struct RecorderSettings {
    /// The directory.
    pub directory: PathBuf,
    /// The size of a recording, bytes.
    pub bytes_max: u64,
}

/// The recording of one database.
#[derive(Debug)]
pub struct Recorder {
    thread: Sender<Vec<u8>>,
    queued: Arc<AtomicUsize>,
    name: String,
    bytes: u64,
    bytes_max: u64,
}

impl Recorder {
    /// Begins the recording of a database of this name.
    ///
    /// # Errors
    /// The file cannot be made, or no thread.
    pub fn begin(settings: &RecorderSettings, name: &str) -> std::io::Result<Recorder> {
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
        let (thread, frames) = crossbeam_channel::unbounded();
        let queued = Arc::new(AtomicUsize::new(0));
        let counted = queued.clone();
        std::thread::Builder::new()
            .name("record".to_owned())
            .spawn(move || write(&frames, file, &path, &counted))?;
        Ok(Recorder {
            thread,
            queued,
            name: name.to_owned(),
            bytes: MAGIC.len() as u64,
            bytes_max: settings.bytes_max,
        })
    }

    /// Has this appended. False when the recording ends with what was appended before.
    #[must_use]
    pub fn append(&mut self, frames: Vec<u8>) -> bool {
        let length = frames.len();
        let why = if self.bytes + length as u64 > self.bytes_max {
            "it has reached its size (--record-size)"
        } else if self.queued.load(Ordering::Relaxed) > QUEUED_BYTES_MAX {
            "the disk cannot keep up"
        } else {
            self.queued.fetch_add(length, Ordering::Relaxed);
            if self.thread.send(frames).is_ok() {
                self.bytes += length as u64;
                return true;
            }
            "it cannot be written"
        };
        let (name, bytes) = (&self.name, self.bytes);
        vlog::warn(
            Module::OvsdbServer,
            format_args!("{name}: the recording ends after {bytes} bytes: {why}"),
        );
        false
    }
}

fn write(frames: &Receiver<Vec<u8>>, mut file: File, path: &Path, queued: &AtomicUsize) {
    for batch in frames {
        let outcome = file.write_all(&batch);
        queued.fetch_sub(batch.len(), Ordering::Relaxed);
        if let Err(error) = outcome {
            let (path, error) = (path.display(), errno::text(&error));
            vlog::warn(
                Module::OvsdbServer,
                format_args!("{path}: write failed: {error}"),
            );
            return;
        }
    }
}

/// Replays every recording of a directory, and says what came of it on a line each. Whether all of them yield what they yielded.
#[must_use]
pub fn replay_all(directory: &Path) -> bool {
    let mut paths = match recordings(directory) {
        Ok(paths) => paths,
        Err(error) => {
            eprintln!("{}: {}", directory.display(), errno::text(&error));
            return false;
        }
    };
    paths.sort();
    if paths.is_empty() {
        eprintln!("{}: there is no recording", directory.display());
    }
    let mut all_good = !paths.is_empty();
    for path in paths {
        match replay(&path) {
            Ok(line) => println!("{}: {line}", path.display()),
            Err(problem) => {
                all_good = false;
                eprintln!("{}: {problem}", path.display());
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

/// Replays one.
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
