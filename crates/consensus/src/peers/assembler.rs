//! Bytes of one connection to whole texts, of bounded length.

use bytes::Bytes;
use corvid_json::frame::Framed;
use corvid_json::{Framer, PEER_DEPTH_MAX, Pieces};
use corvid_rpc::MessageError;
use thiserror::Error;

/// Why the stream cannot be read any further.
#[derive(Debug, Error)]
pub(super) enum StreamError {
    /// The bytes are no JSON.
    #[error("{}", MessageError::from(.0.clone()).log_text())]
    Syntax(#[from] corvid_json::Error),
    /// A text is longer than allowed.
    #[error("message is longer than {0} bytes")]
    TooLong(usize),
}

/// The text that is being gathered.
#[derive(Debug)]
pub(super) struct Assembler {
    framer: Framer,
    begun: Pieces,
}

impl Default for Assembler {
    /// A forwarded transaction may nest as deeply as a client's message may, and is wrapped here.
    fn default() -> Assembler {
        Assembler {
            framer: Framer::with_depth_max(PEER_DEPTH_MAX),
            begun: Pieces::default(),
        }
    }
}

impl Assembler {
    /// Bytes of the text that has begun.
    pub(super) fn begun_bytes(&self) -> usize {
        self.begun.len()
    }

    /// Takes the next text from the front of `input`; `None`: all of it was taken, and more is needed.
    ///
    /// # Errors
    /// [`StreamError`]; the assembler cannot be used any further.
    pub(super) fn next(
        &mut self,
        input: &mut &[u8],
        bytes_max: usize,
    ) -> Result<Option<Bytes>, StreamError> {
        let (begin, end, is_complete) = match self.framer.advance(input)? {
            Framed::Complete { start, end } => (start, end, true),
            Framed::Partial { start } => (start, input.len(), false),
        };
        let (part, rest) = (&input[begin..end], &input[end..]);
        *input = rest;
        if self.begun.len() + part.len() > bytes_max {
            return Err(StreamError::TooLong(bytes_max));
        }
        if is_complete && self.begun.is_empty() {
            return Ok(Some(Bytes::copy_from_slice(part)));
        }
        self.begun.extend(part);
        if is_complete {
            let text = std::mem::take(&mut self.begun);
            return Ok(Some(text.into_bytes().into()));
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_wherever_reads_end() {
        let stream = br#"{"a":["}"]}  {"b":1}[2]"#;
        for size in 1..=stream.len() {
            let mut assembler = Assembler::default();
            let mut texts = Vec::new();
            for mut part in stream.chunks(size) {
                while let Some(text) = assembler.next(&mut part, 11).expect("valid") {
                    texts.push(text);
                }
                assert!(part.is_empty());
            }
            assert_eq!(texts, [&br#"{"a":["}"]}"#[..], br#"{"b":1}"#, b"[2]"]);
        }
    }

    #[test]
    fn a_long_text_is_refused_before_it_ends() {
        let mut assembler = Assembler::default();
        let mut part = &br#"{"a":"1234"#[..];
        assert!(assembler.next(&mut part, 12).expect("short").is_none());
        let mut part = &b"567"[..];
        let error = assembler.next(&mut part, 12).expect_err("long");
        assert_eq!(error.to_string(), "message is longer than 12 bytes");
        let mut part = &b"xyz"[..];
        let error = Assembler::default()
            .next(&mut part, 12)
            .expect_err("no JSON");
        assert!(error.to_string().starts_with("error parsing stream: "));
    }
}
