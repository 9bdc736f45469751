//! Divides a byte stream into JSON texts by counting brackets, and nothing more.
//!
//! Invariant: each byte is inspected once, in whichever pieces the bytes arrive. This module is
//! independent of the product's framing and much simpler, and relies on the server to send
//! well-formed texts. Called by [`crate::client`]; it does not know about JSON-RPC.

/// An incremental splitter, which takes bytes and returns complete texts.
#[derive(Debug, Default)]
pub struct Splitter {
    buffer: Vec<u8>,
    scanned: usize,
    depth: usize,
    in_string: bool,
    escaped: bool,
}

impl Splitter {
    /// Adds received bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// Returns the next complete text, or `None` if more bytes are needed.
    ///
    /// Bytes before the first bracket are part of the text, so unexpected output is noticed when
    /// the text is parsed.
    pub fn next_text(&mut self) -> Option<Vec<u8>> {
        while let Some(&byte) = self.buffer.get(self.scanned) {
            self.scanned += 1;
            if self.escaped {
                self.escaped = false;
                continue;
            }
            match byte {
                b'\\' if self.in_string => self.escaped = true,
                b'"' => self.in_string = !self.in_string,
                b'{' | b'[' if !self.in_string => self.depth += 1,
                b'}' | b']' if !self.in_string => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth == 0 {
                        let rest = self.buffer.split_off(self.scanned);
                        self.scanned = 0;
                        return Some(std::mem::replace(&mut self.buffer, rest));
                    }
                }
                _ => {}
            }
        }
        None
    }

    /// Returns the part of an incomplete text that has arrived.
    pub fn partial(&self) -> &[u8] {
        &self.buffer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_wherever_the_pieces_end() {
        let stream = br#"{"a":"}\"]"}[1,[2]]{"b":{}}"#;
        for piece in 1..stream.len() {
            let mut splitter = Splitter::default();
            let mut texts = Vec::new();
            for bytes in stream.chunks(piece) {
                splitter.push(bytes);
                texts.extend(std::iter::from_fn(|| splitter.next_text()));
            }
            let expected: [&[u8]; 3] = [br#"{"a":"}\"]"}"#, b"[1,[2]]", br#"{"b":{}}"#];
            assert_eq!(texts, expected);
            assert!(splitter.partial().is_empty());
        }
    }
}
