//! The reaper of one database: a thread that frees large garbage, so that no client waits for it.
//!
//! Each database has its own reaper, which starts with the first garbage. Freeing a database of
//! millions of rows takes seconds; neither the database's own conversions nor other databases'
//! garbage may wait for that. The thread runs at low priority. It ends after its database has ended
//! and everything is freed.
//!
//! Invariant: nothing is added while the queue holds [`BYTES_MAX`] or more; the caller then frees
//! its garbage itself. Unfreed garbage is therefore bounded by that limit plus one piece, and under
//! load the database slows down to the rate at which memory is freed. Garbage counts until it is
//! completely freed.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use corvid_reactor::priority;
use corvid_service::job::garbage::Garbage;
use crossbeam_channel::{Receiver, Sender};

/// The size at which the queue is full, bytes: a few tenths of a second of freeing.
const BYTES_MAX: usize = 64 << 20;

/// The queue of the reaper, and its size.
#[derive(Debug)]
pub(crate) struct Reaper {
    queue: Option<Sender<Garbage>>,
    queued_bytes: Arc<AtomicUsize>,
}

impl Reaper {
    /// A reaper whose thread is not started yet. `queued_bytes` is kept equal to the size of the
    /// queue.
    #[must_use]
    pub(crate) fn new(queued_bytes: Arc<AtomicUsize>) -> Reaper {
        Reaper {
            queue: None,
            queued_bytes,
        }
    }

    /// Queues garbage for the thread. Frees it here if the queue is full or the thread cannot be
    /// created.
    pub(crate) fn free(&mut self, garbage: Garbage) {
        if self.queued_bytes.load(Ordering::Relaxed) >= BYTES_MAX {
            return;
        }
        if self.queue.is_none() {
            self.queue = start(self.queued_bytes.clone()).ok();
        }
        if let Some(queue) = &self.queue {
            self.queued_bytes
                .fetch_add(garbage.bytes(), Ordering::Relaxed);
            // Sending cannot fail: the thread lives as long as this sender.
            let _ = queue.send(garbage);
        }
    }
}

fn start(queued_bytes: Arc<AtomicUsize>) -> std::io::Result<Sender<Garbage>> {
    let (sender, queue) = crossbeam_channel::unbounded();
    let run = move || {
        priority::yield_to_others();
        run(&queue, &queued_bytes);
    };
    std::thread::Builder::new()
        .name("reaper".to_owned())
        .spawn(run)?;
    Ok(sender)
}

fn run(queue: &Receiver<Garbage>, queued_bytes: &AtomicUsize) {
    for garbage in queue {
        let bytes = garbage.bytes();
        drop(garbage);
        let before = queued_bytes.fetch_sub(bytes, Ordering::Relaxed);
        assert!(bytes <= before, "garbage is counted while it is queued");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread::ThreadId;
    use std::time::{Duration, Instant};

    /// Reports the thread that drops it. With a gate, the drop blocks until the gate opens.
    struct Dropped {
        gate: Option<Receiver<()>>,
        by: Sender<ThreadId>,
    }

    impl Drop for Dropped {
        fn drop(&mut self) {
            if let Some(gate) = &self.gate {
                gate.recv().unwrap_err();
            }
            self.by.send(std::thread::current().id()).unwrap();
        }
    }

    fn garbage(bytes: usize, gate: Option<Receiver<()>>, by: &Sender<ThreadId>) -> Garbage {
        Garbage::new(
            bytes,
            Dropped {
                gate,
                by: by.clone(),
            },
        )
    }

    fn wait_until(condition: impl Fn() -> bool) {
        let begin = Instant::now();
        while !condition() {
            assert!(begin.elapsed() < Duration::from_secs(60));
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn garbage_beyond_the_limit_is_freed_by_the_caller() {
        const EACH: usize = BYTES_MAX / 4;
        let queued_bytes = Arc::new(AtomicUsize::new(0));
        let mut reaper = Reaper::new(queued_bytes.clone());
        let (open, gate) = crossbeam_channel::bounded(0);
        let (by, dropped) = crossbeam_channel::unbounded();
        let own = std::thread::current().id();
        // The reaper is busy with the first piece; three more fill the queue.
        reaper.free(garbage(EACH, Some(gate), &by));
        for _ in 0..3 {
            reaper.free(garbage(EACH, None, &by));
        }
        assert_eq!(queued_bytes.load(Ordering::Relaxed), BYTES_MAX);
        assert!(dropped.is_empty());
        for _ in 0..10 {
            reaper.free(garbage(usize::MAX, None, &by));
            assert_eq!(dropped.try_recv(), Ok(own));
        }
        drop(open);
        let limit = Duration::from_secs(60);
        for _ in 0..4 {
            assert_ne!(dropped.recv_timeout(limit).unwrap(), own);
        }
        wait_until(|| queued_bytes.load(Ordering::Relaxed) == 0);
        reaper.free(garbage(10 * BYTES_MAX, None, &by));
        assert_ne!(
            dropped.recv_timeout(limit).unwrap(),
            own,
            "there is room again"
        );
    }

    #[test]
    fn all_garbage_is_freed_after_the_database_has_ended() {
        let queued_bytes = Arc::new(AtomicUsize::new(0));
        let mut reaper = Reaper::new(queued_bytes.clone());
        let (open, gate) = crossbeam_channel::bounded(0);
        let (by, dropped) = crossbeam_channel::unbounded();
        reaper.free(garbage(1, Some(gate), &by));
        for _ in 0..100 {
            reaper.free(garbage(1000, None, &by));
        }
        drop((reaper, by));
        drop(open);
        assert_eq!(dropped.iter().count(), 101, "everything is freed");
        // The thread drops its counter when it ends.
        wait_until(|| Arc::strong_count(&queued_bytes) == 1);
        assert_eq!(queued_bytes.load(Ordering::Relaxed), 0);
    }
}
