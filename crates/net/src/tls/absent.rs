//! The TLS types without the feature `tls`: types that have no values.
//!
//! They spare streams and listeners a second form. `ssl:` and `pssl:` need credentials, which
//! cannot exist here, and fail with `Protocol not available`.

use std::io::{self, IoSlice};
use std::sync::Arc;

use mio::net::TcpStream;

use super::missing::MissingPart;

/// Credentials; has no value.
#[derive(Debug)]
pub enum Credentials {}

impl Credentials {
    /// The missing settings that a connection needs.
    #[must_use]
    pub fn missing(&self) -> Vec<MissingPart> {
        match *self {}
    }

    pub(crate) fn check(&self) -> io::Result<()> {
        match *self {}
    }
}

/// A TLS session; has no value.
#[derive(Debug)]
pub enum Carrier {}

impl Carrier {
    pub(crate) fn accepted(
        _socket: TcpStream,
        _name: String,
        credentials: &Arc<Credentials>,
    ) -> io::Result<Carrier> {
        match **credentials {}
    }

    pub(crate) fn connecting(
        _socket: TcpStream,
        _host: &str,
        _name: String,
        credentials: &Arc<Credentials>,
    ) -> io::Result<Carrier> {
        match **credentials {}
    }

    pub(crate) fn fault(&self) -> Option<&str> {
        match *self {}
    }

    pub(crate) fn socket(&self) -> &TcpStream {
        match *self {}
    }

    pub(crate) fn peer_name(&self) -> Option<String> {
        match *self {}
    }

    pub(crate) fn is_open(&self) -> bool {
        match *self {}
    }

    pub(crate) fn wants_writable(&self) -> bool {
        match *self {}
    }

    pub(crate) fn connected(&mut self) {
        match *self {}
    }

    pub(crate) fn shake_hands(&mut self) -> io::Result<bool> {
        match *self {}
    }

    pub(crate) fn read(&mut self, _buffer: &mut [u8]) -> io::Result<usize> {
        match *self {}
    }

    pub(crate) fn write_vectored(&mut self, _slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match *self {}
    }

    pub(crate) fn flush(&mut self) -> io::Result<()> {
        match *self {}
    }
}
