//! Connection methods: parses `tcp:HOST:PORT`, `punix:FILE` and so on (docs/spec/cli.md 5.1).
//!
//! Parsing only; [`crate::stream`] and [`crate::listener`] open the targets. A text that does not
//! parse is still a remote of the server, one that keeps failing. Errors therefore carry both a
//! number for the failing session and a line for the log.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::logging::{self, Module};
use crate::{dirs, resolve};

/// The port that IANA has assigned to OVSDB, used if none is given.
pub const PORT_DEFAULT: u16 = 6640;

/// A connection method.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A connection that this process opens.
    Active(Active),
    /// A socket on which this process listens.
    Passive(Passive),
}

/// A connection that this process opens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Active {
    /// `tcp:HOST[:PORT]`
    Tcp(Peer),
    /// `ssl:HOST[:PORT]`
    Ssl(Peer),
    /// `unix:FILE`, made absolute
    Unix(PathBuf),
}

/// A socket on which this process listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Passive {
    /// `ptcp:[PORT][:IP]`
    Tcp(Local),
    /// `pssl:[PORT][:IP]`
    Ssl(Local),
    /// `punix:FILE`, made absolute
    Unix(PathBuf),
    /// `pfd:FD`
    Fd(i32),
}

/// A host to connect to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    /// An address or a name.
    pub host: Host,
    /// The TCP port.
    pub port: u16,
    /// The IPv6 scope; 0: none.
    pub scope: u32,
}

/// The address or name of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Host {
    /// A literal address.
    Ip(IpAddr),
    /// A name to be resolved.
    Name(String),
}

/// An address to listen on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Local {
    /// The address; all IPv4 addresses if none was given, or while `name` is not resolved.
    pub ip: IpAddr,
    /// The name that was given in place of an address.
    pub name: Option<String>,
    /// The TCP port; 0: any.
    pub port: u16,
    /// The IPv6 scope; 0: none.
    pub scope: u32,
    /// The text after the scheme, as log lines show it.
    pub suffix: String,
}

/// Why a text is not a connection method.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TargetError {
    /// The text before the first colon is not a known scheme.
    UnknownScheme,
    /// A host is missing or malformed.
    BadHost(String),
    /// The zone of an IPv6 address is neither a number nor the name of an interface.
    BadScope {
        /// The text after the scheme.
        suffix: String,
        /// The offending zone.
        scope: String,
    },
    /// There are more colons than `HOST:PORT` has, so the position of the port is ambiguous.
    NoPort(String),
    /// A port is not a number between 0 (1 for active methods) and 65535.
    BadPort {
        /// The text after the scheme.
        suffix: String,
        /// The offending port.
        port: String,
    },
    /// The descriptor of `pfd:` is not a number.
    BadDescriptor(String),
}

impl TargetError {
    /// The error number with which a session of this target fails.
    #[must_use]
    pub fn errno(&self) -> i32 {
        libc::EAFNOSUPPORT
    }

    /// Logs the fault of `target`. An unknown scheme is not logged here: the attempts to connect
    /// report it.
    pub fn log(&self, target: &str) {
        let module = match self {
            TargetError::UnknownScheme => return,
            TargetError::BadDescriptor(_) => Module::StreamUnix,
            _ => Module::SocketUtil,
        };
        logging::err(module, format_args!("{self}"));
        if target.starts_with("tcp:") {
            let reason = crate::errno::text_of(self.errno());
            let line = format_args!("{target}: connect: {reason}");
            logging::err(Module::StreamTcp, line);
        }
    }
}

/// The log line, without the module.
impl fmt::Display for TargetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TargetError::UnknownScheme => f.write_str(&crate::errno::text_of(self.errno())),
            TargetError::BadHost(suffix) => write!(f, "{suffix}: host must be specified"),
            TargetError::BadScope { suffix, scope } => {
                let reason = crate::errno::text_of(libc::ENODEV);
                write!(f, "{suffix}: bad IPv6 scope \"{scope}\" ({reason})")
            }
            TargetError::NoPort(suffix) => write!(f, "{suffix}: port must be specified"),
            TargetError::BadPort { suffix, port } => {
                write!(f, "{suffix}: bad port number \"{port}\"")
            }
            TargetError::BadDescriptor(suffix) => write!(f, "pfd:{suffix}: bad file descriptor"),
        }
    }
}

impl std::error::Error for TargetError {}

impl Target {
    /// Parses a method. Relative socket names refer to RUNDIR.
    ///
    /// # Errors
    /// The text is not a connection method; see [`TargetError`].
    ///
    /// ```
    /// use corvid_net::target::{Passive, Target};
    /// let Target::Passive(Passive::Tcp(local)) = Target::parse("ptcp:6641:127.0.0.1").unwrap() else { panic!() };
    /// assert_eq!((local.port, local.ip.to_string().as_str()), (6641, "127.0.0.1"));
    /// ```
    pub fn parse(text: &str) -> Result<Target, TargetError> {
        let (scheme, suffix) = text.split_once(':').ok_or(TargetError::UnknownScheme)?;
        let socket = || dirs::absolute_under(&dirs::run(), suffix);
        Ok(match scheme {
            "tcp" => Target::Active(Active::Tcp(parse_peer(suffix)?)),
            "ssl" => Target::Active(Active::Ssl(parse_peer(suffix)?)),
            "unix" => Target::Active(Active::Unix(socket())),
            "ptcp" => Target::Passive(Passive::Tcp(parse_local(suffix)?)),
            "pssl" => Target::Passive(Passive::Ssl(parse_local(suffix)?)),
            "punix" => Target::Passive(Passive::Unix(socket())),
            "pfd" => {
                let number = suffix
                    .parse()
                    .map_err(|_| TargetError::BadDescriptor(suffix.to_owned()))?;
                Target::Passive(Passive::Fd(number))
            }
            _ => return Err(TargetError::UnknownScheme),
        })
    }

    /// Whether the probe interval defaults to that of network methods rather than to "off".
    #[must_use]
    pub fn is_network(&self) -> bool {
        match self {
            Target::Active(active) => !matches!(active, Active::Unix(_)),
            Target::Passive(passive) => !matches!(passive, Passive::Unix(_) | Passive::Fd(_)),
        }
    }
}

impl Passive {
    /// The method with an address in place of a name, once the name is resolved; `None` during the
    /// look-up.
    #[must_use]
    pub fn resolved(&self) -> Option<Passive> {
        let resolve = |local: &Local| {
            let ip = match &local.name {
                Some(name) => resolve::later(name)?,
                None => local.ip,
            };
            let name = None;
            Some(Local {
                ip,
                name,
                ..local.clone()
            })
        };
        match self {
            Passive::Tcp(local) => resolve(local).map(Passive::Tcp),
            Passive::Ssl(local) => resolve(local).map(Passive::Ssl),
            Passive::Unix(_) | Passive::Fd(_) => Some(self.clone()),
        }
    }
}

fn parse_peer(suffix: &str) -> Result<Peer, TargetError> {
    let (host, port) = split_host(suffix);
    let bad_host = || TargetError::BadHost(suffix.to_owned());
    let port = match port {
        None => {
            warn_of_default_port();
            PORT_DEFAULT
        }
        Some(port) if port.contains(':') => return Err(TargetError::NoPort(suffix.to_owned())),
        Some(port) => parse_port(suffix, port).and_then(|number| match number {
            0 => Err(TargetError::BadPort {
                suffix: suffix.to_owned(),
                port: port.to_owned(),
            }),
            number => Ok(number),
        })?,
    };
    if host.is_empty() {
        return Err(bad_host());
    }
    Ok(match parse_ip(suffix, host)? {
        Some((ip, scope)) => Peer {
            host: Host::Ip(ip),
            port,
            scope,
        },
        // A name cannot contain a colon, so this is a malformed address.
        None if host.contains(':') => return Err(bad_host()),
        None => Peer {
            host: Host::Name(host.to_owned()),
            port,
            scope: 0,
        },
    })
}

/// Servers older than IANA's assignment listened on another port, so the use of the default is
/// logged once.
fn warn_of_default_port() {
    static WARNED: AtomicBool = AtomicBool::new(false);
    if !WARNED.swap(true, Ordering::Relaxed) {
        let line =
            format_args!("The default OVSDB port number has changed from 6632 to {PORT_DEFAULT}");
        logging::warn(Module::Stream, line);
    }
}

fn parse_local(suffix: &str) -> Result<Local, TargetError> {
    let suffix_owned = suffix.to_owned();
    // `[::]` alone is an address without a port; otherwise the port comes first.
    let (port, ip) = if suffix.starts_with('[') {
        ("", suffix)
    } else {
        suffix.split_once(':').unwrap_or((suffix, ""))
    };
    let port = if port.is_empty() {
        PORT_DEFAULT
    } else {
        parse_port(suffix, port)?
    };
    if ip.is_empty() {
        return Ok(Local {
            ip: Ipv4Addr::UNSPECIFIED.into(),
            name: None,
            port,
            scope: 0,
            suffix: suffix_owned,
        });
    }
    let bare = match ip.strip_prefix('[').and_then(|ip| ip.strip_suffix(']')) {
        Some(bare) => bare,
        None if ip.contains(':') && !ip.starts_with('[') => {
            return Err(TargetError::NoPort(suffix_owned));
        }
        None => ip,
    };
    let (ip, scope, name) = match parse_ip(suffix, bare)? {
        Some((ip, scope)) => (ip, scope, None),
        // Brackets indicate an address, so this is not a name.
        None if ip.starts_with('[') => return Err(TargetError::BadHost(suffix_owned)),
        None => (Ipv4Addr::UNSPECIFIED.into(), 0, Some(ip.to_owned())),
    };
    Ok(Local {
        ip,
        name,
        port,
        scope,
        suffix: suffix_owned,
    })
}

/// Splits `HOST[:PORT]`, where HOST may be an IPv6 address in brackets, which are removed.
fn split_host(text: &str) -> (&str, Option<&str>) {
    if let Some((host, rest)) = text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        return (host, rest.strip_prefix(':').filter(|port| !port.is_empty()));
    }
    match text.split_once(':') {
        Some((host, port)) => (host, Some(port).filter(|port| !port.is_empty())),
        None => (text, None),
    }
}

fn parse_port(suffix: &str, port: &str) -> Result<u16, TargetError> {
    port.parse().map_err(|_| TargetError::BadPort {
        suffix: suffix.to_owned(),
        port: port.to_owned(),
    })
}

/// Parses an address, with the zone of an IPv6 `%ZONE` (RFC 4007 11): the name of an interface, a
/// number, or nothing, which is the default zone.
fn parse_ip(suffix: &str, text: &str) -> Result<Option<(IpAddr, u32)>, TargetError> {
    let Some((ip, zone)) = text.split_once('%') else {
        return Ok(text.parse().ok().map(|ip| (ip, 0)));
    };
    let Ok(ip) = ip.parse::<std::net::Ipv6Addr>() else {
        return Ok(None);
    };
    let number = match zone {
        "" => Some(0),
        zone if zone.bytes().all(|byte| byte.is_ascii_digit()) => zone.parse().ok(),
        zone => crate::socket::interface_index(zone),
    };
    let scope = number.ok_or_else(|| TargetError::BadScope {
        suffix: suffix.to_owned(),
        scope: zone.to_owned(),
    })?;
    Ok(Some((ip.into(), scope)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn local(text: &str) -> (String, u16) {
        match Target::parse(text).unwrap() {
            Target::Passive(Passive::Tcp(local) | Passive::Ssl(local)) => {
                (local.ip.to_string(), local.port)
            }
            other => panic!("{other:?}"),
        }
    }

    fn peer(text: &str) -> (Host, u16) {
        match Target::parse(text).unwrap() {
            Target::Active(Active::Tcp(peer) | Active::Ssl(peer)) => (peer.host, peer.port),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn passive_methods() {
        assert_eq!(local("ptcp:"), ("0.0.0.0".into(), 6640));
        assert_eq!(local("ptcp:0:127.0.0.1"), ("127.0.0.1".into(), 0));
        assert_eq!(local("pssl:6641:[::]"), ("::".into(), 6641));
        assert_eq!(local("ptcp:[::1]"), ("::1".into(), 6640));
        assert_eq!(local("ptcp::127.0.0.1"), ("127.0.0.1".into(), 6640));
        assert_eq!(local("ptcp:7:[fe80::1%lo]"), ("fe80::1".into(), 7));
        for (zone, scope) in [("", 0), ("1", 1), ("99", 99), ("lo", 1)] {
            let text = format!("ptcp:7:[fe80::1%{zone}]");
            let Ok(Target::Passive(Passive::Tcp(zoned))) = Target::parse(&text) else {
                panic!("{text}")
            };
            assert_eq!(zoned.scope, scope, "{text}");
        }
        let Ok(Target::Passive(Passive::Tcp(named))) = Target::parse("ptcp:7:db.example") else {
            panic!()
        };
        assert_eq!((named.name.as_deref(), named.port), (Some("db.example"), 7));
        assert_eq!(Target::parse("pfd:3"), Ok(Target::Passive(Passive::Fd(3))));
        assert_eq!(
            Target::parse("punix:/a/b"),
            Ok(Target::Passive(Passive::Unix("/a/b".into())))
        );
    }

    #[test]
    fn active_methods() {
        assert_eq!(
            peer("tcp:1.2.3.4"),
            (Host::Ip("1.2.3.4".parse().unwrap()), 6640)
        );
        assert_eq!(peer("tcp:[::1]"), (Host::Ip("::1".parse().unwrap()), 6640));
        assert_eq!(
            peer("ssl:[::1]:6642"),
            (Host::Ip("::1".parse().unwrap()), 6642)
        );
        assert_eq!(
            peer("tcp:db.example:1"),
            (Host::Name("db.example".into()), 1)
        );
        let Ok(Target::Active(Active::Unix(path))) = Target::parse("unix:db.sock") else {
            panic!()
        };
        assert_eq!(path, dirs::run().join("db.sock"));
    }

    #[test]
    fn errors_have_the_words_of_the_log() {
        let text = |method: &str| Target::parse(method).unwrap_err().to_string();
        assert_eq!(text("ptcp:99999"), "99999: bad port number \"99999\"");
        assert_eq!(text("bogus:1"), "Address family not supported by protocol");
        assert_eq!(text("nothing"), "Address family not supported by protocol");
        assert_eq!(text("tcp::6640"), ":6640: host must be specified");
        assert_eq!(
            text("tcp:[::1%nosuch]:1"),
            "[::1%nosuch]:1: bad IPv6 scope \"nosuch\" (No such device)"
        );
        assert_eq!(
            text("ptcp:1:[::1%4294967296]"),
            "1:[::1%4294967296]: bad IPv6 scope \"4294967296\" (No such device)"
        );
        assert_eq!(text("tcp:a:0"), "a:0: bad port number \"0\"");
        assert_eq!(text("tcp:a:1:2"), "a:1:2: port must be specified");
        assert_eq!(text("ptcp:0:::1"), "0:::1: port must be specified");
    }
}
