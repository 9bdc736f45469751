//! Options of one remote, from the command line's defaults or from a configuration row (cli.md 1.4, 1.5).

use corvid_rpc::probe::INTERVAL_MS_DEFAULT;
use corvid_service::remote_rows::RemoteRow;

/// What sessions of a remote inherit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteOptions {
    /// Probe interval in ms; `None`: 5000 on networks, off on Unix sockets. 0: off.
    pub probe_interval: Option<u64>,
    /// Refuse writes.
    pub read_only: bool,
    /// RBAC role; empty: none.
    pub role: String,
    /// Differentiated services code point.
    pub dscp: u8,
}

/// The DSCP of control traffic (TOS byte 0xC0).
const DSCP_DEFAULT: u8 = 48;

impl Default for RemoteOptions {
    fn default() -> RemoteOptions {
        RemoteOptions {
            probe_interval: None,
            read_only: false,
            role: String::new(),
            dscp: DSCP_DEFAULT,
        }
    }
}

impl RemoteOptions {
    /// The options that a configuration row describes.
    #[must_use]
    pub fn from_row(row: &RemoteRow) -> RemoteOptions {
        let defaults = RemoteOptions::default();
        RemoteOptions {
            // Negative intervals make no sense; they count as off, like zero.
            probe_interval: row
                .probe_interval
                .map(|interval| u64::try_from(interval).unwrap_or(0)),
            read_only: row.read_only,
            role: row.role.clone(),
            dscp: row.dscp.unwrap_or(defaults.dscp),
        }
    }

    /// The probe interval in force, ms; 0: off.
    #[must_use]
    pub fn probe_interval_ms(&self, is_network: bool) -> u64 {
        match self.probe_interval {
            Some(interval) => interval,
            None if is_network => INTERVAL_MS_DEFAULT,
            None => 0,
        }
    }
}
