//! The thread of one database (`db:NAME`): executes, in batches and without a time limit, the
//! inputs that no shard has executed inline.

use std::sync::{Arc, Mutex};

use corvid_net::clock;
use corvid_reactor::mailbox::Mailbox;
use corvid_reactor::poll_interval::PollInterval;
use corvid_service::message::ToDatabase;

use crate::coverage;
use crate::database::driver::Driver;
use crate::database::handle::lock;

/// The state of the thread.
pub(crate) struct DatabaseThread {
    /// The database; locked while the mailbox is held.
    pub(crate) driver: Arc<Mutex<Driver>>,
    /// The database's mailbox.
    pub(crate) mailbox: Mailbox<ToDatabase>,
    /// The thread's name in the log.
    pub(crate) label: String,
}

impl DatabaseThread {
    /// Runs until every sender of the mailbox is dropped.
    pub(crate) fn run(self) {
        let mut arrived = Vec::new();
        let mut interval = PollInterval::new(&self.label);
        // No shard can acquire the mailbox before the first `receive`, so the lock is free.
        let mut deadline_ms = lock(&self.driver).deadline_ms();
        while self.mailbox.receive(&mut arrived, deadline_ms) {
            coverage::DB_WAKEUP.bump();
            let mut driver = lock(&self.driver);
            let mut inputs = arrived.drain(..);
            loop {
                interval.begin(clock::mono_ms());
                if !driver.work(&mut inputs) {
                    break;
                }
            }
            interval.end();
            driver.effects.liveness.idle();
            deadline_ms = driver.deadline_ms();
        }
        let recorder = lock(&self.driver).effects.recorder.take();
        drop(recorder);
        let storage = lock(&self.driver).effects.storage.take();
        if let Some(storage) = storage {
            storage.close();
        }
    }
}
