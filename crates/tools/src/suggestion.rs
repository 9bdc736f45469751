//! "Did you mean": the existing name nearest to a name that does not exist.
//!
//! A suggestion is a separate line on standard error, after the reference's message, which scripts
//! compare.

use corvid_json::shown::Shown;

/// The name nearest to `name`, if it is near enough to be a slip: at most one letter in three may
/// differ. Case is ignored. Of equally near names, the first one wins.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted: Vec<char> = name.to_lowercase().chars().collect();
    let limit = wanted.len() / 3;
    let distances = known.into_iter().filter_map(|candidate| {
        let letters: Vec<char> = candidate.to_lowercase().chars().collect();
        // A cheap test that bounds the work for names of absurd length.
        if letters.len().abs_diff(wanted.len()) > limit {
            return None;
        }
        let distance = distance(&wanted, &letters);
        (distance <= limit).then_some((distance, candidate))
    });
    let (_, nearest) = distances.min_by_key(|(distance, _)| *distance)?;
    Some(nearest)
}

/// The question to the user.
pub fn question(nearest: &str) -> String {
    format!("did you mean \"{}\"?", Shown(nearest))
}

/// The number of letters to insert, remove, replace or exchange with the next one to turn `a` into
/// `b`: the optimal string alignment distance.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, letter) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, other) in b.iter().enumerate() {
            let replaced = last[j] + usize::from(letter != other);
            let mut least = replaced.min(last[j + 1] + 1).min(row[j] + 1);
            let is_exchanged = i > 0 && j > 0 && *letter == b[j - 1] && a[i - 1] == *other;
            if is_exchanged {
                least = least.min(before_last[j - 1] + 1);
            }
            row.push(least);
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_find_their_name() {
        let known = [
            "dump",
            "monitor",
            "monitor-cond",
            "Logical_Switch_Port",
            "name",
        ];
        for (slip, meant) in [
            ("dmup", "dump"),
            ("dum", "dump"),
            ("monitro", "monitor"),
            ("monitorcond", "monitor-cond"),
            ("logical_switch_port", "Logical_Switch_Port"),
            ("Logical_Swich_Prot", "Logical_Switch_Port"),
            ("names", "name"),
        ] {
            assert_eq!(nearest(slip, known), Some(meant), "{slip}");
        }
        for strange in ["", "x", "frobnicate", "restore", "nosuch"] {
            assert_eq!(nearest(strange, known), None, "{strange}");
        }
    }

    #[test]
    fn exchanged_letters_are_one_slip() {
        let letters = |text: &str| text.chars().collect::<Vec<_>>();
        let of = |a: &str, b: &str| distance(&letters(a), &letters(b));
        assert_eq!(of("abcd", "abdc"), 1);
        assert_eq!(of("kitten", "sitting"), 3);
        assert_eq!((of("", "ab"), of("ab", ""), of("ab", "ab")), (2, 2, 0));
    }
}
