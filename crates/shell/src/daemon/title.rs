//! The name and command line of the supervisor in `ps`.
//!
//! The command line lives in memory that the kernel set up at exec; a process title overwrites it
//! in place. The original bytes are kept, because a restarted server must show the original command
//! line.

#![allow(unsafe_code)]

/// The original command line, and its address.
pub(super) struct Title {
    start: *mut u8,
    original: Vec<u8>,
}

impl Title {
    /// Saves the current command line; `None` if the kernel does not report its address.
    pub(super) fn capture() -> Option<Title> {
        let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
        // The second field, the name in parentheses, may contain anything, so fields are counted
        // from its end. Fields 48 and 49 of proc(5) are the start and the end of the arguments.
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(48 - 3);
        let start: usize = fields.next()?.parse().ok()?;
        let end: usize = fields.next()?.parse().ok()?;
        let length = end.checked_sub(start).filter(|_| start != 0)?;
        let start = std::ptr::with_exposed_provenance_mut::<u8>(start);
        // SAFETY: the kernel says that the arguments of this process are there; the memory belongs
        // to the initial stack, which stays mapped for the life of the process.
        let original = unsafe { std::slice::from_raw_parts(start, length) }.to_vec();
        Some(Title { start, original })
    }

    /// Shows `text`, cut to the length of the original.
    pub(super) fn show(&self, text: &str) {
        let mut bytes = text.as_bytes().to_vec();
        bytes.resize(self.original.len(), 0);
        if let Some(last) = bytes.last_mut() {
            *last = 0;
        }
        self.put(&bytes);
    }

    /// Shows the original command line again.
    pub(super) fn restore(&self) {
        self.put(&self.original);
    }

    fn put(&self, bytes: &[u8]) {
        assert_eq!(
            bytes.len(),
            self.original.len(),
            "a title must fill its place"
        );
        // SAFETY: as in `capture`, and writable (it is the initial stack). The supervisor has one
        // thread and does not look at its arguments any more; a restarted server gets the original
        // bytes back before it looks.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.start, bytes.len()) };
    }
}

/// Sets the name in `/proc/PID/comm`, of which the kernel keeps 15 bytes.
pub(super) fn set_comm(name: &str) {
    if let Ok(name) = std::ffi::CString::new(name) {
        // Nothing depends on the name.
        let _ = rustix::thread::set_name(&name);
    }
}
