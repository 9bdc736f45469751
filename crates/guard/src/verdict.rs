//! Compares counts with the checked-in figures.

use std::fmt::Write as _;

use crate::figures::Figures;

/// The percentage by which a count may exceed the checked-in figure. Variations between compilers
/// are smaller.
const INCREASE_PERCENT_MAX: f64 = 10.0;

/// The result of the comparison: a table and, if it fails, advice.
#[derive(Debug)]
pub(crate) struct Verdict {
    pub(crate) text: String,
    pub(crate) is_good: bool,
}

/// Compares the figures. A path without a checked-in figure fails the comparison, and so does a
/// figure without a path.
pub(crate) fn of(counted: &Figures, expected: &Figures) -> Verdict {
    let mut text = format!(
        "{:16} {:>12} {:>12} {:>8}\n",
        "path", "instructions", "checked in", "change"
    );
    let mut complaints = Vec::new();
    let mut decreased = Vec::new();
    for (name, now) in &counted.counts {
        let Some(before) = expected.of(name) else {
            let _ = writeln!(text, "{name:16} {now:>12} {:>12}", "-");
            complaints.push(format!("{name} has no checked-in figure"));
            continue;
        };
        let percent = (*now as f64 - before as f64) * 100.0 / before as f64;
        let _ = writeln!(text, "{name:16} {now:>12} {before:>12} {percent:>+7.1}%");
        if percent > INCREASE_PERCENT_MAX {
            complaints.push(format!("{name} takes {percent:.1} % more instructions"));
        } else if percent < -INCREASE_PERCENT_MAX {
            decreased.push(name.as_str());
        }
    }
    for (name, _) in &expected.counts {
        if counted.of(name).is_none() {
            complaints.push(format!("{name} has a figure and no path"));
        }
    }
    if !decreased.is_empty() {
        let decreased = decreased.join(", ");
        let _ = writeln!(
            text,
            "\nMuch lower: {decreased}. `make guard-accept` writes the new figures."
        );
    }
    let is_good = complaints.is_empty();
    if !is_good {
        let _ = writeln!(text, "\nFAILED:");
        for complaint in complaints {
            let _ = writeln!(text, "  {complaint}");
        }
        let _ = writeln!(
            text,
            "\nUp to {INCREASE_PERCENT_MAX} % is allowed. If an increase is intended, `make guard-accept` writes the new figures; commit them with the reason."
        );
        if counted.tools != expected.tools {
            let _ = writeln!(
                text,
                "Counted by {} here, by {} for the figures.",
                counted.tools, expected.tools
            );
        }
    }
    Verdict { text, is_good }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(counts: &[(&str, u64)]) -> Figures {
        let counts = counts.iter().map(|(name, count)| ((*name).into(), *count));
        Figures {
            tools: "tools".into(),
            counts: counts.collect(),
        }
    }

    #[test]
    fn ten_percent_more_are_allowed() {
        let before = figures(&[("a", 1000), ("b", 1000)]);
        assert!(of(&figures(&[("a", 1100), ("b", 1)]), &before).is_good);
        let verdict = of(&figures(&[("a", 1101), ("b", 1000)]), &before);
        assert!(!verdict.is_good && verdict.text.contains("a takes 10.1 % more"));
        assert!(verdict.text.contains("make guard-accept"));
    }

    #[test]
    fn paths_and_figures_must_correspond() {
        let one = figures(&[("a", 1)]);
        let two = figures(&[("a", 1), ("b", 1)]);
        assert!(!of(&two, &one).is_good && !of(&one, &two).is_good);
    }
}
