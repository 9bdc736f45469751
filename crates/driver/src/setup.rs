//! The settings that a client starts with, apart from the class and the remotes.

use std::sync::Arc;
use std::time::Duration;

use corvid_net::tls::Credentials;

/// Settings of a client. Most of them can be changed later through the methods of
/// [`crate::polled::Client`].
///
/// ```no_run
/// use corvid_driver::blocking::Client;
/// use corvid_driver::{Authority, Credentials, Settings, Setup};
/// # fn connect(class: corvid_idl::Class) -> Result<(), corvid_driver::Error> {
///
/// let credentials = Credentials::new(&Settings {
///     private_key: Some("/etc/ovn/key.pem".into()),
///     certificate: Some("/etc/ovn/cert.pem".into()),
///     authority: Some(Authority { file: "/etc/ovn/ca.pem".into(), is_bootstrapped: false }),
///     ..Settings::default()
/// });
/// let setup = Setup { credentials: Some(credentials), is_leader_only: false, ..Setup::default() };
/// let client = Client::connect_with(class, "ssl:10.0.0.1:6642,ssl:10.0.0.2:6642", &setup)?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Setup {
    /// Key, certificate and CA for `ssl:` and `pssl:` remotes.
    pub credentials: Option<Arc<Credentials>>,
    /// Whether the client connects only to the leader of a cluster. True by default. Programs that
    /// only read do not need the leader.
    pub is_leader_only: bool,
    /// Whether the client keeps trying to connect forever. If false, it tries each remote once.
    /// True by default.
    pub is_persistent: bool,
    /// Whether the client tries remotes in random order, so that clients spread over the servers.
    /// True by default.
    pub is_shuffled: bool,
    /// How long the server may be silent before the client probes it; zero disables probes. `None`:
    /// 5 seconds over a network, no probes on a local socket.
    pub probe_interval: Option<Duration>,
    /// A lock to request: see [`crate::polled::Client::set_lock`].
    pub lock: Option<String>,
    /// Whether a list of remotes that cannot work makes the call fail. True by default. If false,
    /// the call succeeds and each attempt to connect fails and is logged. Bindings set this to
    /// false, because their programs may name remotes that become usable later.
    pub are_remotes_checked: bool,
}

impl Default for Setup {
    fn default() -> Setup {
        Setup {
            credentials: None,
            is_leader_only: true,
            is_persistent: true,
            is_shuffled: true,
            probe_interval: None,
            lock: None,
            are_remotes_checked: true,
        }
    }
}
