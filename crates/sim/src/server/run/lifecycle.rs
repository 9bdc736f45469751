//! The server's starts and ends: the effects of a crash, reading the file afterwards, and the
//! content that it must have.

use corvid_monitor::{SessionId, Version};

use super::{CLIENTS, CrashRun, Schemas};
use crate::server::client::Client;
use crate::server::history::Observation;
use crate::server::machine::{Machine, SeededUuids};
use crate::server::opening::{self, Opened, Refusal};
use crate::server::workload::{self, Content};
use crate::world::dice::Dice;
use crate::world::disk::{Crash, Troubles};

impl CrashRun {
    pub(super) fn reconnect(&mut self, client: usize) {
        let session = self.clients[client].session;
        self.machine().disconnect(session);
        self.replace(client);
    }

    /// Connects a new client to replace one whose session has ended.
    pub(super) fn replace(&mut self, client: usize) {
        let version = *self
            .dice
            .pick(&[Version::V1, Version::V2, Version::V3, Version::V3]);
        let session = self.machine().connect();
        let fresh = Client::new(session, version, None);
        let earlier = std::mem::replace(&mut self.clients[client], fresh);
        for number in earlier.open_transactions() {
            self.history.orphaned(number);
        }
        let mut new = Client::new(session, version, Some(earlier));
        new.begin(&mut self.next_id);
        self.clients[client] = new;
    }

    pub(super) fn start(&mut self, look: Observation) -> Result<(), String> {
        let Some(opened) = self.open(look)? else {
            return Ok(());
        };
        if self.is_over {
            return Ok(());
        }
        let file = self.disk.open();
        let seed = self.dice.draw();
        let now = self.now();
        self.machine = Some(Machine::start(now, seed, &self.disk, file, opened, true));
        let clients = std::mem::take(&mut self.clients);
        if clients.is_empty() {
            let nobody = || Client::new(SessionId(0), Version::V1, None);
            self.clients = (0..CLIENTS).map(|_| nobody()).collect();
        } else {
            self.clients = clients;
        }
        for client in 0..CLIENTS {
            self.replace(client);
        }
        Ok(())
    }

    /// Reads the file and checks its content. Returns `None` if a file that has rotted is refused,
    /// which ends the run.
    fn open(&mut self, look: Observation) -> Result<Option<Opened>, String> {
        let opened = match self.read()? {
            Ok(opened) => opened,
            // A power loss has brought back bytes that rotted in an earlier life.
            Err(_) if self.disk.is_rotten() => {
                self.is_over = true;
                return Ok(None);
            }
            Err(refusal) => return Err(format!("a crash is taken for rot: {refusal}")),
        };
        self.check_opened(&opened, look)?;
        let content = Content::of(&opened.database);
        if look == Observation::PowerLost && !self.was_synced {
            self.history.unhide(&content);
        }
        let kept = self.history.check(&content, look)?;
        self.history.restarted(kept, self.crash);
        let is_first = self.lives == 0;
        self.lives += 1;
        if is_first || !self.weather.rots || !self.dice.chance(30) {
            return Ok(Some(opened));
        }
        self.rot(opened).map(Some)
    }

    /// Flips a bit of the file before the server starts.
    fn rot(&mut self, healthy: Opened) -> Result<Opened, String> {
        let first_record = first_record(&self.disk.bytes());
        let Some((rotten, bit)) = self.disk.rot(first_record) else {
            return Ok(healthy);
        };
        let opened = match self.read()? {
            Ok(opened) => opened,
            Err(refusal) => {
                let refused = format!("refused: {refusal}");
                self.trace.line(format_args!("{refused}"));
                // The operator restores the file.
                self.disk.flip(rotten, bit);
                let opened = self.read()?.map_err(|refusal| refusal.to_string())?;
                if Content::of(&opened.database) != Content::of(&healthy.database) {
                    return Err(format!("{refused}, and the restored file differs"));
                }
                return Ok(opened);
            }
        };
        if opened.state.records < 2 && healthy.state.records > 1 {
            return Err(format!("byte {rotten} has rotted, and all rows are gone"));
        }
        let content = Content::of(&opened.database);
        let rotten_record = opened.damage.as_ref();
        match rotten_record.filter(|damage| damage.record < healthy.state.records) {
            None if content != Content::of(&healthy.database) => {
                return Err(format!("byte {rotten} has rotted and was not detected"));
            }
            Some(damage) if damage.offset > rotten as u64 => {
                return Err(format!(
                    "byte {rotten} has rotted, and {damage:?} was found"
                ));
            }
            Some(damage) => {
                let lost = healthy.state.records - damage.record - 1 + healthy.records_behind;
                if opened.records_behind < lost {
                    return Err(format!(
                        "of {lost} whole records behind {damage:?} only {} would be saved",
                        opened.records_behind
                    ));
                }
            }
            None => {}
        }
        if content == Content::default() {
            self.is_over = true;
            return Ok(opened);
        }
        self.check_opened(&opened, Observation::Rotten)?;
        let kept = self.history.check(&content, Observation::Rotten)?;
        self.history.restarted(kept, self.crash);
        Ok(opened)
    }

    /// Opens the file, and repeats failed reads. The inner error says that the file is refused
    /// because it has rotted.
    fn read(&mut self) -> Result<Result<Opened, Refusal>, String> {
        let mut troubles = Troubles::default();
        if self.weather.has_read_errors && self.dice.chance(50) {
            troubles.read = 30;
        }
        self.disk.set_troubles(troubles);
        let opened = loop {
            let file = self.disk.open();
            let mut uuids = SeededUuids(Dice::new(self.dice.draw()));
            match opening::open(&file, self.hash_seed, &mut uuids) {
                Ok(opened) => break opened,
                Err(Refusal::Unreadable(_)) if troubles.read > 0 => troubles.read = 0,
                Err(refusal @ Refusal::Rotten(..)) => {
                    self.disk.set_troubles(Troubles::default());
                    return Ok(Err(refusal));
                }
                Err(refusal) => return Err(format!("the file does not open: {refusal}")),
            }
            self.disk.set_troubles(troubles);
        };
        self.disk.set_troubles(Troubles::default());
        let damage = opened.damage.as_ref().map(|damage| damage.report("a.db"));
        self.trace.line(format_args!(
            "opened, {} records, damage: {damage:?}, behind it {}",
            opened.state.records, opened.records_behind
        ));
        self.summary.damages += u64::from(damage.is_some());
        Ok(Ok(opened))
    }

    fn check_opened(&mut self, opened: &Opened, look: Observation) -> Result<(), String> {
        opened.database.check_invariants()?;
        let is_wide = workload::is_wide(opened.database.schema());
        let Schemas {
            is_wide: known,
            asked,
            earlier,
        } = self.schemas;
        if is_wide != known && asked != Some(is_wide) && earlier != Some(is_wide) {
            return Err(format!("the schema is wide: {is_wide}, and must not be"));
        }
        // The new file of a killed process may have its name without a directory sync.
        let is_new = asked == Some(is_wide) && is_wide != known;
        self.schemas = Schemas {
            is_wide,
            asked: None,
            earlier: match self.crash {
                Crash::Kill if is_new => Some(known),
                Crash::Kill => earlier,
                Crash::PowerLoss => None,
            },
        };
        if look == Observation::Killed {
            let content = Content::of(&opened.database);
            for client in &self.clients {
                if let Some(lost) = client.shown_transactions().difference(&content.txns).next() {
                    return Err(format!(
                        "transaction {lost} was visible to a client and is lost by a kill"
                    ));
                }
            }
        }
        Ok(())
    }

    /// Removes the database while no client is connected. The operator requests compactions,
    /// removes the database at a random step, then serves the file again. Every command must be
    /// answered before the database is removed, and no rewrite may remain.
    pub(super) fn remove(&mut self) -> Result<(), String> {
        self.run_until_idle()?;
        for client in 0..CLIENTS {
            let session = self.clients[client].session;
            self.machine().disconnect(session);
        }
        for _ in 0..self.dice.below(3) {
            self.compact();
        }
        self.draw_troubles();
        if self.dice.chance(20) {
            self.plan_crash(40);
        }
        let steps = self.dice.below(30);
        for _ in 0..steps {
            if self.disk.is_down() || !self.step()? {
                break;
            }
        }
        if self.disk.is_down() {
            return self.restart();
        }
        self.trace.line(format_args!("remove"));
        self.machine().remove();
        let mut was_removed = false;
        while self.step()? {
            if self.disk.is_down() {
                return self.restart();
            }
            if self.machine().is_removed && !was_removed {
                was_removed = true;
                if !self.compactions.is_empty() {
                    let open = &self.compactions;
                    return Err(format!("removed without an answer to compactions {open:?}"));
                }
            }
        }
        if !was_removed || !self.machine().has_no_rewrite() {
            return Err(format!("removed: {was_removed}, or a rewrite is left"));
        }
        self.summary.removals += 1;
        self.crash = Crash::Kill;
        self.disk.crash();
        self.restart()
    }

    pub(super) fn restart(&mut self) -> Result<(), String> {
        self.machine = None;
        self.is_writing = false;
        self.compactions.clear();
        for client in &self.clients {
            for number in client.open_transactions() {
                self.history.orphaned(number);
            }
        }
        match self.crash {
            Crash::PowerLoss => self.summary.power_losses += 1,
            Crash::Kill => self.summary.kills += 1,
        }
        self.disk.set_troubles(Troubles::default());
        self.was_synced = self.disk.is_synced();
        let look = match self.disk.restart(self.crash) {
            Crash::PowerLoss => Observation::PowerLost,
            Crash::Kill => Observation::Killed,
        };
        self.start(look)?;
        // A crash right after the start loses most.
        if self.dice.chance(25) {
            self.plan_crash(12);
        }
        Ok(())
    }
}

/// Returns the length of the schema record and of its header line, in bytes.
fn first_record(file: &[u8]) -> usize {
    let mut lines = file.split_inclusive(|byte| *byte == b'\n');
    lines.next().map_or(0, <[u8]>::len) + lines.next().map_or(0, <[u8]>::len)
}
