//! All groups of one database: found by subscription when a monitor starts, and by changed row when
//! a commit arrives.
//!
//! Invariant: no two groups have the same subscription and encoding, and a group without members is
//! removed. This file knows neither sessions nor ids.

use std::collections::BTreeMap;
use std::hash::BuildHasher;
use std::sync::Arc as StdArc;

use corvid_data::{Arc, Delta, HashSeed, Schema};
use hashbrown::HashTable;
use slab::Slab;

use crate::deferred_body::DeferredBody;
use crate::dispatch::{Dispatch, Hit};
use crate::frame::Guard;
use crate::group::{Commit, Encoding, Group, GroupId, MemberState, MonitorKey};
use crate::segments::SegmentId;
use crate::subscription::{ColumnMask, Subscription};
use crate::view;

/// With more groups than this, no updates are precomputed.
const PRECOMPUTED_GROUPS_MAX: usize = 8;

/// The groups of one database.
#[derive(Debug)]
pub(crate) struct Groups {
    seed: HashSeed,
    slab: Slab<Group>,
    /// By subscription and encoding. Each entry keeps the hash of both, because conditions can be
    /// long.
    by_subscription: HashTable<(u64, GroupId)>,
    dispatch: Dispatch,
    /// Groups with a precomputed update whose commit is not recorded yet.
    precomputed: Vec<GroupId>,
    /// Kept to reuse its memory.
    hits: Vec<Hit>,
}

impl Groups {
    /// No groups yet.
    pub(crate) fn new(schema: &Schema, seed: HashSeed) -> Groups {
        Groups {
            seed,
            slab: Slab::new(),
            by_subscription: HashTable::new(),
            dispatch: Dispatch::new(schema, seed),
            precomputed: Vec::new(),
            hits: Vec::new(),
        }
    }

    /// The group for a subscription, created if it is missing. The caller must add a member before
    /// it does anything else. `guard` accounts for the memory of the subscription as long as the
    /// group exists; equal subscriptions count once.
    pub(crate) fn find_or_add(
        &mut self,
        schema: &Schema,
        encoding: Encoding,
        subscription: Subscription,
        guard: Guard,
    ) -> GroupId {
        let (hash, found) = self.look_up(encoding, &subscription);
        if let Some(id) = found {
            return id;
        }
        let subscription = StdArc::new(subscription);
        let group = Group::new(encoding, subscription.clone(), guard, self.seed);
        let id = GroupId(self.slab.insert(group));
        self.by_subscription
            .insert_unique(hash, (hash, id), |(hash, _)| *hash);
        self.dispatch.add(schema, &subscription, id);
        id
    }

    /// The group for a subscription, if there is one.
    pub(crate) fn find(&self, encoding: Encoding, subscription: &Subscription) -> Option<&Group> {
        let (_, found) = self.look_up(encoding, subscription);
        found.map(|id| self.get(id))
    }

    /// The hash of a subscription, and its group.
    fn look_up(&self, encoding: Encoding, subscription: &Subscription) -> (u64, Option<GroupId>) {
        let hash = self.seed.hash_one((encoding, subscription));
        let is_same =
            |group: &Group| group.encoding() == encoding && **group.subscription() == *subscription;
        let found = self.by_subscription.find(hash, |(other, id)| {
            *other == hash && is_same(&self.slab[id.0])
        });
        (hash, found.map(|(_, id)| *id))
    }

    /// Checks that every group is found exactly once. `members` has the members of all groups.
    /// O(members and their changes): for simulations.
    ///
    /// # Panics
    /// If a check fails.
    pub(crate) fn check(&self, members: &BTreeMap<usize, Vec<(MonitorKey, MemberState)>>) {
        assert_eq!(
            self.by_subscription.len(),
            self.slab.len(),
            "each group is found by its subscription"
        );
        assert_eq!(members.len(), self.slab.len(), "each group has members");
        for (id, states) in members {
            self.slab[*id].check(states);
        }
    }

    /// A group by id.
    pub(crate) fn get(&self, id: GroupId) -> &Group {
        &self.slab[id.0]
    }

    /// A group by id, to be changed.
    pub(crate) fn get_mut(&mut self, id: GroupId) -> &mut Group {
        &mut self.slab[id.0]
    }

    /// A group that may already have been removed.
    pub(crate) fn find_mut(&mut self, id: GroupId) -> Option<&mut Group> {
        self.slab.get_mut(id.0)
    }

    /// All groups.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Group> {
        self.slab.iter_mut().map(|(_, group)| group)
    }

    /// Removes a member, and its group with the last member. Returns the member that moved, as
    /// [`Group::leave`] does.
    pub(crate) fn leave(
        &mut self,
        schema: &Schema,
        id: GroupId,
        state: MemberState,
    ) -> Option<(MonitorKey, MemberState)> {
        let group = &mut self.slab[id.0];
        let moved = group.leave(state);
        if group.is_empty() {
            let group = self.slab.remove(id.0);
            let subscription = group.subscription();
            let hash = self.seed.hash_one((group.encoding(), &**subscription));
            let entry = self
                .by_subscription
                .find_entry(hash, |(_, other)| *other == id);
            // Otherwise the next monitor would join a group that does not exist.
            assert!(entry.is_ok(), "a group is found by its subscription");
            if let Ok(entry) = entry {
                entry.remove();
            }
            self.dispatch.remove(schema, subscription, id);
        }
        moved
    }

    /// Records a commit in every group that sees it. Appends members that were clean until now to
    /// `woken`, with the segment at which their unsent changes begin.
    pub(crate) fn commit(
        &mut self,
        schema: &Schema,
        commit: Commit<'_>,
        woken: &mut Vec<(MonitorKey, SegmentId)>,
    ) {
        let Commit { number, delta, .. } = commit;
        let mut hits = std::mem::take(&mut self.hits);
        for (position, change) in delta.changes.iter().enumerate() {
            self.dispatch.candidates(change, &mut hits);
            if hits.is_empty() {
                continue;
            }
            let changed = ColumnMask::of_change(change);
            let table = schema.table(change.table);
            for hit in &hits {
                let group = &mut self.slab[hit.group.0];
                let Some(asked) = group.subscription().table(change.table) else {
                    continue;
                };
                let known = (hit.old, hit.new);
                let seen = view::of_change(asked, table, (position, change), &changed, known);
                if let Some(entry) = seen {
                    group.record(commit, change.table, entry, woken);
                }
            }
        }
        self.hits = hits;
        // Only now is it known in which groups the commit was invisible.
        if !self.precomputed.is_empty() {
            let slab = &mut self.slab;
            self.precomputed.retain(|id| {
                let group = slab.get_mut(id.0);
                group.is_some_and(|group| group.finish_precomputed(number, delta))
            });
        }
    }

    /// Orders the updates for a commit that will be recorded, for groups that subscribe to its
    /// tables. O(rows changed).
    pub(crate) fn precompute(
        &mut self,
        schema: &Arc<Schema>,
        delta: &Arc<Delta>,
    ) -> Vec<StdArc<dyn DeferredBody>> {
        if self.slab.len() > PRECOMPUTED_GROUPS_MAX {
            return Vec::new();
        }
        let runs = delta.changes.chunk_by(|one, next| one.table == next.table);
        let tables: Vec<_> = runs.map(|run| run[0].table).collect();
        let mut texts = Vec::new();
        for (id, group) in &mut self.slab {
            let subscription = group.subscription();
            if tables
                .iter()
                .any(|table| subscription.table(*table).is_some())
                && let Some(text) = group.precompute(schema, delta)
            {
                if !self.precomputed.contains(&GroupId(id)) {
                    self.precomputed.push(GroupId(id));
                }
                texts.push(text);
            }
        }
        texts
    }

    /// Drops precomputed updates, because their commits are undone.
    pub(crate) fn drop_precomputed(&mut self) {
        for id in self.precomputed.drain(..) {
            if let Some(group) = self.slab.get_mut(id.0) {
                group.drop_precomputed();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::condition::TableCondition;
    use crate::group::UpdateLimits;
    use crate::subscription::{Select, TableSubscription};
    use corvid_data::{Row, RowChange, Str, TableId, TableSchema, Uuid};

    const TABLE: TableId = TableId(0);

    fn schema() -> corvid_data::Arc<Schema> {
        let table = TableSchema::new(Str::new("T"), Vec::new());
        let schema = Schema::from_parts(Str::new("D"), String::new(), String::new(), vec![table]);
        corvid_data::Arc::new(schema)
    }

    fn everything() -> Subscription {
        let condition = TableCondition::Always;
        let table = TableSubscription::new(TABLE, Select::ALL, Vec::new(), condition);
        Subscription::new(vec![table])
    }

    fn guard() -> Guard {
        StdArc::new(())
    }

    fn insert(number: u8) -> Arc<Delta> {
        let row = Row {
            uuid: Uuid([number; 16]),
            version: Uuid::ZERO,
            columns: Box::default(),
        };
        Arc::new(Delta {
            changes: vec![RowChange {
                table: TABLE,
                uuid: row.uuid,
                old: None,
                new: Some(Arc::new(row)),
                diffs: Box::default(),
            }],
            ..Delta::default()
        })
    }

    fn commit(number: u64, delta: &Arc<Delta>) -> Commit<'_> {
        Commit {
            number,
            txn: Uuid::ZERO,
            delta,
        }
    }

    #[test]
    fn equal_subscriptions_are_one_group_until_the_last_member_leaves() {
        let schema = schema();
        let mut groups = Groups::new(&schema, HashSeed::FIXED);
        let rows = groups.find_or_add(&schema, Encoding::Rows, everything(), guard());
        let differences = groups.find_or_add(&schema, Encoding::Differences, everything(), guard());
        assert_ne!(rows, differences);
        let places = [0, 1].map(|key| groups.get_mut(rows).join(MonitorKey(key)));
        groups.get_mut(differences).join(MonitorKey(2));
        assert_eq!(
            groups.find_or_add(&schema, Encoding::Rows, everything(), guard()),
            rows
        );

        let moved = groups.leave(&schema, rows, places[0]);
        assert_eq!(moved, Some((MonitorKey(1), MemberState::Clean(0))));
        assert_eq!(groups.slab.len(), 2);
        assert_eq!(groups.leave(&schema, rows, MemberState::Clean(0)), None);
        assert_eq!(groups.slab.len(), 1);
        assert_eq!(groups.by_subscription.len(), 1);

        let mut woken = Vec::new();
        groups.commit(&schema, commit(1, &insert(1)), &mut woken);
        assert_eq!(woken.len(), 1, "a removed group is not visited");
    }

    #[test]
    fn members_that_are_behind_are_not_woken_again() {
        let schema = schema();
        let mut groups = Groups::new(&schema, HashSeed::FIXED);
        let group = groups.find_or_add(&schema, Encoding::Differences, everything(), guard());
        for key in 0..10 {
            groups.get_mut(group).join(MonitorKey(key));
        }
        let mut woken = Vec::new();
        groups.commit(&schema, commit(1, &insert(1)), &mut woken);
        assert_eq!(woken.len(), 10);
        let (key, segment) = woken[3];
        woken.clear();
        groups.commit(&schema, commit(2, &insert(2)), &mut woken);
        assert!(woken.is_empty());
        let update = groups
            .get_mut(group)
            .update_for(&schema, key, segment, UpdateLimits::USUAL);
        assert!(update.body.is_some());
        groups.commit(&schema, commit(3, &insert(3)), &mut woken);
        assert_eq!(woken.iter().map(|(key, _)| *key).collect::<Vec<_>>(), [key]);
    }
}
