//! A disk that tears, reorders and loses unsynced bytes, fails on demand, and goes down in the
//! middle of any operation.
//!
//! One directory with the database's file and the temporary file next to it. Names are as volatile
//! as bytes: how many unsynced renames survive a power loss, in their order, is drawn independently
//! of the bytes. Every draw follows from the seed. Operations take time of the disk's own clock.
//! The disk also checks its users: nothing may be written to a file after a failed sync, and the
//! holder of a database may only write, and only while the disk thread has shown that writes are
//! quick.

mod history;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use corvid_log::storage::QUICK_WRITES_MIN;
use corvid_log::{Disk, DiskFile, Fault};

use self::history::Folder;
use super::inode::Inode;
use super::trace::Trace;
use crate::world::dice::Dice;

/// How the server goes down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crash {
    /// Power is lost: any part of the unsynced bytes may survive.
    PowerLoss,
    /// The process is killed: bytes handed to the kernel survive.
    Kill,
}

/// Moments at which a crash is most likely to reveal a bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// A rename has not been synced yet.
    Rename,
    /// An operation has failed, and its remains are being cut off.
    Failure,
}

/// The thread that calls the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// A thread that may wait.
    Anyone,
    /// The holder of the database, on which many clients wait.
    Holder,
    /// The disk thread, which may wait.
    DiskThread,
}

/// Duration of a normal write, ns. A slow write takes one of the durations below.
const WRITE_NS: u64 = 5_000;
const SLOW_WRITES_NS: [u64; 3] = [6_000_000, 100_000_000, 2_000_000_000];

/// Duration of any other operation, ns.
const OTHER_NS: u64 = 2_000_000;

/// Failure rates, in percent of the operations of each kind.
#[derive(Clone, Copy, Debug, Default)]
pub struct Troubles {
    /// Reading.
    pub read: usize,
    /// Writing; a part may be written nevertheless.
    pub write: usize,
    /// Writes that succeed slowly.
    pub slow: usize,
    /// Cutting.
    pub cut: usize,
    /// Syncing a file.
    pub sync: usize,
    /// Syncing the directory.
    pub directory: usize,
    /// Creating and renaming.
    pub name: usize,
    /// Maximum bytes of all files together.
    pub capacity: Option<usize>,
}

/// Failure counters; they only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Failures {
    /// Failed syncs of files.
    pub syncs: u64,
    /// Failed syncs of the directory.
    pub directory_syncs: u64,
    /// Failed cuts.
    pub cuts: u64,
}

/// Write counters; they only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Writes {
    /// Inline writes, by the holder of the database.
    pub inline: u64,
    /// Inline writes that failed.
    pub inline_failures: u64,
    /// Slow writes.
    pub slow: u64,
}

/// The file to which each name leads.
#[derive(Clone, Copy, Debug)]
struct Names {
    database: u64,
    temporary: Option<u64>,
    received: Option<u64>,
}

#[derive(Debug)]
struct Platter {
    inodes: BTreeMap<u64, Inode>,
    names: Names,
    lasting_names: Names,
    /// The names after each unsynced change.
    unsynced_names: Vec<Names>,
    folder: Folder,
    next_inode: u64,
    dice: Dice,
    trace: Trace,
    troubles: Troubles,
    failures: Failures,
    now_ns: u64,
    caller: Caller,
    /// Number of quick writes by the disk thread since the last slow or failed one. Initially the
    /// disk counts as slow.
    quick_writes: u32,
    writes: Writes,
    /// Number of operations until the crash.
    crash_in: Option<u64>,
    /// Crash shortly after this event.
    crash_after: Option<Moment>,
    is_down: bool,
    operations: u64,
    /// The first rule that a user of the disk broke.
    offence: Option<String>,
}

/// A simulated disk; clones share it.
#[derive(Clone, Debug)]
pub struct SimDisk(Arc<Mutex<Platter>>);

/// An open file.
#[derive(Debug)]
pub struct Handle {
    disk: SimDisk,
    inode: u64,
}

impl SimDisk {
    /// A disk whose database file holds `bytes`, synced.
    #[must_use]
    pub fn new(seed: u64, trace: Trace, bytes: Vec<u8>) -> SimDisk {
        let names = Names {
            database: 0,
            temporary: None,
            received: None,
        };
        SimDisk(Arc::new(Mutex::new(Platter {
            inodes: BTreeMap::from([(0, Inode::lasting(bytes))]),
            names,
            lasting_names: names,
            unsynced_names: Vec::new(),
            folder: Folder::default(),
            next_inode: 1,
            dice: Dice::new(seed),
            trace,
            troubles: Troubles::default(),
            failures: Failures::default(),
            now_ns: 0,
            caller: Caller::Anyone,
            quick_writes: 0,
            writes: Writes::default(),
            crash_in: None,
            crash_after: None,
            is_down: false,
            operations: 0,
            offence: None,
        })))
    }

    /// Opens the database's file.
    #[must_use]
    pub fn open(&self) -> Handle {
        let mut platter = self.lock();
        let inode = platter.names.database;
        platter.handle(self, inode)
    }

    /// Sets the failure rates from now on.
    pub fn set_troubles(&self, troubles: Troubles) {
        let mut platter = self.lock();
        platter
            .trace
            .line(format_args!("disk: troubles {troubles:?}"));
        platter.troubles = troubles;
    }

    /// Sets the calling thread from now on.
    pub fn is_called_by(&self, caller: Caller) {
        self.lock().caller = caller;
    }

    /// Makes the disk count as quick until the first slow write.
    pub fn presume_quick(&self) {
        self.lock().quick_writes = QUICK_WRITES_MIN;
    }

    /// Bytes of all files that have a name or are open.
    #[must_use]
    pub fn used(&self) -> usize {
        self.lock().used()
    }

    /// Failures so far.
    #[must_use]
    pub fn failures(&self) -> Failures {
        self.lock().failures
    }

    /// How records have been written so far.
    #[must_use]
    pub fn writes(&self) -> Writes {
        self.lock().writes
    }

    /// Makes the disk go down in the `operations`-th operation from now, at the earliest in the
    /// next one.
    pub fn crash_in(&self, operations: u64) {
        self.lock().crash_in = Some(operations.max(1));
    }

    /// Makes the disk go down shortly after the next event of this kind.
    pub fn crash_after(&self, moment: Moment) {
        self.lock().crash_after = Some(moment);
    }

    /// Cancels a planned crash.
    pub fn stay_up(&self) {
        let mut platter = self.lock();
        platter.crash_in = None;
        platter.crash_after = None;
    }

    /// Makes the disk go down now, between operations.
    pub fn crash(&self) {
        self.lock().is_down = true;
    }

    /// Whether the disk is down.
    #[must_use]
    pub fn is_down(&self) -> bool {
        self.lock().is_down
    }

    /// Number of operations so far.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.lock().operations
    }

    /// The first rule that a user of the disk broke, if any.
    #[must_use]
    pub fn offence(&self) -> Option<String> {
        self.lock().offence.clone()
    }

    /// Restarts the disk after a crash; every handle must be closed. Returns the kind of crash as
    /// the next process sees it: if a sync failed before the process was killed, bytes that the
    /// kernel counts as clean may be lost, as after a power loss.
    pub fn restart(&self, crash: Crash) -> Crash {
        let mut platter = self.lock();
        let platter = &mut *platter;
        platter.is_down = false;
        platter.crash_in = None;
        platter.crash_after = None;
        platter.quick_writes = 0;
        let mut seen = crash;
        match crash {
            Crash::PowerLoss => {
                let changes = platter.unsynced_names.len();
                let survived = platter.dice.below(changes + 1);
                if survived > 0 {
                    platter.lasting_names = platter.unsynced_names[survived - 1];
                }
                platter.names = platter.lasting_names;
                platter.unsynced_names.clear();
                platter.folder.lose_power(&mut platter.dice);
                for inode in platter.inodes.values_mut() {
                    inode.lose_power(&mut platter.dice);
                }
                platter.trace.line(format_args!(
                    "disk: power is back, {survived} of {changes} names survived"
                ));
            }
            Crash::Kill => {
                for (number, inode) in &mut platter.inodes {
                    if !inode.is_doubtful {
                        continue;
                    }
                    if platter.dice.chance(50) {
                        inode.drop_cache();
                        if *number == platter.names.database {
                            seen = Crash::PowerLoss;
                        }
                    } else {
                        inode.recover();
                    }
                }
                platter.trace.line(format_args!("disk: killed"));
            }
        }
        let (names, lasting) = (platter.names, platter.lasting_names);
        let unsynced = platter.unsynced_names.clone();
        let folder = &platter.folder;
        platter.inodes.retain(|number, inode| {
            assert_eq!(inode.handles, 0, "a dead process holds files");
            names.holds(*number)
                || lasting.holds(*number)
                || folder.holds(*number)
                || unsynced.iter().any(|names| names.holds(*number))
        });
        seen
    }

    /// Flips a random bit of the database's file, at or after `from`. Returns the byte's offset and
    /// the bit.
    pub fn rot(&self, from: usize) -> Option<(usize, usize)> {
        let mut platter = self.lock();
        let platter = &mut *platter;
        let inode = platter.inodes.get_mut(&platter.names.database)?;
        let room = inode.bytes().len().checked_sub(from).filter(|n| *n > 0)?;
        let position = from + platter.dice.below(room);
        let bit = platter.dice.below(8);
        inode.flip(position, bit);
        platter
            .trace
            .line(format_args!("disk: byte {position} has rotted"));
        Some((position, bit))
    }

    /// Flips this bit of the database's file.
    pub fn flip(&self, position: usize, bit: usize) {
        let mut platter = self.lock();
        let platter = &mut *platter;
        if let Some(inode) = platter.inodes.get_mut(&platter.names.database) {
            inode.flip(position, bit);
        }
    }

    /// Whether the medium holds every byte of the database's file, and its name durably leads to
    /// it.
    #[must_use]
    pub fn is_synced(&self) -> bool {
        let platter = self.lock();
        if platter.names.database != platter.lasting_names.database {
            return false;
        }
        let inode = platter.inodes.get(&platter.names.database);
        inode.is_none_or(Inode::is_synced)
    }

    /// The content of the database's file.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let platter = self.lock();
        let inode = platter.inodes.get(&platter.names.database);
        inode.map_or_else(Vec::new, |inode| inode.bytes().to_vec())
    }

    /// The part of the database's file that no crash can lose.
    #[must_use]
    pub fn lasting_bytes(&self) -> Vec<u8> {
        let platter = self.lock();
        let inode = platter.inodes.get(&platter.lasting_names.database);
        inode.map_or_else(Vec::new, |inode| inode.lasting_bytes().to_vec())
    }

    /// Like [`SimDisk::lasting_bytes`], before any of the bytes rotted.
    #[must_use]
    pub fn intact_lasting_bytes(&self) -> Vec<u8> {
        let platter = self.lock();
        let inode = platter.inodes.get(&platter.lasting_names.database);
        inode.map_or_else(Vec::new, Inode::intact_lasting_bytes)
    }

    /// Whether bits have flipped in the database's file, either the present one or the one that a
    /// power loss would bring back.
    #[must_use]
    pub fn is_rotten(&self) -> bool {
        let platter = self.lock();
        let names = [platter.names.database, platter.lasting_names.database];
        let inodes = names.iter().filter_map(|name| platter.inodes.get(name));
        inodes.into_iter().any(|inode| inode.is_rotten)
    }

    /// Sets the content of the database's file, on the medium too: syncs have lied, or an operator
    /// has restored a copy. Nobody may have it open.
    pub fn put_back(&self, bytes: Vec<u8>) {
        let mut platter = self.lock();
        let platter = &mut *platter;
        platter.lasting_names = platter.names;
        platter.unsynced_names.clear();
        platter.folder.begin_anew();
        platter
            .inodes
            .insert(platter.names.database, Inode::lasting(bytes));
        platter.free();
    }

    /// Creates an empty file; `name` names it.
    fn create(&self, what: &str, name: impl FnOnce(&mut Names, u64)) -> Result<Handle, Fault> {
        let mut platter = self.lock();
        let trouble = platter.troubles.name;
        let fate = platter.begin(format_args!("{what}"), trouble)?;
        if fate == Fate::Failed {
            return Err(fault(EIO));
        }
        let inode = platter.next_inode;
        platter.next_inode += 1;
        platter.inodes.insert(inode, Inode::default());
        let handle = platter.handle(self, inode);
        let mut names = platter.names;
        name(&mut names, inode);
        platter.rename(names);
        drop(platter);
        if fate == Fate::Down {
            return Err(fault(EIO));
        }
        Ok(handle)
    }

    /// Removes a name.
    fn remove(&self, what: &str, name: impl FnOnce(&mut Names)) {
        let mut platter = self.lock();
        if platter.begin(format_args!("{what}"), 0).is_ok() {
            let mut names = platter.names;
            name(&mut names);
            platter.rename(names);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Platter> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The outcome drawn for an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Done,
    /// The operation fails.
    Failed,
    /// The machine goes down during the operation.
    Down,
}

const EIO: i32 = 5;
const ENOSPC: i32 = 28;

impl Platter {
    /// Draws the outcome of an operation that may block; the holder of a database must not call it.
    ///
    /// # Errors
    /// The disk is down.
    fn begin(&mut self, what: fmt::Arguments<'_>, trouble: usize) -> Result<Fate, Fault> {
        self.may_block(what);
        self.decide(what, trouble)
    }

    fn may_block(&mut self, what: fmt::Arguments<'_>) {
        if self.caller == Caller::Holder {
            let offence = format!("{what}, called by the holder of the database");
            self.offence.get_or_insert(offence);
        }
        self.now_ns += OTHER_NS;
    }

    /// Draws the outcome of an operation.
    ///
    /// # Errors
    /// The disk is down.
    fn decide(&mut self, what: fmt::Arguments<'_>, trouble: usize) -> Result<Fate, Fault> {
        if self.is_down {
            return Err(fault(EIO));
        }
        self.operations += 1;
        self.is_down = self.crash_in == Some(1);
        self.crash_in = self.crash_in.map(|left| left.saturating_sub(1));
        let fate = if self.is_down {
            Fate::Down
        } else if trouble > 0 && self.dice.chance(trouble) {
            Fate::Failed
        } else {
            Fate::Done
        };
        self.trace.line(format_args!("disk: {what} {fate:?}"));
        if fate == Fate::Failed {
            self.reached(Moment::Failure);
        }
        Ok(fate)
    }

    fn reached(&mut self, moment: Moment) {
        if self.crash_after == Some(moment) {
            self.crash_after = None;
            self.crash_in = Some(1 + self.dice.below(5) as u64);
        }
    }

    fn handle(&mut self, disk: &SimDisk, inode: u64) -> Handle {
        if let Some(inode) = self.inodes.get_mut(&inode) {
            inode.handles += 1;
        }
        Handle {
            disk: disk.clone(),
            inode,
        }
    }

    fn inode(&mut self, number: u64) -> &mut Inode {
        self.inodes.entry(number).or_default()
    }

    fn rename(&mut self, names: Names) {
        self.names = names;
        self.unsynced_names.push(names);
        self.free();
    }

    /// Drops files that have no name, now or after a crash, and no open handle.
    fn free(&mut self) {
        let (names, lasting) = (self.names, self.lasting_names);
        let (unsynced, folder) = (&self.unsynced_names, &self.folder);
        self.inodes.retain(|number, inode| {
            inode.handles > 0
                || folder.holds(*number)
                || names.holds(*number)
                || lasting.holds(*number)
                || unsynced.iter().any(|names| names.holds(*number))
        });
    }

    /// How many bytes of a failed write reached the file: any number, but often whole slices.
    fn part(&mut self, slices: &[&[u8]]) -> usize {
        let mut whole = slices.iter().map(|slice| slice.len());
        if self.dice.chance(50) {
            let count = self.dice.below(slices.len() + 1);
            whole.take(count).sum()
        } else {
            let length: usize = whole.by_ref().sum();
            self.dice.below(length + 1)
        }
    }

    fn write(&mut self, number: u64, offset: usize, slices: &[&[u8]]) -> Result<(), Fault> {
        let bytes = &slices.concat()[..];
        if self.inode(number).is_doubtful && !self.is_down {
            let offence = format!("file {number} is written after a failed sync");
            self.offence.get_or_insert(offence);
        }
        let what = format_args!("write {} bytes at {offset} of file {number}", bytes.len());
        if self.caller == Caller::Holder && self.quick_writes < QUICK_WRITES_MIN {
            let offence =
                format!("{what}, called by the holder of the database while the disk is slow");
            self.offence.get_or_insert(offence);
        }
        self.writes.inline += u64::from(self.caller == Caller::Holder);
        let is_slow = self.troubles.slow > 0 && self.dice.chance(self.troubles.slow);
        self.now_ns += match is_slow {
            true => *self.dice.pick(&SLOW_WRITES_NS),
            false => WRITE_NS,
        };
        self.writes.slow += u64::from(is_slow);
        let fate = self.decide(what, self.troubles.write)?;
        let is_of_database = number == self.names.database;
        let used = self.used();
        let end = offset + bytes.len();
        let growth = end.saturating_sub(self.inode(number).bytes().len());
        let room = self
            .troubles
            .capacity
            .map_or(usize::MAX, |capacity| capacity.saturating_sub(used));
        let (kept, outcome) = match fate {
            Fate::Done if growth > room => (
                bytes.len() - (growth - room).min(bytes.len()),
                Err(fault(ENOSPC)),
            ),
            Fate::Done => (bytes.len(), Ok(())),
            Fate::Failed | Fate::Down => (self.part(slices), Err(fault(EIO))),
        };
        if kept > 0 {
            self.inode(number).write(offset, &bytes[..kept]);
        }
        if fate == Fate::Done && outcome.is_err() {
            self.reached(Moment::Failure);
        }
        if outcome.is_err() && self.caller == Caller::Holder {
            self.writes.inline_failures += 1;
        }
        if is_of_database && (is_slow || outcome.is_err()) {
            self.quick_writes = 0;
        } else if is_of_database && self.caller == Caller::DiskThread {
            self.quick_writes += 1;
        }
        outcome
    }
}

impl Names {
    fn holds(self, inode: u64) -> bool {
        self.database == inode || self.temporary == Some(inode) || self.received == Some(inode)
    }
}

fn fault(code: i32) -> Fault {
    let text = match code {
        ENOSPC => "No space left on device",
        _ => "Input/output error",
    };
    Fault {
        code,
        text: text.to_owned(),
    }
}

impl Disk for SimDisk {
    type Handle = Handle;
    type History = SimDisk;

    fn history(&self) -> &SimDisk {
        self
    }

    fn shown_name(&self) -> &'static str {
        "a.db"
    }

    fn create_temporary(&self) -> Result<Handle, Fault> {
        self.create("create", |names, inode| names.temporary = Some(inode))
    }

    fn remove_temporary(&self) {
        self.remove("remove", |names| names.temporary = None);
    }

    fn create_received(&self) -> Result<Handle, Fault> {
        self.create("create for a snapshot", |names, inode| {
            names.received = Some(inode);
        })
    }

    fn remove_received(&self) {
        self.remove("remove a snapshot", |names| names.received = None);
    }

    fn put_in_place(&self) -> Result<(), Fault> {
        let mut platter = self.lock();
        let trouble = platter.troubles.name;
        let fate = platter.begin(format_args!("rename"), trouble)?;
        let Some(inode) = platter.names.temporary.filter(|_| fate != Fate::Failed) else {
            return Err(fault(EIO));
        };
        if fate == Fate::Done {
            platter.reached(Moment::Rename);
        }
        if fate == Fate::Done || platter.dice.chance(50) {
            let names = Names {
                database: inode,
                temporary: None,
                ..platter.names
            };
            platter.rename(names);
        }
        if fate == Fate::Down {
            return Err(fault(EIO));
        }
        Ok(())
    }

    fn now_ns(&self) -> u64 {
        self.lock().now_ns
    }

    fn sync_directory(&self) -> Result<(), Fault> {
        let mut platter = self.lock();
        let trouble = platter.troubles.directory;
        match platter.begin(format_args!("sync directory"), trouble)? {
            Fate::Done => {
                platter.lasting_names = platter.names;
                platter.unsynced_names.clear();
                platter.free();
                Ok(())
            }
            Fate::Failed => {
                platter.failures.directory_syncs += 1;
                Err(fault(EIO))
            }
            Fate::Down => Err(fault(EIO)),
        }
    }
}

impl DiskFile for Handle {
    fn read_at(&self, room: &mut [u8], offset: u64) -> Result<usize, Fault> {
        let mut platter = self.disk.lock();
        if platter.is_down {
            return Err(fault(EIO));
        }
        platter.may_block(format_args!("read"));
        let trouble = platter.troubles.read;
        if trouble > 0 && platter.dice.chance(trouble) {
            return Err(fault(EIO));
        }
        let bytes = platter.inode(self.inode).bytes();
        let from = usize::try_from(offset)
            .unwrap_or(usize::MAX)
            .min(bytes.len());
        let got = room.len().min(bytes.len() - from);
        room[..got].copy_from_slice(&bytes[from..from + got]);
        Ok(got)
    }

    fn write_at(&mut self, slices: &[&[u8]], offset: u64) -> Result<(), Fault> {
        let offset = usize::try_from(offset).map_err(|_| fault(EIO))?;
        self.disk.lock().write(self.inode, offset, slices)
    }

    fn length(&self) -> Result<u64, Fault> {
        let mut platter = self.disk.lock();
        if platter.is_down {
            return Err(fault(EIO));
        }
        platter.may_block(format_args!("ask for the length"));
        Ok(platter.inode(self.inode).bytes().len() as u64)
    }

    fn cut(&mut self, length: u64) -> Result<(), Fault> {
        let mut platter = self.disk.lock();
        let trouble = platter.troubles.cut;
        let fate = platter.begin(format_args!("cut file {} to {length}", self.inode), trouble)?;
        let is_done = match fate {
            Fate::Done => true,
            Fate::Failed => false,
            Fate::Down => platter.dice.chance(50),
        };
        if is_done {
            let length = usize::try_from(length).map_err(|_| fault(EIO))?;
            platter.inode(self.inode).cut(length);
        }
        if fate == Fate::Done {
            return Ok(());
        }
        platter.failures.cuts += u64::from(fate == Fate::Failed);
        Err(fault(EIO))
    }

    fn sync(&mut self) -> Result<(), Fault> {
        let mut platter = self.disk.lock();
        let trouble = platter.troubles.sync;
        match platter.begin(format_args!("sync file {}", self.inode), trouble)? {
            Fate::Done => {
                platter.inode(self.inode).sync();
                Ok(())
            }
            Fate::Failed => {
                platter.failures.syncs += 1;
                let mut dice = platter.dice.clone();
                platter.inode(self.inode).fail_sync(&mut dice);
                platter.dice = dice;
                Err(fault(EIO))
            }
            Fate::Down => Err(fault(EIO)),
        }
    }

    fn share(&self) -> Result<Handle, Fault> {
        let mut platter = self.disk.lock();
        Ok(platter.handle(&self.disk, self.inode))
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let mut platter = self.disk.lock();
        if let Some(inode) = platter.inodes.get_mut(&self.inode) {
            inode.handles -= 1;
        }
        platter.free();
    }
}
