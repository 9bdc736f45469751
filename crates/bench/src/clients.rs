//! `corvid-bench clients`: the cost of a replica in three client libraries, measured on the same
//! server.
//!
//! Three clients keep a replica of all tables and columns of a database: our client (`replica`, a
//! process of this program), the reference's C library, and the Python library with its C parser.
//! The C library is not packaged for linking. `ovn-nbctl` as a daemon stands for it: the daemon
//! does little more than keep a replica of the whole northbound database. Each client is a process
//! that is measured from outside. Figures that only our library can provide (the time of one
//! change, bytes, look-ups) are measured within this process. This file contains the command and
//! its table; `sync`, `apply` and `index` measure.

mod apply;
mod index;
pub(crate) mod process;
mod replica;
mod session;
mod sync;
pub(crate) mod topology;

use std::path::Path;
use std::time::Instant;

use corvid_shell::output;

pub(crate) use replica::hold;

use crate::cpu_interval::CpuTotals;
use crate::error::Error;
use crate::figure::{self, Figure};
use crate::options::Clients;
use crate::report;
use crate::server::Server;
use crate::target::Program;
use crate::workload::Scale;
use process::Kind;

/// A figure of our client and those of the other clients; NaN for a client that does not have it.
#[derive(Clone, Debug)]
struct Line {
    figure: Figure,
    others: [f64; 2],
}

impl Line {
    /// A figure that only our client has.
    fn alone(figure: Figure) -> Line {
        Line {
            figure,
            others: [f64::NAN; 2],
        }
    }

    /// A figure of all clients: first our client, then [`OTHERS`].
    fn of(values: [f64; 3], figure: impl FnOnce(f64) -> Figure) -> Line {
        let [ours, others @ ..] = values;
        Line {
            figure: figure(ours),
            others,
        }
    }
}

/// The other clients, in the order of their columns in the table.
const OTHERS: [Kind; 2] = [Kind::Packaged, Kind::Python];

/// The input of all measurements.
struct Setup<'a> {
    program: &'a Program,
    scale: Scale,
    /// The clients that are available on this machine, with their positions in [`Line::of`].
    kinds: Vec<(usize, Kind)>,
}

impl Setup<'_> {
    /// Starts a server with a copy of `file`.
    fn serve(&self, file: &Path) -> Result<Server, Error> {
        Server::open(self.program, file, &CpuTotals::default())
    }
}

/// Runs all measurements and prints the table.
pub(crate) fn measure(options: &Clients) -> Result<(), Error> {
    let mut kinds = vec![(0, Kind::Ours)];
    for (place, kind) in (1..).zip(OTHERS) {
        match kind.unavailable_reason() {
            None => kinds.push((place, kind)),
            Some(reason) => output::error_line(format_args!(
                "******* SKIPPED {}: {reason} *******",
                kind.name()
            )),
        }
    }
    let program = Program::plain(options.server.clone());
    let setup = Setup {
        program: &program,
        scale: options.scale,
        kinds,
    };
    let began = Instant::now();
    output::report_text(head(options));
    for part in [sync::measure, apply::measure, index::measure] {
        let rounds: Result<Vec<_>, Error> = (0..options.rounds).map(|_| part(&setup)).collect();
        for line in medians(&rounds?) {
            output::report_text(text(&line));
        }
    }
    output::report(format_args!(
        "\ntotal time {}",
        report::seconds(began.elapsed())
    ));
    Ok(())
}

/// Returns the median of each figure of each client. There must be at least one round.
fn medians(rounds: &[Vec<Line>]) -> Vec<Line> {
    let median = |number: usize, of: &dyn Fn(&Line) -> f64| {
        figure::middle(rounds.iter().map(|lines| of(&lines[number])).collect())
    };
    let line = |(number, line): (usize, &Line)| Line {
        figure: Figure {
            value: median(number, &|line| line.figure.value),
            ..line.figure.clone()
        },
        others: [0, 1].map(|place| median(number, &|line| line.others[place])),
    };
    rounds[0].iter().enumerate().map(line).collect()
}

const TITLE_WIDTH: usize = 58;
const FIGURE_WIDTH: usize = 11;

fn head(options: &Clients) -> String {
    let scale = format!("{:?}", options.scale).to_lowercase();
    format!(
        "server: {}; C: the library within ovn-nbctl, Python: python3-openvswitch\nscale {scale}, medians of {} rounds\n\n{:TITLE_WIDTH$}{:>FIGURE_WIDTH$}{:>FIGURE_WIDTH$}{:>FIGURE_WIDTH$}{:>FIGURE_WIDTH$}  aim\n",
        options.server.display(),
        options.rounds,
        "figure",
        "ours",
        "C",
        "Python",
        "ours / C",
    )
}

fn text(line: &Line) -> String {
    let figure = &line.figure;
    let cell = |value: f64, digits: usize| {
        if value.is_nan() {
            format!("{:>FIGURE_WIDTH$}", "-")
        } else {
            format!("{value:>FIGURE_WIDTH$.digits$}")
        }
    };
    let [packaged, python] = line.others;
    let mut text = format!("{:TITLE_WIDTH$}", figure.label());
    for value in [figure.value, packaged, python] {
        text.push_str(&cell(value, figure.digits));
    }
    text.push_str(&cell(figure.value / packaged, 3));
    if let Some(is_met) = figure.aim.is_met(figure.value, Some(packaged)) {
        let word = if is_met { "met" } else { "MISSED" };
        text.push_str(&format!("  {}: {word}", figure.aim));
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::Aim;

    #[test]
    fn missing_client_has_no_effect_on_aims() {
        let figure = |value| Figure::lower("memory", "MiB", value).aim(Aim::RatioAtMost(0.5));
        let there = Line::of([1.0, 4.0, f64::NAN], figure);
        assert!(text(&there).ends_with("0.250  ratio at most 0.500: met\n"));
        let missing = Line::of([1.0, f64::NAN, f64::NAN], figure);
        assert!(text(&missing).trim_end().ends_with('-'));
    }

    #[test]
    fn medians_are_per_client() {
        let line = |ours, packaged| {
            vec![Line::of([ours, packaged, f64::NAN], |value| {
                Figure::plain("", "", value)
            })]
        };
        let lines = medians(&[line(1.0, 30.0), line(2.0, 10.0), line(3.0, 20.0)]);
        assert_eq!((lines[0].figure.value, lines[0].others[0]), (2.0, 20.0));
        assert!(lines[0].others[1].is_nan());
    }
}
