//! The figures of storage for people, with ratios and aims, and as JSON.

use std::fmt::Write as _;

use corvid_json::Value;

use super::{Figure, Outcome};
use crate::options::Storage;
use crate::report::object;

/// Widths of the columns of the table.
const TRIAL_WIDTH: usize = 8;
const TITLE_WIDTH: usize = 46;
const FIGURE_WIDTH: usize = 11;

/// A line for each figure: the first server, the second, the first divided by the second, and what is aimed at.
pub(crate) fn table(outcomes: &[Outcome], options: &Storage) -> String {
    let mut text = format!(
        "{} beside {}\nmedians of {} rounds; stall: {} rows; open, tool: {} rows written twice, {} in a record; small: {} transactions; \
         durable: {} connections x {} transactions\n\n",
        options.ours.display(),
        options.reference.display(),
        options.rounds,
        options.stall_rows,
        options.open_rows,
        options.rows_per_record,
        options.small_transactions,
        options.connections,
        options.durable_transactions,
    );
    let _ = writeln!(
        text,
        "{:TRIAL_WIDTH$} {:TITLE_WIDTH$}{:>FIGURE_WIDTH$}{:>FIGURE_WIDTH$}{:>FIGURE_WIDTH$}  aim",
        "workload", "figure", "ours", "reference", "ratio"
    );
    for outcome in outcomes {
        for (ours, reference) in outcome.medians(0).iter().zip(&outcome.medians(1)) {
            let _ = write!(
                text,
                "{:TRIAL_WIDTH$} {:TITLE_WIDTH$}{:>FIGURE_WIDTH$.digits$}{:>FIGURE_WIDTH$.digits$}{:>FIGURE_WIDTH$.3}",
                outcome.trial,
                ours.title,
                ours.value,
                reference.value,
                ours.value / reference.value,
                digits = ours.digits,
            );
            if let Some(is_met) = ours.aim.is_met(ours.value, reference.value) {
                let word = if is_met { "met" } else { "MISSED" };
                let _ = write!(text, "  {}: {word}", ours.aim);
            }
            text.push('\n');
        }
    }
    text
}

/// Everything measured, each run included: an array with one object per workload and server.
pub(crate) fn json(outcomes: &[Outcome], options: &Storage) -> String {
    let mut results = Vec::new();
    for outcome in outcomes {
        for (number, server) in [&options.ours, &options.reference].into_iter().enumerate() {
            let runs = outcome.runs[number].iter().map(|run| figures(run));
            results.push(object([
                ("workload", Value::string(outcome.trial.to_string())),
                ("server", Value::string(server.display().to_string())),
                ("median", figures(&outcome.medians(number))),
                ("runs", Value::Array(runs.collect())),
            ]));
        }
    }
    String::from_utf8_lossy(&Value::Array(results).to_bytes()).into_owned()
}

fn figures(figures: &[Figure]) -> Value {
    object(
        figures
            .iter()
            .map(|figure| (figure.title, Value::Real(figure.value))),
    )
}
