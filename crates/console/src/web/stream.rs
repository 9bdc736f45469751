//! The bytes of a connection: TCP, or TLS over it; and a limit for clients that do not read.
//!
//! The handshake is part of the connection, so it counts in the limits of connections.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use corvid_net::errno;
use corvid_net::logging::{self, Module, RateLimit};
use corvid_net::tls::Credentials;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// How long a client may take for the handshake of TLS.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a client may read nothing of what is sent to it.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// The rate limit of messages about failed handshakes.
static HANDSHAKES: RateLimit = RateLimit::new(10, 25);

enum Carrier {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// A connection whose handshake is complete.
pub(crate) struct Stream {
    carrier: Carrier,
    /// When the client has stalled for too long; counts while `is_stalled`.
    deadline: Pin<Box<Sleep>>,
    is_stalled: bool,
    limit: Duration,
}

impl Stream {
    /// Accepts a connection, by TLS if there are credentials for it.
    ///
    /// # Errors
    /// The handshake fails or takes too long; logged.
    pub(crate) async fn accept(
        socket: TcpStream,
        credentials: Option<&Credentials>,
    ) -> io::Result<Stream> {
        let carrier = match credentials {
            None => Carrier::Plain(socket),
            Some(credentials) => {
                let acceptor = TlsAcceptor::from(credentials.for_accepting()?);
                let accepted = timeout(HANDSHAKE_TIMEOUT, acceptor.accept(socket)).await;
                let accepted = accepted.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
                let stream = accepted.inspect_err(|error| {
                    let reason = errno::text(error);
                    let line = format_args!("handshake of a viewer: {reason}");
                    logging::warn_limited(&HANDSHAKES, Module::StreamSsl, line);
                })?;
                Carrier::Tls(Box::new(stream))
            }
        };
        Ok(Stream {
            carrier,
            deadline: Box::pin(sleep(WRITE_TIMEOUT)),
            is_stalled: false,
            limit: WRITE_TIMEOUT,
        })
    }

    /// Ends a write that has been pending for too long.
    fn within_limit<T>(
        &mut self,
        context: &mut Context<'_>,
        outcome: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if outcome.is_ready() {
            self.is_stalled = false;
            return outcome;
        }
        if !self.is_stalled {
            self.is_stalled = true;
            self.deadline.as_mut().reset(Instant::now() + self.limit);
        }
        let elapsed = self.deadline.as_mut().poll(context);
        self.is_stalled = elapsed.is_pending();
        elapsed.map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

/// Calls a method of the carrier, whichever it is.
macro_rules! forward {
    ($stream:expr, $carrier:ident => $call:expr) => {
        match &mut $stream.carrier {
            Carrier::Plain($carrier) => {
                let $carrier = Pin::new($carrier);
                $call
            }
            Carrier::Tls($carrier) => {
                let $carrier = Pin::new($carrier.as_mut());
                $call
            }
        }
    };
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        forward!(self, carrier => carrier.poll_read(context, buffer))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let outcome = forward!(self, carrier => carrier.poll_write(context, bytes));
        self.within_limit(context, outcome)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = forward!(self, carrier => carrier.poll_write_vectored(context, slices));
        self.within_limit(context, outcome)
    }

    fn is_write_vectored(&self) -> bool {
        match &self.carrier {
            Carrier::Plain(socket) => socket.is_write_vectored(),
            Carrier::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = forward!(self, carrier => carrier.poll_flush(context));
        self.within_limit(context, outcome)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = forward!(self, carrier => carrier.poll_shutdown(context));
        self.within_limit(context, outcome)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::io::Read;

    use tokio::net::TcpListener;

    use super::*;

    async fn write(stream: &mut Stream, bytes: &[u8]) -> io::Result<usize> {
        poll_fn(|context| Pin::new(&mut *stream).poll_write(context, bytes)).await
    }

    #[test]
    fn a_client_that_reads_nothing_is_given_up() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .build()
            .unwrap();
        runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let mut client = std::net::TcpStream::connect(address).unwrap();
            let (socket, _) = listener.accept().await.unwrap();
            let mut stream = Stream::accept(socket, None).await.unwrap();
            stream.limit = Duration::from_millis(50);
            let part = vec![0; 1 << 20];
            let error = loop {
                if let Err(error) = write(&mut stream, &part).await {
                    break error;
                }
            };
            assert_eq!(error.kind(), io::ErrorKind::TimedOut);
            // A client that reads may be slow.
            stream.limit = Duration::from_secs(60);
            let reader = std::thread::spawn(move || {
                let mut buffer = vec![0; 1 << 20];
                while client.read(&mut buffer).unwrap() > 0 {}
            });
            for _ in 0..32 {
                write(&mut stream, &part).await.unwrap();
            }
            drop(stream);
            reader.join().unwrap();
        });
    }
}
