//! Messages to the system log: through the C library, as datagrams to a Unix or UDP socket, or not
//! at all.
//!
//! Failures are silent: a logger cannot log them.

#![allow(unsafe_code)]

use std::ffi::CString;
use std::net::{SocketAddr, ToSocketAddrs, UdpSocket};
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;

/// The UDP port of syslog (RFC 5426).
const UDP_PORT: u16 = 514;

/// A method of `--syslog-method`.
#[derive(Debug)]
pub(super) enum Method {
    /// `syslog(3)`.
    Libc,
    /// No system log.
    Null,
    /// Datagrams to a Unix socket.
    Unix {
        socket: Option<UnixDatagram>,
        path: PathBuf,
    },
    /// Datagrams to an address; `None`: the socket could not be created, and the program starts
    /// without it.
    Udp(Option<(UdpSocket, SocketAddr)>),
}

impl Method {
    /// Parses `libc`, `null`, `unix:FILE` or `udp:IP:PORT`.
    pub(super) fn parse(text: &str) -> Option<Method> {
        match text.split_once(':') {
            None if text == "libc" => Some(Method::Libc),
            None if text == "null" => Some(Method::Null),
            Some(("unix", path)) => {
                let socket = UnixDatagram::unbound()
                    .and_then(|socket| socket.set_nonblocking(true).map(|()| socket));
                Some(Method::Unix {
                    socket: socket.ok(),
                    path: path.into(),
                })
            }
            Some(("udp", address)) => {
                let address = udp_address(address);
                Some(Method::Udp(
                    address.and_then(|address| Some((udp_socket(&address)?, address))),
                ))
            }
            _ => None,
        }
    }

    /// The prefix of the pattern in `vlog/list-pattern`.
    pub(super) fn prefix(&self) -> &'static str {
        match self {
            Method::Libc => "<%B> %D{%h %e %T} %E %A: ",
            Method::Null => "",
            Method::Unix { .. } | Method::Udp(_) => "<%B>",
        }
    }

    /// Sends one message; `facility` and `severity` are numbers of RFC 5424.
    pub(super) fn send(&self, facility: u8, severity: u8, text: &str) {
        match self {
            Method::Libc => {
                for line in text.lines() {
                    syslog(facility, severity, line);
                }
            }
            Method::Null => {}
            Method::Unix {
                socket: Some(socket),
                path,
            } => {
                let _ = socket.send_to(datagram(facility, severity, text).as_bytes(), path);
            }
            Method::Udp(Some((socket, address))) => {
                let _ = socket.send_to(datagram(facility, severity, text).as_bytes(), address);
            }
            Method::Unix { socket: None, .. } | Method::Udp(None) => {}
        }
    }
}

fn datagram(facility: u8, severity: u8, text: &str) -> String {
    format!("<{}>{text}", u32::from(facility) * 8 + u32::from(severity))
}

/// `HOST[:PORT]`, resolved at once.
pub(super) fn udp_address(text: &str) -> Option<SocketAddr> {
    let mut addresses = text
        .to_socket_addrs()
        .or_else(|_| (text, UDP_PORT).to_socket_addrs())
        .ok()?;
    addresses.next()
}

/// A non-blocking socket of the address's family.
pub(super) fn udp_socket(address: &SocketAddr) -> Option<UdpSocket> {
    let any = if address.is_ipv4() {
        "0.0.0.0:0"
    } else {
        "[::]:0"
    };
    let socket = UdpSocket::bind(any).ok()?;
    socket.set_nonblocking(true).ok()?;
    Some(socket)
}

/// Sets the program's name in the C library, which keeps the pointer, so the name is never freed.
/// Call once.
pub(super) fn open(program: &str) {
    if let Ok(ident) = CString::new(program) {
        // SAFETY: `into_raw` leaks the string, so it stays valid for the life of the process as
        // openlog requires.
        unsafe { libc::openlog(ident.into_raw(), libc::LOG_NDELAY, libc::LOG_DAEMON) };
    }
}

fn syslog(facility: u8, severity: u8, line: &str) {
    let Ok(line) = CString::new(line.replace('\0', "")) else {
        return;
    };
    let priority = libc::c_int::from(facility) << 3 | libc::c_int::from(severity);
    // SAFETY: the format takes exactly one string, which is terminated and outlives the call.
    unsafe { libc::syslog(priority, c"%s".as_ptr(), line.as_ptr()) };
}
