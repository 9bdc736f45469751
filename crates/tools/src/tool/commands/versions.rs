//! `compare-versions`: compares schema versions `x.y.z` number by number.

use super::{Invocation, Outcome};
use crate::failure::Failure;
use crate::tool::answer::Answer;

/// Answers whether `A OP B` holds.
pub(super) fn compare(invocation: &Invocation<'_>) -> Outcome {
    let [left, operator, right] = invocation.args else {
        return Err(Failure::new("A OP B expected"));
    };
    let order = version(left)?.cmp(&version(right)?);
    let holds = match operator.as_str() {
        "<" => order.is_lt(),
        "<=" => order.is_le(),
        "==" => order.is_eq(),
        ">=" => order.is_ge(),
        ">" => order.is_gt(),
        "!=" => order.is_ne(),
        _ => {
            return Err(Failure::new(format!(
                "{operator}: not a relational operator"
            )));
        }
    };
    Ok(Answer::from(holds))
}

fn version(text: &str) -> Result<[u64; 3], Failure> {
    let numbers: Option<Vec<u64>> = text.split('.').map(number).collect();
    numbers
        .and_then(|numbers| numbers.try_into().ok())
        .ok_or_else(|| {
            Failure::new(format!(
                "{text}: not an OVSDB version number in format x.y.z"
            ))
        })
}

fn number(text: &str) -> Option<u64> {
    let all_digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if all_digits { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_three_numbers() {
        assert_eq!(version("1.2.30"), Ok([1, 2, 30]));
        assert_eq!(version("01.2.3"), Ok([1, 2, 3]));
        for text in ["", "1.2", "1.2.3.4", "1.2.x", "1..3", "+1.2.3", "1.2.3 "] {
            assert_eq!(
                version(text),
                Err(Failure::new(format!(
                    "{text}: not an OVSDB version number in format x.y.z"
                )))
            );
        }
    }
}
