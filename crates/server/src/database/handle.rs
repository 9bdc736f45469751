//! The handle to a database that a shard has, or the thread of a member or a relay: the mailbox of
//! the database's thread, and the database itself for inline execution.
//!
//! Waking the database's thread, and being woken by its reply, costs more than a small transaction.
//! A shard that finds the mailbox free therefore acquires it and executes its requests itself,
//! within one work budget for all of them. It hands the first request that exceeds the budget, and
//! every request after it, to the thread. A shard that finds the mailbox held leaves its requests
//! to the holder. The threads of members and relays do the same with commits of other servers. The
//! mailbox ([`corvid_reactor::mailbox`]) guarantees order and exclusion.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use corvid_engine::WorkBudget;
use corvid_reactor::mailbox::MailSender;
use corvid_service::message::ToDatabase;

use crate::database::driver::Driver;

/// The work budget of one inline execution, in steps: about 90 small transactions.
const INLINE_STEPS: u64 = 8192;

/// The handle; cheap to clone.
#[derive(Clone)]
pub(crate) struct DatabaseHandle {
    // Declared before `sender`, so that it is dropped first. The thread ends when the last sender
    // is dropped; it must then be the last owner of the database, so that it frees the database.
    driver: Arc<Mutex<Driver>>,
    sender: MailSender<ToDatabase>,
}

impl DatabaseHandle {
    /// The handle to a database and its mailbox.
    #[must_use]
    pub(crate) fn new(
        driver: Arc<Mutex<Driver>>,
        sender: MailSender<ToDatabase>,
    ) -> DatabaseHandle {
        DatabaseHandle { driver, sender }
    }

    /// The database, for tests that lock it.
    #[cfg(test)]
    pub(crate) fn driver(&self) -> &Arc<Mutex<Driver>> {
        &self.driver
    }

    /// Executes `messages` inline if the mailbox is free, within the work budget; sends the rest to
    /// the thread.
    pub(crate) fn send_or_execute(&self, messages: &mut Vec<ToDatabase>) {
        self.send_or_execute_with(messages, lock);
    }

    /// [`DatabaseHandle::send_or_execute`] with a given function that locks the database.
    fn send_or_execute_with(
        &self,
        messages: &mut Vec<ToDatabase>,
        lock: impl Fn(&Mutex<Driver>) -> MutexGuard<'_, Driver>,
    ) {
        // The database's thread ends only after every shard has dropped its sender, so sending
        // cannot fail.
        if !self.sender.try_acquire(messages) {
            return;
        }
        let mut budget = WorkBudget::new(INLINE_STEPS);
        loop {
            let mut driver = lock(&self.driver);
            let is_done = driver.work_inline(messages, &mut budget);
            driver.effects.liveness.idle();
            let deadline_ms = is_done.then(|| driver.deadline_ms());
            // Unlocked before the mailbox is released, so that the next holder does not block.
            drop(driver);
            match deadline_ms {
                None => return self.sender.hand_off(messages),
                // More messages have arrived in the meantime. This shard still holds the mailbox
                // and executes them.
                Some(deadline_ms) if self.sender.release(messages, deadline_ms) => {}
                Some(_) => return,
            }
        }
    }
}

impl std::fmt::Debug for DatabaseHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DatabaseHandle").finish_non_exhaustive()
    }
}

/// Locks the database. Only the holder of the mailbox calls this, so it finds the mutex unlocked.
pub(crate) fn lock(driver: &Mutex<Driver>) -> MutexGuard<'_, Driver> {
    driver.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::sync::Weak;

    use corvid_engine::Database;
    use corvid_reactor::mailbox::Mailbox;
    use corvid_reactor::shard::Shards;
    use corvid_service::message::{DatabaseId, DatabaseMethod, Request, SessionInfo};
    use corvid_service::schema_epoch::SchemaEpochs;
    use corvid_service::{DatabaseService, Model, Options, Pump, server_db};

    use crate::audit::AuditSlot;
    use crate::database::driver::{BatchState, Effects, read_clock};
    use crate::database::jobs::JobThreads;
    use crate::database::open::RandomUuids;
    use crate::database::storage::ReplySender;
    use crate::database::thread::DatabaseThread;
    use crate::jobs::Jobs;
    use crate::liveness::Liveness;
    use crate::main_handle::MainHandle;
    use crate::metrics::database::DatabaseFigures;
    use crate::metrics::switch::{Switch, Switched};
    use crate::shard::ShardMessage;

    /// A database in memory without a thread, with one shard that does not run.
    pub(crate) fn database() -> (Mailbox<ToDatabase>, DatabaseHandle) {
        let schema = corvid_data::Arc::new(server_db::schema().unwrap());
        let options = Options {
            id: DatabaseId(1),
            model: Model::standalone(),
            file: None,
            column_diff: true,
            history: true,
            recorded: corvid_service::once::RecordedCommits::default(),
        };
        let uuids = Box::new(RandomUuids::new().unwrap());
        let locks = Arc::default();
        let database = Database::new(schema, corvid_data::HashSeed::FIXED);
        let epochs = SchemaEpochs::default();
        let service = DatabaseService::new(read_clock(), options, database, locks, epochs, uuids);
        let poll = mio::Poll::new().unwrap();
        let main = MainHandle {
            events: crossbeam_channel::unbounded().0,
            lines_dropped: Arc::default(),
            waker: Arc::new(mio::Waker::new(poll.registry(), mio::Token(0)).unwrap()),
        };
        let shards: Shards<ShardMessage> = Shards::prepare(1).unwrap();
        let pump = Pump::new(service);
        let effects = Effects {
            storage: None,
            upstream: None,
            shown_index: None,
            job_threads: JobThreads::new(
                ReplySender(Weak::new()),
                Arc::default(),
                None,
                shards.handles().to_vec(),
                Jobs::default(),
                "D".to_owned(),
            )
            .unwrap(),
            shards: shards.handles().to_vec(),
            main,
            audit: AuditSlot::default(),
            liveness: Liveness::default(),
            figures: Switched::new(
                Arc::new(DatabaseFigures::new(Weak::new())),
                &Switch::default(),
            ),
            recorder: None,
            batch: BatchState::default(),
        };
        let driver = Driver { pump, effects };
        let mailbox = Mailbox::new();
        let handle = DatabaseHandle::new(Arc::new(Mutex::new(driver)), mailbox.sender());
        (mailbox, handle)
    }

    fn request(operations: &str) -> ToDatabase {
        request_of(1, operations)
    }

    fn request_of(connection: u64, operations: &str) -> ToDatabase {
        let frame = format!("[\"_Server\",{operations}]").into_bytes();
        ToDatabase::Request(Box::new(Request {
            session: corvid_service::frontend::session_id(0, connection),
            info: Arc::new(SessionInfo::new(false, String::new(), None)),
            arrived_ms: 0,
            stamp: 0,
            id: (*b"0").into(),
            method: DatabaseMethod::Transact,
            params: 0..frame.len(),
            frame,
            seqno: None,
            blocked: false,
            foreign_monitors: Vec::new(),
            once: None,
            client: None,
        }))
    }

    fn insert(name: usize) -> String {
        format!(
            r#"{{"op":"insert","table":"Database","row":{{"name":"{name}","model":"standalone"}}}}"#
        )
    }

    fn rows(driver: &Mutex<Driver>) -> usize {
        let driver = lock(driver);
        let database = driver.pump.service().database();
        database.row_count(database.schema().table_id("Database").unwrap())
    }

    #[test]
    fn inline_execution_ends_before_the_first_input_that_is_too_long() {
        let (_mailbox, handle) = database();
        let mut many = (0..500).map(|name| request(&insert(name))).collect();
        let mut driver = lock(&handle.driver);
        assert!(driver.work_inline(&mut many, &mut WorkBudget::unlimited()));
        drop(driver);
        assert_eq!(rows(&handle.driver), 500);

        let long = r#"{"op":"select","table":"Database","where":[]}"#;
        let mut inputs = vec![request(&insert(500)), request(long), request(&insert(501))];
        let done = lock(&handle.driver).work_inline(&mut inputs, &mut WorkBudget::new(400));
        assert!(!done && inputs.len() == 2, "the long one and its successor");
        assert_eq!(rows(&handle.driver), 501);
        let closed = ToDatabase::Closed(corvid_service::frontend::session_id(0, 1));
        let mut inputs = vec![closed];
        let mut driver = lock(&handle.driver);
        assert!(!driver.work_inline(&mut inputs, &mut WorkBudget::unlimited()));
        assert!(matches!(inputs.as_slice(), [ToDatabase::Closed(_)]));
    }

    #[test]
    fn a_batch_ends_only_before_a_long_transaction() {
        let (_mailbox, handle) = database();
        let mut driver = lock(&handle.driver);
        // Returns whether the second input of a batch is left for the next batch.
        let mut is_long = |input| {
            let comment = request(r#"{"op":"comment","comment":"first"}"#);
            let mut inputs = [comment, input].into_iter();
            let is_left = driver.work(&mut inputs);
            if is_left {
                assert!(!driver.work(&mut inputs), "the next batch executes it");
            }
            is_left
        };
        for name in 0..2000 {
            assert!(!is_long(request(&insert(name))));
        }
        let long = r#"{"op":"update","table":"Database","where":[],"row":{"model":"clustered"}}"#;
        assert!(is_long(request(long)), "many rows");
        let comment = format!(
            r#"{{"op":"comment","comment":"{}"}}"#,
            "x".repeat(1_000_000)
        );
        assert!(is_long(request(&comment)), "many bytes");
        let select = r#"{"op":"select","table":"Database","where":[]}"#;
        assert!(!is_long(request(select)), "only its result is long");
        let closed = ToDatabase::Closed(corvid_service::frontend::session_id(0, 1));
        assert!(!is_long(closed));
        drop(driver);
        assert_eq!(rows(&handle.driver), 2000);
    }

    #[test]
    fn a_holder_finds_the_database_unlocked_by_the_one_before() {
        const SHARDS: u64 = 4;
        const EACH: u64 = 40_000;
        fn unlocked(driver: &Mutex<Driver>) -> MutexGuard<'_, Driver> {
            driver.try_lock().expect("the last holder has unlocked it")
        }
        let (mailbox, handle) = database();
        let driver = handle.driver.clone();
        let shards: Vec<_> = (0..SHARDS)
            .map(|shard| {
                let handle = handle.clone();
                std::thread::spawn(move || {
                    for number in 0..EACH {
                        let comment = r#"{"op":"comment","comment":"x"}"#;
                        let mut inputs = vec![request_of(shard * EACH + number, comment)];
                        handle.send_or_execute_with(&mut inputs, unlocked);
                        assert!(inputs.is_empty());
                    }
                })
            })
            .collect();
        drop(handle);
        let (mut arrived, mut deadline_ms) = (Vec::new(), None);
        while mailbox.receive(&mut arrived, deadline_ms) {
            let mut driver = unlocked(&driver);
            let mut inputs = arrived.drain(..);
            while driver.work(&mut inputs) {}
            deadline_ms = driver.deadline_ms();
        }
        for shard in shards {
            shard.join().unwrap();
        }
    }

    #[test]
    fn shards_and_thread_execute_every_request_once() {
        let (mailbox, handle) = database();
        let driver = handle.driver.clone();
        let thread = DatabaseThread {
            driver: driver.clone(),
            mailbox,
            label: String::new(),
        };
        let thread = std::thread::spawn(|| thread.run());
        let shards: Vec<_> = (0..4)
            .map(|shard| {
                let handle = handle.clone();
                std::thread::spawn(move || {
                    for number in 0..250 {
                        let long =
                            r#"{"op":"select","table":"Database","where":[["name","!=","0"]]}"#;
                        // Each request has its own session: nothing is read here, and a session is
                        // blocked after one MiB of unread replies.
                        let name = 1000 * shard + number;
                        let mut inputs = vec![request_of(name as u64, &insert(name))];
                        if number % 16 == 0 {
                            inputs.push(request_of(name as u64, long));
                        }
                        handle.send_or_execute(&mut inputs);
                        assert!(inputs.is_empty());
                    }
                })
            })
            .collect();
        drop(handle);
        for shard in shards {
            shard.join().unwrap();
        }
        thread.join().unwrap();
        assert_eq!(rows(&driver), 1000);
    }
}
