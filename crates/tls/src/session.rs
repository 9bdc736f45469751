//! One connection's TLS: ciphertext in and out on one side, plaintext on the other.
//!
//! The owner of the socket feeds what it reads, and sends the pending output; it may stop at any
//! byte. Memory is bounded: untaken plaintext stops [`Session::feed`], unsent ciphertext stops
//! [`Session::give`].
//!
//! A peer that ends the stream without a close notification is accepted: JSON texts themselves show
//! whether they are complete.

use std::io::{self, IoSlice, Read, Write};

use rustls::pki_types::{CertificateDer, IpAddr, Ipv4Addr, ServerName};
use rustls::{ClientConnection, Connection, ServerConnection};

use crate::certificate::Certificate;
use crate::{Config, Error, Fault};

/// The plaintext accepted before ciphertext must be sent, bytes.
const OUTGOING_BYTES_MAX: usize = 256 * 1024;

/// The TLS of one connection.
#[derive(Debug)]
pub struct Session {
    connection: Connection,
    is_bootstrap: bool,
    has_received: bool,
    /// The peer has announced the end of its output.
    is_closed: bool,
}

impl Session {
    /// A session with a peer that connected to us.
    ///
    /// # Errors
    /// The settings leave nothing to offer: [`Error::NothingToOffer`].
    pub fn accept(config: &Config) -> Result<Session, Error> {
        let connection =
            ServerConnection::new(config.server.clone()).map_err(|_| Error::NothingToOffer)?;
        Ok(Session::over(Connection::Server(connection), false))
    }

    /// A session with a server that we connected to. `name` is sent to the server (SNI) if it is a
    /// host name.
    ///
    /// # Errors
    /// The settings leave nothing to offer: [`Error::NothingToOffer`].
    pub fn connect(config: &Config, name: Option<&str>) -> Result<Session, Error> {
        let name = name
            .and_then(|name| ServerName::try_from(name.to_owned()).ok())
            // Addresses are not sent, so an address means "no name".
            .unwrap_or(ServerName::IpAddress(IpAddr::V4(Ipv4Addr::from([
                0, 0, 0, 0,
            ]))));
        let connection = ClientConnection::new(config.client.clone(), name)
            .map_err(|_| Error::NothingToOffer)?;
        let is_bootstrap = config.is_bootstrapping();
        Ok(Session::over(Connection::Client(connection), is_bootstrap))
    }

    fn over(mut connection: Connection, is_bootstrap: bool) -> Session {
        connection.set_buffer_limit(Some(OUTGOING_BYTES_MAX));
        Session {
            connection,
            is_bootstrap,
            has_received: false,
            is_closed: false,
        }
    }

    /// Accepts ciphertext from the peer. Returns the number of bytes accepted; fewer than given
    /// means that plaintext must be taken first, or that the stream has ended.
    ///
    /// # Errors
    /// The peer violates TLS, or was rejected. The remaining output holds the alert.
    pub fn feed(&mut self, ciphertext: &[u8]) -> Result<usize, Fault> {
        if !self.has_received
            && let Some(first) = ciphertext.iter().find(|byte| !byte.is_ascii_whitespace())
        {
            self.has_received = true;
            if matches!(first, b'{' | b'[') {
                return Err(Fault::PlainJson);
            }
        }
        let mut rest = ciphertext;
        while !rest.is_empty() && !self.is_closed {
            // rustls accepts no input while plaintext waits.
            if self.connection.read_tls(&mut rest).is_err() {
                break;
            }
            let state = self.connection.process_new_packets().map_err(Fault::Tls)?;
            self.is_closed = state.peer_has_closed();
        }
        Ok(ciphertext.len() - rest.len())
    }

    /// Moves received plaintext into a buffer. Returns 0 if there is none (or no room).
    pub fn take(&mut self, buffer: &mut [u8]) -> usize {
        let mut reader = self.connection.reader();
        let mut taken = 0;
        while taken < buffer.len() {
            match reader.read(&mut buffer[taken..]) {
                Ok(count) if count > 0 => taken += count,
                // Nothing now, or nothing ever; [`Session::is_closed`] distinguishes the two.
                _ => break,
            }
        }
        taken
    }

    /// Accepts plaintext to send. Returns the number of bytes accepted; nothing is accepted before
    /// the handshake is complete.
    pub fn give(&mut self, plaintext: &[IoSlice<'_>]) -> usize {
        if self.is_handshaking() {
            return 0;
        }
        // Writing to memory cannot fail; a full buffer accepts nothing.
        self.connection
            .writer()
            .write_vectored(plaintext)
            .unwrap_or(0)
    }

    /// Whether there is ciphertext to send.
    #[must_use]
    pub fn wants_write(&self) -> bool {
        self.connection.wants_write()
    }

    /// Sends as much ciphertext as one call of the writer accepts. Returns the number of bytes.
    ///
    /// # Errors
    /// The writer fails.
    pub fn send(&mut self, writer: &mut dyn Write) -> io::Result<usize> {
        self.connection.write_tls(writer)
    }

    /// Whether the handshake is still in progress.
    #[must_use]
    pub fn is_handshaking(&self) -> bool {
        self.connection.is_handshaking()
    }

    /// Whether the peer has announced the end of its output. Plaintext may still wait to be taken.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Whether we are the side that connected.
    #[must_use]
    pub fn is_client(&self) -> bool {
        matches!(self.connection, Connection::Client(_))
    }

    /// Whether this connection only serves to learn the authority to trust.
    #[must_use]
    pub fn is_bootstrap(&self) -> bool {
        self.is_bootstrap
    }

    /// Announces the end of our output.
    pub fn close(&mut self) {
        self.connection.send_close_notify();
    }

    /// The certificates that the peer sent, its own first; empty before the handshake is complete.
    #[must_use]
    pub fn peer_certificates(&self) -> &[CertificateDer<'static>] {
        self.connection.peer_certificates().unwrap_or_default()
    }

    /// The name that the client requested (SNI), on the accepting side.
    #[must_use]
    pub fn requested_name(&self) -> Option<&str> {
        match &self.connection {
            Connection::Server(connection) => connection.server_name(),
            Connection::Client(_) => None,
        }
    }

    /// The peer's name: the first commonName of its certificate. Known once the handshake is
    /// complete.
    #[must_use]
    pub fn peer_name(&self) -> Option<String> {
        let certificate = Certificate::parse(self.peer_certificates().first()?).ok()?;
        certificate.common_name().map(str::to_owned)
    }
}
