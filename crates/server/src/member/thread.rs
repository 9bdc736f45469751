//! The thread of one member (`raft:NAME`): a poll loop over its sockets, its queue and its
//! deadlines. [`MemberPump`] decides what happens in a turn; [`ThreadEffects`] carries it out.
//!
//! Invariant: while the member runs, the thread never syncs a file and never waits for another
//! thread, so heartbeats leave on time. Its work for the database is bounded by the budget of an
//! inline execution.

use std::sync::atomic::Ordering;
use std::time::Duration;

use corvid_net::logging::{self, Module};
use corvid_net::{clock, errno};
use corvid_reactor::poll_interval::PollInterval;
use corvid_service::member::{MemberEffects as _, MemberPump};
use corvid_service::message::Event;

use super::effects::ThreadEffects;
use super::file::FileThreads;
use crate::liveness::Liveness;

/// The interval between two updates of the counts for `memory/show`, ms.
const COUNT_MS: u64 = 1000;

/// The maximum wait, ms: the thread wakes this often so that its liveness stays current.
const WAIT_MAX_MS: u64 = 5000;

/// The state of the thread.
pub(crate) struct MemberThread {
    /// The member, its connections as state machines, its file, and its events for the database.
    pub(crate) pump: MemberPump<FileThreads>,
    /// The member's sockets, and its channels to other threads.
    pub(crate) effects: ThreadEffects,
    /// Records when the thread is busy.
    pub(crate) liveness: Liveness,
    /// When the counts for `memory/show` were last updated, monotonic ms.
    pub(crate) counted_ms: u64,
}

impl MemberThread {
    /// Runs until the main thread ends the member.
    pub(crate) fn run(mut self) {
        let mut interval = PollInterval::new(&format!("raft_{}", self.effects.name));
        while !self.pump.is_done() {
            let now_ms = clock::mono_ms();
            interval.begin(now_ms);
            self.liveness.busy(now_ms);
            let shows_messages = logging::is_shown(Module::Jsonrpc, logging::Level::Debug);
            self.pump.peers.show_messages(shows_messages);
            self.pump.turn(now_ms, &mut self.effects);
            let (member, peers) = (&self.pump.member, &self.pump.peers);
            self.effects.meter.publish(now_ms, member, peers);
            if now_ms >= self.counted_ms + COUNT_MS {
                self.count(now_ms);
            }
            self.liveness.idle();
            interval.end();
            let timeout = self.timeout();
            if let Err(error) = self.effects.links.wait(timeout) {
                let reason = errno::text(&error);
                logging::err(Module::PollLoop, format_args!("poll: {reason}"));
                break;
            }
        }
        self.end();
    }

    /// Updates the counts for `memory/show`.
    fn count(&mut self, now_ms: u64) {
        self.counted_ms = now_ms;
        let status = self.pump.member.status(now_ms);
        let entries = status.log_end.0.saturating_sub(status.log_start.0);
        let counts = self.effects.inbox.counts();
        counts.log.store(entries, Ordering::Relaxed);
        let connections = self.pump.peers.connection_count() as u64;
        counts.connections.store(connections, Ordering::Relaxed);
        let backlog_bytes = self.pump.peers.backlog_bytes();
        counts.backlog_bytes.store(backlog_bytes, Ordering::Relaxed);
    }

    /// The maximum time to wait for events.
    fn timeout(&self) -> Option<Duration> {
        let links = &self.effects.links;
        let is_busy = links.has_more() || links.may_write() || self.pump.is_done();
        // The database may have queued requests during this turn. `sleep` reports them; the thread
        // must not wait then.
        if is_busy || !self.effects.inbox.sleep() {
            return Some(Duration::ZERO);
        }
        let now = clock::Now::read();
        let has_database = self.effects.has_database();
        let deadlines = [
            Some(self.pump.deadline_ms(now.mono_ms, has_database)),
            self.effects.links.deadline_ms(),
            self.effects.meter.deadline_ms(),
            Some(now.mono_ms + WAIT_MAX_MS),
        ];
        deadlines
            .into_iter()
            .flatten()
            .min()
            .map(|at_ms| now.until(at_ms))
    }

    /// Sends what is queued, closes the file, and lets the database end.
    fn end(self) {
        let ThreadEffects {
            mut links,
            database,
            main,
            id,
            ..
        } = self.effects;
        let mut pump = self.pump;
        links.flush(clock::mono_ms(), &mut pump.peers);
        // Sockets and file are closed before the database reports its removal. The operator may
        // then add the file again, and its next member listens on the same address.
        drop(links);
        let (file, mut events) = pump.end(clock::mono_ms());
        file.close();
        match database {
            Some(database) => database.send_or_execute(&mut events),
            None => main.post([Event::Removed(id)]),
        }
    }
}
