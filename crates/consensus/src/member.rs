//! One member of a clustered database: inputs are handled in order, each may yield outputs.
//!
//! ```text
//! loop {
//!     member.handle(now_ms, input);
//!     while let Some(output) = member.next_output() { carry it out, in this order }
//!     wait for an input, or until member.deadline_ms(), then handle Input::Time
//! }
//! ```
//!
//! Invariant: a message leaves only after the records that it promises are stored ([`Input::Storage`]). Called by the server and the
//! simulator. It must not know sockets, files or clocks.

mod input;
mod output;
mod settings;
mod status;

pub use input::{Command, CommandToken, Input};
pub use output::{Output, Rewrite, RewriteReason, ServerRow};
pub use settings::{Recovered, Settings};
pub use status::{Connected, PeerStatus, Phase, Role, Status};

/// See the module.
#[derive(Debug)]
pub struct Member {
    settings: Settings,
}

impl Member {
    /// A member as its file describes it. `seed` decides its election timeouts.
    #[must_use]
    pub fn new(settings: Settings, recovered: Recovered, now_ms: u64, seed: u64) -> Member {
        let _ = (recovered, now_ms, seed);
        Member { settings }
    }

    /// Handles one input. `now_ms` never decreases; its origin is arbitrary.
    pub fn handle(&mut self, now_ms: u64, input: Input) {
        let _ = (now_ms, input);
    }

    /// The next output, to be carried out before the ones behind it. `None`: the member waits for an input.
    pub fn next_output(&mut self) -> Option<Output> {
        None
    }

    /// When [`Input::Time`] is due, if nothing else comes before.
    #[must_use]
    pub fn deadline_ms(&self) -> u64 {
        u64::MAX
    }

    /// The status for operators.
    #[must_use]
    pub fn status(&self, now_ms: u64) -> Status {
        let _ = now_ms;
        Status::empty(&self.settings)
    }
}
