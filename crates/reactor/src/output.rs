//! The unsent output of a connection: a queue of segments, and how many bytes of the first one are
//! sent.

use std::collections::VecDeque;
use std::io::{self, IoSlice, Write};

/// Segments per vectored write; more gain nothing, and the kernel's limit is 1024.
const SLICES_MAX: usize = 64;

/// The maximum total size, in bytes, at which several segments are copied into one buffer and sent
/// as one. The kernel spends more time on each slice than the copy takes.
const GATHERED_MAX: usize = 2048;

/// How far a write got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// No output is left.
    Drained,
    /// The kernel accepts no more bytes for now.
    Blocked,
    /// The limit is reached.
    Paused,
}

/// An outbound queue, not limited here. In a shard, replies are bounded by the requests that are
/// read (none while the connection is blocked), and updates by the handler, which merges them while
/// the connection is not drained.
#[derive(Debug)]
pub struct Output<S> {
    segments: VecDeque<S>,
    /// The number of bytes of the first segment already sent.
    sent: usize,
    /// The number of unsent bytes.
    bytes: usize,
}

impl<S> Default for Output<S> {
    fn default() -> Output<S> {
        Output {
            segments: VecDeque::new(),
            sent: 0,
            bytes: 0,
        }
    }
}

impl<S: AsRef<[u8]>> Output<S> {
    /// Queues a segment.
    pub fn push(&mut self, segment: S) {
        let length = segment.as_ref().len();
        // Empty segments are not queued, so that a write of zero bytes always means an error.
        if length > 0 {
            self.bytes += length;
            self.segments.push_back(segment);
        }
    }

    /// Removes the first segment of a closed connection, sent or not.
    pub fn pop(&mut self) -> Option<S> {
        self.segments.pop_front()
    }

    /// The number of unsent bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether everything is sent.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Writes until all output is sent (including bytes that the stream buffers), the kernel
    /// accepts no more, or at least `limit` bytes are written. Subtracts the written bytes from
    /// `limit`.
    ///
    /// # Errors
    /// The stream has failed.
    pub fn write_to(&mut self, stream: &mut impl Write, limit: &mut usize) -> io::Result<Progress> {
        while !self.is_empty() {
            if *limit == 0 {
                return Ok(Progress::Paused);
            }
            match self.write_once(stream) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    self.consume(written);
                    *limit = limit.saturating_sub(written);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Ok(Progress::Blocked);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        match stream.flush() {
            Ok(()) => Ok(Progress::Drained),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Progress::Blocked),
            Err(error) => Err(error),
        }
    }

    /// Writes once, as much as one call accepts.
    fn write_once(&self, stream: &mut impl Write) -> io::Result<usize> {
        let mut segments = self.segments.iter().map(S::as_ref);
        // Most replies are one segment, and a plain write costs the kernel less.
        if let (1, Some(only)) = (self.segments.len(), segments.clone().next()) {
            return stream.write(&only[self.sent..]);
        }
        if self.bytes <= GATHERED_MAX {
            let mut room = [0; GATHERED_MAX];
            let mut end = 0;
            let mut skip = self.sent;
            for segment in segments {
                let left = &segment[std::mem::take(&mut skip)..];
                room[end..end + left.len()].copy_from_slice(left);
                end += left.len();
            }
            return stream.write(&room[..end]);
        }
        let mut slices = [IoSlice::new(&[]); SLICES_MAX];
        let mut count = 0;
        for (slice, segment) in slices.iter_mut().zip(segments.by_ref()) {
            let skip = if count == 0 { self.sent } else { 0 };
            *slice = IoSlice::new(&segment[skip..]);
            count += 1;
        }
        stream.write_vectored(&slices[..count])
    }

    fn consume(&mut self, written: usize) {
        assert!(
            written <= self.bytes,
            "a stream took more than it was given"
        );
        self.bytes -= written;
        self.sent += written;
        while let Some(first) = self.segments.front() {
            let length = first.as_ref().len();
            if self.sent < length {
                break;
            }
            self.sent -= length;
            self.segments.pop_front();
        }
        assert_eq!(
            self.bytes == 0,
            self.segments.is_empty(),
            "unsent bytes are those of the segments"
        );
        assert!(
            self.sent == 0 || self.bytes > 0,
            "only a segment that is left is sent in part"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::Segment;
    use std::sync::Arc;

    /// Accepts a few bytes at a time, and refuses once `room` is used up.
    struct Narrow {
        taken: Vec<u8>,
        room: usize,
    }

    impl Write for Narrow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.write_vectored(&[IoSlice::new(bytes)])
        }

        fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
            if self.room == 0 {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            let all: Vec<u8> = slices
                .iter()
                .flat_map(|slice| slice.iter().copied())
                .collect();
            let count = all.len().min(self.room).min(5);
            self.taken.extend(&all[..count]);
            self.room -= count;
            Ok(count)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn segments_keep_their_order_under_partial_writes() {
        let mut output: Output<Segment> = Output::default();
        let mut expected = Vec::new();
        for i in 0..200u8 {
            // Together too long to be copied into one buffer at first.
            let bytes = vec![i; usize::from(i % 7) * 9];
            expected.extend(&bytes);
            output.push(if i % 2 == 0 {
                Arc::<[u8]>::from(bytes).into()
            } else {
                bytes.into()
            });
        }
        assert_eq!(output.bytes(), expected.len());
        let mut stream = Narrow {
            taken: Vec::new(),
            room: 333,
        };
        let mut write = |stream: &mut Narrow, limit| output.write_to(stream, &mut { limit });
        assert_eq!(write(&mut stream, usize::MAX).unwrap(), Progress::Blocked);
        stream.room = usize::MAX;
        assert_eq!(write(&mut stream, 7).unwrap(), Progress::Paused);
        assert_eq!(stream.taken.len(), 333 + 10);
        assert_eq!(write(&mut stream, usize::MAX).unwrap(), Progress::Drained);
        assert_eq!(stream.taken, expected);
        assert!(output.is_empty() && output.segments.is_empty());
    }
}
