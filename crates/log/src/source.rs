//! Where the bytes of a log come from. The server implements the trait for files; this module
//! implements it for slices, so that tests and fuzzers need no file.

/// Hands out the bytes of a log from its beginning.
pub trait Source {
    /// Fills a prefix of `room` (never empty) and returns its length; 0 means the end.
    ///
    /// # Errors
    /// The operating system's error text, without a file name, for example `Input/output error`.
    fn read(&mut self, room: &mut [u8]) -> Result<usize, String>;

    /// Estimate of the bytes that remain, if the source can tell. Bounds what is allocated for an
    /// untrusted length.
    fn bytes_left(&self) -> Option<u64> {
        None
    }
}

impl Source for &[u8] {
    fn read(&mut self, room: &mut [u8]) -> Result<usize, String> {
        let taken = self.len().min(room.len());
        let (now, later) = self.split_at(taken);
        room[..taken].copy_from_slice(now);
        *self = later;
        Ok(taken)
    }

    fn bytes_left(&self) -> Option<u64> {
        Some(self.len() as u64)
    }
}
