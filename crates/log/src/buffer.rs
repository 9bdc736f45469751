//! Bytes read but not yet consumed, in reused memory: reading into a [`Vec`] would first zero all
//! of it.
//!
//! Invariant: `bytes[..end]` is the content. The bytes after it are spare room with stale contents,
//! visible only to the function that reads into it. Only [`crate::split`] uses this module, which
//! knows nothing about records.

use std::ops::Deref;

/// A reusable byte buffer; dereferences to its content.
#[derive(Debug, Default)]
pub struct Buffer {
    bytes: Vec<u8>,
    end: usize,
}

impl Buffer {
    /// Lets `read` write up to `room` bytes after the content. `read` returns how many it wrote,
    /// and so does this.
    pub(crate) fn fill<E>(
        &mut self,
        room: usize,
        read: impl FnOnce(&mut [u8]) -> Result<usize, E>,
    ) -> Result<usize, E> {
        let end = self.end;
        self.make_room(room);
        let got = read(&mut self.bytes[end..end + room])?;
        self.end += got.min(room);
        Ok(got)
    }

    /// Appends bytes.
    pub(crate) fn push(&mut self, more: &[u8]) {
        self.make_room(more.len());
        self.bytes[self.end..self.end + more.len()].copy_from_slice(more);
        self.end += more.len();
    }

    /// Drops the first `count` bytes and moves the rest to the front.
    pub(crate) fn remove(&mut self, count: usize) {
        self.bytes.copy_within(count..self.end, 0);
        self.end -= count;
    }

    /// Keeps the first `count` bytes, and the memory.
    pub(crate) fn truncate(&mut self, count: usize) {
        self.end = self.end.min(count);
    }

    fn make_room(&mut self, room: usize) {
        let wanted = self.end + room;
        if self.bytes.len() < wanted {
            self.bytes.reserve_exact(wanted - self.bytes.len());
            self.bytes.resize(wanted, 0);
        }
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..self.end]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn earlier_bytes_are_never_visible() {
        let mut buffer = Buffer::default();
        buffer.push(b"0123456789");
        buffer.remove(4);
        assert_eq!(*buffer, *b"456789");
        buffer.truncate(0);
        let read = buffer.fill(8, |room| {
            assert_eq!(room.len(), 8);
            room[..3].copy_from_slice(b"abc");
            Ok::<_, ()>(3)
        });
        assert_eq!((read, &*buffer), (Ok(3), &b"abc"[..]));
        assert_eq!(buffer.fill(20, |_| Err("broken")), Err("broken"));
        buffer.push(b"d");
        assert_eq!(*buffer, *b"abcd");
    }
}
