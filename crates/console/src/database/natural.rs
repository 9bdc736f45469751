//! The natural order of texts: digits count as numbers, so `net2` comes before `net10`.

use std::cmp::Ordering;

use corvid::data::AtomRef;

/// Compares two texts. Equal numbers with other zeros in front are told apart last.
pub(crate) fn compare(one: &str, other: &str) -> Ordering {
    let (mut rest, mut other_rest) = (one.as_bytes(), other.as_bytes());
    loop {
        let (Some(byte), Some(other_byte)) = (rest.first(), other_rest.first()) else {
            let by_length = rest.len().cmp(&other_rest.len());
            return by_length.then_with(|| one.cmp(other));
        };
        if byte.is_ascii_digit() && other_byte.is_ascii_digit() {
            let (number, after) = number(rest);
            let (other_number, other_after) = self::number(other_rest);
            let by_size = number.len().cmp(&other_number.len());
            match by_size.then_with(|| number.cmp(other_number)) {
                Ordering::Equal => (rest, other_rest) = (after, other_after),
                order => return order,
            }
        } else if byte == other_byte {
            (rest, other_rest) = (&rest[1..], &other_rest[1..]);
        } else {
            return byte.cmp(other_byte);
        }
    }
}

/// Compares two atoms of one type.
pub(crate) fn atoms(one: AtomRef<'_>, other: AtomRef<'_>) -> Ordering {
    match (one, other) {
        (AtomRef::String(one), AtomRef::String(other)) => compare(one, other),
        (one, other) => one.cmp(&other),
    }
}

/// The digits at the beginning, without zeros in front, and what follows them.
fn number(text: &[u8]) -> (&[u8], &[u8]) {
    let end = text.iter().position(|byte| !byte.is_ascii_digit());
    let (digits, after) = text.split_at(end.unwrap_or(text.len()));
    let zeros = digits.iter().take_while(|byte| **byte == b'0').count();
    (&digits[zeros..], after)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_count_as_numbers() {
        let sorted = [
            "", "1", "01", "2", "10", "a", "net", "net0", "net2", "net2b1", "net02b2", "net10",
            "net10a", "netz", "ä",
        ];
        for (index, one) in sorted.iter().enumerate() {
            for (other_index, other) in sorted.iter().enumerate() {
                let wanted = index.cmp(&other_index);
                if one.trim_start_matches('0') != other.trim_start_matches('0') {
                    assert_eq!(compare(one, other), wanted, "{one} {other}");
                }
            }
            assert_eq!(compare(one, one), Ordering::Equal);
        }
        assert_eq!(compare("1", "01"), Ordering::Greater);
        let (large, larger) = ("n99999999999999999999998", "n99999999999999999999999");
        assert_eq!(compare(large, larger), Ordering::Less);
    }
}
