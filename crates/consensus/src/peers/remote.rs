//! An address to which a connection is kept: attempts and waits.

use corvid_log::cluster::Sid;
use corvid_rpc::Reconnect;

use super::ConnectionNumber;

/// An address to which a connection is kept.
#[derive(Debug)]
pub(super) struct Remote {
    /// The server that must answer there, if it is known.
    pub(super) sid: Option<Sid>,
    /// Waits of 1, 2, 4, 8 s between attempts. Its probe is off: [`super::connection::Connection`] has one.
    pub(super) reconnect: Reconnect,
    /// The attempt or the connection.
    pub(super) number: Option<ConnectionNumber>,
    /// Why the last connection was refused; the same reason again is not worth a line.
    pub(super) refusal: Option<String>,
}

impl Remote {
    pub(super) fn new(sid: Option<Sid>, now_ms: u64) -> Remote {
        let mut reconnect = Reconnect::new();
        reconnect.set_probe_interval(0);
        reconnect.enable(now_ms);
        Remote {
            sid,
            reconnect,
            number: None,
            refusal: None,
        }
    }
}
