//! A client for programs with an event loop of their own: a descriptor to poll, a time to come back at.
//!
//! ```no_run
//! # use corvid_driver::polled::{Client, Wait};
//! # fn poll(wait: &Wait) {}
//! # fn run(mut client: Client) -> Result<(), Box<dyn std::error::Error>> {
//! loop {
//!     let has_changed = client.run()?;
//!     // Read, begin and commit transactions here.
//!     poll(&client.wait());
//! }
//! # }
//! ```
//!
//! The descriptor changes with the connection, so it is asked for before each wait. Nothing here blocks, except that the first
//! connection to a host by name fails until a thread of its own has looked the name up.

use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::time::Duration;

use corvid_cs::{Input, Options};
use corvid_data::Uuid;
use corvid_idl::{Class, Idl, Misuse};
use corvid_os::clock;
use corvid_os::random::Random;
use corvid_os::readiness::Wanted;
use corvid_os::stream::Resolve;
use corvid_os::tls::Credentials;

use crate::transport::{Happened, Transport};

/// Things that may happen in one [`Client::run`]: a server that says much does not keep the loop from its other work.
const STEPS_MAX: usize = 64;

/// A client and its connection.
#[derive(Debug)]
pub struct Client {
    idl: Idl,
    transport: Transport,
    random: Random,
}

/// What to wait for: whichever comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait {
    /// The connection's descriptor, good until the next [`Client::run`]; `None` when there is nothing to poll.
    pub fd: Option<RawFd>,
    /// Wait until it can be read (or has failed).
    pub readable: bool,
    /// Wait until it can be written (or has failed).
    pub writable: bool,
    /// Wait no longer; `None` is for ever.
    pub timeout: Option<Duration>,
}

impl Client {
    /// A client that connects to one of the remotes of a comma-separated list, for example `ssl:10.0.0.1:6641,ssl:10.0.0.2:6641`, and to
    /// another one whenever that is lost. The first attempt begins with the first [`Client::run`].
    ///
    /// # Errors
    /// The operating system gives no randomness.
    pub fn connect(class: Class, remotes: &str) -> io::Result<Client> {
        let mut client = Client::new(class, None)?;
        client
            .idl
            .session()
            .set_remote(clock::mono_ms(), remotes, true);
        Ok(client)
    }

    /// A client without remotes, for other settings before the first one is given ([`Idl::session`]). The seed and interest of `options`
    /// are set here.
    ///
    /// # Errors
    /// The operating system gives no randomness.
    pub fn new(class: Class, options: Option<Options>) -> io::Result<Client> {
        let mut random = Random::new()?;
        let seed = u64::from_ne_bytes(random.bytes()?);
        let idl = match options {
            None => Idl::new(class, seed),
            Some(options) => Idl::with_options(class, Options { seed, ..options }),
        };
        Ok(Client {
            idl,
            transport: Transport::new(Resolve::Later),
            random,
        })
    }

    /// Looks host names up at once, and waits for the answer.
    pub(crate) fn resolving_now(mut self) -> Client {
        self.transport = Transport::new(Resolve::Now);
        self
    }

    /// Key, certificate and CA for `ssl:` and `pssl:`, from the next connection on.
    pub fn set_credentials(&mut self, credentials: Option<Arc<Credentials>>) {
        self.transport.set_credentials(credentials);
    }

    /// The client.
    #[must_use]
    pub fn idl(&self) -> &Idl {
        &self.idl
    }

    /// The client, to change something through it. What is to be sent leaves with the next [`Client::run`] or [`Client::wait`].
    pub fn idl_mut(&mut self) -> &mut Idl {
        &mut self.idl
    }

    /// A random UUID, for a row to be inserted.
    ///
    /// # Errors
    /// The operating system gives no randomness.
    pub fn uuid(&mut self) -> io::Result<Uuid> {
        Ok(Uuid::from_random(self.random.bytes()?))
    }

    /// Milliseconds of the clock that the core is driven by: for its methods that ask what time it is.
    #[must_use]
    pub fn now_ms(&self) -> u64 {
        clock::mono_ms()
    }

    /// Does all that can be done without waiting, within bounds. Whether anything visible changed.
    ///
    /// # Errors
    /// A transaction is open.
    pub fn run(&mut self) -> Result<bool, Misuse> {
        let seqno = self.idl.change_seqno();
        self.transport.begin_round();
        self.idl.handle(self.now_ms(), Input::Tick)?;
        for _ in 0..STEPS_MAX {
            self.carry_out();
            let wants_input = self.idl.session_state().wants_input();
            let Some(happened) = self.transport.step(wants_input) else {
                break;
            };
            let input = match happened {
                Happened::Listening => Input::Listening,
                Happened::Connected => Input::Connected,
                Happened::Received(count) => Input::Received(self.transport.bytes(count)),
                Happened::Sent => Input::Sent,
                Happened::Ended(end) => Input::Disconnected(end),
            };
            self.idl.handle(clock::mono_ms(), input)?;
        }
        self.carry_out();
        Ok(self.idl.change_seqno() != seqno)
    }

    fn carry_out(&mut self) {
        while let Some(output) = self.idl.poll_output() {
            self.transport.carry_out(output);
        }
    }

    /// What to wait for before the next [`Client::run`]. May be asked for with a transaction open, which then has to end first.
    #[must_use]
    pub fn wait(&mut self) -> Wait {
        let wanted = self.wanted();
        Wait {
            fd: wanted.fd.map(|fd| fd.as_raw_fd()),
            readable: wanted.readable,
            writable: wanted.writable,
            timeout: wanted.timeout,
        }
    }

    /// As [`Client::wait`], for those who wait here.
    pub(crate) fn wanted(&mut self) -> Wanted<'_> {
        self.carry_out();
        let now_ms = self.now_ms();
        let wants_input = self.idl.session_state().wants_input();
        let interest = self.transport.interest(wants_input);
        let due_ms = if interest.is_due {
            Some(now_ms)
        } else {
            self.idl.poll_timeout(now_ms)
        };
        Wanted {
            fd: interest.fd,
            readable: interest.readable,
            writable: interest.writable,
            timeout: due_ms.map(|due_ms| Duration::from_millis(due_ms.saturating_sub(now_ms))),
        }
    }
}
