//! The switch that turns the server's measurements on and off.
//!
//! Figures exist from the start, so metrics can be switched on at any time. While the switch is
//! off, a measuring point costs one relaxed load of a word that is rarely written.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The switch of one server; cheap to clone. Initially off.
#[derive(Clone, Debug, Default)]
pub(crate) struct Switch(Arc<AtomicBool>);

impl Switch {
    /// Turns measurements on or off.
    pub(crate) fn set(&self, is_on: bool) {
        self.0.store(is_on, Ordering::Relaxed);
    }
}

/// Figures that are counted while the switch is on.
#[derive(Debug)]
pub(crate) struct Switched<F> {
    figures: Arc<F>,
    switch: Switch,
}

impl<F> Clone for Switched<F> {
    fn clone(&self) -> Self {
        Switched {
            figures: self.figures.clone(),
            switch: self.switch.clone(),
        }
    }
}

impl<F> Switched<F> {
    /// Figures controlled by this switch.
    pub(crate) fn new(figures: Arc<F>, switch: &Switch) -> Switched<F> {
        Switched {
            figures,
            switch: switch.clone(),
        }
    }

    /// The figures, if they are being counted.
    #[inline]
    pub(crate) fn counted(&self) -> Option<&F> {
        self.is_on().then_some(&*self.figures)
    }

    /// The figures regardless of the switch, for state that must be right whenever metrics are
    /// switched on.
    #[inline]
    pub(crate) fn state(&self) -> &Arc<F> {
        &self.figures
    }

    /// Whether the figures are being counted.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.switch.0.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_figures_of_a_server_are_counted_while_its_switch_is_on() {
        let switch = Switch::default();
        let first = Switched::new(Arc::new(1), &switch);
        let second = Switched::new(Arc::new(2), &switch);
        assert_eq!((first.counted(), second.counted()), (None, None));
        switch.set(true);
        assert_eq!(
            (first.counted(), second.clone().counted()),
            (Some(&1), Some(&2))
        );
        switch.set(false);
        assert_eq!((first.counted(), first.state()), (None, &Arc::new(1)));
    }
}
