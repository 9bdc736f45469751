//! The thread that serves HTTP.
//!
//! A connection serves one request, so idle clients cost nothing; clients that ask every few
//! seconds do not notice. Each connection has [`CONNECTION_TIME`] in total and a buffer of
//! [`BUFFER_BYTES`]; it is dropped if the head of its request does not fit or does not arrive.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{ACCEPT, ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener, UnixStream};
use tokio::task::AbortHandle;

use super::{Address, Request, Response, Site, TICK_MS};
use corvid_net::listener::{ListenError, Listener};
use corvid_net::target::Passive;

/// The maximum number of connections.
const CONNECTIONS_MAX: usize = 64;
/// The maximum duration of a connection.
const CONNECTION_TIME: Duration = Duration::from_secs(15);
/// The buffer for the head of a request: the smallest size that the library accepts.
const BUFFER_BYTES: usize = 8192;
/// The maximum number of header lines.
const HEADERS_MAX: usize = 64;
/// How long an answer waits for other threads' figures. Probes usually time out after a second.
const GATHER_TIMEOUT: Duration = Duration::from_millis(250);
/// The interval at which the arrival of these figures is checked.
const GATHER_POLL: Duration = Duration::from_millis(2);
/// The pause after a failed accept, which usually means that no descriptor was free.
const RETRY: Duration = Duration::from_millis(200);

/// A running HTTP server. Dropping the value ends it: its thread drops all connections, stops
/// listening and removes its socket file.
#[derive(Debug)]
pub(crate) struct Running {
    /// The thread watches the other end of this stream, and ends when this end is dropped.
    alive: Option<std::os::unix::net::UnixStream>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.alive = None;
        if let Some(thread) = self.thread.take() {
            // The thread never waits for this one. A panic was reported when it happened.
            let _ = thread.join();
        }
    }
}

/// Listens at `address` and serves `site` there on its own thread. A port chosen by the system is
/// logged.
///
/// # Errors
/// The server cannot listen at the address, or the thread cannot be created.
pub(crate) fn start(address: &Address, site: Arc<dyn Site>) -> Result<Running, ListenError> {
    let listener = Listener::open(&address.target, 0, None)?;
    let socket = Socket::new(&listener, matches!(address.target, Passive::Unix(_)))?;
    let (alive, end) = std::os::unix::net::UnixStream::pair()?;
    end.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .build()?;
    let thread = std::thread::Builder::new()
        .name("http".to_owned())
        .spawn(move || {
            // Dropping the listener removes its socket file.
            let _open = listener;
            runtime.block_on(async {
                tokio::spawn(run(socket, site));
                until_dropped(end).await;
            });
        })?;
    Ok(Running {
        alive: Some(alive),
        thread: Some(thread),
    })
}

/// Waits until the other end of a stream is dropped. Nothing is ever written to it.
async fn until_dropped(end: std::os::unix::net::UnixStream) {
    // Registering fails only if the runtime could not have been created.
    if let Ok(end) = UnixStream::from_std(end) {
        let _ = end.readable().await;
    }
}

/// A listening socket, not yet registered with a runtime.
enum Socket {
    Tcp(std::net::TcpListener),
    Unix(std::os::unix::net::UnixListener),
}

impl Socket {
    fn new(listener: &Listener, is_unix: bool) -> io::Result<Socket> {
        let descriptor = listener.share()?;
        Ok(if is_unix {
            Socket::Unix(descriptor.into())
        } else {
            Socket::Tcp(descriptor.into())
        })
    }
}

async fn run(socket: Socket, site: Arc<dyn Site>) {
    let ticking = site.clone();
    tokio::spawn(async move {
        loop {
            ticking.tick();
            tokio::time::sleep(Duration::from_millis(TICK_MS)).await;
        }
    });
    let mut connections = Connections::default();
    match socket {
        Socket::Tcp(socket) => {
            // Registering fails only if the runtime could not have been created.
            let Ok(listener) = TcpListener::from_std(socket) else {
                return;
            };
            loop {
                match listener.accept().await {
                    Ok((stream, _)) => connections.admit(stream, &site),
                    Err(_) => tokio::time::sleep(RETRY).await,
                }
            }
        }
        Socket::Unix(socket) => {
            let Ok(listener) = UnixListener::from_std(socket) else {
                return;
            };
            loop {
                match listener.accept().await {
                    Ok((stream, _)) => connections.admit(stream, &site),
                    Err(_) => tokio::time::sleep(RETRY).await,
                }
            }
        }
    }
}

/// The open connections, in order of arrival.
#[derive(Default)]
struct Connections(VecDeque<AbortHandle>);

impl Connections {
    /// Serves a new connection.
    fn admit<S>(&mut self, stream: S, site: &Arc<dyn Site>)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        self.0.retain(|connection| !connection.is_finished());
        if self.0.len() >= CONNECTIONS_MAX
            && let Some(first) = self.0.pop_front()
        {
            first.abort();
        }
        let site = site.clone();
        let connection = tokio::spawn(async move {
            let service = service_fn(|request| respond(request, &*site));
            let served = http1::Builder::new()
                .keep_alive(false)
                .header_read_timeout(None)
                .max_buf_size(BUFFER_BYTES)
                .max_headers(HEADERS_MAX)
                .serve_connection(TokioIo::new(stream), service);
            // A client that sends no complete request, or does not read its answer, is dropped
            // silently.
            let _ = tokio::time::timeout(CONNECTION_TIME, served).await;
        });
        self.0.push_back(connection.abort_handle());
    }
}

async fn respond(
    request: hyper::Request<Incoming>,
    site: &dyn Site,
) -> Result<hyper::Response<Full<Bytes>>, Infallible> {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut refusal = render(Response::text(405, "only GET and HEAD are supported\n"));
        let allowed = HeaderValue::from_static("GET, HEAD");
        refusal.headers_mut().insert(ALLOW, allowed);
        return Ok(refusal);
    }
    let accept: Vec<&str> = request
        .headers()
        .get_all(ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .collect();
    let accept = accept.join(",");
    let asked = Request {
        path: request.uri().path(),
        query: request.uri().query().unwrap_or_default(),
        accept: &accept,
    };
    site.gather(&asked);
    let gathered = async {
        while !site.is_gathered() {
            tokio::time::sleep(GATHER_POLL).await;
        }
    };
    // An answer shows the previous values of figures that have not arrived.
    let _ = tokio::time::timeout(GATHER_TIMEOUT, gathered).await;
    Ok(render(site.answer(&asked)))
}

fn render(response: Response) -> hyper::Response<Full<Bytes>> {
    let mut rendered = hyper::Response::new(Full::new(Bytes::from(response.body)));
    *rendered.status_mut() =
        StatusCode::from_u16(response.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let content_type = HeaderValue::from_static(response.content_type);
    rendered.headers_mut().insert(CONTENT_TYPE, content_type);
    rendered
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Instant;

    use super::*;

    /// Answers with the request itself; the figures for `/slow` never arrive.
    #[derive(Default)]
    struct Mirror {
        slow: AtomicUsize,
        ticks: AtomicUsize,
    }

    impl Site for Mirror {
        fn gather(&self, request: &Request<'_>) {
            let is_slow = usize::from(request.path == "/slow");
            self.slow.store(is_slow, Ordering::Relaxed);
        }

        fn is_gathered(&self) -> bool {
            self.slow.load(Ordering::Relaxed) == 0
        }

        fn answer(&self, request: &Request<'_>) -> Response {
            let text = format!("{} {} {}\n", request.path, request.query, request.accept);
            let status = if request.path == "/gone" { 404 } else { 200 };
            Response::text(status, text)
        }

        fn tick(&self) {
            self.ticks.fetch_add(1, Ordering::Relaxed);
        }
    }

    struct ServedDatabase {
        directory: tempfile::TempDir,
        site: Arc<Mirror>,
        running: Option<Running>,
    }

    impl ServedDatabase {
        fn start() -> ServedDatabase {
            let directory = tempfile::tempdir().unwrap();
            let site = Arc::new(Mirror::default());
            let address = format!("unix:{}", directory.path().join("http").display());
            let running = start(&Address::parse(&address).unwrap(), site.clone()).unwrap();
            ServedDatabase {
                directory,
                site,
                running: Some(running),
            }
        }

        fn connect(&self) -> UnixStream {
            let stream = UnixStream::connect(self.directory.path().join("http")).unwrap();
            let limit = Some(Duration::from_secs(30));
            stream.set_read_timeout(limit).unwrap();
            stream
        }

        fn ask(&self, request: &str) -> String {
            let mut stream = self.connect();
            stream.write_all(request.as_bytes()).unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            answer
        }
    }

    #[test]
    fn a_get_is_answered_and_the_connection_closed() {
        let served = ServedDatabase::start();
        let answer = served.ask("GET /a?b=c HTTP/1.1\r\nHost: x\r\nAccept: d\r\nAccept: e\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        assert!(answer.ends_with("\r\n\r\n/a b=c d,e\n"), "{answer}");
        let gone = served.ask("GET /gone HTTP/1.1\r\nHost: x\r\n\r\n");
        assert!(gone.starts_with("HTTP/1.1 404 "), "{gone}");
        assert!(served.site.ticks.load(Ordering::Relaxed) > 0);
    }

    #[test]
    fn a_head_has_no_body_and_other_methods_are_refused() {
        let served = ServedDatabase::start();
        let head = served.ask("HEAD /a HTTP/1.1\r\nHost: x\r\n\r\n");
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && head.ends_with("\r\n\r\n"));
        let post = served.ask("POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n");
        assert!(post.starts_with("HTTP/1.1 405 "), "{post}");
        assert!(post.contains("allow: GET, HEAD\r\n"), "{post}");
    }

    #[test]
    fn endless_heads_and_invalid_requests_are_cut_off() {
        let served = ServedDatabase::start();
        let mut stream = served.connect();
        let line = format!("X-Long: {}\r\n", "x".repeat(1000));
        let _ = stream.write_all(b"GET / HTTP/1.1\r\n");
        // The server closes at some point; later writes fail.
        let refused = (0..10_000).any(|_| stream.write_all(line.as_bytes()).is_err());
        assert!(refused, "ten megabytes of head were accepted");
        let noise = served.ask("\u{1}\u{2}\u{3}\r\n\r\n");
        assert!(noise.starts_with("HTTP/1.1 400 "), "{noise}");
        assert!(served.ask("GET /b HTTP/1.0\r\n\r\n").ends_with("/b  \n"));
    }

    #[test]
    fn stalled_clients_keep_no_other_out() {
        let served = ServedDatabase::start();
        let stalled: Vec<UnixStream> = (0..CONNECTIONS_MAX + 8)
            .map(|_| {
                let mut stream = served.connect();
                stream.write_all(b"GET / HT").unwrap();
                stream
            })
            .collect();
        assert!(served.ask("GET /c HTTP/1.1\r\n\r\n").ends_with("/c  \n"));
        let mut first = &stalled[0];
        let mut room = [0; 16];
        assert_eq!(first.read(&mut room).unwrap_or(0), 0, "dropped first");
    }

    #[test]
    fn an_answer_waits_for_figures_for_a_short_time() {
        let served = ServedDatabase::start();
        let before = Instant::now();
        assert!(
            served
                .ask("GET /slow HTTP/1.1\r\n\r\n")
                .ends_with("/slow  \n")
        );
        assert!(before.elapsed() >= GATHER_TIMEOUT);
        assert!(before.elapsed() < Duration::from_secs(10));
    }

    #[test]
    fn a_server_that_is_dropped_ends_its_connections_and_removes_its_socket() {
        let mut served = ServedDatabase::start();
        let mut stream = served.connect();
        stream.write_all(b"GET /never").unwrap();
        served.running = None;
        assert!(!served.directory.path().join("http").exists());
        // The connection is reset if the server has not read the request.
        match stream.read_to_end(&mut Vec::new()) {
            Ok(bytes) => assert_eq!(bytes, 0),
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset),
        }
    }

    #[test]
    fn an_address_that_cannot_be_listened_at_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let address = format!("unix:{}/none/http", directory.path().display());
        let address = Address::parse(&address).unwrap();
        assert!(start(&address, Arc::new(Mirror::default())).is_err());
    }
}
