//! Remotes that the server connects to itself (`tcp:`, `unix:`): each is one session that is made again and again.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use corvid_monitor::SessionId;
use corvid_net::clock::Now;
use corvid_net::errno;
use corvid_net::target::{Active, Target};
use corvid_reactor::shard::{CloseReason, ConnId, Io};
use corvid_rpc::notice::{End, Level};
use corvid_rpc::reconnect::Action;
use corvid_rpc::{Reconnect, backoff};
use corvid_shell::vlog::{self, Level as LogLevel, Module};

use crate::coverage;
use crate::remotes::options::RemoteOptions;

/// What an attempt fails with when the remote's text names no way to connect.
pub(crate) const NO_SUCH_METHOD: &str = "Address family not supported by protocol";

/// What a connection ends with when the peer says what makes no sense.
const PROTOCOL_ERROR: &str = "Protocol error";

/// How the connection to a remote stands.
#[derive(Clone, Debug, Default)]
pub struct Standing {
    /// As the state machine names it: `ACTIVE`, `BACKOFF`, ...
    pub state: &'static str,
    /// The session, while the connection stands.
    pub session: Option<SessionId>,
    /// When it was last established, on the clock that never jumps.
    pub connected_at_ms: Option<u64>,
    /// When an established one last ended.
    pub disconnected_at_ms: Option<u64>,
}

/// Where the shard that connects shows the main thread how it stands.
#[derive(Clone, Debug, Default)]
pub struct Board(Arc<Mutex<Standing>>);

impl Board {
    /// How it stands now.
    #[must_use]
    pub fn read(&self) -> Standing {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Standing> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One remote that we connect to.
pub(crate) struct Outgoing {
    name: String,
    /// `None`: the text is no connection method, and every attempt fails.
    target: Option<Active>,
    options: RemoteOptions,
    reconnect: Reconnect,
    conn: Option<ConnId>,
    /// The peer has said what makes no sense, and the connection is about to end for that.
    is_refused: bool,
    board: Board,
}

impl Outgoing {
    /// A remote whose first attempt is due now.
    #[must_use]
    pub(crate) fn new(now: Now, name: String, options: RemoteOptions, board: Board) -> Outgoing {
        let target = match Target::parse(&name) {
            Ok(Target::Active(active)) => Some(active),
            _ => None,
        };
        let mut reconnect = Reconnect::new();
        // Established connections are probed like accepted ones.
        reconnect.set_probe_interval(0);
        reconnect
            .backoff()
            .set_limits(backoff::MIN_MS, options.max_backoff_ms);
        // A listener comes here only when its text makes no sense; it is spoken of as what it was meant to be.
        reconnect.set_passive(
            ["ptcp:", "pssl:", "punix:"]
                .iter()
                .any(|scheme| name.starts_with(scheme)),
        );
        reconnect.enable(now.mono_ms);
        Outgoing {
            name,
            target,
            options,
            reconnect,
            conn: None,
            is_refused: false,
            board,
        }
    }

    /// Takes other options: they hold for the connection in being too.
    pub(crate) fn set_options(&mut self, options: RemoteOptions) {
        self.reconnect
            .backoff()
            .set_limits(backoff::MIN_MS, options.max_backoff_ms);
        self.options = options;
    }

    /// Its text.
    #[must_use]
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// What its session inherits.
    #[must_use]
    pub(crate) fn options(&self) -> &RemoteOptions {
        &self.options
    }

    /// The connection, or the attempt, in being.
    #[must_use]
    pub(crate) fn conn(&self) -> Option<ConnId> {
        self.conn
    }

    /// When [`Outgoing::run`] is due.
    #[must_use]
    pub(crate) fn deadline_ms(&self, now: Now) -> Option<u64> {
        self.reconnect.deadline_ms(now.mono_ms)
    }

    /// Does what is due.
    pub(crate) fn run(&mut self, now: Now, io: &mut Io) {
        match self.reconnect.handle(now.mono_ms) {
            Some(Action::Connect) => self.connect(now, io),
            Some(Action::Disconnect) => {
                if let Some(conn) = self.conn {
                    io.close(conn);
                }
            }
            Some(Action::Probe) | None => {}
        }
        self.show(now);
    }

    fn connect(&mut self, now: Now, io: &mut Io) {
        coverage::RECONNECT_ATTEMPT.bump();
        self.reconnect.connecting(now.mono_ms);
        let attempt = match &self.target {
            Some(target) => io
                .connect(target, &self.name, self.options.dscp)
                .map_err(|error| errno::text(&error)),
            None => Err(NO_SUCH_METHOD.to_owned()),
        };
        match attempt {
            Ok(conn) => self.conn = Some(conn),
            Err(text) => self.reconnect.disconnected(now.mono_ms, End::Failed(text)),
        }
    }

    /// The connection stands, and serves this session.
    pub(crate) fn opened(&mut self, now: Now, session: SessionId) {
        coverage::RECONNECT_CONNECTED.bump();
        self.reconnect.connected(now.mono_ms);
        self.board.lock().session = Some(session);
        self.show(now);
    }

    /// The session closes the connection, because of what the peer has said.
    pub(crate) fn refuse(&mut self) {
        self.is_refused = true;
    }

    /// The connection, or the attempt, has ended.
    pub(crate) fn closed(&mut self, now: Now, reason: &CloseReason) {
        self.conn = None;
        let end = if std::mem::take(&mut self.is_refused) {
            End::Failed(PROTOCOL_ERROR.to_owned())
        } else {
            end_of(reason)
        };
        self.reconnect.disconnected(now.mono_ms, end);
        self.board.lock().session = None;
        self.show(now);
    }

    /// Puts what has changed on the board and into the log.
    fn show(&mut self, now: Now) {
        let ago = |since_ms: Option<u64>| since_ms.map(|since_ms| now.mono_ms - since_ms);
        let mut standing = self.board.lock();
        standing.state = self.reconnect.state_name();
        standing.connected_at_ms = ago(self.reconnect.since_connect_ms(now.mono_ms));
        standing.disconnected_at_ms = ago(self.reconnect.since_disconnect_ms(now.mono_ms));
        drop(standing);
        log_notices(&mut self.reconnect, &self.name);
    }
}

/// Why a connection that we opened, or the attempt, has ended.
pub(crate) fn end_of(reason: &CloseReason) -> End {
    match reason {
        CloseReason::EndOfFile => End::Closed,
        CloseReason::Failed(code) | CloseReason::ConnectFailed(code) => {
            End::Failed(errno::text_of(*code))
        }
        CloseReason::BadFraming => End::Failed(PROTOCOL_ERROR.to_owned()),
        _ => End::Local,
    }
}

/// Logs what the machine of the connection `name` has to say.
pub(crate) fn log_notices(reconnect: &mut Reconnect, name: &str) {
    for notice in reconnect.take_notices() {
        let level = match notice.level() {
            Level::Debug => LogLevel::Dbg,
            Level::Info => LogLevel::Info,
            Level::Warn => LogLevel::Warn,
            Level::Error => LogLevel::Err,
        };
        vlog::log(Module::Reconnect, level, format_args!("{name}: {notice}"));
    }
}
