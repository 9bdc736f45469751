//! One figure of a run: what it is, its unit, which direction is better, what is aimed at.
//!
//! A value that could not be had (the CPU time of a server that is an address) is not a number, and reports show it as a dash.
//! Workloads make figures; reports and plots read them. Every run of a workload yields the same list in the same order.

use std::fmt;

/// Which of two values is the better one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Better {
    Lower,
    Higher,
    /// It says how large something is, not how good.
    Neither,
}

/// What is aimed at, of the first of two servers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Aim {
    None,
    /// Of the figure itself.
    AtMost(f64),
    AtLeast(f64),
    /// Of the figure divided by the second server's.
    RatioAtMost(f64),
    RatioAtLeast(f64),
}

impl Aim {
    /// Whether it is reached; nothing where there is no aim, or no figure to judge by.
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
    /// What it is, without its unit.
    pub(crate) title: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) value: f64,
    /// Digits after the point.
    pub(crate) digits: usize,
    pub(crate) better: Better,
    pub(crate) aim: Aim,
    /// Where on which axis it was taken: figures of one title at several points are a curve.
    pub(crate) at: Option<(&'static str, f64)>,
}

impl Figure {
    /// A figure of which less is better.
    pub(crate) fn lower(title: &'static str, unit: &'static str, value: f64) -> Figure {
        Figure::new(title, unit, value, Better::Lower)
    }

    /// A figure of which more is better.
    pub(crate) fn higher(title: &'static str, unit: &'static str, value: f64) -> Figure {
        Figure::new(title, unit, value, Better::Higher)
    }

    /// A figure that explains others.
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

    /// A point of a curve: `at("ports", 1000)`.
    pub(crate) fn at(self, axis: &'static str, value: impl Into<f64>) -> Figure {
        Figure {
            at: Some((axis, value.into())),
            ..self
        }
    }

    /// The title with its point and unit: `server CPU at 1000 ports, us/txn`.
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

/// The median of each figure on its own. There is at least one run.
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

/// The median of values, of which there is at least one.
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
    fn an_aim_speaks_of_the_figure_or_of_the_ratio() {
        assert_eq!(Aim::None.is_met(1.0, Some(1.0)), None);
        assert_eq!(Aim::AtMost(5.0).is_met(4.0, None), Some(true));
        assert_eq!(Aim::RatioAtMost(0.5).is_met(4.0, Some(7.0)), Some(false));
        assert_eq!(Aim::RatioAtLeast(3.0).is_met(9.0, Some(3.0)), Some(true));
        assert_eq!(Aim::RatioAtLeast(3.0).is_met(9.0, None), None);
        assert_eq!(Aim::AtMost(5.0).is_met(f64::NAN, None), None);
    }

    #[test]
    fn medians_are_taken_figure_by_figure() {
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
    fn a_point_of_a_curve_says_where_it_is() {
        let figure = Figure::lower("server CPU", "us/txn", 1.0).at("ports", 1000);
        assert_eq!(figure.label(), "server CPU at 1000 ports, us/txn");
    }
}
