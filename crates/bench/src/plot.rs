//! Plots of the results, as SVG: one bar for each figure with an aim, and a curve for each figure
//! that was measured at several points.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::fs;
use std::path::Path;

use plotters::prelude::*;

use crate::error::Error;
use crate::figure::{Better, Figure};
use crate::rounds::Outcome;

/// The size of a plot, in SVG units.
const SIZE: (u32, u32) = (1100, 480);
/// The width of the legend next to the curves, and the height of one of its lines.
const LEGEND: u32 = 300;
const LEGEND_ROW: i32 = 22;
/// The height of a bar of the summary.
const BAR: u32 = 22;
/// The approximate number of labels of a logarithmic axis.
const LABELS: usize = 4;
const FONT: (&str, u32) = ("sans-serif", 14);
/// The colours of our server and of the reference.
const COLOURS: [RGBColor; 2] = [RGBColor(0x1b, 0x6c, 0xa8), RGBColor(0xc8, 0x55, 0x3d)];
const NAMES: [&str; 2] = ["ours", "reference"];

/// Writes `summary.svg` if there are two servers, and `WORKLOAD.svg` for each workload with curves.
pub(crate) fn write(outcomes: &[Outcome], directory: &Path) -> Result<(), Error> {
    fs::create_dir_all(directory)?;
    let bars: Vec<_> = outcomes.iter().flat_map(advantages).collect();
    if !bars.is_empty() {
        summary(&bars, &directory.join("summary.svg"))?;
    }
    for outcome in outcomes {
        let medians = outcome.medians();
        if let Some(plane) = plane(&medians[0]) {
            let name = outcome.workload.name();
            curves(
                name,
                plane,
                &medians,
                &directory.join(format!("{name}.svg")),
            )?;
        }
    }
    Ok(())
}

/// An axis and a unit.
type Plane = (&'static str, &'static str);

/// Returns the plane in which a figure is drawn, if it is drawn.
fn plane_of(figure: &Figure) -> Option<Plane> {
    let is_drawn = figure.better != Better::Neither && figure.value > 0.0;
    figure
        .at
        .filter(|_| is_drawn)
        .map(|(axis, _)| (axis, figure.unit))
}

/// Returns the plane of most figures, if a curve in it has at least two points.
fn plane(figures: &[Figure]) -> Option<Plane> {
    let mut counts: BTreeMap<Plane, usize> = BTreeMap::new();
    for figure in figures {
        if let Some(plane) = plane_of(figure) {
            *counts.entry(plane).or_default() += 1;
        }
    }
    let (plane, count) = counts.into_iter().max_by_key(|(_, count)| *count)?;
    (count >= 2).then_some(plane)
}

/// Returns the factor by which the first server is better, for each figure with an aim.
fn advantages(outcome: &Outcome) -> Vec<(String, f64)> {
    let medians = outcome.medians();
    let [ours, reference] = medians.as_slice() else {
        return Vec::new();
    };
    let aimed = ours
        .iter()
        .zip(reference)
        .filter(|(ours, _)| ours.aim != crate::figure::Aim::None && ours.better != Better::Neither);
    aimed
        .map(|(ours, reference)| {
            let times = match ours.better {
                Better::Higher => ours.value / reference.value,
                Better::Lower | Better::Neither => reference.value / ours.value,
            };
            let label = format!("{}: {}", outcome.workload.name(), ours.label());
            (label, times)
        })
        .filter(|(_, times)| times.is_finite() && *times > 0.0)
        .collect()
}

/// Draws the bars on a logarithmic scale. They begin at 1, the value for equal servers.
fn summary(bars: &[(String, f64)], file: &Path) -> Result<(), Error> {
    let count = u32::try_from(bars.len()).unwrap_or(u32::MAX);
    let size = (SIZE.0, 90 + BAR * count);
    let root = SVGBackend::new(file, size).into_drawing_area();
    root.fill(&WHITE).map_err(failed)?;
    let most = bars
        .iter()
        .fold(10.0_f64, |most, (_, times)| most.max(*times))
        * 1.5;
    let least = bars
        .iter()
        .fold(0.5_f64, |least, (_, times)| least.min(*times));
    let mut chart = ChartBuilder::on(&root)
        .caption("times better than the reference", FONT)
        .margin(10)
        .x_label_area_size(30)
        .y_label_area_size(420)
        .build_cartesian_2d((least..most).log_scale(), (0..bars.len()).into_segmented())
        .map_err(failed)?;
    let label = |row: &SegmentValue<usize>| match row {
        SegmentValue::CenterOf(row) | SegmentValue::Exact(row) => bars
            .len()
            .checked_sub(1 + row)
            .map_or(String::new(), |index| bars[index].0.clone()),
        SegmentValue::Last => String::new(),
    };
    chart
        .configure_mesh()
        .disable_y_mesh()
        .light_line_style(TRANSPARENT)
        .x_labels(LABELS)
        .y_labels(bars.len())
        .y_label_formatter(&label)
        .label_style(FONT)
        .draw()
        .map_err(failed)?;
    let shapes = bars.iter().rev().enumerate().map(|(row, (_, times))| {
        let (from, to) = (times.min(1.0), times.max(1.0));
        let colour = COLOURS[usize::from(*times < 1.0)];
        let corners = [
            (from, SegmentValue::Exact(row)),
            (to, SegmentValue::Exact(row + 1)),
        ];
        let mut bar = Rectangle::new(corners, colour.filled());
        bar.set_margin(3, 3, 0, 0);
        bar
    });
    chart.draw_series(shapes).map_err(failed)?;
    root.present().map_err(failed)
}

/// Draws a curve for each title and server.
fn curves(name: &str, plane: Plane, medians: &[Vec<Figure>], file: &Path) -> Result<(), Error> {
    let root = SVGBackend::new(file, SIZE).into_drawing_area();
    root.fill(&WHITE).map_err(failed)?;
    let (area, legend) = root.split_horizontally(SIZE.0 - LEGEND);
    let (axis, unit) = plane;
    let is_here = |figure: &&Figure| plane_of(figure) == Some(plane);
    let points = || {
        let all = medians.iter().flatten().filter(is_here);
        all.filter_map(|figure| Some((figure, figure.at?.1)))
    };
    let (mut x, mut y) = ((f64::MAX, 0.0_f64), (f64::MAX, 0.0_f64));
    for (figure, at) in points() {
        x = (x.0.min(at), x.1.max(at));
        y = (y.0.min(figure.value), y.1.max(figure.value));
    }
    let mut chart = ChartBuilder::on(&area)
        .caption(name, FONT)
        .margin(10)
        // The last label is centred on its point, so it needs room on both sides.
        .margin_right(30)
        .x_label_area_size(40)
        .y_label_area_size(70)
        .build_cartesian_2d(
            (x.0..x.1 * 1.01).log_scale(),
            (y.0 / 1.5..y.1 * 1.5).log_scale(),
        )
        .map_err(failed)?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .x_labels(LABELS)
        .y_labels(LABELS)
        .x_label_formatter(&|value| format!("{value:.0}"))
        .x_desc(axis)
        .y_desc(unit)
        .label_style(FONT)
        .draw()
        .map_err(failed)?;
    let mut row = LEGEND_ROW;
    let titles: BTreeSet<_> = points().map(|(figure, _)| figure.title).collect();
    for (server, figures) in medians.iter().enumerate().take(COLOURS.len()) {
        for (number, title) in titles.iter().enumerate() {
            let curve: Vec<_> = figures
                .iter()
                .filter(is_here)
                .filter(|figure| figure.title == *title)
                .filter_map(|figure| Some((figure.at?.1, figure.value)))
                .collect();
            // Each server has one colour. Its curves differ in opacity.
            let strength = 1.0 - 0.7 * number as f64 / titles.len() as f64;
            let colour = COLOURS[server].mix(strength);
            let dots = curve
                .iter()
                .map(|point| Circle::new(*point, 3, colour.filled()));
            chart.draw_series(dots).map_err(failed)?;
            chart
                .draw_series(LineSeries::new(curve, colour.stroke_width(2)))
                .map_err(failed)?;
            let line = PathElement::new([(0, row), (16, row)], colour.stroke_width(2));
            legend.draw(&line).map_err(failed)?;
            // A text is drawn below the position that is given for it, so the position is moved up.
            let words = format!("{title}, {}", NAMES[server]);
            let words = Text::new(words, (22, row - 6), FONT);
            legend.draw(&words).map_err(failed)?;
            row += LEGEND_ROW;
        }
    }
    root.present().map_err(failed)
}

fn failed(error: impl Display) -> Error {
    Error::Plot(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rounds::OfServer;
    use crate::workloads;

    fn point(title: &'static str, at: u32) -> Figure {
        Figure::lower(title, "us", f64::from(at)).at("rows", at)
    }

    #[test]
    fn plane_is_that_of_most_figures() {
        let other = Figure::higher("rate", "MB/s", 1.0).at("clients", 1);
        let figures = [other.clone(), point("a", 1), point("a", 2)];
        assert_eq!(plane(&figures), Some(("rows", "us")));
        assert_eq!(plane(&[other]), None);
    }

    #[test]
    fn plots_are_written() {
        let directory = tempfile::tempdir().expect("a directory");
        let aimed = Figure::lower("time", "s", 2.0).aim(crate::figure::Aim::AtMost(3.0));
        let figures = vec![aimed, point("a", 1), point("a", 100)];
        let workload = workloads::find("growth").expect("a workload");
        let server = |figures| {
            let mut server = OfServer::default();
            server.runs.push(figures);
            server
        };
        let outcome = Outcome {
            workload,
            servers: vec![server(figures.clone()), server(figures)],
            preparation: std::time::Duration::ZERO,
        };
        write(&[outcome], directory.path()).expect("plots");
        for name in ["summary.svg", "growth.svg"] {
            let text = fs::read_to_string(directory.path().join(name)).expect("a plot");
            assert!(text.contains("<svg"), "{name}");
        }
    }
}
