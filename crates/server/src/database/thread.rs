//! The thread of one database: does whatever arrives and is not done by a shard, in batches, for as long as it takes.

use std::sync::{Arc, Mutex};

use corvid_net::clock;
use corvid_reactor::mailbox::Mailbox;
use corvid_reactor::poll_interval::PollInterval;
use corvid_service::message::ToDatabase;

use crate::coverage;
use crate::database::driver::Driver;
use crate::database::handle::lock;

/// What the thread works with.
pub(crate) struct DatabaseThread {
    /// The database; locked while the mailbox is held.
    pub(crate) driver: Arc<Mutex<Driver>>,
    /// Its inputs.
    pub(crate) mailbox: Mailbox<ToDatabase>,
    /// Names the thread in the log.
    pub(crate) label: String,
}

impl DatabaseThread {
    /// Runs until every sender to the mailbox is gone.
    pub(crate) fn run(self) {
        let mut arrived = Vec::new();
        let mut interval = PollInterval::new(&self.label);
        // Nobody else holds the mailbox before it is received from for the first time.
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
