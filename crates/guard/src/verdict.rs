//! What is counted beside what is checked in, and whether that is well.

use std::fmt::Write as _;

use crate::figures::Figures;

/// Counts may be so many percent above the checked-in figure: what a compiler's mood costs is less, what is worth knowing is more.
const DEARER_MAX: f64 = 10.0;

/// A table, and what to do about it.
#[derive(Debug)]
pub(crate) struct Verdict {
    pub(crate) text: String,
    pub(crate) is_good: bool,
}

/// A path without a checked-in figure is not well, and neither is a figure without a path.
pub(crate) fn of(counted: &Figures, expected: &Figures) -> Verdict {
    let mut text = format!(
        "{:16} {:>12} {:>12} {:>8}\n",
        "path", "instructions", "checked in", "change"
    );
    let mut complaints = Vec::new();
    let mut cheaper = Vec::new();
    for (name, now) in &counted.counts {
        let Some(before) = expected.of(name) else {
            let _ = writeln!(text, "{name:16} {now:>12} {:>12}", "-");
            complaints.push(format!("{name} has no checked-in figure"));
            continue;
        };
        let percent = (*now as f64 - before as f64) * 100.0 / before as f64;
        let _ = writeln!(text, "{name:16} {now:>12} {before:>12} {percent:>+7.1}%");
        if percent > DEARER_MAX {
            complaints.push(format!("{name} takes {percent:.1} % more instructions"));
        } else if percent < -DEARER_MAX {
            cheaper.push(name.as_str());
        }
    }
    for (name, _) in &expected.counts {
        if counted.of(name).is_none() {
            complaints.push(format!("there is no path {name} any more"));
        }
    }
    if !cheaper.is_empty() {
        let cheaper = cheaper.join(", ");
        let _ = writeln!(
            text,
            "\nMuch cheaper: {cheaper}. `make guard-accept` keeps it so."
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
            "\nUp to {DEARER_MAX} % is allowed. If more is meant, `make guard-accept` takes the new figures over; commit them and say why."
        );
        if counted.tools != expected.tools {
            let _ = writeln!(
                text,
                "Other programs counted: {} here, {} then.",
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
    fn ten_percent_are_allowed() {
        let before = figures(&[("a", 1000), ("b", 1000)]);
        assert!(of(&figures(&[("a", 1100), ("b", 1)]), &before).is_good);
        let verdict = of(&figures(&[("a", 1101), ("b", 1000)]), &before);
        assert!(!verdict.is_good && verdict.text.contains("a takes 10.1 % more"));
        assert!(verdict.text.contains("make guard-accept"));
    }

    #[test]
    fn paths_and_figures_belong_together() {
        let one = figures(&[("a", 1)]);
        let two = figures(&[("a", 1), ("b", 1)]);
        assert!(!of(&two, &one).is_good && !of(&one, &two).is_good);
    }
}
