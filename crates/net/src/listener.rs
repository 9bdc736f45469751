//! A listening socket: TCP, with or without TLS, Unix, or inherited.
//!
//! The value is shared: the shard that accepts holds one reference and the owner of the remote
//! another. Closing therefore takes effect at once (the port is free, the socket file removed),
//! although the accepting thread notices later.

#![allow(unsafe_code)]

use std::fs::{File, Permissions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use socket2::Socket;

use crate::coverage::events;
use crate::fork::Owner;
use crate::logging::{self, Level, Module};
use crate::stream::Stream;
use crate::target::{Local, Passive};
use crate::tls::Credentials;
use crate::unix_path::UnixAddress;
use crate::{cleanup, errno, resolve, socket};

/// The number of connections that the kernel queues until they are accepted.
const BACKLOG: i32 = 64;
/// The mode of a socket file, before the umask.
const UNIX_MODE: u32 = 0o770;

/// Why a listener could not be opened, with its log lines. The caller logs them, because a listener
/// is retried and the same lines each time would be noise.
#[derive(Debug, thiserror::Error)]
#[error("{}", errno::text(error))]
pub struct ListenError {
    /// The kernel's error.
    pub error: io::Error,
    lines: Vec<(Module, Level, String)>,
}

impl ListenError {
    fn new(error: io::Error, module: Module, line: String) -> ListenError {
        ListenError {
            error,
            lines: vec![(module, Level::Error, line)],
        }
    }

    /// Logs the lines.
    pub fn log(&self) {
        for (module, level, line) in &self.lines {
            logging::log(*module, *level, format_args!("{line}"));
        }
    }
}

impl From<io::Error> for ListenError {
    fn from(error: io::Error) -> ListenError {
        ListenError {
            error,
            lines: Vec::new(),
        }
    }
}

/// A non-blocking listening socket.
#[derive(Debug)]
pub struct Listener {
    socket: Socket,
    kind: Kind,
    /// The TLS credentials of accepted connections.
    credentials: Option<Arc<Credentials>>,
    owner: Owner,
    closed: AtomicBool,
}

#[derive(Debug)]
enum Kind {
    Tcp {
        port: u16,
    },
    Unix {
        path: PathBuf,
    },
    /// Inherited; never unlinked.
    Inherited,
}

impl Listener {
    /// Opens a listener. A port chosen by the kernel is logged. A name is looked up, which may take
    /// long; see [`Passive::resolved`].
    ///
    /// # Errors
    /// The address is in use or unusable. `pssl:` without credentials fails with
    /// `Protocol not available`; incomplete credentials fail only when a client connects.
    pub fn open(
        target: &Passive,
        dscp: u8,
        credentials: Option<&Arc<Credentials>>,
    ) -> Result<Listener, ListenError> {
        events::PSTREAM_OPEN.bump();
        let credentials = credentials.filter(|_| matches!(target, Passive::Ssl(_)));
        let (socket, kind) = match target {
            Passive::Ssl(_) if credentials.is_none() => {
                return Err(errno::from_code(libc::ENOPROTOOPT).into());
            }
            Passive::Tcp(local) | Passive::Ssl(local) => open_tcp(local, dscp)?,
            Passive::Unix(path) => open_unix(path)?,
            Passive::Fd(descriptor) => (inherit(*descriptor)?, Kind::Inherited),
        };
        Ok(Listener {
            socket,
            kind,
            credentials: credentials.cloned(),
            owner: Owner::this_process(),
            closed: AtomicBool::new(false),
        })
    }

    /// Accepts one connection and names its peer; `None` if no connection is pending. With TLS the
    /// handshake is still to come.
    ///
    /// # Errors
    /// The socket fails, for example because no descriptor is left. `ENOPROTOOPT`: TLS lacks a key,
    /// a certificate or a CA, and the connection was closed; others may be pending.
    pub fn accept(&self) -> io::Result<Option<(Stream, String)>> {
        loop {
            match self.socket.accept() {
                Ok((socket, peer)) => {
                    socket.set_nonblocking(true)?;
                    let scheme = if self.credentials.is_some() {
                        "ssl"
                    } else {
                        "tcp"
                    };
                    let name = socket::peer_name(scheme, &peer);
                    let stream = if peer.is_unix() {
                        Stream::from_unix(socket)
                    } else {
                        socket.set_tcp_nodelay(true)?;
                        match &self.credentials {
                            Some(credentials) => Stream::from_tls(socket, &name, credentials)?,
                            None => Stream::from_tcp(socket),
                        }
                    };
                    return Ok(Some((stream, name)));
                }
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => return Ok(None),
                    // The peer closed the connection before it was accepted: try the next one.
                    io::ErrorKind::Interrupted | io::ErrorKind::ConnectionAborted => {}
                    _ if self.closed.load(Ordering::Acquire) => return Ok(None),
                    _ => return Err(error),
                },
            }
        }
    }

    /// A remote's text, with the port that the kernel chose in place of 0.
    pub fn shown(&self, name: &str) -> String {
        match (name.split_once(":0"), self.port()) {
            (Some((scheme, rest)), Some(port)) if rest.is_empty() || rest.starts_with(':') => {
                format!("{scheme}:{port}{rest}")
            }
            _ => name.to_owned(),
        }
    }

    /// The TCP port of the listener.
    #[must_use]
    pub fn port(&self) -> Option<u16> {
        match self.kind {
            Kind::Tcp { port } => Some(port),
            _ => None,
        }
    }

    /// Another descriptor of the same socket, for a loop that accepts by itself.
    pub fn share(&self) -> io::Result<OwnedFd> {
        Ok(self.socket.try_clone()?.into())
    }

    /// Stops listening: when this returns, connections are refused and the socket file is removed.
    /// A second call does nothing.
    pub fn close(&self) {
        if self.closed.swap(true, Ordering::AcqRel) {
            return;
        }
        // In a forked child the socket and its file belong to the parent, which goes on listening.
        if !self.owner.is_this_process() {
            return;
        }
        match &self.kind {
            Kind::Unix { path } => drop(cleanup::unlink_now(path)),
            // Shutting down a listening TCP socket frees its port although descriptors are still
            // open.
            Kind::Tcp { .. } => drop(self.socket.shutdown(std::net::Shutdown::Both)),
            Kind::Inherited => {}
        }
    }

    /// Whether [`Listener::close`] was called.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.close();
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl AsRawFd for Listener {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

fn open_tcp(local: &Local, dscp: u8) -> Result<(Socket, Kind), ListenError> {
    let ip = match &local.name {
        Some(name) => resolve::now(name).ok_or_else(|| errno::from_code(libc::EAFNOSUPPORT))?,
        None => local.ip,
    };
    let address = socket::address(ip, local.port, local.scope);
    let socket = socket::tcp(&address, dscp)?;
    let fail = |what: &str, error: io::Error| {
        let line = format!("{}: {what}: {}", local.suffix, errno::text(&error));
        ListenError::new(error, Module::SocketUtil, line)
    };
    if address.is_ipv6() {
        // `[::]` means every address of both families.
        socket.set_only_v6(false)?;
    }
    socket.set_reuse_address(true)?;
    socket
        .bind(&address.into())
        .map_err(|error| fail("bind", error))?;
    socket
        .listen(BACKLOG)
        .map_err(|error| fail("listen", error))?;
    let bound = socket
        .local_addr()?
        .as_socket()
        .map_or(local.port, |address| address.port());
    if local.port == 0 {
        logging::info(
            Module::SocketUtil,
            format_args!("{}: listening on port {bound}", local.suffix),
        );
    }
    Ok((socket, Kind::Tcp { port: bound }))
}

fn open_unix(path: &Path) -> Result<(Socket, Kind), ListenError> {
    // An earlier server of this name becomes unreachable, as in the reference. A failure to remove
    // its socket is logged only if binding fails as well.
    let unlinked = std::fs::remove_file(path);
    let in_the_way = unlinked.as_ref().err().and_then(io::Error::raw_os_error);
    let bound = match in_the_way {
        Some(code) if code != libc::ENOENT => Err(errno::from_code(code)),
        _ => bind_unix(path),
    };
    let socket = bound.map_err(|error| {
        let (path, text) = (path.display(), errno::text(&error));
        let mut failure = ListenError::new(
            error,
            Module::StreamUnix,
            format!("{path}: binding failed: {text}"),
        );
        if let Err(error) = unlinked {
            if error.raw_os_error() != Some(libc::ENOENT) {
                let line = format!("unlinking \"{path}\": {}", errno::text(&error));
                let line = (Module::SocketUtilUnix, Level::Warn, line);
                failure.lines.insert(0, line);
            }
            let line = format!("could not unlink \"{path}\" ({})", errno::text(&error));
            let at = failure.lines.len() - 1;
            let line = (Module::FatalSignal, Level::Warn, line);
            failure.lines.insert(at, line);
        }
        failure
    })?;
    cleanup::add(path);
    socket
        .listen(BACKLOG)
        .inspect_err(|_| drop(cleanup::unlink_now(path)))?;
    Ok((
        socket,
        Kind::Unix {
            path: path.to_owned(),
        },
    ))
}

fn bind_unix(path: &Path) -> io::Result<Socket> {
    let socket = socket::unix()?;
    // At bind, the socket file gets this mode reduced by the umask, so its mode is never wider, not
    // even briefly.
    let file = File::from(OwnedFd::from(socket));
    file.set_permissions(Permissions::from_mode(UNIX_MODE))?;
    let socket = Socket::from(OwnedFd::from(file));
    socket.bind(UnixAddress::new(path)?.as_sock_addr())?;
    Ok(socket)
}

/// Duplicates a listening descriptor that another program (a service manager) has opened.
fn inherit(descriptor: i32) -> Result<Socket, ListenError> {
    let refuse = |why: &str, code: i32| {
        ListenError::new(
            errno::from_code(code),
            Module::StreamUnix,
            format!("pfd:{descriptor}: {why}"),
        )
    };
    if descriptor < 0 {
        return Err(refuse("bad file descriptor", libc::EBADF));
    }
    let no_socket = |code: i32| {
        let reason = errno::text_of(code);
        refuse(&format!("not a socket ({reason})"), code)
    };
    // SAFETY: the number belongs to the process that got it on its command line; it is only
    // duplicated, which fails when it is not open.
    let given = unsafe { BorrowedFd::borrow_raw(descriptor) };
    // Duplicated, because a remote that is closed and opened again must find the original
    // descriptor open.
    let copy = given.try_clone_to_owned();
    let file = File::from(copy.map_err(|error| match error.raw_os_error() {
        Some(libc::EBADF) => no_socket(libc::EBADF),
        _ => error.into(),
    })?);
    if !file
        .metadata()
        .is_ok_and(|data| data.file_type().is_socket())
    {
        return Err(no_socket(libc::ENOTSOCK));
    }
    let socket = Socket::from(OwnedFd::from(file));
    let kind = socket.r#type()?;
    if kind != socket2::Type::STREAM {
        return Err(refuse(
            &format!("not a stream socket (type {})", i32::from(kind)),
            libc::EINVAL,
        ));
    }
    if !socket.is_listener()? {
        return Err(refuse("not a listening socket", libc::EINVAL));
    }
    socket.set_nonblocking(true)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::Target;
    use std::os::unix::fs::PermissionsExt;

    fn open(text: &str) -> Result<Listener, ListenError> {
        match Target::parse(text).unwrap() {
            Target::Passive(passive) => Listener::open(&passive, socket::DSCP_DEFAULT, None),
            Target::Active(_) => panic!("{text} is active"),
        }
    }

    #[test]
    fn a_closed_port_can_be_opened_again_at_once() {
        let first = open("ptcp:0:127.0.0.1").unwrap();
        let port = first.port().unwrap();
        let same = format!("ptcp:{port}:127.0.0.1");
        assert_eq!(first.shown("ptcp:0:127.0.0.1"), same);
        assert_eq!(first.shown("ptcp:0"), format!("ptcp:{port}"));
        assert_eq!(first.shown("ptcp:01:127.0.0.1"), "ptcp:01:127.0.0.1");
        assert_eq!(
            open(&same).unwrap_err().to_string(),
            "Address already in use"
        );
        first.close();
        assert_eq!(open(&same).unwrap().port(), Some(port));
    }

    #[test]
    fn a_socket_file_replaces_an_old_one_and_is_removed_with_its_listener() {
        let directory = tempfile::tempdir().unwrap();
        // The path is longer than an address can hold.
        let deep = directory.path().join("d".repeat(120));
        std::fs::create_dir(&deep).unwrap();
        let path = deep.join("db.sock");
        std::fs::write(&path, "stale").unwrap();
        let listener = open(&format!("punix:{}", path.display())).unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode & !0o770, 0, "{mode:o}");
        assert!(listener.accept().unwrap().is_none());
        let target = crate::target::Active::Unix(path.clone());
        let mut stream = Stream::connect(
            &target,
            socket::DSCP_DEFAULT,
            crate::stream::Resolve::Now,
            None,
        )
        .unwrap();
        assert!(stream.connect_result().unwrap().is_some());
        let (_, name) = listener.accept().unwrap().unwrap();
        assert!(name.starts_with("unix#"), "{name}");
        drop(listener);
        assert!(!path.exists());
    }

    #[test]
    fn tls_needs_credentials() {
        assert_eq!(
            open("pssl:0").unwrap_err().to_string(),
            "Protocol not available"
        );
        assert_eq!(
            open("pfd:777").unwrap_err().error.raw_os_error(),
            Some(libc::EBADF)
        );
    }
}
