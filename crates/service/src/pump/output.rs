//! The outputs of a database, as one ordered list, and the contract of each kind.
//!
//! Invariant: the list is in the order in which its outputs must take effect. The holder ([`super`]) carries out one output, or hands it
//! over to a thread that will, before it asks for the next one. No output is skipped unless its contract says so.

use corvid_consensus::database::MemberRequest;

use crate::audit::Entry;
use crate::job::Job;
use crate::message::{Deliver, Event};
use crate::replication::{SourceId, SourceOrder};
use crate::upstream::SourceRequest;
use corvid_log::cluster::Index;
use corvid_log::storage::StorageRequest;

/// One output.
///
/// A batch yields, in this order: jobs and records to be stored (again and again while replies of the storage come at once), then the
/// outputs for sessions and the main thread:
///
/// ```text
/// Job* Store  ... Job* Store  Applied?  Member*  Job*  Audit? Event* AwaitMain?  Deliver*  SourceOrder*  CloseFile?  Event*
/// ```
///
/// Where composing updates may take long, everything behind the last `Store` comes twice, with [`Output::PostDeliveries`] between.
#[derive(Debug)]
pub enum Output {
    /// Have another thread do this, and send the result to the database as an input. The job starts before the next [`Output::Store`] is
    /// carried out: an update may be written while its record is. [`Job::Free`] and [`Job::PrecomputedUpdate`] may be dropped; every other
    /// job is done, in the order of its thread.
    Job(Job),
    /// Carry these requests to the file out, in order, before anything that follows: no reply may leave before its record is written.
    /// Replies of the storage that come at once are given to [`super::Pump::stored`] before the next output is asked for; others are inputs
    /// of a later batch. Ordinary records among them may be written with one write. No holder skips this.
    Store(Vec<StorageRequest>),
    /// A clustered database has applied the entries through this one. Set its
    /// [`AppliedIndex`](crate::applied_index::AppliedIndex), and send `_Server` the message that
    /// this asks for, before the next output is carried out: nothing that follows from an entry may
    /// be seen before its index can be read. No holder with a `_Server` skips this.
    Applied(Index),
    /// Post this to the member of a clustered database, which has its own thread and file. A batch yields at most one
    /// [`MemberRequest::Propose`], with all its commits. No holder skips this.
    Member(MemberRequest),
    /// Post this to the thread of a relay, which has the connection to its source. No holder skips this.
    Relay(SourceRequest),
    /// Append this to the audit trail before the replies that it is about, which follow, are posted. Skipped where there is no trail.
    Audit(Vec<Entry>),
    /// Post this to the main thread. Events about watched columns come before the deliveries of the same commit, all others behind every
    /// delivery of the batch: the main thread's reactions, closing sessions above all, come after the deliveries to those sessions.
    Event(Event),
    /// Wait until the main thread has handled all events so far, for a limited time: a client that gets a commit's reply can already
    /// connect to the remotes that the commit added. Skipped by a holder whose main thread acts in turn with it, if its clients do not rely
    /// on that.
    AwaitMain,
    /// Post this to the shard of its session. Deliveries for one session stay in order, across batches too. Several may be posted
    /// together, as long as they are posted before any output of another kind is carried out.
    Deliver(Deliver),
    /// Send this to the connection with this number to a backup's source.
    SourceOrder(SourceId, u64, SourceOrder),
    /// Post all deliveries so far before asking for the next output: composing updates for it may take long. A holder that posts
    /// each delivery at once skips this.
    PostDeliveries,
    /// Close the file. [`Event::Removed`] follows; the main thread may open the file again then.
    CloseFile,
}
