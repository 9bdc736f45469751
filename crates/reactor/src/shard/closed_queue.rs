//! The queue of closed connections' unsent output. Freeing hundreds of megabytes takes tens of
//! milliseconds, so a shard frees them in steps and serves its connections in between.
//!
//! Invariant: at most [`BYTES_PER_STEP`] plus one segment are freed at a time.

use std::collections::VecDeque;

use crate::output::Output;
use crate::segment::Segment;

/// The number of bytes freed in one wake-up: about 100 us.
const BYTES_PER_STEP: usize = 2 << 20;

/// The output to be freed.
#[derive(Debug, Default)]
pub(super) struct ClosedQueue(VecDeque<Output<Segment>>);

impl ClosedQueue {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Queues the unsent output of a closed connection. Short output is freed at once.
    pub(super) fn push(&mut self, output: Output<Segment>) {
        if output.bytes() > BYTES_PER_STEP {
            self.0.push_back(output);
        }
    }

    /// Frees one step's worth of output.
    pub(super) fn reap(&mut self) {
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
    fn long_output_is_freed_in_steps_and_short_output_at_once() {
        let text: Arc<[u8]> = vec![0; 1 << 20].into();
        let of = |count| {
            let mut output = Output::default();
            (0..count).for_each(|_| output.push(text.clone().into()));
            output
        };
        let mut closed_queue = ClosedQueue::default();
        closed_queue.push(of(2));
        assert!(closed_queue.is_empty());
        assert_eq!(Arc::strong_count(&text), 1);
        closed_queue.push(of(3));
        closed_queue.push(of(4));
        for left in [5, 3, 1] {
            closed_queue.reap();
            assert_eq!(Arc::strong_count(&text), 1 + left);
            assert!(!closed_queue.is_empty());
        }
        closed_queue.reap();
        assert_eq!(Arc::strong_count(&text), 1);
        assert!(closed_queue.is_empty());
        closed_queue.reap();
    }
}
