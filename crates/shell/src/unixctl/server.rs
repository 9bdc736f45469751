//! The server side of the control channel, run by the program's main loop.
//!
//! [`Server::turn`] waits for control requests, for a fatal signal (of which it dies, after
//! cleaning up) and for the program's own [`Server::waker`]. Handlers therefore run on the main
//! thread, between two turns of the loop. Requests of one connection are answered in order, one at
//! a time.

use std::collections::VecDeque;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use corvid_json::{Assembler, Object, Value};
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token, Waker};
use slab::Slab;

use super::message::{self, Refusal, Reply, Request, log_message};
use super::registry::{Action, Registry};
use super::{Format, Outcome};
use crate::events;
use crate::vlog::{self, Module, RateLimit};
use crate::{program, signals};
use corvid_net::listener::Listener;
use corvid_net::stream::Stream;
use corvid_net::target::Passive;
use corvid_net::{clock, dirs, errno};
use corvid_reactor::channel::{Channel, Received};
use corvid_reactor::poll_interval::PollInterval;
use corvid_rpc::wire_log::Direction;

const WAKER: Token = Token(usize::MAX);
const SIGNALS: Token = Token(usize::MAX - 1);
const LISTENER: Token = Token(usize::MAX - 2);
const WATCHED: Token = Token(usize::MAX - 3);
/// The maximum of unanswered requests per connection, bytes; a client that sends more without
/// reading is disconnected.
const PENDING_BYTES_MAX: usize = 16 << 20;
/// The maximum of unsent replies per connection, bytes, not counting the last reply; the next
/// request is handled once they are sent.
const OUTPUT_BYTES_MAX: usize = 1 << 20;
/// The maximum number of connections; one more is closed at once.
const CONNECTIONS_MAX: usize = 1024;

/// Serves the control channel for a program whose state is a `C`.
pub struct Server<C> {
    poll: Poll,
    events: Events,
    listener: Option<Listener>,
    /// Accepting failed because no descriptor was left. It must be retried, because no further edge
    /// reports the pending connections.
    has_waiting: bool,
    path: Option<PathBuf>,
    connections: Slab<Connection>,
    /// [`CONNECTIONS_MAX`]; less in tests.
    connections_max: usize,
    next_serial: u64,
    registry: Registry<C>,
    waker: Arc<Waker>,
    /// Measures the interval between two waits of the main loop, which waits here.
    interval: PollInterval,
    replies: (Sender<DeferredReply>, Receiver<DeferredReply>),
}

/// The reply to a deferred request.
type DeferredReply = (RequestRef, Reply);

/// The connection and request of a deferred reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct RequestRef {
    slot: usize,
    serial: u64,
}

/// Sends the reply to one deferred request, from any thread. Dropping it without a reply sends an
/// error, so that no client waits forever.
#[derive(Debug)]
pub struct Replier {
    ticket: RequestRef,
    format: Format,
    sender: Option<Sender<DeferredReply>>,
    waker: Arc<Waker>,
}

impl Replier {
    /// Sends the reply: its text, or the text of an error.
    pub fn reply(mut self, outcome: Outcome) {
        self.finish(outcome.map_or_else(Reply::Error, Reply::Text));
    }

    /// Sends a reply that has a text form and a JSON form, in the format that the client has
    /// chosen.
    pub fn reply_in_format(mut self, text: impl FnOnce() -> String, json: impl FnOnce() -> Value) {
        let reply = match self.format {
            Format::Text => Reply::Text(text()),
            Format::Json => Reply::Json(json()),
        };
        self.finish(reply);
    }

    fn finish(&mut self, reply: Reply) {
        if let Some(sender) = self.sender.take() {
            // Both fail only if the server was dropped, together with all its connections.
            let _ = sender.send((self.ticket, reply));
            let _ = self.waker.wake();
        }
    }
}

impl Drop for Replier {
    fn drop(&mut self) {
        self.finish(Reply::Error("command was abandoned".to_owned()));
    }
}

struct Connection {
    serial: u64,
    name: String,
    channel: Channel<Vec<u8>>,
    assembler: Assembler,
    frames: VecDeque<Vec<u8>>,
    pending_bytes: usize,
    format: Format,
    /// The id of the request whose reply is deferred.
    current: Option<Value>,
    /// The peer sends no more input.
    is_ended: bool,
    is_dead: bool,
}

impl<C: 'static> Server<C> {
    /// Opens the socket `name` of `--unixctl` (`none`: no socket; default: `RUNDIR/PROG.PID.ctl`).
    /// Must be called in the final process, because the default name contains its pid. The commands
    /// that every program has are registered.
    ///
    /// # Errors
    /// The socket cannot be opened; the text of the fatal message is
    /// `PATH: could not initialize control socket (ERR)`. Details are logged.
    pub fn open(name: Option<&str>) -> Result<Server<C>, String> {
        let mut server = Server::new().map_err(|error| {
            let text = errno::text(&error);
            format!("could not initialize control socket ({text})")
        })?;
        server.listen(name)?;
        Ok(server)
    }

    /// Opens the socket, as [`Server::open`] does, for a server made by [`Server::new`].
    ///
    /// # Errors
    /// The socket cannot be opened, as for [`Server::open`].
    pub fn listen(&mut self, name: Option<&str>) -> Result<(), String> {
        let path = match name {
            Some("none") => None,
            Some(name) => Some(dirs::absolute_under(&dirs::run(), name)),
            None => {
                Some(dirs::run().join(format!("{}.{}.ctl", program::name(), std::process::id())))
            }
        };
        let Some(path) = path else {
            return Ok(());
        };
        let opened = Listener::open(&Passive::Unix(path.clone()), 0, None).and_then(|listener| {
            let fd = listener.as_raw_fd();
            let registry = self.poll.registry();
            registry.register(&mut SourceFd(&fd), LISTENER, Interest::READABLE)?;
            Ok(listener)
        });
        match opened {
            Ok(listener) => self.listener = Some(listener),
            Err(error) => {
                error.log();
                let path = path.display();
                return Err(format!(
                    "{path}: could not initialize control socket ({error})"
                ));
            }
        }
        self.path = Some(path);
        Ok(())
    }

    /// A server without a socket yet, for programs that register commands first.
    ///
    /// # Errors
    /// No descriptors are left.
    pub fn new() -> io::Result<Server<C>> {
        let poll = Poll::new()?;
        let waker = Arc::new(Waker::new(poll.registry(), WAKER)?);
        if let Some(fd) = signals::fd() {
            poll.registry()
                .register(&mut SourceFd(&fd), SIGNALS, Interest::READABLE)?;
        }
        let mut registry = Registry::default();
        super::register_builtin(&mut registry);
        let mut interval = PollInterval::default();
        interval.begin(clock::mono_ms());
        Ok(Server {
            poll,
            events: Events::with_capacity(64),
            listener: None,
            has_waiting: false,
            path: None,
            connections: Slab::new(),
            connections_max: CONNECTIONS_MAX,
            next_serial: 0,
            registry,
            waker,
            interval,
            replies: channel(),
        })
    }

    /// The commands; more may be registered at any time between turns.
    pub fn registry(&mut self) -> &mut Registry<C> {
        &mut self.registry
    }

    /// The socket's path.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Ends the wait of [`Server::turn`] from another thread.
    #[must_use]
    pub fn waker(&self) -> Arc<Waker> {
        Arc::clone(&self.waker)
    }

    /// Makes [`Server::turn`] also return when more bytes arrive on a descriptor of the program,
    /// which must stay open as long as this server. Readiness is edge-triggered, so read everything
    /// before the next turn.
    ///
    /// # Errors
    /// The descriptor cannot be waited for.
    pub fn watch(&self, descriptor: std::os::fd::RawFd) -> io::Result<()> {
        self.poll
            .registry()
            .register(&mut SourceFd(&descriptor), WATCHED, Interest::READABLE)
    }

    /// Waits for work (at most `timeout`) and does it. Returns after each wake-up. Dies of a fatal
    /// signal.
    ///
    /// # Errors
    /// Waiting failed.
    pub fn turn(&mut self, context: &mut C, timeout: Option<Duration>) -> io::Result<()> {
        signals::run();
        let mut events = std::mem::replace(&mut self.events, Events::with_capacity(0));
        self.interval.end();
        let waited = self.poll.poll(&mut events, timeout);
        events::MAIN_WAKEUP.bump();
        if timeout.is_some_and(|timeout| timeout.is_zero()) {
            corvid_reactor::events::POLL_ZERO_TIMEOUT.bump();
        }
        self.interval.begin(clock::mono_ms());
        signals::run();
        match waited {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
            Ok(()) => {
                for event in &events {
                    match event.token() {
                        LISTENER => self.accept(),
                        Token(slot) if self.connections.contains(slot) => self.serve(slot, context),
                        _ => {}
                    }
                }
            }
        }
        self.events = events;
        if self.has_waiting {
            self.accept();
        }
        while let Some(slot) = self.take_late_reply() {
            self.serve(slot, context);
        }
        Ok(())
    }

    /// Sends the next deferred reply, if one has arrived. Returns its connection.
    fn take_late_reply(&mut self) -> Option<usize> {
        while let Ok((ticket, reply)) = self.replies.1.try_recv() {
            let is_same = |connection: &Connection| connection.serial == ticket.serial;
            if self.connections.get(ticket.slot).is_some_and(is_same) {
                self.answer(ticket.slot, reply);
                return Some(ticket.slot);
            }
        }
        None
    }

    /// Sends queued output (above all the reply to `exit`, and deferred replies), waiting at most a
    /// second, and closes the channel.
    pub fn close(mut self) {
        while self.take_late_reply().is_some() {}
        let deadline = clock::mono_ms() + 1000;
        for (_, connection) in &mut self.connections {
            while connection.flush().is_ok()
                && !connection.channel.output.is_empty()
                && clock::mono_ms() < deadline
            {
                let left = Duration::from_millis(deadline.saturating_sub(clock::mono_ms()));
                if corvid_net::poll::wait(
                    Some((connection.channel.stream.as_raw_fd(), libc::POLLOUT)),
                    Some(left),
                )
                .is_err()
                {
                    break;
                }
            }
        }
    }

    fn accept(&mut self) {
        static LIMIT: RateLimit = RateLimit::new(5, 5);
        self.has_waiting = false;
        while let Some(listener) = &self.listener {
            match listener.accept() {
                Ok(Some((stream, name))) => self.adopt(stream, name),
                Ok(None) => break,
                Err(error) => {
                    let text = errno::text(&error);
                    vlog::warn_limited(
                        &LIMIT,
                        Module::Unixctl,
                        format_args!("accept failed: {text}"),
                    );
                    self.has_waiting = true;
                    break;
                }
            }
        }
    }

    fn adopt(&mut self, mut stream: Stream, name: String) {
        static LIMIT: RateLimit = RateLimit::new(5, 5);
        let most = self.connections_max;
        if self.connections.len() >= most {
            let line = format_args!("{name}: closed: there are {most} connections");
            return vlog::warn_limited(&LIMIT, Module::Unixctl, line);
        }
        let entry = self.connections.vacant_entry();
        // Registered for both directions at once: the next writable edge continues a reply that
        // does not fit.
        let interest = Interest::READABLE | Interest::WRITABLE;
        if self
            .poll
            .registry()
            .register(stream.source(), Token(entry.key()), interest)
            .is_err()
        {
            return;
        }
        self.next_serial += 1;
        entry.insert(Connection {
            serial: self.next_serial,
            name,
            channel: Channel::new(stream, true),
            assembler: Assembler::default(),
            frames: VecDeque::new(),
            pending_bytes: 0,
            format: Format::Text,
            current: None,
            is_ended: false,
            is_dead: false,
        });
    }

    /// Reads, handles requests while none is deferred, writes, and drops the connection once it has
    /// ended.
    fn serve(&mut self, slot: usize, context: &mut C) {
        let read = self.connections[slot].read();
        let sent = loop {
            while let Some(frame) = self.connections[slot].next_frame() {
                log_message(&self.connections[slot].name, Direction::Received, &frame);
                match message::request(&frame) {
                    Ok(request) => self.handle(slot, request, context),
                    Err(refusal) => self.connections[slot].refuse(&refusal),
                }
            }
            let connection = &mut self.connections[slot];
            let was_full = connection.is_full();
            let sent = connection.flush();
            if sent.is_err() || !was_full || connection.is_full() {
                break sent;
            }
        };
        let connection = &mut self.connections[slot];
        // Earlier requests are handled; one of them may already have been rejected.
        if let Err(text) = read
            && !connection.is_dead
        {
            connection.refuse(&Refusal::Syntax(text));
        }
        let is_idle = connection.current.is_none() && connection.channel.output.is_empty();
        if sent.is_err() || connection.is_dead || (connection.is_ended && is_idle) {
            let mut connection = self.connections.remove(slot);
            let stream = &mut connection.channel.stream;
            let _ = self.poll.registry().deregister(stream.source());
        }
    }

    fn handle(&mut self, slot: usize, request: Request, context: &mut C) {
        events::UNIXCTL_RECEIVED.bump();
        let Request { id, method, params } = request;
        vlog::dbg(
            Module::Unixctl,
            format_args!("received request {method}, id={id}"),
        );
        self.connections[slot].current = Some(id);
        // These two commands concern the connection and the table itself, which other handlers
        // cannot see.
        match method.as_str() {
            "list-commands" if params.is_empty() => {
                let reply = self.list_commands(self.connections[slot].format);
                return self.answer(slot, reply);
            }
            "set-options" if (1..=2).contains(&params.len()) => {
                let reply = self.set_options(slot, &params);
                return self.answer(slot, reply);
            }
            _ => {}
        }
        let ticket = RequestRef {
            slot,
            serial: self.connections[slot].serial,
        };
        let outcome = match self.registry.find(&method, params.len()) {
            Err(error) => Err(error),
            Ok(action) => match params
                .iter()
                .map(|param| param.as_str().map(str::to_owned))
                .collect::<Option<Vec<_>>>()
            {
                None => Err(format!("\"{method}\" command has non-string argument")),
                Some(args) => match action {
                    Action::Direct(handler) => handler(context, &args),
                    Action::Deferred(handler) => {
                        let sender = Some(self.replies.0.clone());
                        return handler(
                            context,
                            &args,
                            Replier {
                                ticket,
                                format: self.connections[slot].format,
                                sender,
                                waker: Arc::clone(&self.waker),
                            },
                        );
                    }
                },
            },
        };
        self.answer(slot, outcome.map_or_else(Reply::Error, Reply::Text));
    }

    fn answer(&mut self, slot: usize, reply: Reply) {
        let connection = &mut self.connections[slot];
        if let Some(id) = connection.current.take() {
            events::UNIXCTL_REPLIED.bump();
            let reply = message::encode_reply(id, reply, connection.format);
            log_message(&connection.name, Direction::Sent, &reply);
            connection.channel.output.push(reply);
        }
    }

    fn list_commands(&self, format: Format) -> Reply {
        if format == Format::Json {
            let usages: Object = self
                .registry
                .usages()
                .map(|(name, usage)| (name.into(), Value::string(usage)))
                .collect();
            return Reply::Json(Value::Object(usages));
        }
        let lines = self
            .registry
            .usages()
            .map(|(name, usage)| format!("  {name:<23} {usage}\n"));
        Reply::Text(
            std::iter::once("The available commands are:\n".to_owned())
                .chain(lines)
                .collect(),
        )
    }

    fn set_options(&mut self, slot: usize, params: &[Value]) -> Reply {
        let args: Option<Vec<&str>> = params.iter().map(Value::as_str).collect();
        let Some(args) = args else {
            return Reply::Error("\"set-options\" command has non-string argument".to_owned());
        };
        let (option, value) = match args[0].split_once('=') {
            Some((option, value)) => (option, Some(value)),
            None => (args[0], args.get(1).copied()),
        };
        if option != "--format" {
            return Reply::Error(format!("unrecognized option '{option}'"));
        }
        let Some(value) = value else {
            return Reply::Error(format!("option '{option}' requires an argument"));
        };
        let Some(format) = Format::parse(value) else {
            return Reply::Error(format!("option format has invalid value {value}"));
        };
        self.connections[slot].format = format;
        Reply::Text(String::new())
    }
}

impl Connection {
    /// Reads all available bytes. Returns the text of a syntax error.
    fn read(&mut self) -> Result<(), String> {
        let mut buffer = [0; 4096];
        while !self.is_ended {
            match self.channel.read(&mut buffer) {
                Ok(Received::Bytes(count)) => self.cut(&buffer[..count])?,
                Ok(Received::Nothing) => break,
                Ok(Received::End) => self.is_ended = true,
                Err(_) => {
                    self.is_ended = true;
                    self.is_dead = true;
                }
            }
        }
        Ok(())
    }

    fn cut(&mut self, input: &[u8]) -> Result<(), String> {
        self.pending_bytes += input.len();
        if self.pending_bytes > PENDING_BYTES_MAX {
            return Err("too many requests".to_owned());
        }
        for text in self.assembler.texts(input) {
            let text = text.map_err(|error| error.to_string())?;
            self.frames.push_back(text.into_owned());
        }
        Ok(())
    }

    fn next_frame(&mut self) -> Option<Vec<u8>> {
        if self.current.is_some() || self.is_dead || self.is_full() {
            return None;
        }
        let frame = self.frames.pop_front()?;
        self.pending_bytes = self.pending_bytes.saturating_sub(frame.len());
        Some(frame)
    }

    fn is_full(&self) -> bool {
        self.channel.output.bytes() >= OUTPUT_BYTES_MAX
    }

    fn flush(&mut self) -> io::Result<()> {
        self.channel.write(&mut { usize::MAX }).map(|_| ())
    }

    fn refuse(&mut self, refusal: &Refusal) {
        static LIMIT: RateLimit = RateLimit::new(5, 5);
        let name = &self.name;
        match refusal {
            Refusal::Unexpected(kind) => {
                let line = format_args!("{name}: received unexpected {kind} message");
                vlog::warn_limited(&LIMIT, Module::Unixctl, line);
            }
            Refusal::Bad(text) => {
                let line = format_args!("{name}: received bad JSON-RPC message: {text}");
                vlog::warn_limited(&LIMIT, Module::Jsonrpc, line);
            }
            Refusal::Syntax(text) => {
                vlog::warn_limited(
                    &LIMIT,
                    Module::Jsonrpc,
                    format_args!("{name}: error parsing stream: {text}"),
                );
            }
        }
        self.is_dead = true;
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn a_client_that_does_not_read_is_handled_until_its_replies_are_too_long() {
        const REQUESTS: usize = 5000;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("server.ctl");
        let mut server: Server<()> = Server::open(path.to_str()).unwrap();
        let mut client = UnixStream::connect(&path).unwrap();
        client.set_nonblocking(true).unwrap();
        let request = r#"{"id":0,"method":"list-commands","params":[]}"#;
        let requests = request.repeat(REQUESTS);
        let mut turn = || {
            server.turn(&mut (), Some(Duration::ZERO)).unwrap();
            let mut connections = server.connections.iter();
            connections
                .next()
                .map(|(_, connection)| (connection.channel.output.bytes(), connection.frames.len()))
        };
        let mut unsent = requests.as_bytes();
        while !unsent.is_empty() {
            if let Ok(sent) = client.write(unsent) {
                unsent = &unsent[sent..];
            }
            turn();
        }
        let (output_bytes, waiting) = turn().expect("a connection");
        let longest = OUTPUT_BYTES_MAX + (64 << 10);
        assert!(
            (OUTPUT_BYTES_MAX..longest).contains(&output_bytes),
            "{output_bytes}"
        );
        assert!(waiting > 0);

        // All requests are answered in the end.
        let mut replies = Vec::new();
        let mut piece = [0; 65536];
        let sign = br#""error":null"#;
        let mut answered = 0;
        while answered < REQUESTS {
            turn();
            if let Ok(got) = client.read(&mut piece) {
                assert!(got > 0, "closed");
                replies.extend_from_slice(&piece[..got]);
                answered += replies
                    .windows(sign.len())
                    .filter(|part| part == sign)
                    .count();
                // A partial sign at the end is kept.
                replies.drain(..replies.len().saturating_sub(sign.len() - 1));
            }
        }
        assert_eq!(answered, REQUESTS);
    }

    #[test]
    fn one_connection_too_many_is_closed_and_the_others_are_served() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("server.ctl");
        let mut server: Server<()> = Server::open(path.to_str()).unwrap();
        server.connections_max = 2;
        let mut clients: Vec<_> = (0..3)
            .map(|_| UnixStream::connect(&path).unwrap())
            .collect();
        server.turn(&mut (), Some(Duration::ZERO)).unwrap();
        let mut byte = [0];
        let timeout = Some(Duration::from_secs(60));
        clients[2].set_read_timeout(timeout).unwrap();
        assert_eq!(clients[2].read(&mut byte).unwrap(), 0, "closed");
        for client in &mut clients[..2] {
            let request = br#"{"id":0,"method":"list-commands","params":[]}"#;
            client.write_all(request).unwrap();
            client.set_nonblocking(true).unwrap();
            while client.read(&mut byte).is_err() {
                server.turn(&mut (), Some(Duration::ZERO)).unwrap();
            }
            assert_eq!(&byte, b"{");
        }
    }
}
