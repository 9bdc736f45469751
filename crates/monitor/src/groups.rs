//! All groups of one database: found by subscription when a monitor starts, by changed row when a commit comes.
//!
//! Invariant: no two groups have the same subscription and encoding; a group without members is gone.
//! Knows no sessions and no ids.

use std::hash::BuildHasher;
use std::sync::Arc as StdArc;

use corvid_data::{Arc, Delta, Schema};
use foldhash::fast::FixedState;
use hashbrown::HashTable;
use slab::Slab;

use crate::dispatch::{Dispatch, Hit};
use crate::group::{Encoding, Group, GroupId, MonitorKey, Place};
use crate::segments::SegmentId;
use crate::subscription::{ColumnMask, Subscription};
use crate::view;

/// The groups of one database.
#[derive(Debug)]
pub(crate) struct Groups {
    slab: Slab<Group>,
    /// By subscription and encoding, with the hash of both: conditions can be long.
    by_subscription: HashTable<(u64, GroupId)>,
    dispatch: Dispatch,
    commits: u64,
    /// Kept for its memory.
    hits: Vec<Hit>,
}

impl Groups {
    /// None yet.
    pub(crate) fn new(schema: &Schema) -> Groups {
        Groups {
            slab: Slab::new(),
            by_subscription: HashTable::new(),
            dispatch: Dispatch::new(schema),
            commits: 0,
            hits: Vec::new(),
        }
    }

    /// The group for a subscription, made when there is none. It must get a member before anything else happens.
    pub(crate) fn find_or_add(
        &mut self,
        schema: &Schema,
        encoding: Encoding,
        subscription: Subscription,
    ) -> GroupId {
        let hash = FixedState::default().hash_one((encoding, &subscription));
        let slab = &self.slab;
        let is_same =
            |group: &Group| group.encoding() == encoding && **group.subscription() == subscription;
        let found = self
            .by_subscription
            .find(hash, |(other, id)| *other == hash && is_same(&slab[id.0]));
        if let Some((_, id)) = found {
            return *id;
        }
        let subscription = StdArc::new(subscription);
        let id = GroupId(self.slab.insert(Group::new(encoding, subscription.clone())));
        self.by_subscription
            .insert_unique(hash, (hash, id), |(hash, _)| *hash);
        self.dispatch.add(schema, &subscription, id);
        id
    }

    /// A group by name.
    pub(crate) fn get_mut(&mut self, id: GroupId) -> &mut Group {
        &mut self.slab[id.0]
    }

    /// Removes a member, and its group with the last one. Returns the member that moved, as [`Group::leave`] does.
    pub(crate) fn leave(
        &mut self,
        schema: &Schema,
        id: GroupId,
        place: Place,
    ) -> Option<(MonitorKey, Place)> {
        let group = &mut self.slab[id.0];
        let moved = group.leave(place);
        if group.is_empty() {
            let group = self.slab.remove(id.0);
            let subscription = group.subscription();
            let hash = FixedState::default().hash_one((group.encoding(), &**subscription));
            if let Ok(entry) = self
                .by_subscription
                .find_entry(hash, |(_, other)| *other == id)
            {
                entry.remove();
            }
            self.dispatch.remove(schema, subscription, id);
        }
        moved
    }

    /// Notes a commit in every group that sees it. Members that were clean until now are appended to `woken` with the segment
    /// from which they are behind.
    pub(crate) fn commit(
        &mut self,
        schema: &Schema,
        delta: &Arc<Delta>,
        woken: &mut Vec<(MonitorKey, SegmentId)>,
    ) {
        self.commits += 1;
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
                    group.note((self.commits, delta), change.table, entry, woken);
                }
            }
        }
        self.hits = hits;
    }

    /// Number of groups.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.slab.len()
    }
}
