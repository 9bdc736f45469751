//! Threads that work in the background.

/// How much a background thread gives way: the scheduler then prefers any other thread that has something to do.
const NICENESS: i32 = 10;

/// Makes the calling thread give way to the others, for long work that no client waits for. Without effect where the system does not
/// allow it.
pub fn yield_to_others() {
    // On Linux, no process means the calling thread.
    let _ = rustix::process::setpriority_process(None, NICENESS);
}
