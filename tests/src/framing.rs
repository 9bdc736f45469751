//! Cuts a byte stream into JSON texts by counting brackets, nothing more.
//!
//! Invariant: each byte is looked at once, in whichever pieces it arrives. It is an independent and much
//! simpler counterpart of the product's framing, and it trusts the server to send well-formed texts. Called by
//! [`crate::client`]; knows nothing of JSON-RPC.

/// Incremental splitter: bytes in, complete texts out.
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

    /// The next complete text, or `None` until more bytes arrive.
    ///
    /// Bytes before the first bracket belong to the text, so the parser of the text sees stray output.
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

    /// The part that has arrived of a text that is not complete yet.
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
