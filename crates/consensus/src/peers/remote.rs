//! An address to stay connected to: its attempts and waits.

use corvid_log::cluster::Sid;
use corvid_rpc::Reconnect;

use super::ConnectionNumber;

/// An address to stay connected to.
#[derive(Debug)]
pub(super) struct Remote {
    /// The server that must answer there, if known.
    pub(super) sid: Option<Sid>,
    /// Waits 1, 2, 4, then 8 s between attempts. Its probe is off, because
    /// [`super::connection::Connection`] has one.
    pub(super) reconnect: Reconnect,
    /// The current attempt or connection.
    pub(super) number: Option<ConnectionNumber>,
    /// Why the last connection was refused. A repetition is logged at debug level.
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
