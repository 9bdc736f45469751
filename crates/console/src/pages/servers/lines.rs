//! The lines of the last hour, drawn as SVG: a calm overview, with the exact figures as text.

use std::collections::VecDeque;

use askama::Template;

use crate::pages::grid::bytes;
use crate::status::samples::{Figure, PERIOD, SAMPLES_MAX, Sample};

use super::metric::Metric;

/// The smallest number of samples that fill a picture, so that a young line is not stretched.
const SAMPLES_MIN: usize = 60;

/// The height of a picture, in its own units. A sample is one unit wide.
const HEIGHT: f64 = 36.0;

/// A line with its figures.
#[derive(Template)]
#[template(path = "server_line.html")]
pub(super) struct Line {
    title: &'static str,
    /// The latest figure; a dash if there is none.
    now: String,
    /// The smallest and the largest figure.
    low: String,
    high: String,
    /// The whole in words, for those who do not see the picture.
    words: String,
    width: usize,
    height: f64,
    /// The parts of the line between gaps.
    parts: Vec<Part>,
    metric: Metric,
}

/// A part of a line.
struct Part {
    /// `X,Y X,Y …`
    points: String,
    /// The same, closed at the bottom.
    area: String,
}

/// The figures, with titles and metrics.
const LINES: [(Figure, &str, &str); 6] = [
    (
        Figure::Commits,
        "Commits/s",
        "corvid_database_transactions_total",
    ),
    (
        Figure::Requests,
        "Requests/s",
        "corvid_request_parse_seconds",
    ),
    (Figure::Cpu, "CPU", "process_cpu_seconds_total"),
    (Figure::Memory, "Memory", "process_resident_memory_bytes"),
    (Figure::Sessions, "Sessions", "corvid_sessions"),
    (Figure::Backlog, "Backlog", "corvid_session_backlog_bytes"),
];

/// The lines of these samples, oldest first.
pub(super) fn lines(samples: &VecDeque<Sample>, metrics: Option<&str>) -> Vec<Line> {
    let line = |(figure, title, metric)| {
        let figures: Vec<Option<f64>> = samples
            .iter()
            .map(|sample| sample[figure as usize])
            .collect();
        Line::new(figure, title, &figures, Metric::new(metric, metrics))
    };
    LINES.into_iter().map(line).collect()
}

impl Line {
    fn new(figure: Figure, title: &'static str, figures: &[Option<f64>], metric: Metric) -> Line {
        let known = || figures.iter().copied().flatten();
        let low = known().fold(f64::INFINITY, f64::min);
        let high = known().fold(f64::NEG_INFINITY, f64::max);
        let text = |value: f64| match value.is_finite() {
            true => shown(figure, value),
            false => "–".to_owned(),
        };
        let now = figures.last().copied().flatten();
        let (low_text, high_text) = (text(low), text(high));
        let now_text = now.map_or_else(|| "–".to_owned(), text);
        let words = match known().next() {
            None => format!("{title}: not known yet"),
            Some(_) => {
                format!("{title} in the last hour: from {low_text} to {high_text}, now {now_text}")
            }
        };
        // Figures that vary little are not drawn as a range of mountains.
        let floor = match figure {
            Figure::Memory => low * 0.9,
            _ => 0.0,
        };
        Line {
            title,
            now: now_text,
            low: low_text,
            high: high_text,
            words,
            width: figures.len().max(SAMPLES_MIN),
            height: HEIGHT,
            parts: parts(figures, floor, high),
            metric,
        }
    }
}

/// The line, in parts between unknown figures. The newest one is at the right edge.
fn parts(figures: &[Option<f64>], floor: f64, high: f64) -> Vec<Part> {
    let range = if high > floor { high - floor } else { 1.0 };
    let first = SAMPLES_MIN.saturating_sub(figures.len());
    let mut parts = Vec::new();
    let mut points: Vec<(usize, f64)> = Vec::new();
    let mut end = |points: &mut Vec<(usize, f64)>| {
        let (Some((left, _)), Some((right, y))) = (points.first().copied(), points.last().copied())
        else {
            return;
        };
        // A single figure is a short stroke.
        if left == right {
            points.push((right + 1, y));
        }
        let line: Vec<String> = points.iter().map(|(x, y)| format!("{x},{y:.1}")).collect();
        let line = line.join(" ");
        let right = points.last().map_or(right, |(x, _)| *x);
        parts.push(Part {
            area: format!("{left},{HEIGHT} {line} {right},{HEIGHT}"),
            points: line,
        });
        points.clear();
    };
    for (at, figure) in figures.iter().enumerate() {
        match figure {
            Some(value) => {
                let share = ((value - floor) / range).clamp(0.0, 1.0);
                points.push((first + at, 1.0 + (HEIGHT - 2.0) * (1.0 - share)));
            }
            None => end(&mut points),
        }
    }
    end(&mut points);
    parts
}

/// A figure with its unit.
fn shown(figure: Figure, value: f64) -> String {
    match figure {
        Figure::Memory | Figure::Backlog => bytes(value as i64),
        Figure::Sessions => format!("{value:.0}"),
        Figure::Cpu => format!("{} %", spare(value)),
        Figure::Commits | Figure::Requests => spare(value),
    }
}

/// A number with as many digits as it deserves.
fn spare(value: f64) -> String {
    match value {
        0.0 => "0".to_owned(),
        value if value < 0.01 => format!("{value:.3}"),
        value if value < 10.0 => format!("{value:.2}"),
        value if value < 100.0 => format!("{value:.1}"),
        value => format!("{value:.0}"),
    }
}

/// How much of the hour the samples cover, in words.
pub(super) fn span(samples: usize) -> String {
    let seconds = samples as u64 * PERIOD.as_secs();
    match samples {
        0 | 1 => "the lines begin in a few seconds".to_owned(),
        SAMPLES_MAX.. => "the last hour".to_owned(),
        _ if seconds < 120 => format!("the last {seconds} s"),
        _ => format!("the last {} min", seconds / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_gaps_and_ends_at_the_right_edge() {
        let figures = [Some(0.0), Some(10.0), None, Some(5.0)];
        let line = Line::new(
            Figure::Commits,
            "Commits/s",
            &figures,
            Metric::new("m", None),
        );
        let points: Vec<&str> = line.parts.iter().map(|part| part.points.as_str()).collect();
        assert_eq!(points, ["56,35.0 57,1.0", "59,18.0 60,18.0"]);
        assert_eq!(line.parts[0].area, "56,36 56,35.0 57,1.0 57,36");
        assert_eq!(
            line.words,
            "Commits/s in the last hour: from 0 to 10.0, now 5.00"
        );
    }

    #[test]
    fn unknown_figures_are_a_dash() {
        let line = Line::new(Figure::Cpu, "CPU", &[None], Metric::new("m", None));
        assert_eq!((line.now.as_str(), line.high.as_str()), ("–", "–"));
        assert!(line.parts.is_empty());
        assert_eq!(line.words, "CPU: not known yet");
    }

    #[test]
    fn figures_have_the_digits_that_they_deserve() {
        let texts = [0.0, 0.004, 0.25, 12.34, 1234.5].map(spare);
        assert_eq!(texts, ["0", "0.004", "0.25", "12.3", "1234"]);
        assert_eq!(shown(Figure::Cpu, 3.0), "3.00 %");
        assert_eq!(shown(Figure::Memory, 2048.0), "2.0 KiB");
    }
}
