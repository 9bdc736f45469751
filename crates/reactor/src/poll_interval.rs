//! The time between two waits of a loop. Requests wait during that time, so a long interval is
//! logged, with the words and figures that support tools look for (docs/spec/cli.md 7.7).
//!
//! Each loop has one [`PollInterval`], used by its own thread: main loops, connection shards
//! ([`crate::shard`]) and database threads. CPU time, faults and switches are those of the thread.
//! Reading them costs a system call, so they are read at most ten times a second: the logged
//! figures may include the tenth of a second before the interval.

#![allow(unsafe_code)]

use corvid_net::logging::{self, Module};
use corvid_net::{clock, coverage};

/// Longer intervals are logged, ms.
pub const LONG_MS: u64 = 1000;

/// The minimum time between two readings of the thread's usage, ms.
const SAMPLE_MS: u64 = 100;

/// The time since a loop last waited.
#[derive(Debug, Default)]
pub struct PollInterval {
    /// The loop's name in the log; empty: the main loop.
    name: String,
    /// When the current interval began; 0: the loop is waiting.
    began_ms: u64,
    sampled_ms: u64,
    sample: Used,
}

/// The resources that a thread has used since it began.
#[derive(Clone, Copy, Debug, Default)]
struct Used {
    user_ms: u64,
    system_ms: u64,
    /// Minor and major faults.
    faults: [i64; 2],
    /// Blocks read and written.
    disk: [i64; 2],
    /// Voluntary and involuntary context switches.
    switches: [i64; 2],
}

impl PollInterval {
    /// Measures the loop of this name; empty: the main loop.
    #[must_use]
    pub fn new(name: &str) -> PollInterval {
        PollInterval {
            name: name.to_owned(),
            ..PollInterval::default()
        }
    }

    /// Records that the wait has ended; `now_ms` is monotonic.
    pub fn begin(&mut self, now_ms: u64) {
        self.began_ms = now_ms;
        if now_ms >= self.sampled_ms + SAMPLE_MS {
            self.sampled_ms = now_ms;
            self.sample = Used::read();
        }
    }

    /// Records that the next wait is about to begin. Logs a long interval.
    pub fn end(&mut self) {
        let began_ms = std::mem::take(&mut self.began_ms);
        if began_ms == 0 {
            return;
        }
        let elapsed_ms = clock::mono_ms().saturating_sub(began_ms);
        if elapsed_ms > LONG_MS {
            self.log(elapsed_ms);
        }
    }

    fn log(&self, elapsed_ms: u64) {
        let used = Used::read();
        logging::with_thread_label(&self.name, || {
            for line in lines(elapsed_ms, &self.sample, &used) {
                logging::warn(Module::Timeval, format_args!("{line}"));
            }
            coverage::log();
        });
    }
}

/// The log lines; zero counts are left out.
fn lines(elapsed_ms: u64, before: &Used, after: &Used) -> Vec<String> {
    let mut lines = vec![format!(
        "Unreasonably long {elapsed_ms}ms poll interval ({}ms user, {}ms system)",
        after.user_ms.saturating_sub(before.user_ms),
        after.system_ms.saturating_sub(before.system_ms)
    )];
    let counts = [
        ("faults", ["minor", "major"], before.faults, after.faults),
        ("disk", ["reads", "writes"], before.disk, after.disk),
        (
            "context switches",
            ["voluntary", "involuntary"],
            before.switches,
            after.switches,
        ),
    ];
    for (name, kinds, before, after) in counts {
        let [first, second] = [after[0] - before[0], after[1] - before[1]];
        if first != 0 || second != 0 {
            lines.push(format!(
                "{name}: {first} {}, {second} {}",
                kinds[0], kinds[1]
            ));
        }
    }
    lines
}

impl Used {
    /// Reads the usage of the calling thread.
    fn read() -> Used {
        // SAFETY: all-zero integers are a valid `rusage`; the call fills it in, and fails only for
        // a bad pointer or an unknown `who`.
        let usage = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage);
            usage
        };
        let ms = |time: libc::timeval| (time.tv_sec as u64) * 1000 + (time.tv_usec as u64) / 1000;
        Used {
            user_ms: ms(usage.ru_utime),
            system_ms: ms(usage.ru_stime),
            faults: [usage.ru_minflt, usage.ru_majflt],
            disk: [usage.ru_inblock, usage.ru_oublock],
            switches: [usage.ru_nvcsw, usage.ru_nivcsw],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_the_words_of_the_reference() {
        let before = Used {
            user_ms: 10,
            system_ms: 5,
            faults: [100, 0],
            ..Used::default()
        };
        let after = Used {
            user_ms: 907,
            system_ms: 100,
            faults: [38_139, 0],
            disk: [0, 28_816],
            switches: [1, 248],
        };
        assert_eq!(
            lines(3476, &before, &after),
            [
                "Unreasonably long 3476ms poll interval (897ms user, 95ms system)",
                "faults: 38039 minor, 0 major",
                "disk: 0 reads, 28816 writes",
                "context switches: 1 voluntary, 248 involuntary",
            ]
        );
        assert_eq!(
            lines(1001, &after, &after),
            ["Unreasonably long 1001ms poll interval (0ms user, 0ms system)"]
        );
    }

    #[test]
    fn usage_is_of_the_calling_thread() {
        let before = Used::read();
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while Used::read().user_ms + Used::read().system_ms < before.user_ms + before.system_ms + 20
        {
            assert!(std::time::Instant::now() < deadline, "no CPU time passes");
        }
    }
}
