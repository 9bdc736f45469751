//! The thread of a reading that a relay's source makes: a connection to the source for this reading
//! alone. [`RelayedReading`] decides what is sent and what the replies mean.
//!
//! A session has one such request at a time, and its later requests wait for the reply, so a
//! reading over the relay's own connection would hold up the writes of all its clients. The source
//! ends the reading when this connection ends: after the last page, when the client cancels or
//! goes, or after an error.
//!
//! Invariant: the connection answers probes and makes its own at all times, also while the client
//! does not ask for the next page.

use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use corvid_data::{Tag, WireError};
use corvid_driver::transport::{Transport, TransportEvent};
use corvid_json::Assembler;
use corvid_net::clock;
use corvid_net::errno;
use corvid_net::stream::Resolve;
use corvid_net::waker::Sleeper;
use corvid_rpc::log_event::End;
use corvid_rpc::message::Message;
use corvid_rpc::probe::INTERVAL_MS_DEFAULT;
use corvid_rpc::session::{Action, Received, Session};
use corvid_service::read_history::relayed::{
    RelayedReading, RelayedReply, not_reachable, not_readable,
};
use corvid_service::read_history::{IDLE_MS, ReadingId, Start};
use corvid_session::Output;
use crossbeam_channel::{Receiver, TryRecvError};

use super::HistoryReaders;
use crate::relay::sources::ReachedSource;

/// How long an attempt to connect may take, ms.
const CONNECT_MS: u64 = 10_000;

/// The longest wait, ms: a clock that is set, or a missed wake-up, delays a reading by no more.
const WAIT_MAX_MS: u64 = 5000;

/// The side of the relay's client.
pub(super) struct Asking {
    pub(super) readers: Arc<HistoryReaders>,
    pub(super) id: ReadingId,
    /// Requests for the next page.
    pub(super) asked: Receiver<()>,
    pub(super) is_wanted: Arc<AtomicBool>,
    /// Woken by each request for a page, and when the reading is not wanted any more.
    pub(super) sleeper: Sleeper,
}

/// Why a reading has no further answer.
enum Stopped {
    Unwanted,
    /// The connection has ended, for this reason.
    Lost(String),
}

/// The connection to the source.
struct Conversation {
    transport: Transport,
    assembler: Assembler,
    /// Once the connection is established.
    session: Option<Session>,
    /// When the attempt to connect ends.
    connect_by_ms: u64,
    reading: RelayedReading,
    asking: Asking,
}

/// Carries out a query. Returns the last answer.
pub(super) fn run(
    start: Start,
    source: Option<ReachedSource>,
    asking: Asking,
) -> Result<Vec<u8>, WireError> {
    let database = start.name.clone();
    let Some(source) = source else {
        let reason = "to which it is not connected";
        return Err(not_reachable(&database, reason));
    };
    let Some(remote) = source.remote.filter(|_| source.reads_history) else {
        return Err(not_readable(&database));
    };
    let mut transport = Transport::new(Resolve::Now);
    transport.set_dscp(source.dscp);
    transport.set_credentials(Some(source.credentials));
    transport.carry_out(Output::Connect { remote });
    let mut conversation = Conversation {
        transport,
        assembler: Assembler::default(),
        session: None,
        connect_by_ms: clock::mono_ms() + CONNECT_MS,
        reading: RelayedReading::new(asking.id, start),
        asking,
    };
    conversation.run().unwrap_or_else(|stopped| match stopped {
        // Nobody gets this.
        Stopped::Unwanted => Err(WireError::new(Tag::Canceled, "the reading has ended")),
        Stopped::Lost(reason) => {
            let reason = format!("to which the connection has failed ({reason})");
            Err(not_reachable(&database, &reason))
        }
    })
}

impl Conversation {
    fn run(&mut self) -> Result<Result<Vec<u8>, WireError>, Stopped> {
        while self.session.is_none() {
            self.exchange()?;
            if self.session.is_none() {
                if clock::mono_ms() >= self.connect_by_ms {
                    return Err(Stopped::Lost("timed out".to_owned()));
                }
                self.wait(self.connect_by_ms)?;
            }
        }
        loop {
            let request = self.reading.request();
            self.transport.carry_out(Output::Send(request));
            match self.reply()? {
                RelayedReply::Last(answer) => return Ok(answer),
                RelayedReply::Page(page) => self.stand_still(page)?,
            }
        }
    }

    /// Waits for the answer to the request.
    fn reply(&mut self) -> Result<RelayedReply, Stopped> {
        loop {
            if let Some(reply) = self.exchange()? {
                return Ok(reply);
            }
            self.wait(u64::MAX)?;
        }
    }

    /// Delivers a page, and waits for the request for the next one.
    fn stand_still(&mut self, page: Vec<u8>) -> Result<(), Stopped> {
        let (readers, id) = (self.asking.readers.clone(), self.asking.id);
        if !readers.page(id, page) {
            return Err(Stopped::Unwanted);
        }
        let expires_ms = clock::mono_ms() + IDLE_MS;
        // If the connection is lost now, the client learns it with its next request.
        let mut lost = None;
        loop {
            if lost.is_none() {
                match self.exchange() {
                    Err(Stopped::Lost(reason)) => {
                        self.transport.carry_out(Output::Disconnect);
                        lost = Some(reason);
                    }
                    other => drop(other?),
                }
            }
            match self.asking.asked.try_recv() {
                Ok(()) => return lost.map_or(Ok(()), |reason| Err(Stopped::Lost(reason))),
                Err(TryRecvError::Disconnected) => return Err(Stopped::Unwanted),
                Err(TryRecvError::Empty) => {}
            }
            if clock::mono_ms() >= expires_ms && readers.expire(id) {
                return Err(Stopped::Unwanted);
            }
            self.wait(expires_ms)?;
        }
    }

    /// Sends and receives what it can without waiting. Returns the answer to the request, if it has
    /// come.
    fn exchange(&mut self) -> Result<Option<RelayedReply>, Stopped> {
        self.transport.begin_round();
        let mut reply = None;
        while let Some(event) = self.transport.step(true) {
            let now_ms = clock::mono_ms();
            match event {
                TransportEvent::Connected => {
                    self.session = Some(Session::new(now_ms, INTERVAL_MS_DEFAULT));
                    // Requests are sent only now.
                    return Ok(None);
                }
                TransportEvent::Listening => {}
                TransportEvent::Sent => {
                    if let Some(session) = &mut self.session {
                        session.probe().activity(now_ms);
                    }
                }
                TransportEvent::Received(count) => {
                    if let Some(session) = &mut self.session {
                        session.probe().receive_attempted(now_ms);
                        if count > 0 {
                            session.probe().activity(now_ms);
                        }
                    }
                    reply = self.read(count)?.or(reply);
                }
                TransportEvent::Ended(end) => return Err(Stopped::Lost(reason_of(end))),
            }
        }
        let now_ms = clock::mono_ms();
        match self.session.as_mut().and_then(|it| it.handle(now_ms)) {
            Some(Action::Send(probe)) => self.send(probe.to_vec()),
            Some(Action::Close { .. }) => {
                return Err(Stopped::Lost("it does not answer".to_owned()));
            }
            None => {}
        }
        Ok(reply)
    }

    fn send(&mut self, bytes: Vec<u8>) {
        self.transport.carry_out(Output::Send(bytes));
        self.transport.flush();
    }

    /// Handles the received bytes.
    fn read(&mut self, count: usize) -> Result<Option<RelayedReply>, Stopped> {
        let mut reply = None;
        let mut echoes = Vec::new();
        for text in self.assembler.texts(self.transport.bytes(count)) {
            let text = text.map_err(|error| Stopped::Lost(error.to_string()))?;
            let message =
                Message::parse(&text).map_err(|error| Stopped::Lost(error.to_string()))?;
            match Received::of(message) {
                Received::Echo(echo) => echoes.push(echo),
                Received::ProbeReply => {}
                Received::Message(message) => reply = self.reading.answer(&message).or(reply),
            }
        }
        echoes.into_iter().for_each(|echo| self.send(echo));
        Ok(reply)
    }

    /// Waits for the connection or the client, until this time at the latest.
    fn wait(&mut self, until_ms: u64) -> Result<(), Stopped> {
        let interest = self.transport.interest(true);
        if !interest.is_due {
            let now = clock::Now::read();
            let session = self.session.as_ref();
            let probe_ms = session.and_then(|it| it.deadline_ms(now.mono_ms));
            let deadline_ms = probe_ms.unwrap_or(u64::MAX).min(until_ms);
            let timeout = now.until(deadline_ms.min(now.mono_ms + WAIT_MAX_MS));
            let fd = interest.fd.map(|fd| fd.as_raw_fd());
            let wanted = (interest.readable, interest.writable);
            let waited = self.asking.sleeper.wait(fd, wanted, Some(timeout));
            waited.map_err(|error| Stopped::Lost(errno::text(&error)))?;
        }
        match self.asking.is_wanted.load(Ordering::Relaxed) {
            true => Ok(()),
            false => Err(Stopped::Unwanted),
        }
    }
}

fn reason_of(end: End) -> String {
    match end {
        End::Closed => "it closed the connection".to_owned(),
        End::Failed(reason) => reason,
        End::Local => "it was closed here".to_owned(),
    }
}
