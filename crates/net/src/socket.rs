//! Sockets below streams and listeners: creation, options, names, sending.
//!
//! All sockets made here are close-on-exec and non-blocking. Sends raise no SIGPIPE: the library
//! runs in programs that own their signals, and a peer that is gone is an error of the connection.

#![allow(unsafe_code)]

use std::ffi::CString;
use std::io::{self, IoSlice};
use std::net::{IpAddr, SocketAddr, SocketAddrV6};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicU64, Ordering};

use socket2::{Domain, SockAddr, SockRef, Socket, Type};

/// The DSCP that OVSDB connections carry by default (the upper six bits of the TOS byte 0xC0: CS6).
pub const DSCP_DEFAULT: u8 = 48;

/// The maximum number of slices for one sendmsg(2) (`UIO_MAXIOV` of Linux), which rejects more.
const SLICES_MAX: usize = 1024;

/// Sends bytes. Returns how many the socket accepted.
pub(crate) fn send(socket: &SockRef<'_>, bytes: &[u8]) -> io::Result<usize> {
    socket.send_with_flags(bytes, libc::MSG_NOSIGNAL)
}

/// Sends slices, at most [`SLICES_MAX`]. Returns how many bytes the socket accepted.
pub(crate) fn send_vectored(socket: &SockRef<'_>, slices: &[IoSlice<'_>]) -> io::Result<usize> {
    let slices = &slices[..slices.len().min(SLICES_MAX)];
    socket.send_vectored_with_flags(slices, libc::MSG_NOSIGNAL)
}

/// A new TCP socket for this address, with the DSCP set.
pub(crate) fn tcp(address: &SocketAddr, dscp: u8) -> io::Result<Socket> {
    let socket = Socket::new(
        Domain::for_address(*address),
        Type::STREAM.nonblocking().cloexec(),
        None,
    )?;
    set_dscp(&socket, address.is_ipv6(), dscp)?;
    Ok(socket)
}

/// A new Unix stream socket.
pub(crate) fn unix() -> io::Result<Socket> {
    Socket::new(Domain::UNIX, Type::STREAM.nonblocking().cloexec(), None)
}

/// Sets the DSCP, 0 to 63.
fn set_dscp(socket: &Socket, is_ipv6: bool, dscp: u8) -> io::Result<()> {
    if dscp > 63 {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    let tos = u32::from(dscp) << 2;
    if is_ipv6 {
        socket.set_tclass_v6(tos)
    } else {
        socket.set_tos_v4(tos)
    }
}

/// Combines address, port and scope.
pub(crate) fn address(ip: IpAddr, port: u16, scope: u32) -> SocketAddr {
    match ip {
        IpAddr::V4(_) => SocketAddr::new(ip, port),
        IpAddr::V6(ip) => SocketAddrV6::new(ip, port, 0, scope).into(),
    }
}

/// The number of a network interface.
pub(crate) fn interface_index(name: &str) -> Option<u32> {
    let name = CString::new(name).ok()?;
    // SAFETY: the name is a terminated string that outlives the call.
    match unsafe { libc::if_nametoindex(name.as_ptr()) } {
        0 => None,
        index => Some(index),
    }
}

/// The name under which an accepted connection is logged: `tcp:IP:PORT`, `unix:FILE` for a bound
/// client, else `unix#N`.
pub(crate) fn peer_name(scheme: &str, peer: &SockAddr) -> String {
    static UNNAMED: AtomicU64 = AtomicU64::new(0);
    if let Some(address) = peer.as_socket() {
        return format!("{scheme}:{}", ip_and_port(&address));
    }
    match peer.as_pathname() {
        Some(path) => format!(
            "unix:{}",
            String::from_utf8_lossy(path.as_os_str().as_bytes())
        ),
        None => format!("unix#{}", UNNAMED.fetch_add(1, Ordering::Relaxed)),
    }
}

/// The id of the process that has connected to this Unix socket, or listens at the other end of it,
/// as the kernel recorded it then; `None`: the socket is of another kind, or the process is not
/// visible here, as from another container.
pub(crate) fn peer_pid(socket: &SockRef<'_>) -> Option<u32> {
    let mut peer = libc::ucred {
        pid: 0,
        uid: 0,
        gid: 0,
    };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: `peer` is a valid place for `length` bytes, and the socket is open during the call.
    let outcome = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut peer).cast(),
            &raw mut length,
        )
    };
    let pid = u32::try_from(peer.pid).ok()?;
    (outcome == 0 && pid != 0).then_some(pid)
}

/// `IP:PORT`, with an IPv6 address in brackets.
fn ip_and_port(address: &SocketAddr) -> String {
    match address {
        SocketAddr::V4(v4) => v4.to_string(),
        SocketAddr::V6(v6) => format!("[{}]:{}", v6.ip(), v6.port()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_slices_than_one_call_takes_are_sent_in_parts() {
        let (one, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        let slices = vec![IoSlice::new(b"x"); SLICES_MAX + 1];
        let sent = send_vectored(&SockRef::from(&one), &slices).unwrap();
        assert_eq!(sent, SLICES_MAX);
    }

    #[test]
    fn the_kernel_knows_the_process_at_the_other_end_of_a_unix_socket() {
        let (one, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        assert_eq!(peer_pid(&SockRef::from(&one)), Some(std::process::id()));
        let other = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        assert_eq!(peer_pid(&SockRef::from(&other)), None);
    }

    #[test]
    fn peer_names_have_the_form_of_the_log() {
        let name =
            |text: &str| peer_name("tcp", &SockAddr::from(text.parse::<SocketAddr>().unwrap()));
        assert_eq!(name("192.0.2.1:6640"), "tcp:192.0.2.1:6640");
        assert_eq!(name("[2001:db8::1]:6640"), "tcp:[2001:db8::1]:6640");
    }
}
