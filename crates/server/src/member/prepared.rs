//! A member between the opening of its file and the start of its thread, and a running member as
//! the main thread sees it.

use std::sync::Arc;
use std::thread::JoinHandle;

use corvid_consensus::limits::MESSAGE_BYTES_MAX;
use corvid_consensus::member::{KeptEntries, ServerRow};
use corvid_consensus::{Member, Peers, PeersSettings, Recovered as MemberState, Settings};
use corvid_data::HashSeed;
use corvid_disk::log_file::LogFile;
use corvid_log::cluster::{Cid, Recovered, Sid};
use corvid_net::clock;
use corvid_net::random::Random;
use corvid_net::tls::Credentials;
use corvid_service::member::{MemberEffects as _, MemberPump};
use corvid_service::message::DatabaseId;
use mio::{Poll, Waker};

use super::effects::ThreadEffects;
use super::failure::Scenario;
use super::file;
use super::handle::{MemberHandle, ToMember};
use super::links::{Links, WAKER};
use super::meter::Meter;
use super::row::RowSlot;
use super::thread::MemberThread;
use crate::database::handle::DatabaseHandle;
use crate::database::history::Histories;
use crate::jobs::Jobs;
use crate::liveness::Liveness;
use crate::main_handle::{MainHandle, MainMessage};
use crate::metrics::member::MemberFigures;
use crate::metrics::switch::Switched;

/// A member whose thread does not run yet.
pub(crate) struct PreparedMember {
    recovered: Recovered,
    file: LogFile,
    credentials: Arc<Credentials>,
    hash_seed: HashSeed,
    histories: Arc<Histories>,
    jobs: Jobs,
    liveness: Liveness,
    poll: Poll,
    handle: MemberHandle,
    row: ServerRow,
}

/// A running member.
pub(crate) struct ServedMember {
    /// The member's queue.
    pub(crate) handle: MemberHandle,
    /// The member's server id.
    pub(crate) sid: Sid,
    /// The newest columns for `_Server`.
    row: RowSlot,
    /// The cluster id, if it is known.
    cid: Option<Cid>,
    /// The thread has ended: it answers nothing any more.
    pub(crate) has_ended: bool,
    thread: JoinHandle<()>,
}

/// Tells the main thread when the member's thread ends, also by a panic.
struct EndNotice(MainHandle, DatabaseId);

impl Drop for EndNotice {
    fn drop(&mut self) {
        self.0.report(MainMessage::MemberEnded(self.1));
    }
}

impl PreparedMember {
    /// The member of an opened file.
    ///
    /// # Errors
    /// No descriptor is left.
    pub(crate) fn new(
        recovered: Recovered,
        file: LogFile,
        credentials: Arc<Credentials>,
        hash_seed: HashSeed,
        histories: Arc<Histories>,
        jobs: Jobs,
        liveness: Liveness,
    ) -> std::io::Result<PreparedMember> {
        let poll = Poll::new()?;
        let waker = Waker::new(poll.registry(), WAKER)?;
        let row = ServerRow::of_file(&recovered);
        Ok(PreparedMember {
            recovered,
            file,
            credentials,
            hash_seed,
            histories,
            jobs,
            liveness,
            poll,
            handle: MemberHandle::new(waker),
            row,
        })
    }

    /// The queue of the member's thread.
    pub(crate) fn handle(&self) -> &MemberHandle {
        &self.handle
    }

    /// The member's row in `_Server` until its thread reports another.
    pub(crate) fn row(&self) -> &ServerRow {
        &self.row
    }

    /// Starts the thread.
    ///
    /// # Errors
    /// The system has no random source, or threads are exhausted.
    pub(crate) fn start(
        self: Box<Self>,
        id: DatabaseId,
        database: Option<DatabaseHandle>,
        main: MainHandle,
        figures: Switched<MemberFigures>,
    ) -> std::io::Result<ServedMember> {
        let PreparedMember {
            recovered,
            file,
            credentials,
            hash_seed,
            histories,
            jobs,
            liveness,
            poll,
            handle,
            row,
        } = *self;
        let name = recovered.name.clone();
        let notice = EndNotice(main.clone(), id);
        let settings = Settings::of_file(&recovered, KeptEntries::DEFAULT);
        let address = settings.address.clone();
        let peers = Peers::new(PeersSettings::of_file(&recovered, MESSAGE_BYTES_MAX));
        let seed = u64::from_ne_bytes(Random::new()?.bytes()?);
        let file = file::open(
            file,
            &recovered,
            handle.clone(),
            hash_seed,
            &histories,
            jobs,
        )?;
        let state = MemberState::of_file(recovered)
            .map_err(|error| std::io::Error::other(error.to_string()))?;
        let member = Member::new(settings, state, clock::mono_ms(), seed);
        let slot = RowSlot::default();
        let effects = ThreadEffects {
            id,
            name: name.clone(),
            links: Links::new(poll, &address, credentials),
            inbox: handle.clone(),
            mail: Vec::new(),
            database,
            main,
            row: slot.clone(),
            meter: Meter::new(figures),
            scenario: Scenario::Clear,
            sent_kinds: Vec::new(),
        };
        let thread = MemberThread {
            pump: MemberPump::new(member, peers, file, effects.has_database()),
            effects,
            liveness,
            counted_ms: 0,
        };
        let thread = std::thread::Builder::new()
            .name(format!("raft:{name}"))
            .spawn(move || {
                // Dropped after the thread's state, so that nothing follows the notice.
                let _notice = notice;
                thread.run();
            })?;
        Ok(ServedMember {
            handle,
            sid: row.sid,
            row: slot,
            cid: row.cid,
            has_ended: false,
            thread,
        })
    }
}

impl ServedMember {
    /// The cluster's id, if it is known.
    #[must_use]
    pub(crate) fn cid(&self) -> Option<Cid> {
        self.cid
    }

    /// The newest columns for `_Server`, if they are not shown yet.
    pub(crate) fn take_row(&mut self) -> Option<ServerRow> {
        let row = self.row.take()?;
        self.cid = row.cid;
        Some(row)
    }

    /// Orders the member to transfer its leadership, close its file and end, and then to end its
    /// database. Returns its thread.
    pub(crate) fn end(self) -> JoinHandle<()> {
        self.handle.post([ToMember::End]);
        self.thread
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_of_the_thread_is_told() {
        let poll = Poll::new().expect("a poll");
        let (events, reports) = crossbeam_channel::unbounded();
        let main = MainHandle {
            events,
            lines_dropped: Arc::default(),
            waker: Arc::new(Waker::new(poll.registry(), WAKER).expect("a waker")),
        };
        let notice = EndNotice(main, DatabaseId(7));
        let thread = std::thread::spawn(move || {
            let _notice = notice;
            panic!("a panic of a test");
        });
        assert!(thread.join().is_err());
        let report = reports.try_recv().expect("a report");
        assert!(matches!(report, MainMessage::MemberEnded(DatabaseId(7))));
    }
}
