//! Resolves the addresses of a crash to functions and lines, and writes these after the addresses
//! in the log.
//!
//! Resolving allocates, takes locks and reads the program's file, none of which a signal handler
//! may do. It also takes a fraction of a second, during which the other threads of a broken process
//! would go on. So a copy of the process with only this thread does it, on its own stack, while the
//! process dies at once. The copy has only the log open, ends after at most [`LIMIT_S`], and writes
//! nothing if it finds no function, as in a program without symbols.

#![allow(unsafe_code)]

use std::fmt::Write as _;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicUsize, Ordering};

use corvid_net::errno;

/// The maximum number of addresses shown.
pub(super) const DEPTH_MAX: usize = 64;
/// The size of the copy's stack, bytes. The kernel allocates it page by page.
const STACK_BYTES: usize = 4 << 20;
/// The number of seconds after which the copy ends in any case.
const LIMIT_S: u32 = 20;
/// How long the process waits for its copy to close its descriptors, ms.
const CLOSE_MS: libc::c_int = 1000;

/// The high end of the copy's stack; null before [`prepare`].
static STACK: AtomicPtr<libc::c_void> = AtomicPtr::new(null_mut());
/// The addresses for the copy. The handler sets them before it makes the copy.
static ADDRESSES: [AtomicUsize; DEPTH_MAX] = [const { AtomicUsize::new(0) }; DEPTH_MAX];
static FOUND: AtomicUsize = AtomicUsize::new(0);
static LOG_FILE: AtomicI32 = AtomicI32::new(-1);

/// Allocates the stack.
///
/// # Errors
/// Memory is exhausted.
pub(super) fn prepare() -> std::io::Result<()> {
    if !STACK.load(Ordering::Relaxed).is_null() {
        return Ok(());
    }
    // SAFETY: a new anonymous mapping touches no memory that exists.
    let lowest = unsafe {
        libc::mmap(
            null_mut(),
            STACK_BYTES,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_STACK,
            -1,
            0,
        )
    };
    if lowest == libc::MAP_FAILED {
        return Err(errno::last());
    }
    // SAFETY: the end of the mapping just made; it is never unmapped.
    STACK.store(unsafe { lowest.add(STACK_BYTES) }, Ordering::Relaxed);
    Ok(())
}

/// Makes a copy of the process that writes the functions and lines of `addresses` to `log_file`.
/// Returns as soon as the copy has closed all other descriptors, so that a restarted server finds
/// addresses and files free. For a signal handler: gives up silently if a call fails.
pub(super) fn write(addresses: &[*mut libc::c_void], log_file: i32) {
    let stack = STACK.load(Ordering::Relaxed);
    if stack.is_null() {
        return;
    }
    for (place, address) in ADDRESSES.iter().zip(addresses) {
        place.store(*address as usize, Ordering::Relaxed);
    }
    FOUND.store(addresses.len().min(DEPTH_MAX), Ordering::Relaxed);
    LOG_FILE.store(log_file, Ordering::Relaxed);
    let mut ends = [-1; 2];
    // SAFETY: pipe2, close and poll are async-signal-safe and are given valid memory. `clone`
    // without CLONE_VM copies the process as fork does, without running what libraries have
    // registered for forks; `copy` runs on the stack of `prepare`, which only the copy uses.
    unsafe {
        if libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) != 0 {
            return;
        }
        let pid = libc::clone(copy, stack, libc::SIGCHLD, null_mut());
        libc::close(ends[1]);
        if pid > 0 {
            // The copy closes this end together with all others.
            let mut closed = libc::pollfd {
                fd: ends[0],
                events: libc::POLLIN,
                revents: 0,
            };
            libc::poll(&raw mut closed, 1, CLOSE_MS);
        }
        libc::close(ends[0]);
    }
}

/// The function that the copy runs.
extern "C" fn copy(_: *mut libc::c_void) -> libc::c_int {
    let log_file = LOG_FILE.load(Ordering::Relaxed);
    // SAFETY: the calls take no pointers but those to `none`, `limit` and the name, which are
    // valid. This is the only thread of its process, so no other thread uses the descriptors.
    unsafe {
        // A signal that stops the service is meant for the server, which has ended.
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::sigdelset(&raw mut all, libc::SIGALRM);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const all, null_mut());
        libc::signal(libc::SIGALRM, libc::SIG_DFL);
        libc::alarm(LIMIT_S);
        let none = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        libc::setrlimit(libc::RLIMIT_CORE, &raw const none);
        libc::prctl(libc::PR_SET_NAME, c"crash".as_ptr());
        let log_file = log_file.cast_unsigned();
        if log_file > 0 {
            libc::syscall(libc::SYS_close_range, 0, log_file - 1, 0);
        }
        libc::syscall(libc::SYS_close_range, log_file + 1, u32::MAX, 0);
    }
    let text = functions();
    // SAFETY: the buffer is as long as the call is told. `_exit` runs nothing that the process has
    // registered.
    unsafe {
        libc::write(log_file, text.as_ptr().cast(), text.len());
        libc::_exit(0)
    }
}

/// A line for each function, by the number of its address; inlined functions precede the function
/// that contains them. Empty if no function is known.
fn functions() -> String {
    let mut text = String::new();
    let found = FOUND.load(Ordering::Relaxed);
    for (number, place) in ADDRESSES.iter().enumerate().take(found) {
        let address = place.load(Ordering::Relaxed) as *mut libc::c_void;
        backtrace::resolve(address, |symbol| {
            let Some(name) = symbol.name() else {
                return;
            };
            if text.is_empty() {
                text.push_str("functions at these addresses:\n");
            }
            // Writing to a string cannot fail.
            let _ = write!(text, "{number:4}: {name:#}");
            if let (Some(file), Some(line)) = (symbol.filename(), symbol.lineno()) {
                let _ = write!(text, " at {}:{line}", file.display());
            }
            text.push('\n');
        });
    }
    text
}
