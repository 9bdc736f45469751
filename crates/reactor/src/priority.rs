//! The priority of background threads.

/// The niceness of a background thread: the scheduler prefers any other thread that has work.
const NICENESS: i32 = 10;

/// Lowers the priority of the calling thread, for long work that no client waits for. No-op where
/// the system does not allow it.
pub fn yield_to_others() {
    // On Linux, `None` means the calling thread.
    let _ = rustix::process::setpriority_process(None, NICENESS);
}
