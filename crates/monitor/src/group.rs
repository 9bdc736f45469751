//! A group: the monitors with equal subscriptions and the same encoding. Changes are recorded and encoded once for all of them.
//!
//! A member is clean (it has been sent everything) or behind: it holds the segment at which its pending changes begin. Invariants: while
//! there are no segments all members are clean; a group has members.
//!
//! Cost of a commit: the rows in view, plus one step per clean member, which becomes behind; members that are behind already cost nothing.
//! Owned by `groups`; knows no sessions.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc as StdArc, Weak};

use corvid_data::{Arc, Delta, HashSeed, Schema, TableId, TrustedKeys, Uuid};
use corvid_engine::{Database, Resumable};

use crate::change_set::Entry;
use crate::contents::{self, ContentsId, Written};
use crate::deferred_body::{self, DeferredBody, LongUpdate, UpdateWriter};
use crate::frame::{Guard, SharedBody};
use crate::precomputed::PrecomputedUpdate;
use crate::segments::{SegmentId, Segments, Unsent};
use crate::speculation::AsOf;
use crate::subscription::Subscription;
use crate::{Version, view};

/// The body of an update without changes; it is not sent.
pub const NOTHING: &[u8] = b"{}";

/// Names a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct GroupId(pub(crate) usize);

/// Names a monitor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct MonitorKey(pub(crate) usize);

/// How changes are written: `update2` and `update3` differ in their heads only.
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

/// How much a member has been sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MemberState {
    /// Everything; its index in the group's list of clean members.
    Clean(usize),
    /// Everything before this segment.
    Behind(SegmentId),
}

/// The limits of one update.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UpdateLimits {
    /// An update of more rows is written later, by another thread.
    pub(crate) rows_max: usize,
    /// About this much text is a step.
    pub(crate) step_bytes: u64,
}

impl UpdateLimits {
    /// 1,000 rows, which take some 300 us; 1 MiB.
    pub(crate) const USUAL: UpdateLimits = UpdateLimits {
        rows_max: 1000,
        step_bytes: 1 << 20,
    };
}

/// An update for a member that lacks changes.
#[derive(Debug)]
pub(crate) struct Update {
    /// `None` when its net change is invisible.
    pub(crate) body: Option<SharedBody>,
    /// How much the member has been sent with it.
    pub(crate) state: MemberState,
    /// The last commit that it covers; `None`: the newest one.
    pub(crate) txn: Option<Uuid>,
}

/// A commit that a group records.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Commit<'a> {
    /// Its number, greater each time.
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
    /// Number of recorded commits: a text encoded at one count is current until the next.
    version: u64,
    /// Updates with everything, encoded since the last commit, by the segment at which they begin; `None`: no visible change.
    bodies: HashMap<SegmentId, Option<SharedBody>, TrustedKeys>,
    /// The update of a commit that is not recorded yet, or is the last recorded one.
    precomputed: Option<StdArc<PrecomputedUpdate>>,
    initial: Option<Shared>,
    long: Long,
    since: Option<(Uuid, Shared)>,
    /// Counts the memory of the subscription.
    _guard: Guard,
}

/// Contents that are too long to be written at once.
#[derive(Debug)]
enum Long {
    /// Nowhere.
    None,
    /// They are being written, from this state.
    Underway(ContentsId, StateVersion),
    /// They are cached; dropped with the next change.
    Cached(SharedBody, StateVersion),
}

/// The state from which a text was written.
#[derive(Clone, Copy, Debug)]
struct StateVersion {
    /// The last commit that it includes.
    commit: u64,
    /// [`Group::version`] as of that commit, once it is recorded; until then as of the last recorded commit.
    version: u64,
}

/// The answer to a request for long contents.
#[derive(Debug)]
pub(crate) enum ContentsState {
    /// Here they are.
    Cached(SharedBody),
    /// They are being written, from the present state.
    Underway(ContentsId),
    /// They are being written, from an earlier state.
    Stale(ContentsId),
    /// They must be ordered, with the number that was passed in.
    Missing,
}

/// A body that lives as long as some client's frame holds it; other clients get the same one meanwhile.
#[derive(Debug)]
struct Shared {
    state: StateVersion,
    body: Weak<[u8]>,
}

impl Group {
    /// No members yet.
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

    /// How its updates are written.
    pub(crate) fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// The subscription of its members.
    pub(crate) fn subscription(&self) -> &StdArc<Subscription> {
        &self.subscription
    }

    /// Adds a member that has the present state.
    pub(crate) fn join(&mut self, key: MonitorKey) -> MemberState {
        self.members += 1;
        self.make_clean(key)
    }

    /// Removes a member. Returns the clean member that moved to its index, if one did.
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

    /// Whether a member in this state is one of the group.
    pub(crate) fn has(&self, key: MonitorKey, state: MemberState) -> bool {
        match state {
            MemberState::Clean(position) => self.clean.get(position) == Some(&key),
            // Its segment is checked when it is released.
            MemberState::Behind(_) => self.clean.len() < self.members,
        }
    }

    /// Checks the group, whose members are in these `states`. O(members and their changes): for
    /// simulations.
    ///
    /// # Panics
    /// They are not.
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

    /// Whether there are no members.
    pub(crate) fn is_empty(&self) -> bool {
        self.members == 0
    }

    /// Records a visible change. At the first change of a commit, all clean members are appended to
    /// `woken`, with the segment at which their unsent changes begin.
    pub(crate) fn record(
        &mut self,
        commit: Commit<'_>,
        table: TableId,
        entry: Entry,
        woken: &mut Vec<(MonitorKey, SegmentId)>,
    ) {
        let Commit { number, txn, delta } = commit;
        if self.commit != number {
            assert!(self.commit < number, "commits are recorded in order");
            self.commit = number;
            self.version += 1;
            self.bodies.clear();
            self.precomputed
                .take_if(|precomputed| !precomputed.is_of(delta));
            self.advance_texts(number);
            if !self.clean.is_empty() {
                let segment = self.segments.open(delta, txn, self.clean.len());
                woken.extend(self.clean.drain(..).map(|key| (key, segment)));
            } else {
                // All members are behind, so none of them gets this commit alone.
                self.precomputed = None;
                if let Some(last) = self.segments.last_mut() {
                    last.extend(txn);
                }
            }
        }
        let last = self.segments.last_mut();
        // A member with pending changes holds one, and one was opened for clean members.
        assert!(
            last.is_some(),
            "a change has a segment, so members are sent it"
        );
        if let Some(last) = last {
            last.add(table, entry);
        }
    }

    /// Orders the update for `delta`, which will be recorded when it is stored. `None` when all members are behind, because they will get
    /// more than this commit, or when the group has an unused precomputed update.
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

    /// All groups that see `delta`, the commit of that number, have recorded it. Drops its precomputed update if it is invisible here: it
    /// will not be sent, and it would keep the commit in memory. Returns whether the update of a later commit remains.
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

    /// The next update for the member `key`, whose pending changes begin at `segment`: everything, or
    /// a step. A long body is written later, and may turn out to be [`NOTHING`].
    pub(crate) fn update_for(
        &mut self,
        schema: &Arc<Schema>,
        key: MonitorKey,
        segment: SegmentId,
        limits: UpdateLimits,
    ) -> Update {
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
        let Some(next) = next else {
            self.release(segment);
            let state = self.make_clean(key);
            return Update {
                body,
                state,
                txn: None,
            };
        };
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

    /// Everything in view now, as the reply to a monitor request. Encoded once for all requests before the next change.
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

    /// Looks up the contents of the present state, if they are long. On `Missing` the caller must have them written under the number
    /// `next`.
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

    /// Commits after `last` are undone: drops every text that may include them. If one is being written, no request will get it.
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

    /// The net change of `commits`, all those after `txn`. Encoded once for all clients that reconnect with this `txn` before the next
    /// change.
    pub(crate) fn since<'a>(
        &mut self,
        schema: &Schema,
        txn: Uuid,
        commits: impl Iterator<Item = &'a Arc<Delta>>,
        as_of: AsOf,
    ) -> StdArc<[u8]> {
        if let Some((known, shared)) = &self.since
            && *known == txn
            && let Some(body) = shared.at(self.version, as_of)
        {
            return body;
        }
        let changes = view::of_commits(schema, &self.subscription, commits, self.seed);
        let body = deferred_body::encode(schema, &self.subscription, self.encoding, &changes, None);
        let body = match &body[..] {
            [only] => only.clone(),
            pieces => pieces.concat().into(),
        };
        self.since = Some((txn, Shared::new(self.state(as_of), &body)));
        body
    }

    /// The commit of that number is visible here. Texts that include it get the new version; cached contents without it are dropped.
    fn advance_texts(&mut self, commit: u64) {
        let version = self.version;
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

    /// A member that is behind gets the present state in a reply: drops its pending changes.
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

/// A body to be shared; `None` without changes.
fn shared(pieces: Vec<StdArc<[u8]>>) -> Option<SharedBody> {
    match &pieces[..] {
        [only] if **only == *NOTHING => None,
        [only] => Some(SharedBody::Whole(only.clone())),
        _ => Some(SharedBody::Pieces(pieces.into())),
    }
}

impl StateVersion {
    /// Whether a text written from this state equals one written from `as_of`, in a group at `version`: either no commit since has touched
    /// a subscribed table, or all of them are recorded and none was visible.
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
