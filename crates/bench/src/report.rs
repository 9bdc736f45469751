//! Results for people, with ratios and aims, and as JSON.

use std::fmt::Write as _;

use corvid_json::Value;
use corvid_json::value::Object;

use crate::figure::Figure;
use crate::rounds::Outcome;
use crate::target::Target;
use crate::workload::Scale;

/// Widths of the columns of the table.
const NAME_WIDTH: usize = 16;
const TITLE_WIDTH: usize = 50;
const FIGURE_WIDTH: usize = 11;

/// The head of the table: what the columns are.
pub(crate) fn head(targets: &[Target], scale: Scale, rounds: u32) -> String {
    let mut text = String::new();
    let names = ["ours", "reference"];
    for (target, name) in targets.iter().zip(names) {
        let _ = writeln!(text, "{name}: {target}");
    }
    let scale = format!("{scale:?}").to_lowercase();
    let _ = writeln!(text, "scale {scale}, medians of {rounds} rounds\n");
    let _ = write!(text, "{:NAME_WIDTH$} {:TITLE_WIDTH$}", "workload", "figure");
    for (_, name) in targets.iter().zip(names) {
        let _ = write!(text, "{name:>FIGURE_WIDTH$}");
    }
    if targets.len() == 2 {
        let _ = write!(text, "{:>FIGURE_WIDTH$}", "ratio");
    }
    text.push_str("  aim\n");
    text
}

/// A line for each figure: each server's, with two servers the first divided by the second, and what is aimed at.
pub(crate) fn lines(outcome: &Outcome) -> String {
    let mut text = String::new();
    let medians: Vec<_> = (0..outcome.runs.len())
        .map(|server| outcome.medians(server))
        .collect();
    for (number, figure) in medians[0].iter().enumerate() {
        let _ = write!(
            text,
            "{:NAME_WIDTH$} {:TITLE_WIDTH$}",
            outcome.workload.name(),
            figure.label()
        );
        for figures in &medians {
            text.push_str(&cell(figures[number].value, figure.digits));
        }
        let reference = medians.get(1).map(|figures| figures[number].value);
        if let Some(reference) = reference {
            text.push_str(&cell(figure.value / reference, 3));
        }
        if let Some(is_met) = figure.aim.is_met(figure.value, reference) {
            let word = if is_met { "met" } else { "MISSED" };
            let _ = write!(text, "  {}: {word}", figure.aim);
        }
        text.push('\n');
    }
    text
}

fn cell(value: f64, digits: usize) -> String {
    if value.is_nan() {
        format!("{:>FIGURE_WIDTH$}", "-")
    } else {
        format!("{value:>FIGURE_WIDTH$.digits$}")
    }
}

/// Everything measured, each run included: an array with one object per workload and server.
pub(crate) fn json(outcomes: &[Outcome], targets: &[Target], scale: Scale, rounds: u32) -> String {
    let mut results = Vec::new();
    for outcome in outcomes {
        for (number, target) in targets.iter().enumerate() {
            let runs = outcome.runs[number].iter().map(|run| figures(run));
            results.push(object([
                ("workload", Value::string(outcome.workload.name())),
                ("server", Value::string(target.to_string())),
                ("median", figures(&outcome.medians(number))),
                ("runs", Value::Array(runs.collect())),
            ]));
        }
    }
    let report = object([
        ("scale", Value::string(format!("{scale:?}").to_lowercase())),
        ("rounds", Value::Integer(rounds.into())),
        ("results", Value::Array(results)),
    ]);
    String::from_utf8_lossy(&report.to_bytes()).into_owned()
}

fn figures(figures: &[Figure]) -> Value {
    Value::Object(
        figures
            .iter()
            .map(|figure| (figure.label().into(), number(figure.value)))
            .collect::<Object>(),
    )
}

/// What is not a number is null, because JSON has no other word for it.
fn number(value: f64) -> Value {
    if value.is_finite() {
        Value::Real(value)
    } else {
        Value::Null
    }
}

/// An object of these members.
fn object<'a>(members: impl IntoIterator<Item = (&'a str, Value)>) -> Value {
    Value::Object(
        members
            .into_iter()
            .map(|(name, value)| (name.into(), value))
            .collect::<Object>(),
    )
}
