//! Our client, driven step by step over a blocking connection, for measurements within this
//! process. The time of handling received bytes is measured separately from the time of the kernel,
//! and all bytes are counted.

use std::time::{Duration, Instant};

use corvid_idl::{Class, Idl, Misuse, Status};
use corvid_session::{Input, Output};

use crate::error::Error;
use crate::stream::{Address, ReadWrite};

/// A client with its connection.
pub(super) struct Session {
    pub(super) idl: Idl,
    address: Address,
    stream: Option<Box<dyn ReadWrite>>,
    room: Vec<u8>,
    began: Instant,
    pub(super) sent_bytes: u64,
    pub(super) received_bytes: u64,
    /// Time spent in [`Idl::handle`].
    pub(super) handling: Duration,
}

impl Session {
    /// Connects and waits until the client has all contents.
    pub(super) fn open(class: Class, address: &Address) -> Result<Session, Error> {
        let mut session = Session {
            idl: Idl::new(class, 1),
            address: address.clone(),
            stream: None,
            room: vec![0; 256 * 1024],
            began: Instant::now(),
            sent_bytes: 0,
            received_bytes: 0,
            handling: Duration::ZERO,
        };
        let now_ms = session.now_ms();
        let remote = address.to_string();
        session.idl.session().set_remote(now_ms, &remote, true);
        session.handle(|idl, now_ms| idl.handle(now_ms, Input::Tick))?;
        session.wait_until(Idl::has_ever_connected)?;
        Ok(session)
    }

    /// Receives and handles messages until `holds` returns true.
    pub(super) fn wait_until(&mut self, holds: impl Fn(&Idl) -> bool) -> Result<(), Error> {
        self.execute_actions()?;
        while !holds(&self.idl) {
            if self.idl.poll_timeout(self.now_ms()) == Some(self.now_ms()) {
                self.handle(|idl, now_ms| idl.handle(now_ms, Input::Tick))?;
            } else {
                self.receive()?;
            }
            self.execute_actions()?;
        }
        Ok(())
    }

    /// Builds a transaction, commits it and waits until it has succeeded.
    pub(super) fn transact(
        &mut self,
        make: impl FnOnce(&mut Idl) -> Result<(), Misuse>,
    ) -> Result<(), Error> {
        let txn = self.idl.begin()?;
        make(&mut self.idl)?;
        self.idl.commit()?;
        self.wait_until(|idl| idl.status(txn) != Some(Status::Incomplete))?;
        match self.idl.finish(txn).map(|finished| finished.status) {
            Some(Status::Success) => Ok(()),
            other => Err(Error::Client(format!("a transaction became {other:?}"))),
        }
    }

    fn receive(&mut self) -> Result<(), Error> {
        let stream = self.stream.as_mut().ok_or(Error::Closed)?;
        let mut room = std::mem::take(&mut self.room);
        let count = stream.read(&mut room)?;
        if count == 0 {
            return Err(Error::Closed);
        }
        self.received_bytes += count as u64;
        let input = &room[..count];
        let handled = self.handle(|idl, now_ms| idl.handle(now_ms, Input::Received(input)));
        self.room = room;
        handled
    }

    fn handle(
        &mut self,
        input: impl FnOnce(&mut Idl, u64) -> Result<(), Misuse>,
    ) -> Result<(), Error> {
        let now_ms = self.now_ms();
        let began = Instant::now();
        let handled = input(&mut self.idl, now_ms);
        self.handling += began.elapsed();
        Ok(handled?)
    }

    /// Executes the actions that the client has queued.
    fn execute_actions(&mut self) -> Result<(), Error> {
        while let Some(output) = self.idl.poll_output() {
            match output {
                Output::Connect { .. } => {
                    self.stream = Some(self.address.open()?);
                    self.handle(|idl, now_ms| idl.handle(now_ms, Input::Connected))?;
                }
                Output::Send(bytes) => {
                    let stream = self.stream.as_mut().ok_or(Error::Closed)?;
                    stream.write_all(&bytes)?;
                    self.sent_bytes += bytes.len() as u64;
                    self.handle(|idl, now_ms| idl.handle(now_ms, Input::Sent))?;
                }
                // A server on this machine that the benchmark has started gives no reason to
                // disconnect.
                Output::Disconnect => return Err(Error::Closed),
            }
        }
        Ok(())
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}
