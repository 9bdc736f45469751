//! What a figure is to be, so that a report can say whether it is.

use std::fmt;

/// An aim for a figure of the first server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Aim {
    None,
    /// Of the figure itself.
    AtMost(f64),
    /// Of the figure divided by the second server's.
    RatioAtMost(f64),
    RatioAtLeast(f64),
}

impl Aim {
    /// Whether it is reached; nothing where there is no aim.
    pub(crate) fn is_met(self, ours: f64, reference: f64) -> Option<bool> {
        let ratio = ours / reference;
        match self {
            Aim::None => None,
            Aim::AtMost(most) => Some(ours <= most),
            Aim::RatioAtMost(most) => Some(ratio <= most),
            Aim::RatioAtLeast(least) => Some(ratio >= least),
        }
    }
}

impl fmt::Display for Aim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Aim::None => Ok(()),
            Aim::AtMost(most) => write!(f, "at most {most}"),
            Aim::RatioAtMost(most) => write!(f, "ratio at most {most:.2}"),
            Aim::RatioAtLeast(least) => write!(f, "ratio at least {least:.2}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_aim_speaks_of_the_figure_or_of_the_ratio() {
        assert_eq!(Aim::None.is_met(1.0, 1.0), None);
        assert_eq!(Aim::AtMost(5.0).is_met(4.0, 1.0), Some(true));
        assert_eq!(Aim::RatioAtMost(0.5).is_met(4.0, 7.0), Some(false));
        assert_eq!(Aim::RatioAtLeast(3.0).is_met(9.0, 3.0), Some(true));
    }
}
