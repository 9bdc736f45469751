//! A group: the monitors with equal subscriptions and the same encoding. Changes are recorded and
//! encoded once for all of them.
//!
//! A member is clean (everything has been sent to it) or behind: then it holds the segment at which
//! its pending changes begin. Invariants: while there are no segments, all members are clean; a
//! group has members.
//!
//! Cost of a commit: the rows in view, plus one step per clean member, which falls behind. Members
//! that are already behind cost nothing. `groups` owns this type, which knows no sessions.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc as StdArc, Weak};

use corvid_data::{Arc, Delta, HashSeed, Schema, TableId, TrustedKeys, Uuid};
use corvid_engine::{Database, Resumable};

use crate::Version;
use crate::change_set::{ChangeSet, Entry};
use crate::contents::{self, ContentsId, Written};
use crate::deferred_body::{self, DeferredBody, LongUpdate, UpdateWriter};
use crate::frame::{Guard, SharedBody};
use crate::precomputed::PrecomputedUpdate;
use crate::segments::{SegmentId, Segments, Unsent};
use crate::speculation::AsOf;
use crate::subscription::Subscription;

/// The body of an update without changes. Never sent.
pub const NOTHING: &[u8] = b"{}";

/// The id of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct GroupId(pub(crate) usize);

/// The id of a monitor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct MonitorKey(pub(crate) usize);

/// How changes are written. `update2` and `update3` differ only in their heads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Encoding {
    /// `<table-updates>`
    Rows,
    /// `<table-updates2>`
    Differences,
}

impl From<Version> for Encoding {
    fn from(version: Version) -> Encoding {
        match version {
            Version::V1 => Encoding::Rows,
            Version::V2 | Version::V3 => Encoding::Differences,
        }
    }
}

/// How much has been sent to a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MemberState {
    /// Everything. Carries the member's index in the group's list of clean members.
    Clean(usize),
    /// Everything before this segment.
    Behind(SegmentId),
}

/// The limits of one update.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UpdateLimits {
    /// An update of more rows than this is written later, by another thread.
    pub(crate) rows_max: usize,
    /// Approximate length of a step's text, in bytes.
    pub(crate) step_bytes: u64,
}

impl UpdateLimits {
    /// 1,000 rows, which take about 300 us; 1 MiB.
    pub(crate) const USUAL: UpdateLimits = UpdateLimits {
        rows_max: 1000,
        step_bytes: 1 << 20,
    };
}

/// An update for a member that lacks changes.
#[derive(Debug)]
pub(crate) struct Update {
    /// `None` if its net change is invisible.
    pub(crate) body: Option<SharedBody>,
    /// The member's state once the update is sent.
    pub(crate) state: MemberState,
    /// The last commit that the update covers; `None` for the newest one.
    pub(crate) txn: Option<Uuid>,
}

/// A commit that a group records.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Commit<'a> {
    /// The commit's number, greater than all earlier ones.
    pub(crate) number: u64,
    pub(crate) txn: Uuid,
    pub(crate) delta: &'a Arc<Delta>,
}

/// Monitors that share their updates.
#[derive(Debug)]
pub(crate) struct Group {
    encoding: Encoding,
    subscription: StdArc<Subscription>,
    members: usize,
    clean: Vec<MonitorKey>,
    segments: Segments,
    seed: HashSeed,
    /// Number of the last recorded commit.
    commit: u64,
    /// Count of recorded commits. A text encoded at one count is current until the next.
    version: u64,
    /// Bodies encoded since the last commit that cover everything pending, by the segment at which
    /// they begin; `None`: no visible change.
    bodies: HashMap<SegmentId, Option<SharedBody>, TrustedKeys>,
    /// The update of a commit that is not recorded yet, or is the last recorded one.
    precomputed: Option<StdArc<PrecomputedUpdate>>,
    initial: Option<Shared>,
    long: Long,
    since: Option<(Uuid, Shared)>,
    /// Accounts for the memory of the subscription.
    _guard: Guard,
}

/// The state of contents that are too long to be written at once.
#[derive(Debug)]
enum Long {
    /// No contents are cached or being written.
    None,
    /// The contents are being written, from this state.
    Underway(ContentsId, StateVersion),
    /// The contents are cached. The next visible change drops them.
    Cached(SharedBody, StateVersion),
}

/// The state from which a text was written.
#[derive(Clone, Copy, Debug)]
struct StateVersion {
    /// The last commit that the text includes.
    commit: u64,
    /// [`Group::version`] as of that commit once it is recorded; until then, as of the last
    /// recorded commit.
    version: u64,
}

/// The answer to a request for long contents.
#[derive(Debug)]
pub(crate) enum ContentsState {
    /// The contents are cached.
    Cached(SharedBody),
    /// The contents are being written, from the current state.
    Underway(ContentsId),
    /// Contents of an earlier state are being written.
    Stale(ContentsId),
    /// The caller must order the contents, under the id that it passed.
    Missing,
}

/// A body that lives as long as some client's frame holds it. Meanwhile other clients share it.
#[derive(Debug)]
struct Shared {
    state: StateVersion,
    body: Weak<[u8]>,
}

impl Group {
    /// A group without members yet.
    pub(crate) fn new(
        encoding: Encoding,
        subscription: StdArc<Subscription>,
        guard: Guard,
        seed: HashSeed,
    ) -> Group {
        Group {
            encoding,
            subscription,
            members: 0,
            clean: Vec::new(),
            segments: Segments::new(seed),
            seed,
            commit: 0,
            version: 0,
            bodies: HashMap::default(),
            precomputed: None,
            initial: None,
            long: Long::None,
            since: None,
            _guard: guard,
        }
    }

    /// How the group's updates are written.
    pub(crate) fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// The subscription of the group's members.
    pub(crate) fn subscription(&self) -> &StdArc<Subscription> {
        &self.subscription
    }

    /// Adds a member that has the current state.
    pub(crate) fn join(&mut self, key: MonitorKey) -> MemberState {
        self.members += 1;
        self.make_clean(key)
    }

    /// Removes a member. Returns the clean member that moved to its index, if any.
    pub(crate) fn leave(&mut self, state: MemberState) -> Option<(MonitorKey, MemberState)> {
        assert!(self.members > 0, "only members leave");
        self.members -= 1;
        match state {
            MemberState::Behind(segment) => {
                self.release(segment);
                None
            }
            MemberState::Clean(position) => {
                self.clean.swap_remove(position);
                let moved = self.clean.get(position)?;
                Some((*moved, MemberState::Clean(position)))
            }
        }
    }

    /// Whether the group has a member in this state.
    pub(crate) fn has(&self, key: MonitorKey, state: MemberState) -> bool {
        match state {
            MemberState::Clean(position) => self.clean.get(position) == Some(&key),
            // The segment is checked when the member releases it.
            MemberState::Behind(_) => self.clean.len() < self.members,
        }
    }

    /// Checks the group against the `states` of its members. O(members and their changes): for
    /// simulations.
    ///
    /// # Panics
    /// If they disagree.
    pub(crate) fn check(&self, states: &[(MonitorKey, MemberState)]) {
        assert!(self.members > 0, "a group has members");
        assert_eq!(self.members, states.len(), "each member is counted once");
        let mut held = BTreeMap::new();
        let mut clean = 0;
        for (key, state) in states {
            assert!(
                self.has(*key, *state),
                "the group knows its members' states"
            );
            match state {
                MemberState::Clean(_) => clean += 1,
                MemberState::Behind(segment) => *held.entry(*segment).or_insert(0) += 1,
            }
        }
        assert_eq!(self.clean.len(), clean, "only clean members are listed");
        self.segments.check(&held);
        assert!(
            self.bodies.keys().all(|segment| held.contains_key(segment)),
            "texts are kept for segments that members hold"
        );
    }

    /// Whether the group has no members.
    pub(crate) fn is_empty(&self) -> bool {
        self.members == 0
    }

    /// Records a visible change. The first change of a commit appends all clean members to `woken`,
    /// with the segment at which their unsent changes begin.
    pub(crate) fn record(
        &mut self,
        commit: Commit<'_>,
        table: TableId,
        entry: Entry,
        woken: &mut Vec<(MonitorKey, SegmentId)>,
    ) {
        let Commit { number, txn, delta } = commit;
        // The commit's first change that is visible here: everything encoded so far is out of date.
        if self.commit != number {
            assert!(self.commit < number, "commits are recorded in order");
            self.commit = number;
            self.version += 1;
            self.bodies.clear();
            // An update precomputed for another commit is now useless: either its commit was
            // recorded earlier, or it comes later and members may get it together with this one.
            self.precomputed
                .take_if(|precomputed| !precomputed.is_of(delta));
            self.advance_texts(number);
            // Clean members fall behind together, so they share a new segment.
            if !self.clean.is_empty() {
                let segment = self.segments.open(delta, txn, self.clean.len());
                woken.extend(self.clean.drain(..).map(|key| (key, segment)));
            } else {
                // All members are already behind, so none of them will get this commit alone. It
                // extends the last segment, and nobody is woken.
                self.precomputed = None;
                if let Some(last) = self.segments.last_mut() {
                    last.extend(txn);
                }
            }
        }
        let last = self.segments.last_mut();
        // Members that are behind hold a segment, and clean members have just got one.
        assert!(
            last.is_some(),
            "a change has a segment, so members are sent it"
        );
        if let Some(last) = last {
            last.add(table, entry);
        }
    }

    /// Orders the update for `delta`, which will be recorded once it is stored. `None` if all
    /// members are behind, because they will get more than this commit. `None` also if the group
    /// has an unused precomputed update.
    pub(crate) fn precompute(
        &mut self,
        schema: &Arc<Schema>,
        delta: &Arc<Delta>,
    ) -> Option<StdArc<dyn DeferredBody>> {
        if self.clean.is_empty() || self.precomputed.is_some() {
            return None;
        }
        let precomputed = StdArc::new(PrecomputedUpdate::new(
            schema.clone(),
            self.subscription.clone(),
            self.encoding,
            delta.clone(),
            self.seed,
        ));
        self.precomputed = Some(precomputed.clone());
        Some(precomputed)
    }

    /// Called when all groups that see `delta`, the commit with that number, have recorded it.
    /// Drops its precomputed update if the commit is invisible here: the update will not be sent,
    /// and it would keep the commit in memory. Returns whether the update of a later commit
    /// remains.
    pub(crate) fn finish_precomputed(&mut self, commit: u64, delta: &Arc<Delta>) -> bool {
        match &self.precomputed {
            Some(precomputed) if !precomputed.is_of(delta) => true,
            _ => {
                if self.commit != commit {
                    self.precomputed = None;
                }
                false
            }
        }
    }

    /// Drops the precomputed update, because its commit is undone.
    pub(crate) fn drop_precomputed(&mut self) {
        self.precomputed = None;
    }

    /// The next update for the member `key`, whose pending changes begin at `segment`: everything,
    /// or one step. A long body is written later, and may turn out to be [`NOTHING`].
    pub(crate) fn update_for(
        &mut self,
        schema: &Arc<Schema>,
        key: MonitorKey,
        segment: SegmentId,
        limits: UpdateLimits,
    ) -> Update {
        // Members at the same segment need the same text: look for the full update, then for a step
        // that some message still holds, and encode only if there is neither.
        let (body, next) = if let Some(body) = self.bodies.get(&segment) {
            (body.clone(), None)
        } else if let Some((body, next)) = self.segments.step(segment) {
            (Some(body), Some(next))
        } else {
            let (body, next) = self.encode_from(schema, segment, limits);
            match (next, &body) {
                (None, _) => {
                    self.bodies.insert(segment, body.clone());
                }
                (Some(next), Some(body)) => self.segments.keep_step(segment, body, next),
                (Some(_), None) => {}
            }
            (body, next)
        };
        // The body is cached before the release. The last member to release the segment also drops
        // the cached body; a body inserted after that would outlive its segment.
        let Some(next) = next else {
            self.release(segment);
            let state = self.make_clean(key);
            return Update {
                body,
                state,
                txn: None,
            };
        };
        // A step sends the member only to `next`, so its notification names the step's last commit.
        let (txn, is_removed) = self.segments.move_on(segment, next);
        if is_removed {
            self.bodies.remove(&segment);
        }
        Update {
            body,
            state: MemberState::Behind(next),
            txn: Some(txn),
        }
    }

    /// Everything in view now, as the reply to a monitor request. Encoded once for all requests
    /// before the next change.
    pub(crate) fn initial(
        &mut self,
        schema: &Schema,
        database: &Database,
        as_of: AsOf,
    ) -> StdArc<[u8]> {
        let kept = self.initial.as_ref();
        if let Some(body) = kept.and_then(|shared| shared.at(self.version, as_of)) {
            return body;
        }
        let body = contents::write_whole(schema, &self.subscription, self.encoding, database);
        let body: StdArc<[u8]> = body.into();
        self.initial = Some(Shared::new(self.state(as_of), &body));
        body
    }

    /// Looks up the contents of the current state, if they are long. On `Missing` the caller must
    /// have them written under the id `next`.
    pub(crate) fn long_contents(&mut self, next: ContentsId, as_of: AsOf) -> ContentsState {
        let version = self.version;
        match &self.long {
            Long::Cached(text, state) if state.holds(version, as_of) => {
                ContentsState::Cached(text.clone())
            }
            Long::Underway(id, state) if state.holds(version, as_of) => {
                ContentsState::Underway(*id)
            }
            Long::Underway(id, _) => ContentsState::Stale(*id),
            Long::None | Long::Cached(..) => {
                self.long = Long::Underway(next, self.state(as_of));
                ContentsState::Missing
            }
        }
    }

    /// Caches contents that were written for this group, unless they are out of date.
    pub(crate) fn written(&mut self, written: &Written, as_of: AsOf) {
        if let Long::Underway(id, state) = self.long
            && id == written.id
        {
            self.long = match &written.text {
                Some(text) if state.holds(self.version, as_of) => Long::Cached(text.clone(), state),
                _ => Long::None,
            };
        }
    }

    /// Drops cached contents.
    pub(crate) fn drop_contents(&mut self) {
        if matches!(self.long, Long::Cached(..)) {
            self.long = Long::None;
        }
    }

    /// Drops every text that may include a commit after `last`: those commits are undone. If such a
    /// text is being written, no request will get it.
    pub(crate) fn undo(&mut self, last: u64) {
        let is_undone = |state: &StateVersion| state.commit > last;
        self.initial.take_if(|shared| is_undone(&shared.state));
        self.since.take_if(|(_, shared)| is_undone(&shared.state));
        match &self.long {
            Long::Underway(_, state) | Long::Cached(_, state) if is_undone(state) => {
                self.long = Long::None;
            }
            Long::None | Long::Underway(..) | Long::Cached(..) => {}
        }
    }

    /// The net change since `txn`, which `changes` tells. Encoded once for all clients that
    /// reconnect with this `txn` before the next change.
    pub(crate) fn since(
        &mut self,
        schema: &Schema,
        txn: Uuid,
        as_of: AsOf,
        changes: impl FnOnce(&Subscription, HashSeed) -> ChangeSet,
    ) -> StdArc<[u8]> {
        if let Some(body) = self.known_since(txn, as_of) {
            return body;
        }
        let changes = changes(&self.subscription, self.seed);
        let body = deferred_body::encode(schema, &self.subscription, self.encoding, &changes, None);
        let body = match &body[..] {
            [only] => only.clone(),
            pieces => pieces.concat().into(),
        };
        self.since = Some((txn, Shared::new(self.state(as_of), &body)));
        body
    }

    /// The net change since `txn`, if an equal request has had it encoded for this state.
    pub(crate) fn known_since(&self, txn: Uuid, as_of: AsOf) -> Option<StdArc<[u8]>> {
        let (known, shared) = self.since.as_ref()?;
        (*known == txn).then(|| shared.at(self.version, as_of))?
    }

    /// Notes that the commit with that number is visible here. Texts that include it get the new
    /// version. Cached contents without it are dropped.
    fn advance_texts(&mut self, commit: u64) {
        let version = self.version;
        // Texts may be ahead of the recorded commits, because requests see executed ones. Example:
        // contents written after commit 7 was executed stay current when 6 and 7 are recorded.
        let age = |state: &mut StateVersion| {
            if state.commit >= commit {
                state.version = version;
            }
        };
        if let Some(shared) = &mut self.initial {
            age(&mut shared.state);
        }
        if let Some((_, shared)) = &mut self.since {
            age(&mut shared.state);
        }
        match &mut self.long {
            Long::Cached(_, state) if state.commit < commit => self.long = Long::None,
            Long::Underway(_, state) | Long::Cached(_, state) => age(state),
            Long::None => {}
        }
    }

    fn state(&self, as_of: AsOf) -> StateVersion {
        StateVersion {
            commit: as_of.executed,
            version: self.version,
        }
    }

    /// Drops the pending changes of a member whose reply will contain the current state.
    pub(crate) fn skip_pending(&mut self, key: MonitorKey, segment: SegmentId) -> MemberState {
        self.release(segment);
        self.make_clean(key)
    }

    fn make_clean(&mut self, key: MonitorKey) -> MemberState {
        self.clean.push(key);
        MemberState::Clean(self.clean.len() - 1)
    }

    fn release(&mut self, segment: SegmentId) {
        if self.segments.release(segment) {
            self.bodies.remove(&segment);
        }
    }

    fn encode_from(
        &mut self,
        schema: &Arc<Schema>,
        segment: SegmentId,
        limits: UpdateLimits,
    ) -> (Option<SharedBody>, Option<SegmentId>) {
        let Some(unsent) = self.segments.unsent(segment, limits.step_bytes) else {
            unreachable!("a member holds a segment that exists");
        };
        let next = unsent.next;
        (self.encode(schema, unsent, limits), next)
    }

    fn encode(
        &mut self,
        schema: &Arc<Schema>,
        Unsent { changes, delta, .. }: Unsent,
        limits: UpdateLimits,
    ) -> Option<SharedBody> {
        let is_long = changes.len() > limits.rows_max;
        // A precomputed update covers one commit, so it fits only members for which that is all.
        let is_alone = |precomputed: &mut StdArc<PrecomputedUpdate>| {
            delta.as_ref().is_some_and(|delta| precomputed.is_of(delta))
        };
        match self.precomputed.take_if(is_alone) {
            Some(precomputed) if is_long => return Some(SharedBody::Deferred(precomputed)),
            Some(precomputed) if precomputed.is_begun() => {
                return shared(precomputed.pieces().to_vec());
            }
            _ => {}
        }
        // A precomputed update that is not begun is dropped: it would visit every change of the
        // commit, whereas `changes` has only those in view.
        let (subscription, encoding) = (&self.subscription, self.encoding);
        if is_long {
            return Some(SharedBody::Deferred(StdArc::new(LongUpdate {
                schema: schema.clone(),
                subscription: subscription.clone(),
                encoding,
                changes,
                delta,
                pieces: Resumable::new(UpdateWriter::default()),
            })));
        }
        let body =
            deferred_body::encode(schema, subscription, encoding, &changes, delta.as_deref());
        shared(body)
    }
}

/// A body to share; `None` without changes.
fn shared(pieces: Vec<StdArc<[u8]>>) -> Option<SharedBody> {
    match &pieces[..] {
        [only] if **only == *NOTHING => None,
        [only] => Some(SharedBody::Whole(only.clone())),
        _ => Some(SharedBody::Pieces(pieces.into())),
    }
}

impl StateVersion {
    /// Whether a text written from this state equals one written from `as_of`, in a group at
    /// `version`. That holds if no commit since has touched a subscribed table. It also holds if
    /// all of them are recorded and none was visible.
    fn holds(&self, version: u64, as_of: AsOf) -> bool {
        let are_recorded = self.commit.max(as_of.touched) <= as_of.stored;
        as_of.touched <= self.commit || (are_recorded && self.version == version)
    }
}

impl Shared {
    fn new(state: StateVersion, body: &StdArc<[u8]>) -> Shared {
        Shared {
            state,
            body: StdArc::downgrade(body),
        }
    }

    fn at(&self, version: u64, as_of: AsOf) -> Option<StdArc<[u8]>> {
        self.state
            .holds(version, as_of)
            .then(|| self.body.upgrade())?
    }
}
