//! What a database wants done, as one ordered list, and the contract of each kind of output.
//!
//! Invariant: the list is in the order in which its outputs must take effect. Whoever walks it ([`super`]) carries out one output,
//! or hands it over to a thread that will, before it asks for the next one. Nothing is skipped unless the contract says so.

use crate::audit::Entry;
use crate::job::Job;
use crate::message::{Deliver, Event};
use crate::replication::{SourceId, SourceOrder};
use corvid_log::storage::StorageRequest;

/// One thing to be done.
///
/// A batch yields, in this order: jobs, records to be stored (both again and again while answers of the disk come at once), then
/// what its inputs brought about for others:
///
/// ```text
/// Job* Store  ... Job* Store  Job*  Audit? Event* AwaitMain?  Deliver*  SourceOrder*  CloseFile?  Event*
/// ```
///
/// Where composing updates may take long, everything behind the last `Store` comes twice, with [`Output::Flush`] between.
#[derive(Debug)]
pub enum Output {
    /// Have this done by another thread, and send what came of it to the database as an input. It is ordered before the next
    /// [`Output::Store`] is carried out: an update may be written while its record is. [`Job::Free`] and [`Job::PrecomputedUpdate`] may be
    /// dropped; every other job is done, in the order of its thread.
    Job(Job),
    /// Carry these orders to the file out, in order, before anything that follows: no answer may leave before its record is
    /// written. Answers that are there at once are handed to [`super::Pump::stored`] before the next output is asked for; others
    /// are inputs of a later batch. Ordinary records among them may be written with one write. Nobody skips this.
    Store(Vec<StorageRequest>),
    /// Append this to the audit trail before the answers that it is about, which follow, are posted. Skipped where there is no trail.
    Audit(Vec<Entry>),
    /// Post this to the main thread. Events about followed columns come before the deliveries of the same commit, all others
    /// behind every delivery of the batch: what the main thread makes of them, closing sessions above all, comes after what those
    /// sessions are sent.
    Event(Event),
    /// Wait until the main thread has taken care of all events so far, for a limited time: a client that gets a commit's reply can
    /// already connect to the remotes that the commit added. Skipped by a holder whose main thread acts in turn with it, if its
    /// clients do not rely on that.
    AwaitMain,
    /// Post this to the shard of its session. Deliveries for one session stay in order, across batches too. Several may be posted
    /// together, as long as they are posted before any output of another kind is carried out.
    Deliver(Deliver),
    /// Send this to the connection, with this number, to what a backup follows.
    SourceOrder(SourceId, u64, SourceOrder),
    /// Post all deliveries so far before asking for the next output: composing updates for it may take long. A holder that posts
    /// each delivery at once skips this.
    Flush,
    /// Close the file. [`Event::Removed`] follows, and whoever hears of it may open the file again.
    CloseFile,
}
