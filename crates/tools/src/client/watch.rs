//! The loop of commands that run until they are ended: monitors and locks. In the background, they
//! accept control commands over a control socket (docs/spec/cli.md 3.6).
//!
//! Control commands queue requests for the session or change the flags of [`Control`]; they use no
//! socket themselves. Everything runs on the main thread.

use corvid_json::Value;
use corvid_shell::daemon::Startup;
use corvid_shell::output;
use corvid_shell::unixctl::{Command, Server};

use crate::client::settings::Settings;
use crate::failure::Failure;
use crate::session::{Incoming, Session};

/// The effects of control commands.
#[derive(Debug, Default)]
pub(crate) struct Control {
    /// Requests to send: method and parameters.
    pub requests: Vec<(&'static str, Value)>,
    /// Receiving from the server is paused.
    pub is_blocked: bool,
    is_exiting: bool,
}

/// The loop of a command.
pub(crate) struct Watch {
    startup: Option<Startup>,
    socket: Option<Server<Control>>,
}

/// Whether a background command has printed its first result. The program that started it waits for
/// that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Not yet.
    Waiting,
    /// The first result has been printed.
    Ready,
}

impl Watch {
    /// Goes to the background if the options ask for it, with the standard descriptors `kept` still
    /// open, and opens the control socket there.
    ///
    /// # Errors
    /// The socket cannot be opened.
    pub(crate) fn begin(settings: &Settings, kept: &[i32]) -> Result<Watch, Failure> {
        let startup = settings.start_daemon(kept);
        let socket = if settings.is_detached() {
            let mut socket = Server::open(None).map_err(Failure::new)?;
            let exit = Command::new("exit", "", 0..=0, "end", |control: &mut Control, _| {
                control.is_exiting = true;
                Ok(String::new())
            });
            socket.registry().add([exit]);
            Some(socket)
        } else {
            None
        };
        Ok(Watch {
            startup: Some(startup),
            socket,
        })
    }

    /// Adds control commands, if there is a control socket.
    pub(crate) fn add_commands<const COUNT: usize>(&mut self, commands: [Command<Control>; COUNT]) {
        if let Some(socket) = &mut self.socket {
            socket.registry().add(commands);
        }
    }

    /// Calls `handle` for every message, until the control command `exit` arrives or the reader of
    /// the output is gone.
    ///
    /// # Errors
    /// The connection broke, or `handle` returned an error.
    pub(crate) fn run(
        mut self,
        session: &mut Session,
        mut handle: impl FnMut(Incoming) -> Result<Progress, Failure>,
    ) -> Result<(), Failure> {
        let Some(mut socket) = self.socket.take() else {
            loop {
                let incoming = session.receive()?;
                self.advance(handle(incoming)?);
                // Nobody will read further output. The reference keeps running.
                if output::reader_is_gone() {
                    return Ok(());
                }
            }
        };
        socket.watch(session.fd())?;
        let mut control = Control::default();
        while !control.is_exiting && !output::reader_is_gone() {
            if !control.is_blocked {
                while let Some(incoming) = session.poll()? {
                    self.advance(handle(incoming)?);
                }
            }
            socket.turn(&mut control, None)?;
            for (method, params) in control.requests.drain(..) {
                session.send(method, &params)?;
            }
        }
        socket.close();
        Ok(())
    }

    fn advance(&mut self, progress: Progress) {
        if progress == Progress::Ready
            && let Some(startup) = self.startup.take()
        {
            startup.complete();
        }
    }
}
