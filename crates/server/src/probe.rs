//! The inactivity probe of one connection (protocol.md 1.9): after a silent interval a probe is sent, after another one the
//! connection is given up. Any received byte counts as life.

/// What to do now.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Look again then.
    WaitUntil(u64),
    /// Send a probe, look again then.
    Send(u64),
    /// Give up; silent for this many seconds after the probe.
    Dead(u64),
    /// Probing is off.
    Off,
}

/// State of one connection's probe.
#[derive(Debug)]
pub struct Probe {
    /// 0: off.
    interval_ms: u64,
    sent_ms: Option<u64>,
}

impl Probe {
    /// Probes at this interval; 0 never.
    #[must_use]
    pub fn new(interval_ms: u64) -> Probe {
        Probe { interval_ms, sent_ms: None }
    }

    /// Decides, given when the last byte was received.
    pub fn check(&mut self, now_ms: u64, received_ms: u64) -> Verdict {
        if self.interval_ms == 0 {
            return Verdict::Off;
        }
        match self.sent_ms {
            Some(sent_ms) if received_ms < sent_ms => {
                if now_ms >= sent_ms + self.interval_ms {
                    return Verdict::Dead(self.interval_ms / 1000);
                }
                return Verdict::WaitUntil(sent_ms + self.interval_ms);
            }
            _ => self.sent_ms = None,
        }
        if now_ms >= received_ms + self.interval_ms {
            self.sent_ms = Some(now_ms);
            Verdict::Send(now_ms + self.interval_ms)
        } else {
            Verdict::WaitUntil(received_ms + self.interval_ms)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_is_probed_once_then_fatal() {
        let mut probe = Probe::new(5000);
        assert_eq!(probe.check(1000, 1000), Verdict::WaitUntil(6000));
        assert_eq!(probe.check(6000, 1000), Verdict::Send(11_000));
        assert_eq!(probe.check(7000, 1000), Verdict::WaitUntil(11_000));
        assert_eq!(probe.check(11_000, 1000), Verdict::Dead(5));
    }

    #[test]
    fn a_byte_after_the_probe_is_life() {
        let mut probe = Probe::new(5000);
        assert_eq!(probe.check(6000, 1000), Verdict::Send(11_000));
        assert_eq!(probe.check(11_000, 6100), Verdict::WaitUntil(11_100));
        assert_eq!(probe.check(11_100, 6100), Verdict::Send(16_100));
    }

    #[test]
    fn zero_is_off() {
        assert_eq!(Probe::new(0).check(9000, 1), Verdict::Off);
    }
}
