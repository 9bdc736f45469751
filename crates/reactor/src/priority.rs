//! Threads that work in the background.

#![allow(unsafe_code)]

/// How much a background thread gives way: the scheduler then prefers any other thread that has something to do.
const NICENESS: libc::c_int = 10;

/// Makes the calling thread give way to the others, for work that is long and that nobody waits for. Without effect where
/// the system does not allow it.
pub fn yield_to_others() {
    // SAFETY: setpriority reads its arguments only. On Linux, process 0 is the calling thread.
    let _ = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, NICENESS) };
}
