//! The natural order of texts, as people count: `port9` comes before `port10`.
//!
//! Names in pictures and the tables of the console are in this order.

use std::cmp::Ordering;

/// Compares two texts: runs of digits by their value, everything else by bytes. Equal numbers with
/// different zeros in front are told apart last, so only equal texts are equal.
#[must_use]
pub fn compare(a: &str, b: &str) -> Ordering {
    let (mut left, mut right) = (a.as_bytes(), b.as_bytes());
    while let (Some(&x), Some(&y)) = (left.first(), right.first()) {
        if x.is_ascii_digit() && y.is_ascii_digit() {
            let (x, left_rest) = number(left);
            let (y, right_rest) = number(right);
            let order = x.len().cmp(&y.len()).then_with(|| x.cmp(y));
            if order != Ordering::Equal {
                return order;
            }
            (left, right) = (left_rest, right_rest);
        } else if x != y {
            return x.cmp(&y);
        } else {
            (left, right) = (&left[1..], &right[1..]);
        }
    }
    left.len().cmp(&right.len()).then_with(|| a.cmp(b))
}

/// The digits at the start of a text without zeros in front, and what follows them.
fn number(text: &[u8]) -> (&[u8], &[u8]) {
    let end = text.iter().position(|byte| !byte.is_ascii_digit());
    let (digits, rest) = text.split_at(end.unwrap_or(text.len()));
    let zeros = digits.iter().take_while(|&&byte| byte == b'0').count();
    (&digits[zeros..], rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_count_as_numbers() {
        let sorted = [
            "", "1", "2", "10", "a", "net", "net0", "net2", "net2b1", "net02b2", "net10", "net10a",
            "netz", "ä",
        ];
        for (index, one) in sorted.iter().enumerate() {
            for (other_index, other) in sorted.iter().enumerate() {
                assert_eq!(
                    compare(one, other),
                    index.cmp(&other_index),
                    "{one} {other}"
                );
            }
        }
        let (large, larger) = ("n99999999999999999999998", "n99999999999999999999999");
        assert_eq!(compare(large, larger), Ordering::Less);
    }

    #[test]
    fn zeros_in_front_are_told_apart_last() {
        let mut names = vec!["p10", "p9", "p", "q1", "p010", "p09", "1", "01"];
        names.sort_by(|a, b| compare(a, b));
        assert_eq!(names, ["01", "1", "p", "p09", "p9", "p010", "p10", "q1"]);
    }
}
