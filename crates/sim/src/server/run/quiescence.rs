//! Quiescence: all faults end, every request gets its reply, and the final state is checked.

use std::collections::BTreeMap;

use super::CrashRun;
use crate::server::client::{Client, LOCKS};
use crate::server::history::Observation;
use crate::server::machine::SeededUuids;
use crate::server::opening;
use crate::server::workload::{Content, Txn};
use crate::world::dice::Dice;
use crate::world::disk::Troubles;

/// Maximum number of steps until the run is idle, once nothing fails any longer.
const STEPS_MAX: usize = 20_000;

impl CrashRun {
    /// Ends all faults, runs until nothing more happens, and checks the final state.
    pub(super) fn run_until_idle(&mut self) -> Result<(), String> {
        self.trace.line(format_args!("run until idle"));
        self.disk.set_troubles(Troubles::default());
        self.disk.stay_up();
        for client in &mut self.clients {
            client.is_stalled = false;
        }
        self.rest()?;
        let is_well = self.probe()?;
        if !is_well {
            let failures = self.disk.failures();
            if failures.syncs == 0 && failures.directory_syncs == 0 {
                return Err("there is room again, and nothing is accepted".to_owned());
            }
            // After a failed sync a new file is necessary, and sufficient.
            self.compact();
            self.rest()?;
            if !self.probe()? {
                return Err("nothing can be stored although the disk is well".to_owned());
            }
        }
        self.check_rest()
    }

    /// Stores a durable transaction. Returns false if that fails.
    fn probe(&mut self) -> Result<bool, String> {
        let number = self.next_txn;
        self.transact(0, Txn::plain(number));
        self.rest()?;
        let is_stored = !self.history.is_void(number);
        if is_stored {
            // The transaction is durable, and so is the name of its file.
            self.schemas.earlier = None;
        }
        Ok(is_stored)
    }

    fn rest(&mut self) -> Result<(), String> {
        for _ in 0..STEPS_MAX {
            if self.step()? {
                if self.disk.is_down() {
                    return Err("the machine goes down by itself".to_owned());
                }
                continue;
            }
            let is_content = self.clients.iter().all(Client::is_content);
            if is_content && self.compactions.is_empty() {
                return Ok(());
            }
            let now = self.now();
            match self.machine().next_deadline_ms(now) {
                Some(deadline) => self.now_ms = deadline.max(now.mono_ms + 1),
                None => break,
            }
        }
        let open: BTreeMap<usize, Vec<String>> = self
            .clients
            .iter()
            .map(Client::open_requests)
            .enumerate()
            .collect();
        Err(format!(
            "no rest: open requests {open:?}, compactions {:?}",
            self.compactions
        ))
    }

    fn check_rest(&mut self) -> Result<(), String> {
        let machine = self.machine.as_ref().expect("it is up");
        let database = machine.service().database();
        database.check_invariants()?;
        let mut uuids = SeededUuids(Dice::new(1));
        if let Ok(file) = opening::open(&self.disk.open(), self.hash_seed, &mut uuids) {
            machine.service().check_recorded(&file.recorded)?;
        }
        self.history
            .check(&Content::of(database), Observation::Alive)?;
        for (number, client) in self.clients.iter().enumerate() {
            client
                .check_replica(&self.view, database)
                .map_err(|problem| format!("client {number}: {problem}"))?;
            for lock in LOCKS {
                let owns = machine.owns(client.session, lock);
                if owns != client.owned.contains(lock) {
                    return Err(format!("client {number} owns {lock}: {owns}"));
                }
            }
        }
        Ok(())
    }
}
