//! A text that is being gathered from a stream, in pieces, so that a long text is not moved while
//! it grows.
//!
//! Growing one buffer to megabytes copies all of it several times, and a thread that serves many
//! connections would block all of them during each copy. Pieces are not copied while the text
//! arrives; the thread that parses the text joins them. A short text is one piece and is never
//! copied.

/// A piece of this length, in bytes, no longer grows.
const PIECE_BYTES: usize = 128 * 1024;

/// The bytes of one text.
///
/// ```
/// use corvid_json::Pieces;
/// let mut text = Pieces::default();
/// text.extend(b"[1,");
/// text.extend(b"2]");
/// assert_eq!(text.len(), 5);
/// assert_eq!(text.into_bytes(), b"[1,2]");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pieces {
    full: Vec<Vec<u8>>,
    last: Vec<u8>,
    /// Bytes of the full pieces.
    full_bytes: usize,
}

impl Pieces {
    /// Appends bytes.
    pub fn extend(&mut self, bytes: &[u8]) {
        if self.last.len() >= PIECE_BYTES {
            self.full_bytes += self.last.len();
            self.full.push(std::mem::take(&mut self.last));
        }
        self.last.extend_from_slice(bytes);
    }

    /// Length of the whole, in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.full_bytes + self.last.len()
    }

    /// Whether it holds no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.last.is_empty() && self.full.is_empty()
    }

    /// The first piece: all of a short text.
    #[must_use]
    pub fn first(&self) -> &[u8] {
        self.full.first().unwrap_or(&self.last)
    }

    /// The whole in one piece. Costs a copy if there were several.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        if self.full.is_empty() {
            return self.last;
        }
        let mut bytes = Vec::with_capacity(self.len());
        // Each piece is freed once it has been copied.
        for piece in self.full {
            bytes.extend_from_slice(&piece);
        }
        bytes.extend_from_slice(&self.last);
        bytes
    }
}

impl From<Vec<u8>> for Pieces {
    fn from(bytes: Vec<u8>) -> Pieces {
        Pieces {
            last: bytes,
            ..Pieces::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_of_any_size_join_to_the_whole_text() {
        let length = if cfg!(miri) { 300_000 } else { 700_000 };
        let text: Vec<u8> = (0..length).map(|i: u32| (i % 251) as u8).collect();
        for size in [999, 65_536, 131_072, 400_000, 700_000] {
            let mut pieces = Pieces::default();
            assert!(pieces.is_empty());
            text.chunks(size).for_each(|chunk| pieces.extend(chunk));
            assert_eq!(pieces.len(), text.len());
            assert!(text.starts_with(pieces.first()));
            assert!(
                pieces
                    .full
                    .iter()
                    .all(|piece| piece.len() < PIECE_BYTES + size)
            );
            assert!(pieces.into_bytes() == text);
        }
    }

    #[test]
    fn a_short_text_is_not_copied() {
        let text = b"[]".to_vec();
        let address = text.as_ptr();
        let whole = Pieces::from(text).into_bytes();
        assert_eq!(whole.as_ptr(), address);
    }
}
