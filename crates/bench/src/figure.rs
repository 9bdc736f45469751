//! One figure of a run: its title, its unit, which direction is better, and its aim.
//!
//! A value that cannot be measured (such as the CPU time of a server at an address) is NaN, and
//! reports show it as a dash. Workloads make figures; reports and plots read them. Every run of a
//! workload returns the same figures in the same order.

use std::fmt;

/// The direction in which a figure is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Better {
    Lower,
    Higher,
    /// Neither direction is better.
    Neither,
}

/// The aim of a figure, which applies to the first of two servers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Aim {
    None,
    /// A limit of the figure itself.
    AtMost(f64),
    AtLeast(f64),
    /// A limit of the ratio of the figure to that of the second server.
    RatioAtMost(f64),
    RatioAtLeast(f64),
}

impl Aim {
    /// Whether the aim is met. `None` if there is no aim, or if a figure is missing.
    pub(crate) fn is_met(self, ours: f64, reference: Option<f64>) -> Option<bool> {
        let ratio = ours / reference.unwrap_or(f64::NAN);
        let judge = |value: f64, is_met: bool| (!value.is_nan()).then_some(is_met);
        match self {
            Aim::None => None,
            Aim::AtMost(most) => judge(ours, ours <= most),
            Aim::AtLeast(least) => judge(ours, ours >= least),
            Aim::RatioAtMost(most) => judge(ratio, ratio <= most),
            Aim::RatioAtLeast(least) => judge(ratio, ratio >= least),
        }
    }
}

impl fmt::Display for Aim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Aim::None => Ok(()),
            Aim::AtMost(most) => write!(f, "at most {most}"),
            Aim::AtLeast(least) => write!(f, "at least {least}"),
            Aim::RatioAtMost(most) => write!(f, "ratio at most {most:.3}"),
            Aim::RatioAtLeast(least) => write!(f, "ratio at least {least:.1}"),
        }
    }
}

/// One figure of a run, or the median of several.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Figure {
    /// The title, without the unit.
    pub(crate) title: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) value: f64,
    /// The number of digits after the decimal point.
    pub(crate) digits: usize,
    pub(crate) better: Better,
    pub(crate) aim: Aim,
    /// The axis and the position at which it was measured. Figures with the same title at several
    /// positions make a curve.
    pub(crate) at: Option<(&'static str, f64)>,
}

impl Figure {
    /// Makes a figure for which lower values are better.
    pub(crate) fn lower(title: &'static str, unit: &'static str, value: f64) -> Figure {
        Figure::new(title, unit, value, Better::Lower)
    }

    /// Makes a figure for which higher values are better.
    pub(crate) fn higher(title: &'static str, unit: &'static str, value: f64) -> Figure {
        Figure::new(title, unit, value, Better::Higher)
    }

    /// Makes a figure without a better direction, which explains other figures.
    pub(crate) fn plain(title: &'static str, unit: &'static str, value: f64) -> Figure {
        Figure::new(title, unit, value, Better::Neither)
    }

    fn new(title: &'static str, unit: &'static str, value: f64, better: Better) -> Figure {
        Figure {
            title,
            unit,
            value,
            digits: 1,
            better,
            aim: Aim::None,
            at: None,
        }
    }

    pub(crate) fn digits(self, digits: usize) -> Figure {
        Figure { digits, ..self }
    }

    pub(crate) fn aim(self, aim: Aim) -> Figure {
        Figure { aim, ..self }
    }

    /// Sets the position on a curve: `at("ports", 1000)`.
    pub(crate) fn at(self, axis: &'static str, value: impl Into<f64>) -> Figure {
        Figure {
            at: Some((axis, value.into())),
            ..self
        }
    }

    /// Returns how many times worse this figure is than that of another server; a value below 1
    /// means better. `None` if no direction is better or a value is not known.
    pub(crate) fn times_worse(&self, other: f64) -> Option<f64> {
        let times = match self.better {
            Better::Lower => self.value / other,
            Better::Higher => other / self.value,
            Better::Neither => return None,
        };
        (!times.is_nan()).then_some(times)
    }

    /// Returns the title with the position and the unit: `server CPU at 1000 ports, us/txn`.
    pub(crate) fn label(&self) -> String {
        let mut label = self.title.to_owned();
        if let Some((axis, value)) = self.at {
            label.push_str(&format!(" at {value} {axis}"));
        }
        if !self.unit.is_empty() {
            label.push_str(", ");
            label.push_str(self.unit);
        }
        label
    }
}

/// Returns the median of each figure. There must be at least one run.
pub(crate) fn medians(runs: &[Vec<Figure>]) -> Vec<Figure> {
    let median = |(index, figure): (usize, &Figure)| {
        let values = runs.iter().map(|figures| figures[index].value);
        Figure {
            value: middle(values.collect()),
            ..figure.clone()
        }
    };
    runs[0].iter().enumerate().map(median).collect()
}

/// Returns the median. There must be at least one value.
pub(crate) fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 {
        values[middle]
    } else {
        f64::midpoint(values[middle - 1], values[middle])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aims_limit_the_figure_or_the_ratio() {
        assert_eq!(Aim::None.is_met(1.0, Some(1.0)), None);
        assert_eq!(Aim::AtMost(5.0).is_met(4.0, None), Some(true));
        assert_eq!(Aim::RatioAtMost(0.5).is_met(4.0, Some(7.0)), Some(false));
        assert_eq!(Aim::RatioAtLeast(3.0).is_met(9.0, Some(3.0)), Some(true));
        assert_eq!(Aim::RatioAtLeast(3.0).is_met(9.0, None), None);
        assert_eq!(Aim::AtMost(5.0).is_met(f64::NAN, None), None);
    }

    #[test]
    fn times_worse_follow_the_direction() {
        assert_eq!(Figure::lower("cpu", "us", 3.0).times_worse(2.0), Some(1.5));
        assert_eq!(
            Figure::higher("rate", "txn/s", 4.0).times_worse(2.0),
            Some(0.5)
        );
        assert_eq!(Figure::plain("rows", "", 4.0).times_worse(2.0), None);
        assert_eq!(Figure::lower("cpu", "us", f64::NAN).times_worse(2.0), None);
    }

    #[test]
    fn medians_are_per_figure() {
        let run = |rate, cpu| {
            vec![
                Figure::higher("rate", "txn/s", rate),
                Figure::lower("cpu", "us", cpu),
            ]
        };
        let odd = medians(&[run(3.0, 1.0), run(1.0, 9.0), run(2.0, 5.0)]);
        assert_eq!((odd[0].value, odd[1].value), (2.0, 5.0));
        assert_eq!(medians(&[run(1.0, 0.0), run(4.0, 0.0)])[0].value, 2.5);
    }

    #[test]
    fn label_of_a_point_has_its_position() {
        let figure = Figure::lower("server CPU", "us/txn", 1.0).at("ports", 1000);
        assert_eq!(figure.label(), "server CPU at 1000 ports, us/txn");
    }
}
