//! A network of its own for one test: a namespace for each host, a cable between any two, which is cut one way or both ways.
//!
//! The test runs itself again in namespaces of its own ([`crate::namespaces`]). A cut cable drops what is sent and tells nobody, so connections stay
//! up until somebody misses an answer. Sockets of files work across the hosts, so the test talks to all of them. Needs `ip` and `tc`. Called by the
//! tests of clusters.

use std::env;
use std::ffi::OsStr;
use std::io;
use std::io::Write as _;
use std::process::{Command, Stdio};

use crate::namespaces::Namespaces;

/// Tells the inner run that it is one.
const VARIABLE: &str = "CORVID_OWN_NETWORK";
/// Names of network namespaces are files here, which the machine's own must not see.
const SET_UP: &str = r#"mkdir -p /run/netns && mount -t tmpfs names /run/netns && exec "$@""#;
/// All that a test needs of the machine: two hosts and a cable that is cut.
const TRIAL: &str = "ip netns add a && ip netns add b && ip link add ab netns a type veth peer name ba netns b \
    && ip -n a link set ab up && tc -n a qdisc replace dev ab root blackhole && ip netns exec a true";

/// Runs `play` with a network of so many hosts. `test` is the full name of the calling test, its module included. Where the machine allows no
/// namespaces, reports that and returns.
///
/// # Panics
///
/// When `play` does, or the inner run cannot be started.
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

    /// Hosts.
    #[must_use]
    pub fn size(&self) -> usize {
        self.names.len()
    }

    /// The address of a host.
    #[must_use]
    pub fn address(&self, host: usize) -> String {
        format!("10.77.0.{}", host + 1)
    }

    /// The words before a command that is to run on a host.
    #[must_use]
    pub fn prefix(&self, host: usize) -> [&str; 4] {
        ["ip", "netns", "exec", &self.names[host]]
    }

    /// All hosts but this one.
    pub fn others(&self, host: usize) -> impl Iterator<Item = usize> + use<> {
        (0..self.size()).filter(move |other| *other != host)
    }

    /// From now on nothing arrives at `to` that `from` sends.
    ///
    /// # Errors
    ///
    /// The program `tc` fails.
    pub fn cut(&self, from: usize, to: usize) -> io::Result<()> {
        let command = format!("qdisc replace dev c{to} root blackhole\n");
        run("tc", &["-n", &self.names[from]], &command)
    }

    /// Ends [`Network::cut`] of this direction, if it is cut.
    ///
    /// # Errors
    ///
    /// The program `tc` fails.
    pub fn mend(&self, from: usize, to: usize) -> io::Result<()> {
        let command = format!("qdisc replace dev c{to} root pfifo limit 1000\n");
        run("tc", &["-n", &self.names[from]], &command)
    }

    /// Cuts what a host sends to all others, what it receives from them, or both.
    ///
    /// # Errors
    ///
    /// As [`Network::cut`].
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

    /// Mends everything.
    ///
    /// # Errors
    ///
    /// As [`Network::mend`].
    pub fn heal(&self) -> io::Result<()> {
        for from in 0..self.size() {
            for to in self.others(from) {
                self.mend(from, to)?;
            }
        }
        Ok(())
    }
}

/// Runs a program on the lines of a batch.
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
