//! Bytes of a recording: numbers, texts, checksums, and the tables by which types are written and
//! read.
//!
//! Numbers are in base 128, lowest seven bits first; texts follow their length. Nothing here knows
//! the contents of a recording.
//!
//! Invariant: `recorded!` makes the writer and the reader of a type from one table, so both agree
//! on numbers, fields and their order.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use corvid_data::Uuid;

/// Why a recording cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage(pub String);

impl Damage {
    pub(crate) fn new(what: &str) -> Damage {
        Damage(what.to_owned())
    }

    /// A number that stands for no known kind of input.
    pub(crate) fn unknown() -> Damage {
        Damage::new("an input of an unknown kind")
    }
}

/// Appends values to a buffer.
pub(crate) struct Writer<'b>(pub(crate) &'b mut Vec<u8>);

impl Writer<'_> {
    pub(crate) fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    pub(crate) fn signed(&mut self, number: i64) {
        // Zigzag: small negative numbers are short too.
        self.number((number as u64) << 1 ^ (number >> 63) as u64);
    }

    pub(crate) fn flag(&mut self, flag: bool) {
        self.0.push(u8::from(flag));
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    pub(crate) fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    /// Writes whether there is a value, then the value.
    pub(crate) fn option<T>(&mut self, value: Option<T>, write: impl FnOnce(&mut Self, T)) {
        self.flag(value.is_some());
        if let Some(value) = value {
            write(self, value);
        }
    }
}

/// Reads what a [`Writer`] has written.
pub(crate) struct Reader<'b>(pub(crate) &'b [u8]);

impl<'b> Reader<'b> {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn byte(&mut self) -> Result<u8, Damage> {
        let (first, rest) = self.0.split_first().ok_or_else(ends)?;
        self.0 = rest;
        Ok(*first)
    }

    pub(crate) fn number(&mut self) -> Result<u64, Damage> {
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

    pub(crate) fn signed(&mut self) -> Result<i64, Damage> {
        let number = self.number()?;
        Ok((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    pub(crate) fn flag(&mut self) -> Result<bool, Damage> {
        Ok(self.byte()? != 0)
    }

    pub(crate) fn take(&mut self, length: usize) -> Result<&'b [u8], Damage> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or_else(ends)?;
        self.0 = rest;
        Ok(taken)
    }

    pub(crate) fn bytes(&mut self) -> Result<&'b [u8], Damage> {
        let length = self.number()?;
        self.take(usize::try_from(length).map_err(|_| ends())?)
    }

    pub(crate) fn text(&mut self) -> Result<String, Damage> {
        let bytes = self.bytes()?.to_vec();
        String::from_utf8(bytes).map_err(|_| Damage::new("a text is not UTF-8"))
    }

    pub(crate) fn option<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, Damage>,
    ) -> Result<Option<T>, Damage> {
        let is_there = self.flag()?;
        is_there.then(|| read(self)).transpose()
    }
}

/// A value that has one form in recordings.
pub(crate) trait Recordable: Sized {
    /// Appends the value.
    fn write(&self, out: &mut Writer<'_>);

    /// Reads a value.
    ///
    /// # Errors
    /// The bytes end too early, or do not form such a value.
    fn read(from: &mut Reader<'_>) -> Result<Self, Damage>;
}

/// Makes types [`Recordable`], each from one table: a struct from its fields in order; an enum from
/// the number and the fields of each variant; a newtype from its only field.
macro_rules! recorded {
    ($type:ty { $($field:ident),* $(,)? }) => {
        impl $crate::codec::Recordable for $type {
            fn write(&self, out: &mut $crate::codec::Writer<'_>) {
                $($crate::codec::Recordable::write(&self.$field, out);)*
            }

            fn read(
                from: &mut $crate::codec::Reader<'_>,
            ) -> Result<Self, $crate::codec::Damage> {
                Ok(Self { $($field: $crate::codec::Recordable::read(from)?),* })
            }
        }
    };
    ($type:ty: $($number:literal ($($field:ident),*) => [$($form:tt)*];)*) => {
        impl $crate::codec::Recordable for $type {
            fn write(&self, out: &mut $crate::codec::Writer<'_>) {
                match self {
                    $($($form)* => {
                        out.number($number);
                        $($crate::codec::Recordable::write($field, out);)*
                    })*
                }
            }

            fn read(
                from: &mut $crate::codec::Reader<'_>,
            ) -> Result<Self, $crate::codec::Damage> {
                match from.number()? {
                    $($number => {
                        $(let $field = $crate::codec::Recordable::read(from)?;)*
                        Ok($($form)*)
                    })*
                    _ => Err($crate::codec::Damage::unknown()),
                }
            }
        }
    };
    ($($type:ident),*) => {
        $(impl $crate::codec::Recordable for $type {
            fn write(&self, out: &mut $crate::codec::Writer<'_>) {
                $crate::codec::Recordable::write(&self.0, out);
            }

            fn read(
                from: &mut $crate::codec::Reader<'_>,
            ) -> Result<Self, $crate::codec::Damage> {
                $crate::codec::Recordable::read(from).map($type)
            }
        })*
    };
}
pub(crate) use recorded;

/// Makes a type [`Recordable`] in the form of another type.
macro_rules! recorded_as {
    ($type:ty, |$value:ident, $out:ident| $write:expr, |$from:ident| $read:expr) => {
        impl Recordable for $type {
            fn write(&self, $out: &mut Writer<'_>) {
                let $value = self;
                $write;
            }

            fn read($from: &mut Reader<'_>) -> Result<Self, Damage> {
                $read
            }
        }
    };
}

recorded_as!(u64, |it, out| out.number(*it), |from| from.number());
recorded_as!(i64, |it, out| out.signed(*it), |from| from.signed());
recorded_as!(bool, |it, out| out.flag(*it), |from| from.flag());
recorded_as!(String, |it, out| out.text(it), |from| from.text());
recorded_as!(Arc<str>, |it, out| out.text(it), |from| from
    .text()
    .map(Arc::from));
recorded_as!(Vec<u8>, |it, out| out.bytes(it), |from| from
    .bytes()
    .map(Vec::from));
recorded_as!(Box<[u8]>, |it, out| out.bytes(it), |from| from
    .bytes()
    .map(Box::from));
recorded_as!(Arc<[u8]>, |it, out| out.bytes(it), |from| from
    .bytes()
    .map(Arc::from));
recorded_as!(u8, |it, out| out.number((*it).into()), |from| {
    u8::try_from(from.number()?).map_err(|_| Damage::unknown())
});
recorded_as!(u32, |it, out| out.number((*it).into()), |from| {
    u32::try_from(from.number()?).map_err(|_| Damage::unknown())
});
recorded_as!(usize, |it, out| out.number(*it as u64), |from| {
    usize::try_from(from.number()?).map_err(|_| Damage::unknown())
});
// Sixteen bytes, without a length.
recorded_as!(Uuid, |it, out| out.0.extend_from_slice(&it.0), |from| {
    let bytes: Result<[u8; 16], _> = from.take(16)?.try_into();
    Ok(Uuid(bytes.map_err(|_| ends())?))
});
recorded_as!(
    Range<usize>,
    |it, out| {
        it.start.write(out);
        it.end.write(out);
    },
    |from| Ok(usize::read(from)?..usize::read(from)?)
);
/// Lists: the length, then the elements. Lists of bytes have their own form.
macro_rules! recorded_lists {
    ($($element:ty),*) => {
        $(recorded_as!(
            Vec<$element>,
            |it, out| {
                it.len().write(out);
                it.iter().for_each(|element| element.write(out));
            },
            |from| (0..from.number()?).map(|_| Recordable::read(from)).collect()
        );)*
    };
}

recorded_lists!(Arc<[u8]>, u32);

impl<T: Recordable> Recordable for Option<T> {
    fn write(&self, out: &mut Writer<'_>) {
        out.option(self.as_ref(), |out, value| value.write(out));
    }

    fn read(from: &mut Reader<'_>) -> Result<Option<T>, Damage> {
        from.option(T::read)
    }
}

impl<K: Recordable + Ord, V: Recordable> Recordable for BTreeMap<K, V> {
    fn write(&self, out: &mut Writer<'_>) {
        self.len().write(out);
        for (key, value) in self {
            key.write(out);
            value.write(out);
        }
    }

    fn read(from: &mut Reader<'_>) -> Result<BTreeMap<K, V>, Damage> {
        let count = from.number()?;
        (0..count)
            .map(|_| Ok((K::read(from)?, V::read(from)?)))
            .collect()
    }
}

fn ends() -> Damage {
    Damage::new("it ends too early")
}

/// A checksum over bytes, in order. It does not resist deliberate collisions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Checksum(u64);

impl Default for Checksum {
    fn default() -> Checksum {
        Checksum(0x9e37_79b9_7f4a_7c15)
    }
}

impl Checksum {
    pub(crate) fn number(&mut self, number: u64) {
        let product = u128::from(self.0 ^ number) * u128::from(0xa076_1d64_78bd_642f_u64);
        self.0 =
            (product as u64) ^ ((product >> 64) as u64).rotate_left(32) ^ number.rotate_left(17);
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
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

    pub(crate) fn value(self) -> u64 {
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
