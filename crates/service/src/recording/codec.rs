//! Bytes of a recording: numbers, texts and checksums.
//!
//! Numbers are in base 128, lowest seven bits first; texts follow their length. Nothing here knows the contents of a recording.

/// The reason why a recording cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage(pub String);

impl Damage {
    pub(super) fn new(what: &str) -> Damage {
        Damage(what.to_owned())
    }
}

/// Appends to a buffer.
pub(super) struct Writer<'b>(pub(super) &'b mut Vec<u8>);

impl Writer<'_> {
    pub(super) fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    pub(super) fn signed(&mut self, number: i64) {
        self.number((number as u64) << 1 ^ (number >> 63) as u64);
    }

    pub(super) fn flag(&mut self, flag: bool) {
        self.0.push(u8::from(flag));
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    pub(super) fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    /// Whether there is a value, then the value.
    pub(super) fn option<T>(&mut self, value: Option<T>, write: impl FnOnce(&mut Self, T)) {
        self.flag(value.is_some());
        if let Some(value) = value {
            write(self, value);
        }
    }
}

/// Reads the bytes of a [`Writer`].
pub(super) struct Reader<'b>(pub(super) &'b [u8]);

impl<'b> Reader<'b> {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn byte(&mut self) -> Result<u8, Damage> {
        let (first, rest) = self.0.split_first().ok_or_else(ends)?;
        self.0 = rest;
        Ok(*first)
    }

    pub(super) fn number(&mut self) -> Result<u64, Damage> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(Damage::new("a number is too long"))
    }

    pub(super) fn signed(&mut self) -> Result<i64, Damage> {
        let number = self.number()?;
        Ok((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    pub(super) fn flag(&mut self) -> Result<bool, Damage> {
        Ok(self.byte()? != 0)
    }

    pub(super) fn take(&mut self, length: usize) -> Result<&'b [u8], Damage> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or_else(ends)?;
        self.0 = rest;
        Ok(taken)
    }

    pub(super) fn bytes(&mut self) -> Result<&'b [u8], Damage> {
        let length = self.number()?;
        self.take(usize::try_from(length).map_err(|_| ends())?)
    }

    pub(super) fn text(&mut self) -> Result<String, Damage> {
        let bytes = self.bytes()?.to_vec();
        String::from_utf8(bytes).map_err(|_| Damage::new("a text is not UTF-8"))
    }

    pub(super) fn option<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, Damage>,
    ) -> Result<Option<T>, Damage> {
        let is_there = self.flag()?;
        is_there.then(|| read(self)).transpose()
    }
}

fn ends() -> Damage {
    Damage::new("it ends too early")
}

/// A checksum over bytes, in order. It does not resist deliberate collisions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Checksum(u64);

impl Default for Checksum {
    fn default() -> Checksum {
        Checksum(0x9e37_79b9_7f4a_7c15)
    }
}

impl Checksum {
    pub(super) fn number(&mut self, number: u64) {
        let product = u128::from(self.0 ^ number) * u128::from(0xa076_1d64_78bd_642f_u64);
        self.0 =
            (product as u64) ^ ((product >> 64) as u64).rotate_left(32) ^ number.rotate_left(17);
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        let mut words = bytes.chunks_exact(8);
        for word in &mut words {
            self.number(u64::from_le_bytes(word.try_into().unwrap_or_default()));
        }
        let rest = words.remainder();
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        self.number(u64::from_le_bytes(last));
        self.number(bytes.len() as u64);
    }

    pub(super) fn value(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_values_are_read_back() {
        let mut buffer = Vec::new();
        let mut writer = Writer(&mut buffer);
        for number in [0, 1, 127, 128, 300, u64::MAX] {
            writer.number(number);
        }
        for number in [0, -1, 1, i64::MIN, i64::MAX] {
            writer.signed(number);
        }
        writer.text("text");
        writer.option(Some(7), Writer::number);
        writer.option(None, Writer::number);
        let mut reader = Reader(&buffer);
        for number in [0, 1, 127, 128, 300, u64::MAX] {
            assert_eq!(reader.number(), Ok(number));
        }
        for number in [0, -1, 1, i64::MIN, i64::MAX] {
            assert_eq!(reader.signed(), Ok(number));
        }
        assert_eq!(reader.text(), Ok("text".to_owned()));
        assert_eq!(reader.option(Reader::number), Ok(Some(7)));
        assert_eq!(reader.option(Reader::number), Ok(None));
        assert!(reader.is_empty() && reader.byte().is_err());
    }

    #[test]
    fn every_bit_changes_the_checksum() {
        let of = |bytes: &[u8]| {
            let mut sum = Checksum::default();
            sum.bytes(bytes);
            sum.value()
        };
        let text = *b"0123456789abcdef01";
        for position in 0..text.len() * 8 {
            let mut other = text;
            other[position / 8] ^= 1 << (position % 8);
            assert_ne!(of(&text), of(&other));
        }
        assert_ne!(of(b""), of(b"\0"));
    }
}
