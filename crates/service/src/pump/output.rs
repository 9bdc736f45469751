//! The outputs of a database as one ordered list, and the contract of each kind.
//!
//! Invariant: outputs are listed in the order in which they must take effect. The holder
//! ([`super`]) carries out one output, or hands it to a thread that will, before it asks for the
//! next. It skips an output only if that output's contract allows it.

use corvid_consensus::database::MemberRequest;

use crate::audit::Entry;
use crate::job::Job;
use crate::message::SourceRequest;
use crate::message::{Deliver, Event};
use crate::replication::{SourceId, SourceOrder};
use corvid_log::cluster::Index;
use corvid_log::storage::StorageRequest;

/// One output.
///
/// A batch yields jobs and records to store first, again and again while the storage replies at
/// once. The outputs for sessions and the main thread follow:
///
/// ```text
/// Job* Store  ... Job* Store  Applied?  Member*
/// Job*  Audit? Event* AwaitMain?  Deliver*  SourceOrder*  CloseFile?  Event*
/// ```
///
/// Where composing updates may take long, everything after the last `Store` comes twice, with
/// [`Output::PostDeliveries`] in between.
#[derive(Debug)]
pub enum Output {
    /// Have another thread do this, and send the result to the database as an input. The job starts
    /// before the next [`Output::Store`] is carried out: an update may be composed while its record
    /// is being written. [`Job::Free`] and [`Job::PrecomputedUpdate`] may be dropped; every other
    /// job is done, in the order of its thread.
    Job(Job),
    /// Send these requests to the file, in order, before carrying out anything that follows: no
    /// reply may leave before its record is stored. Give immediate replies to
    /// [`super::Pump::stored`] before asking for the next output; others are inputs of a later
    /// batch. Ordinary records may share one write. No holder skips this.
    Store(Vec<StorageRequest>),
    /// A clustered database has applied the entries through this one. Before the next output, set
    /// its [`AppliedIndex`](crate::applied_index::AppliedIndex) and send `_Server` the message that
    /// this asks for: nothing that follows from an entry may be visible before its index is
    /// readable. No holder with a `_Server` skips this.
    Applied(Index),
    /// Post this to the member of a clustered database, which has its own thread and file. A batch
    /// yields at most one [`MemberRequest::Propose`], with all its commits. No holder skips this.
    Member(MemberRequest),
    /// Post this to the thread of a relay, which has the connection to the source. No holder skips
    /// this.
    Relay(SourceRequest),
    /// Append this to the audit trail before posting the replies that it is about, which follow.
    /// Skipped if there is no trail.
    Audit(Vec<Entry>),
    /// Post this to the main thread. Events about watched columns precede the deliveries of the
    /// same commit. All others follow every delivery of the batch, so the main thread's reactions,
    /// such as closing a session, come after that session's deliveries.
    Event(Event),
    /// Wait, for a limited time, until the main thread has handled all events so far: a client that
    /// gets a commit's reply can then connect to the remotes that the commit added. A holder that
    /// is also the main thread skips this, if its clients do not rely on it.
    AwaitMain,
    /// Post this to the shard of its session. Deliveries for one session stay in order, across
    /// batches too. Several may be posted together if no output of another kind is carried out in
    /// between.
    Deliver(Deliver),
    /// Send this over the connection with this number to a backup's source.
    SourceOrder(SourceId, u64, SourceOrder),
    /// Post all deliveries so far before asking for the next output: composing the updates may take
    /// long. A holder that posts each delivery at once skips this.
    PostDeliveries,
    /// Close the file. [`Event::Removed`] follows, after which the main thread may open the file
    /// again.
    CloseFile,
}
