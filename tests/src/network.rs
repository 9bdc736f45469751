//! A separate network for one test: a namespace for each host, and a cable between any two hosts. A
//! cable can be cut in one direction or in both.
//!
//! The test runs itself again in separate namespaces ([`crate::namespaces`]). A cable that is cut
//! drops everything that is sent and does not report this, so connections stay open until somebody
//! misses a reply. Unix sockets work across the hosts, so the test can talk to all of them. This
//! needs `ip` and `tc`. Called by the tests of clusters.

use std::env;
use std::ffi::OsStr;
use std::io;
use std::io::Write as _;
use std::process::{Command, Stdio};

use crate::namespaces::Namespaces;

/// The environment variable by which the inner run notices that it is the inner one.
const VARIABLE: &str = "CORVID_OWN_NETWORK";
/// The names of network namespaces are files in this folder. The machine must not see them in its
/// own folder.
const SET_UP: &str = r#"mkdir -p /run/netns && mount -t tmpfs names /run/netns && exec "$@""#;
/// Everything that a test needs of the machine: two hosts, and a cable that is cut.
const TRIAL: &str = "ip netns add a && ip netns add b && ip link add ab netns a type veth peer name ba netns b \
    && ip -n a link set ab up && tc -n a qdisc replace dev ab root blackhole && ip netns exec a true";

/// Runs `play` with a network of `size` hosts. `test` is the full name of the calling test
/// including its module. If the machine does not allow namespaces, reports that and returns.
///
/// # Panics
///
/// If `play` panics, or if the inner run cannot be started.
pub fn in_own_network(test: &str, size: usize, play: impl FnOnce(&Network)) {
    if env::var_os(VARIABLE).is_some() {
        return play(&Network::new(size).expect("a network"));
    }
    let namespaces = Namespaces {
        ways: ["-Urmn", "-mn"],
        set_up: SET_UP,
        variables: &[(VARIABLE, OsStr::new("1"))],
        trial: TRIAL,
        permission: "make network namespaces (unshare, ip, tc)",
    };
    namespaces.run(test);
}

/// The hosts, and the cables between them.
#[derive(Debug)]
pub struct Network {
    names: Vec<String>,
}

impl Network {
    fn new(size: usize) -> io::Result<Network> {
        let network = Network {
            names: (0..size).map(|number| format!("h{number}")).collect(),
        };
        let mut commands = String::new();
        for host in &network.names {
            commands += &format!("netns add {host}\n");
        }
        for a in 0..size {
            for b in a + 1..size {
                commands +=
                    &format!("link add c{b} netns h{a} type veth peer name c{a} netns h{b}\n");
            }
        }
        run("ip", &[], &commands)?;
        for host in 0..size {
            let own = network.address(host);
            let mut commands = format!("link set lo up\naddress add {own}/32 dev lo\n");
            for other in network.others(host) {
                let address = network.address(other);
                commands += &format!(
                    "link set c{other} up\nroute add {address}/32 dev c{other} src {own}\n"
                );
            }
            run("ip", &["-n", &network.names[host]], &commands)?;
        }
        Ok(network)
    }

    /// Returns the number of hosts.
    #[must_use]
    pub fn size(&self) -> usize {
        self.names.len()
    }

    /// Returns the address of a host.
    #[must_use]
    pub fn address(&self, host: usize) -> String {
        format!("10.77.0.{}", host + 1)
    }

    /// Returns the words that must come before a command so that it runs on a host.
    #[must_use]
    pub fn prefix(&self, host: usize) -> [&str; 4] {
        ["ip", "netns", "exec", &self.names[host]]
    }

    /// Returns all hosts except this one.
    pub fn others(&self, host: usize) -> impl Iterator<Item = usize> + use<> {
        (0..self.size()).filter(move |other| *other != host)
    }

    /// Cuts one direction of a cable: nothing that `from` sends arrives at `to` from now on.
    ///
    /// # Errors
    ///
    /// If the program `tc` fails.
    pub fn cut(&self, from: usize, to: usize) -> io::Result<()> {
        let command = format!("qdisc replace dev c{to} root blackhole\n");
        run("tc", &["-n", &self.names[from]], &command)
    }

    /// Mends this direction of a cable if it has been cut.
    ///
    /// # Errors
    ///
    /// If the program `tc` fails.
    pub fn mend(&self, from: usize, to: usize) -> io::Result<()> {
        let command = format!("qdisc replace dev c{to} root pfifo limit 1000\n");
        run("tc", &["-n", &self.names[from]], &command)
    }

    /// Cuts what a host sends to all others, what it receives from them, or both.
    ///
    /// # Errors
    ///
    /// The errors of [`Network::cut`].
    pub fn isolate(&self, host: usize, sends: bool, receives: bool) -> io::Result<()> {
        for other in self.others(host) {
            if sends {
                self.cut(host, other)?;
            }
            if receives {
                self.cut(other, host)?;
            }
        }
        Ok(())
    }

    /// Mends all cables.
    ///
    /// # Errors
    ///
    /// The errors of [`Network::mend`].
    pub fn heal(&self) -> io::Result<()> {
        for from in 0..self.size() {
            for to in self.others(from) {
                self.mend(from, to)?;
            }
        }
        Ok(())
    }
}

/// Runs a program in batch mode with these commands.
fn run(program: &str, options: &[&str], commands: &str) -> io::Result<()> {
    let mut child = Command::new(program)
        .args(options)
        .args(["-batch", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    if let Some(mut input) = child.stdin.take() {
        input.write_all(commands.as_bytes())?;
    }
    let output = child.wait_with_output()?;
    match output.status.success() {
        true => Ok(()),
        false => Err(io::Error::other(format!(
            "{program} {options:?}: {}\n{commands}",
            String::from_utf8_lossy(&output.stderr)
        ))),
    }
}
