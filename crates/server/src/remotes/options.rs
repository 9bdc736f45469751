//! The options of one remote, from the command line's defaults or from a configuration row
//! (docs/spec/cli.md 1.4, 1.5).

use corvid_rpc::backoff;
use corvid_rpc::probe::INTERVAL_MS_DEFAULT;
use corvid_service::remote_rows::RemoteRow;

/// The options of a remote, which its sessions inherit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RemoteOptions {
    /// The probe interval, ms; 0: off. `None`: 5000 on networks, off on Unix sockets.
    pub(crate) probe_interval: Option<u64>,
    /// The maximum pause between attempts to connect, ms.
    pub(crate) max_backoff_ms: u64,
    /// Reject writes.
    pub(crate) read_only: bool,
    /// The RBAC role; empty: none.
    pub(crate) role: String,
    /// The differentiated services code point.
    pub(crate) dscp: u8,
}

/// The minimum of probe intervals and of maximum pauses that can be set, ms.
const INTERVAL_MS_MIN: u64 = 1000;

/// The DSCP of control traffic (TOS byte 0xC0).
const DSCP_DEFAULT: u8 = 48;

impl Default for RemoteOptions {
    fn default() -> RemoteOptions {
        RemoteOptions {
            probe_interval: None,
            max_backoff_ms: backoff::MAX_MS_DEFAULT,
            read_only: false,
            role: String::new(),
            dscp: DSCP_DEFAULT,
        }
    }
}

impl RemoteOptions {
    /// The options that a configuration row describes.
    #[must_use]
    pub(crate) fn from_row(row: &RemoteRow) -> RemoteOptions {
        let mut options = RemoteOptions {
            read_only: row.read_only,
            role: row.role.clone(),
            ..RemoteOptions::default()
        };
        if let Some(interval) = row.probe_interval {
            options.set_probe_interval(interval);
        }
        if let Some(max) = row.max_backoff {
            options.set_max_backoff(max);
        }
        if let Some(dscp) = row.dscp {
            options.dscp = dscp;
        }
        options
    }

    /// Sets the probe interval, ms. Less than a second becomes a second; zero and negative values
    /// turn probes off.
    pub(crate) fn set_probe_interval(&mut self, interval_ms: i64) {
        let interval_ms = u64::try_from(interval_ms).unwrap_or(0);
        self.probe_interval = Some(match interval_ms {
            0 => 0,
            interval_ms => interval_ms.max(INTERVAL_MS_MIN),
        });
    }

    /// Sets the maximum pause, ms. Less than a second becomes a second; zero and negative values
    /// become the default.
    pub(crate) fn set_max_backoff(&mut self, max_ms: i64) {
        self.max_backoff_ms = match u64::try_from(max_ms) {
            Ok(0) | Err(_) => backoff::MAX_MS_DEFAULT,
            Ok(max_ms) => max_ms.max(INTERVAL_MS_MIN),
        };
    }

    /// Sets the code point; an invalid value is ignored.
    pub(crate) fn set_dscp(&mut self, dscp: i64) {
        if let Ok(dscp @ 0..=63) = u8::try_from(dscp) {
            self.dscp = dscp;
        }
    }

    /// The probe interval in force, ms; 0: off.
    #[must_use]
    pub(crate) fn probe_interval_ms(&self, is_network: bool) -> u64 {
        match self.probe_interval {
            Some(interval) => interval,
            None if is_network => INTERVAL_MS_DEFAULT,
            None => 0,
        }
    }
}
