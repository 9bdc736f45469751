//! A group: the monitors with equal subscriptions and the same encoding. Changes are noted and encoded once for all of them.
//!
//! A member is clean (told everything) or holds the segment at which its untold changes begin. Invariants: while there are
//! no segments all members are clean; a group has members.
//!
//! Cost of a commit: the rows in view, plus one step per clean member, which is to be told of it; members that are behind
//! already cost nothing. Owned by `groups`; knows no sessions.

use std::collections::HashMap;
use std::sync::{Arc as StdArc, Weak};

use corvid_data::{Arc, Delta, HashSeed, Schema, TableId, TrustedKeys, Uuid};
use corvid_engine::{Database, Resumable};

use crate::change_set::Entry;
use crate::contents::{self, ContentsId, Written};
use crate::foretold::Foretold;
use crate::frame::SharedText;
use crate::late::{self, LateText, LongUpdate, UpdateWriter};
use crate::segments::{SegmentId, Segments, Untold};
use crate::speculation::AsOf;
use crate::subscription::Subscription;
use crate::{Version, view};

/// The body of an update that tells nothing; it is not sent.
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

/// Where a member stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Told everything; its place in the group's list of such members.
    Clean(usize),
    /// Has yet to be told from here on.
    Behind(SegmentId),
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
    /// Number of the commit noted last.
    commit: u64,
    /// Commits noted so far: what was encoded at one count holds until the next.
    version: u64,
    /// Updates encoded since the last commit, by the segment that they begin at; `None`: nothing to tell.
    bodies: HashMap<SegmentId, Option<SharedText>, TrustedKeys>,
    /// The update of a commit that is not noted yet, or has just been.
    foretold: Option<StdArc<Foretold>>,
    initial: Option<Shared>,
    long: Long,
    since: Option<(Uuid, Shared)>,
}

/// Where contents are that are too long to be written at once.
#[derive(Debug)]
enum Long {
    /// Nowhere.
    None,
    /// Being written, of the state at this moment.
    Underway(ContentsId, Moment),
    /// Here; dropped with the next change.
    Kept(SharedText, Moment),
}

/// The state that a text was written from.
#[derive(Clone, Copy, Debug)]
struct Moment {
    /// The last commit in it.
    commit: u64,
    /// [`Group::version`] as of that commit, once it is noted; until then as of the last one that is.
    version: u64,
}

/// What becomes of a request for long contents.
#[derive(Debug)]
pub(crate) enum Progress {
    /// Here they are.
    Kept(SharedText),
    /// They are being written, of the present state.
    Underway(ContentsId),
    /// They are being written, of an earlier state.
    Stale(ContentsId),
    /// They must be ordered, under the name that was given.
    Wanted,
}

/// A body that lives as long as some client's frame holds it, and is handed to all who ask meanwhile.
#[derive(Debug)]
struct Shared {
    moment: Moment,
    body: Weak<[u8]>,
}

impl Group {
    /// No members yet.
    pub(crate) fn new(
        encoding: Encoding,
        subscription: StdArc<Subscription>,
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
            foretold: None,
            initial: None,
            long: Long::None,
            since: None,
        }
    }

    /// How its updates are written.
    pub(crate) fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// What its members asked for.
    pub(crate) fn subscription(&self) -> &StdArc<Subscription> {
        &self.subscription
    }

    /// Adds a member that knows the present state.
    pub(crate) fn join(&mut self, key: MonitorKey) -> Place {
        self.members += 1;
        self.make_clean(key)
    }

    /// Removes a member. Returns the clean member whose place it took over, if one moved.
    pub(crate) fn leave(&mut self, place: Place) -> Option<(MonitorKey, Place)> {
        self.members -= 1;
        match place {
            Place::Behind(segment) => {
                self.release(segment);
                None
            }
            Place::Clean(position) => {
                self.clean.swap_remove(position);
                let moved = self.clean.get(position)?;
                Some((*moved, Place::Clean(position)))
            }
        }
    }

    /// Whether nobody is left.
    pub(crate) fn is_empty(&self) -> bool {
        self.members == 0
    }

    /// Takes note of a change in view. `commit` numbers the commit, greater each time. At its first change the members that
    /// were clean are handed to `woken` with the segment from which they are behind.
    pub(crate) fn note(
        &mut self,
        (commit, delta): (u64, &Arc<Delta>),
        table: TableId,
        entry: Entry,
        woken: &mut Vec<(MonitorKey, SegmentId)>,
    ) {
        if self.commit != commit {
            self.commit = commit;
            self.version += 1;
            self.bodies.clear();
            self.foretold.take_if(|foretold| !foretold.is_of(delta));
            self.age_texts(commit);
            if !self.clean.is_empty() {
                let segment = self.segments.open(delta, self.clean.len());
                woken.extend(self.clean.drain(..).map(|key| (key, segment)));
            } else {
                // All are behind, so nobody is told of this one alone.
                self.foretold = None;
                if let Some(last) = self.segments.last_mut() {
                    last.extend();
                }
            }
        }
        if let Some(last) = self.segments.last_mut() {
            last.add(table, entry);
        }
    }

    /// Orders the update that members will be told of `delta`, which is to be noted when it is stored. `None` when all of them are behind,
    /// and will be told of more, or another commit has been foretold and not been told of yet.
    pub(crate) fn foretell(
        &mut self,
        schema: &Arc<Schema>,
        delta: &Arc<Delta>,
    ) -> Option<StdArc<dyn LateText>> {
        if self.clean.is_empty() || self.foretold.is_some() {
            return None;
        }
        let foretold = StdArc::new(Foretold::new(
            schema.clone(),
            self.subscription.clone(),
            self.encoding,
            delta.clone(),
            self.seed,
        ));
        self.foretold = Some(foretold.clone());
        Some(foretold)
    }

    /// `delta`, the commit of that number, has been noted wherever it shows. What was foretold of one that does not show here is dropped: nobody
    /// will be told, and it would keep the commit. Returns whether a later one is foretold.
    pub(crate) fn settle_foretold(&mut self, commit: u64, delta: &Arc<Delta>) -> bool {
        match &self.foretold {
            Some(foretold) if !foretold.is_of(delta) => true,
            _ => {
                if self.commit != commit {
                    self.foretold = None;
                }
                false
            }
        }
    }

    /// The commit that was foretold will not be noted.
    pub(crate) fn forget_foretold(&mut self) {
        self.foretold = None;
    }

    /// Tells the member `key`, which is behind from `segment`: its update's body (`None` when the net change shows
    /// nothing), and its place from now on. A body of more than `rows_max` rows is written later, and may turn out to be
    /// [`NOTHING`].
    pub(crate) fn tell(
        &mut self,
        schema: &Arc<Schema>,
        key: MonitorKey,
        segment: SegmentId,
        rows_max: usize,
    ) -> (Option<SharedText>, Place) {
        let body = match self.bodies.get(&segment) {
            Some(body) => body.clone(),
            None => {
                let body = self.encode_from(schema, segment, rows_max);
                self.bodies.insert(segment, body.clone());
                body
            }
        };
        self.release(segment);
        (body, self.make_clean(key))
    }

    /// Everything in view now, as the reply to a monitor request. Encoded once for all who ask before the next change.
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
        self.initial = Some(Shared::new(self.moment(as_of), &body));
        body
    }

    /// How far the contents of the present state are, if they are long. They are to be written under the name `next` if this
    /// says so.
    pub(crate) fn long_contents(&mut self, next: ContentsId, as_of: AsOf) -> Progress {
        let version = self.version;
        match &self.long {
            Long::Kept(text, moment) if moment.holds(version, as_of) => {
                Progress::Kept(text.clone())
            }
            Long::Underway(id, moment) if moment.holds(version, as_of) => Progress::Underway(*id),
            Long::Underway(id, _) => Progress::Stale(*id),
            Long::None | Long::Kept(..) => {
                self.long = Long::Underway(next, self.moment(as_of));
                Progress::Wanted
            }
        }
    }

    /// Keeps contents that were written for this group, unless they are of the past.
    pub(crate) fn written(&mut self, written: &Written, as_of: AsOf) {
        if let Long::Underway(id, moment) = self.long
            && id == written.id
        {
            self.long = match &written.text {
                Some(text) if moment.holds(self.version, as_of) => Long::Kept(text.clone(), moment),
                _ => Long::None,
            };
        }
    }

    /// Keeps no contents any longer.
    pub(crate) fn forget_contents(&mut self) {
        if matches!(self.long, Long::Kept(..)) {
            self.long = Long::None;
        }
    }

    /// Commits after `last` are undone: so is every text that may show them. One that is being written is written for nobody.
    pub(crate) fn undo(&mut self, last: u64) {
        let is_undone = |moment: &Moment| moment.commit > last;
        self.initial.take_if(|shared| is_undone(&shared.moment));
        self.since.take_if(|(_, shared)| is_undone(&shared.moment));
        match &self.long {
            Long::Underway(_, moment) | Long::Kept(_, moment) if is_undone(moment) => {
                self.long = Long::None;
            }
            Long::None | Long::Underway(..) | Long::Kept(..) => {}
        }
    }

    /// The net change of `commits`, all those after `txn`. Encoded once for all who come back from there before the next
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
        let body = late::encode(schema, &self.subscription, self.encoding, &changes, None);
        let body = match &body[..] {
            [only] => only.clone(),
            pieces => pieces.concat().into(),
        };
        self.since = Some((txn, Shared::new(self.moment(as_of), &body)));
        body
    }

    /// The commit of that number shows here. Texts that include it are of the new version; kept contents that do not are dropped.
    fn age_texts(&mut self, commit: u64) {
        let version = self.version;
        let age = |moment: &mut Moment| {
            if moment.commit >= commit {
                moment.version = version;
            }
        };
        if let Some(shared) = &mut self.initial {
            age(&mut shared.moment);
        }
        if let Some((_, shared)) = &mut self.since {
            age(&mut shared.moment);
        }
        match &mut self.long {
            Long::Kept(_, moment) if moment.commit < commit => self.long = Long::None,
            Long::Underway(_, moment) | Long::Kept(_, moment) => age(moment),
            Long::None => {}
        }
    }

    fn moment(&self, as_of: AsOf) -> Moment {
        Moment {
            commit: as_of.executed,
            version: self.version,
        }
    }

    /// A member that is behind knows the present state by another way: it is told nothing of what it has missed.
    pub(crate) fn catch_up(&mut self, key: MonitorKey, segment: SegmentId) -> Place {
        self.release(segment);
        self.make_clean(key)
    }

    fn make_clean(&mut self, key: MonitorKey) -> Place {
        self.clean.push(key);
        Place::Clean(self.clean.len() - 1)
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
        rows_max: usize,
    ) -> Option<SharedText> {
        let Untold { changes, delta } = self.segments.untold(segment)?;
        let is_long = changes.len() > rows_max;
        let is_told = |foretold: &mut StdArc<Foretold>| {
            delta.as_ref().is_some_and(|delta| foretold.is_of(delta))
        };
        match self.foretold.take_if(is_told) {
            Some(foretold) if is_long => return Some(SharedText::Late(foretold)),
            Some(foretold) if foretold.is_begun() => return shared(foretold.pieces().to_vec()),
            _ => {}
        }
        let (subscription, encoding) = (&self.subscription, self.encoding);
        if is_long {
            return Some(SharedText::Late(StdArc::new(LongUpdate {
                schema: schema.clone(),
                subscription: subscription.clone(),
                encoding,
                changes,
                delta,
                pieces: Resumable::new(UpdateWriter::default()),
            })));
        }
        let body = late::encode(schema, subscription, encoding, &changes, delta.as_deref());
        shared(body)
    }
}

/// A body to be shared; `None` when it tells nothing.
fn shared(pieces: Vec<StdArc<[u8]>>) -> Option<SharedText> {
    match &pieces[..] {
        [only] if **only == *NOTHING => None,
        [only] => Some(SharedText::Whole(only.clone())),
        _ => Some(SharedText::Pieces(pieces.into())),
    }
}

impl Moment {
    /// Whether a text of this moment is also one of the state `as_of`, in a group that has come to `version`: either no commit since has
    /// touched a table in view, or all of them are noted and none showed.
    fn holds(&self, version: u64, as_of: AsOf) -> bool {
        let is_noted = self.commit.max(as_of.touched) <= as_of.noted;
        as_of.touched <= self.commit || (is_noted && self.version == version)
    }
}

impl Shared {
    fn new(moment: Moment, body: &StdArc<[u8]>) -> Shared {
        Shared {
            moment,
            body: StdArc::downgrade(body),
        }
    }

    fn at(&self, version: u64, as_of: AsOf) -> Option<StdArc<[u8]>> {
        self.moment
            .holds(version, as_of)
            .then(|| self.body.upgrade())?
    }
}
