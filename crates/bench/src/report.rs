//! The results as a table with ratios and aims, and as JSON.

use std::fmt::Write as _;
use std::time::Duration;

use corvid_json::Value;
use corvid_json::value::Object;

use crate::cpu_interval::CpuUsage;
use crate::figure::Figure;
use crate::rounds::{OfServer, Outcome};
use crate::target::Target;
use crate::workload::Scale;

/// The widths of the columns of the table.
const NAME_WIDTH: usize = 16;
const TITLE_WIDTH: usize = 50;
const FIGURE_WIDTH: usize = 11;

/// Returns the head of the table: the servers and the titles of the columns.
pub(crate) fn head(targets: &[Target], scale: Scale, rounds: u32) -> String {
    let mut text = String::new();
    for (target, name) in targets.iter().zip(NAMES) {
        let _ = writeln!(text, "{name}: {target}");
    }
    let scale = format!("{scale:?}").to_lowercase();
    let _ = writeln!(text, "scale {scale}, medians of {rounds} rounds\n");
    let _ = write!(text, "{:NAME_WIDTH$} {:TITLE_WIDTH$}", "workload", "figure");
    for (_, name) in targets.iter().zip(NAMES) {
        let _ = write!(text, "{name:>FIGURE_WIDTH$}");
    }
    if targets.len() == 2 {
        let _ = write!(text, "{:>FIGURE_WIDTH$}", "ratio");
    }
    text.push_str("  aim\n");
    text
}

/// Returns the figures in which the first of two servers is worse than the second, the worst first.
pub(crate) fn worse(outcomes: &[Outcome]) -> String {
    let mut worse = Vec::new();
    for outcome in outcomes {
        let medians = outcome.medians();
        let [ours, reference] = &medians[..] else {
            continue;
        };
        for (figure, other) in ours.iter().zip(reference) {
            if let Some(times) = figure.times_worse(other.value)
                && times > 1.0
            {
                worse.push((times, outcome.workload.name(), figure.label()));
            }
        }
    }
    if worse.is_empty() {
        return "worse than the reference: nothing\n\n".to_owned();
    }
    worse.sort_by(|(one, ..), (other, ..)| other.total_cmp(one));
    let mut text = "worse than the reference, times\n".to_owned();
    for (times, workload, label) in worse {
        let times = cell(times, 3);
        let _ = writeln!(text, "{workload:NAME_WIDTH$} {label:TITLE_WIDTH$}{times}");
    }
    text.push('\n');
    text
}

/// Returns a line for each figure: the value of each server and, for two servers, the ratio and the
/// aim. The busy threads and the total time follow.
pub(crate) fn lines(outcome: &Outcome) -> String {
    let mut text = String::new();
    let medians = outcome.medians();
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
    let name = outcome.workload.name();
    if outcome
        .servers
        .iter()
        .any(|server| server.cpu_usage().is_known())
    {
        let threads = of_servers(outcome, |server| threads(&server.cpu_usage()));
        let _ = writeln!(text, "{name:NAME_WIDTH$} threads, % of a core: {threads}");
    }
    let took = of_servers(outcome, |server| seconds(server.took));
    let preparation = seconds(outcome.preparation);
    let _ = writeln!(
        text,
        "{name:NAME_WIDTH$} time: preparation {preparation}; {took}"
    );
    text
}

/// The names of the servers, in the order of the command line.
const NAMES: [&str; 2] = ["ours", "reference"];

/// `ours ...; reference ...`
fn of_servers(outcome: &Outcome, text: impl Fn(&OfServer) -> String) -> String {
    let servers = outcome.servers.iter().zip(NAMES);
    let parts: Vec<_> = servers
        .map(|(server, name)| format!("{name} {}", text(server)))
        .collect();
    parts.join("; ")
}

fn threads(busy: &CpuUsage) -> String {
    let shares = busy.shares();
    if shares.is_empty() {
        return "idle".to_owned();
    }
    let parts: Vec<_> = shares
        .iter()
        .map(|(name, share)| format!("{name} {:.0}", share * 100.0))
        .collect();
    parts.join(", ")
}

/// `12.3 s`
pub(crate) fn seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}

fn cell(value: f64, digits: usize) -> String {
    if value.is_nan() {
        format!("{:>FIGURE_WIDTH$}", "-")
    } else {
        format!("{value:>FIGURE_WIDTH$.digits$}")
    }
}

/// Returns all results with the figures of each run: an array with one object for each workload and
/// server.
pub(crate) fn json(outcomes: &[Outcome], targets: &[Target], scale: Scale, rounds: u32) -> String {
    let mut results = Vec::new();
    for outcome in outcomes {
        for (server, target) in outcome.servers.iter().zip(targets) {
            let runs = server.runs.iter().map(|run| figures(run));
            let busy = server.cpu_usage();
            let shares = busy.shares().into_iter();
            let shares = shares.map(|(name, share)| (name.into(), number(share)));
            results.push(object([
                ("workload", Value::string(outcome.workload.name())),
                ("server", Value::string(target.to_string())),
                ("median", figures(&server.medians())),
                ("threads", Value::Object(shares.collect::<Object>())),
                ("seconds", number(server.took.as_secs_f64())),
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

/// A number in JSON. NaN becomes null, because JSON has no NaN.
fn number(value: f64) -> Value {
    if value.is_finite() {
        Value::Real(value)
    } else {
        Value::Null
    }
}

/// An object of the given members.
fn object<'a>(members: impl IntoIterator<Item = (&'a str, Value)>) -> Value {
    Value::Object(
        members
            .into_iter()
            .map(|(name, value)| (name.into(), value))
            .collect::<Object>(),
    )
}
