//! What closed connections leave unsent. Freeing hundreds of megabytes takes tens of milliseconds, so it is done in steps, and others
//! are served between them.
//!
//! Invariant: no more than [`BYTES_PER_STEP`] and one segment are freed at a time.

use std::collections::VecDeque;

use super::output::Output;

/// Bytes freed in one wake-up: some 100 us.
const BYTES_PER_STEP: usize = 2 << 20;

/// Output that nobody waits for, to be freed.
#[derive(Debug, Default)]
pub(super) struct Remains(VecDeque<Output>);

impl Remains {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes over what a connection had yet to send. What is little goes at once.
    pub(super) fn take(&mut self, output: Output) {
        if output.bytes() > BYTES_PER_STEP {
            self.0.push_back(output);
        }
    }

    /// Frees a step's worth.
    pub(super) fn dissolve(&mut self) {
        let mut left = BYTES_PER_STEP;
        while let Some(first) = self.0.front_mut() {
            while left > 0 {
                let Some(segment) = first.pop() else { break };
                left = left.saturating_sub(segment.len());
            }
            if left == 0 {
                return;
            }
            self.0.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn much_goes_in_steps_and_little_at_once() {
        let text: Arc<[u8]> = vec![0; 1 << 20].into();
        let of = |count| {
            let mut output = Output::default();
            (0..count).for_each(|_| output.push(text.clone().into()));
            output
        };
        let mut remains = Remains::default();
        remains.take(of(2));
        assert!(remains.is_empty());
        assert_eq!(Arc::strong_count(&text), 1);
        remains.take(of(3));
        remains.take(of(4));
        for left in [5, 3, 1] {
            remains.dissolve();
            assert_eq!(Arc::strong_count(&text), 1 + left);
            assert!(!remains.is_empty());
        }
        remains.dissolve();
        assert_eq!(Arc::strong_count(&text), 1);
        assert!(remains.is_empty());
        remains.dissolve();
    }
}
