//! The address to listen at for HTTP, as written by users: `HOST:PORT`, `[IPV6]:PORT`, `:PORT` for
//! all addresses, or `unix:FILE`.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

use corvid_net::target::{Local, Passive};
use corvid_net::{dirs, resolve};

/// An address to listen at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    pub(super) target: Passive,
    text: String,
}

impl Address {
    /// Parses an address. A host name is resolved, which may take a while; port 0 means any free
    /// port. Relative file names refer to the run directory.
    ///
    /// # Errors
    /// The address is invalid; the text says why.
    pub(crate) fn parse(text: &str) -> Result<Address, String> {
        let target = match text.strip_prefix("unix:") {
            Some("") => return Err("expected a file name after \"unix:\"".to_owned()),
            Some(file) => Passive::Unix(dirs::absolute_under(&dirs::run(), file)),
            None => Passive::Tcp(local(text)?),
        };
        Ok(Address {
            target,
            text: text.to_owned(),
        })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn local(text: &str) -> Result<Local, String> {
    let (host, port) = text
        .rsplit_once(':')
        .ok_or("expected HOST:PORT or unix:FILE")?;
    let port = port
        .parse()
        .map_err(|_| format!("{port:?} is not a port number"))?;
    let bracketed = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    let ip = match bracketed {
        Some(ip) => IpAddr::V6(
            ip.parse()
                .map_err(|_| format!("{ip:?} is not an IPv6 address"))?,
        ),
        // Listens on IPv6 and, if the system has both, on IPv4.
        None if host.is_empty() => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        None if host.contains(':') => {
            return Err("an IPv6 address must be in brackets".to_owned());
        }
        None => host
            .parse()
            .ok()
            .or_else(|| resolve::now(host))
            .ok_or_else(|| format!("cannot resolve {host:?}"))?,
    };
    Ok(Local {
        ip,
        name: None,
        port,
        scope: 0,
        suffix: text.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip_and_port(text: &str) -> Result<(String, u16), String> {
        match Address::parse(text)?.target {
            Passive::Tcp(local) => Ok((local.ip.to_string(), local.port)),
            other => Err(format!("{other:?}")),
        }
    }

    #[test]
    fn hosts_ports_and_files() {
        let is = |text: &str, ip: &str, port| {
            assert_eq!(ip_and_port(text), Ok((ip.to_owned(), port)), "{text}");
        };
        is("127.0.0.1:9476", "127.0.0.1", 9476);
        is("[::1]:0", "::1", 0);
        is(":9476", "::", 9476);
        let unix = Address::parse("unix:/tmp/m.sock").map(|address| address.target);
        assert_eq!(unix, Ok(Passive::Unix("/tmp/m.sock".into())));
    }

    #[test]
    fn an_invalid_address_is_an_error_with_its_reason() {
        let fails = |text: &str, why: &str| {
            let error = ip_and_port(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        };
        fails("9476", "HOST:PORT");
        fails("127.0.0.1:http", "\"http\" is not a port number");
        fails("127.0.0.1:65536", "not a port number");
        fails("::1:80", "brackets");
        fails("[1.2.3.4]:80", "not an IPv6 address");
        fails("unix:", "expected a file name");
    }
}
