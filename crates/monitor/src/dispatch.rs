//! Finds the groups that can see a changed row.
//!
//! Groups are filed by table in one of three ways. Without a condition: every change of the table
//! visits them. With only clauses that name a value (`==`, `includes`): the group is filed under
//! each value, so a change visits only groups that name a value of the old or the new version. Five
//! hundred groups with `host == X`, each with its own X, cost one hash probe per version. With any
//! other clause (`<`, `!=`, `excludes`): every change of the table evaluates the condition.
//!
//! Cost per changed row and indexed column, in probes: the smaller of the number of the column's
//! elements and of the subscribed values. Invariant: a group is filed once per table, in one way.
//! This file does not know what a group does with a change.

use std::hash::BuildHasher;

use corvid_data::{
    Atom, AtomRef, ColumnId, ColumnType, Datum, HashSeed, Row, RowChange, Schema, TableSchema,
};
use corvid_engine::condition::{Clause, Function};
use hashbrown::HashTable;
use smallvec::SmallVec;

use crate::condition::TableCondition;
use crate::group::GroupId;
use crate::subscription::{Select, Subscription, TableSubscription};
use crate::view::Match;

/// A group that a change may affect, and what is known about the two versions of the row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hit {
    /// The group.
    pub(crate) group: GroupId,
    /// The match of the old version, as far as known.
    pub(crate) old: Match,
    /// The match of the new version, as far as known.
    pub(crate) new: Match,
}

/// All groups of one database, by table and value.
#[derive(Debug)]
pub(crate) struct Dispatch {
    /// Indexed by table id.
    tables: Vec<TableDispatch>,
    seed: HashSeed,
}

#[derive(Debug, Default)]
struct TableDispatch {
    /// Groups without a condition, sorted.
    always: Vec<GroupId>,
    /// Groups whose conditions every change evaluates, sorted.
    evaluated: Vec<GroupId>,
    /// One index per column that clauses of the other groups name.
    columns: Vec<ColumnIndex>,
}

/// Groups by the values that they name for one column.
#[derive(Debug)]
struct ColumnIndex {
    column: ColumnId,
    seed: HashSeed,
    values: HashTable<Posting>,
    /// Groups that name an empty column.
    empty: Postings,
}

#[derive(Debug)]
struct Posting {
    value: Atom,
    groups: Postings,
}

/// Sorted by group. `Yes`: a row with the value is in view. `Maybe`: the condition must be
/// evaluated. Most values are named by one group, and then need no allocation of their own.
type Postings = SmallVec<[(GroupId, Match); 1]>;

/// The value of its column that a clause names.
#[derive(Clone, Copy)]
enum Key<'a> {
    Empty,
    Element(AtomRef<'a>),
}

impl Dispatch {
    /// A dispatch without groups.
    pub(crate) fn new(schema: &Schema, seed: HashSeed) -> Dispatch {
        let tables = schema.tables().iter().map(|_| TableDispatch::default());
        Dispatch {
            tables: tables.collect(),
            seed,
        }
    }

    /// Files a group under all its tables and values.
    pub(crate) fn add(&mut self, schema: &Schema, subscription: &Subscription, group: GroupId) {
        for asked in subscription.tables() {
            let table = &mut self.tables[usize::from(asked.table.0)];
            match Filing::of(asked) {
                Filing::None => {}
                Filing::Always => insert_sorted(&mut table.always, group),
                Filing::Evaluated => insert_sorted(&mut table.evaluated, group),
                Filing::ByValue(clauses) => {
                    for clause in clauses {
                        if let Some((column, key, known)) =
                            key_of(schema.table(asked.table), clause)
                        {
                            table.column_mut(column, self.seed).add(key, group, known);
                        }
                    }
                }
            }
        }
    }

    /// Removes a group.
    pub(crate) fn remove(&mut self, schema: &Schema, subscription: &Subscription, group: GroupId) {
        for asked in subscription.tables() {
            let table = &mut self.tables[usize::from(asked.table.0)];
            match Filing::of(asked) {
                Filing::None => {}
                Filing::Always => remove_sorted(&mut table.always, group),
                Filing::Evaluated => remove_sorted(&mut table.evaluated, group),
                Filing::ByValue(clauses) => {
                    for clause in clauses {
                        if let Some((column, key, _)) = key_of(schema.table(asked.table), clause) {
                            table.column_mut(column, self.seed).remove(key, group);
                        }
                    }
                    table.columns.retain(|index| !index.is_empty());
                }
            }
        }
    }

    /// Fills `hits` with every group that `change` may affect, each once.
    pub(crate) fn candidates(&self, change: &RowChange, hits: &mut Vec<Hit>) {
        hits.clear();
        let table = &self.tables[usize::from(change.table.0)];
        // An inserted row has no old version and a deleted one no new version: out of every view.
        let of = |known: Match| {
            let of_version = |is_there: bool| if is_there { known } else { Match::No };
            (
                of_version(change.old.is_some()),
                of_version(change.new.is_some()),
            )
        };
        let all = |groups: &[GroupId], known: Match, hits: &mut Vec<Hit>| {
            let (old, new) = of(known);
            hits.extend(groups.iter().map(|&group| Hit { group, old, new }));
        };
        all(&table.always, Match::Yes, hits);
        all(&table.evaluated, Match::Maybe, hits);
        let first = hits.len();
        // Each version is looked up on its own. Example: a row's host changes from A to B. The
        // group `host == A` is hit by the old version only and sees a deletion; the group
        // `host == B` is hit by the new version only and sees an insertion. A group that names both
        // is hit twice.
        for index in &table.columns {
            if let Some(old) = &change.old {
                index.find(old, |group, old| {
                    hits.push(Hit {
                        group,
                        old,
                        new: Match::No,
                    });
                });
            }
            if let Some(new) = &change.new {
                index.find(new, |group, new| {
                    hits.push(Hit {
                        group,
                        old: Match::No,
                        new,
                    });
                });
            }
        }
        unite(hits, first);
    }
}

/// Merges the hits from `first` on into one per group, keeping the strongest knowledge.
fn unite(hits: &mut Vec<Hit>, first: usize) {
    if hits.len() - first < 2 {
        return;
    }
    hits[first..].sort_unstable_by_key(|hit| hit.group);
    let mut kept = first;
    for next in first + 1..hits.len() {
        let hit = hits[next];
        if hits[kept].group == hit.group {
            hits[kept].old = hits[kept].old.max(hit.old);
            hits[kept].new = hits[kept].new.max(hit.new);
        } else {
            kept += 1;
            hits[kept] = hit;
        }
    }
    hits.truncate(kept + 1);
}

/// How a group is filed in one table.
enum Filing<'a> {
    None,
    Always,
    Evaluated,
    ByValue(&'a [Clause]),
}

impl Filing<'_> {
    fn of(asked: &TableSubscription) -> Filing<'_> {
        if asked.select == Select::NONE {
            return Filing::None;
        }
        match &*asked.condition {
            TableCondition::Always => Filing::Always,
            TableCondition::Never => Filing::None,
            TableCondition::Any(condition) => {
                let clauses = &condition.clauses;
                let by_value = |clause: &Clause| {
                    matches!(
                        clause,
                        Clause::Compare {
                            function: Function::Equal | Function::Includes,
                            ..
                        }
                    )
                };
                if clauses.iter().all(by_value) {
                    Filing::ByValue(clauses)
                } else {
                    Filing::Evaluated
                }
            }
        }
    }
}

/// The value under which a clause is filed, and whether the value alone decides the clause. A
/// clause with several elements is filed under the first one, which every matching row holds.
fn key_of<'a>(table: &TableSchema, clause: &'a Clause) -> Option<(ColumnId, Key<'a>, Match)> {
    let Clause::Compare {
        column,
        function,
        argument,
    } = clause
    else {
        return None;
    };
    let column_type = &table.column(*column).column_type;
    let Some(element) = argument.first() else {
        return Some((*column, Key::Empty, Match::Yes));
    };
    let known = if is_decided_by_element(*function, column_type, argument) {
        Match::Yes
    } else {
        Match::Maybe
    };
    Some((*column, Key::Element(element), known))
}

fn is_decided_by_element(function: Function, column_type: &ColumnType, argument: &Datum) -> bool {
    !column_type.is_map()
        && argument.len() == 1
        && (function == Function::Includes || !column_type.is_composite())
}

impl TableDispatch {
    fn column_mut(&mut self, column: ColumnId, seed: HashSeed) -> &mut ColumnIndex {
        let found = self.columns.iter().position(|index| index.column == column);
        let position = found.unwrap_or_else(|| {
            self.columns.push(ColumnIndex {
                column,
                seed,
                values: HashTable::new(),
                empty: Postings::new(),
            });
            self.columns.len() - 1
        });
        &mut self.columns[position]
    }
}

impl ColumnIndex {
    fn is_empty(&self) -> bool {
        self.values.is_empty() && self.empty.is_empty()
    }

    fn add(&mut self, key: Key<'_>, group: GroupId, known: Match) {
        let postings = match key {
            Key::Empty => &mut self.empty,
            Key::Element(atom) => {
                let entry = self.values.entry(
                    self.seed.hash_one(atom),
                    |posting| posting.value.as_ref() == atom,
                    |posting| self.seed.hash_one(posting.value.as_ref()),
                );
                let new = || Posting {
                    value: atom.to_owned(),
                    groups: Postings::new(),
                };
                &mut entry.or_insert_with(new).into_mut().groups
            }
        };
        match postings.binary_search_by_key(&group, |(filed, _)| *filed) {
            Ok(found) => postings[found].1 = postings[found].1.max(known),
            Err(position) => postings.insert(position, (group, known)),
        }
    }

    fn remove(&mut self, key: Key<'_>, group: GroupId) {
        match key {
            Key::Empty => remove_posting(&mut self.empty, group),
            Key::Element(atom) => {
                let hash = self.seed.hash_one(atom);
                let found = self
                    .values
                    .find_entry(hash, |posting| posting.value.as_ref() == atom);
                if let Ok(mut entry) = found {
                    remove_posting(&mut entry.get_mut().groups, group);
                    if entry.get().groups.is_empty() {
                        entry.remove();
                    }
                }
            }
        }
    }

    /// Calls `visit` for each group under a value of `row`. A group may be visited more than once.
    fn find(&self, row: &Row, mut visit: impl FnMut(GroupId, Match)) {
        let mut visit_all = |postings: &Postings| {
            for (group, known) in postings {
                visit(*group, *known);
            }
        };
        let datum = match self.column {
            ColumnId::UUID => {
                return self
                    .probe(AtomRef::Uuid(row.uuid))
                    .into_iter()
                    .for_each(visit_all);
            }
            ColumnId::VERSION => {
                return self
                    .probe(AtomRef::Uuid(row.version))
                    .into_iter()
                    .for_each(visit_all);
            }
            ColumnId(own) => &row.columns[usize::from(own)],
        };
        if datum.is_empty() {
            visit_all(&self.empty);
        // Iterate over the smaller side: the row's elements, or the values that groups name.
        } else if datum.len() <= self.values.len() {
            for element in datum.keys() {
                self.probe(element).into_iter().for_each(&mut visit_all);
            }
        } else {
            for posting in &self.values {
                if datum.contains(posting.value.as_ref()) {
                    visit_all(&posting.groups);
                }
            }
        }
    }

    fn probe(&self, atom: AtomRef<'_>) -> Option<&Postings> {
        let hash = self.seed.hash_one(atom);
        self.values
            .find(hash, |posting| posting.value.as_ref() == atom)
            .map(|posting| &posting.groups)
    }
}

fn insert_sorted(groups: &mut Vec<GroupId>, group: GroupId) {
    if let Err(position) = groups.binary_search(&group) {
        groups.insert(position, group);
    }
}

fn remove_sorted(groups: &mut Vec<GroupId>, group: GroupId) {
    if let Ok(position) = groups.binary_search(&group) {
        groups.remove(position);
    }
}

fn remove_posting(postings: &mut Postings, group: GroupId) {
    if let Ok(position) = postings.binary_search_by_key(&group, |(filed, _)| *filed) {
        postings.remove(position);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use corvid_data::{Arc, AtomType, BaseType, ColumnSchema, Str, TableId, Uuid};
    use corvid_engine::Condition;

    const NAME: ColumnId = ColumnId(0);
    const TAGS: ColumnId = ColumnId(1);

    fn schema() -> Schema {
        let column = |name: &str, min, max| ColumnSchema {
            name: Str::new(name),
            column_type: ColumnType {
                key: BaseType::plain(AtomType::String),
                value: None,
                min,
                max,
            },
            mutable: true,
            persistent: true,
        };
        let columns = vec![
            column("name", 1, 1),
            column("tags", 0, ColumnType::UNLIMITED),
        ];
        let table = TableSchema::new(Str::new("T"), columns);
        Schema::from_parts(Str::new("D"), String::new(), String::new(), vec![table])
    }

    fn set(elements: &[&str]) -> Datum {
        let mut datum = Datum::empty();
        for element in elements {
            datum.insert(Atom::String(Str::new(element)), None);
        }
        datum
    }

    fn row(name: &str, tags: &[&str]) -> Option<Arc<Row>> {
        Some(Arc::new(Row {
            uuid: Uuid([7; 16]),
            version: Uuid([8; 16]),
            columns: Box::new([set(&[name]), set(tags)]),
        }))
    }

    fn change(old: Option<Arc<Row>>, new: Option<Arc<Row>>) -> RowChange {
        RowChange {
            table: TableId(0),
            uuid: Uuid([7; 16]),
            old,
            new,
            diffs: Box::default(),
        }
    }

    fn clause(column: ColumnId, function: Function, argument: Datum) -> Clause {
        Clause::Compare {
            column,
            function,
            argument,
        }
    }

    fn subscription(clauses: Vec<Clause>) -> Subscription {
        let condition =
            TableCondition::of_requests(vec![Some(Condition::new(clauses, HashSeed::FIXED))]);
        let table = TableSubscription::new(TableId(0), Select::ALL, Vec::new(), condition);
        Subscription::new(vec![table])
    }

    fn hits(dispatch: &Dispatch, change: &RowChange) -> Vec<(usize, Match, Match)> {
        let mut hits = vec![Hit {
            group: GroupId(99),
            old: Match::No,
            new: Match::No,
        }];
        dispatch.candidates(change, &mut hits);
        hits.iter()
            .map(|hit| (hit.group.0, hit.old, hit.new))
            .collect()
    }

    #[test]
    fn change_visits_only_groups_that_name_its_values() {
        let schema = schema();
        let mut dispatch = Dispatch::new(&schema, HashSeed::FIXED);
        let of = |number: usize| {
            subscription(vec![clause(
                NAME,
                Function::Equal,
                set(&[&format!("host-{number}")]),
            )])
        };
        for number in 0..500 {
            dispatch.add(&schema, &of(number), GroupId(number));
        }
        let moved = change(row("host-3", &[]), row("host-4", &[]));
        assert_eq!(
            hits(&dispatch, &moved),
            [(3, Match::Yes, Match::No), (4, Match::No, Match::Yes)]
        );
        assert_eq!(hits(&dispatch, &change(None, row("other", &[]))), []);
        for number in 0..500 {
            dispatch.remove(&schema, &of(number), GroupId(number));
        }
        assert_eq!(hits(&dispatch, &moved), []);
        assert!(dispatch.tables[0].columns.is_empty());
    }

    #[test]
    fn elements_decide_single_includes_and_only_hint_at_larger_values() {
        let schema = schema();
        let mut dispatch = Dispatch::new(&schema, HashSeed::FIXED);
        let cases = [
            clause(TAGS, Function::Includes, set(&["a"])),
            clause(TAGS, Function::Includes, set(&["a", "b"])),
            clause(TAGS, Function::Equal, set(&["a"])),
            clause(TAGS, Function::Equal, set(&[])),
        ];
        for (number, clause) in cases.into_iter().enumerate() {
            dispatch.add(&schema, &subscription(vec![clause]), GroupId(number));
        }
        let tagged = change(row("n", &[]), row("n", &["a", "c", "d", "e"]));
        assert_eq!(
            hits(&dispatch, &tagged),
            [
                (0, Match::No, Match::Yes),
                (1, Match::No, Match::Maybe),
                (2, Match::No, Match::Maybe),
                (3, Match::Yes, Match::No),
            ]
        );
    }

    #[test]
    fn group_found_by_several_clauses_is_visited_once() {
        let schema = schema();
        let mut dispatch = Dispatch::new(&schema, HashSeed::FIXED);
        let several = subscription(vec![
            clause(NAME, Function::Equal, set(&["n"])),
            clause(TAGS, Function::Equal, set(&["a", "b"])),
            clause(TAGS, Function::Includes, set(&["c"])),
            clause(
                ColumnId::UUID,
                Function::Equal,
                Datum::one(Atom::Uuid(Uuid([7; 16]))),
            ),
            clause(
                ColumnId::VERSION,
                Function::Equal,
                Datum::one(Atom::Uuid(Uuid([8; 16]))),
            ),
        ]);
        dispatch.add(&schema, &several, GroupId(5));
        let tagged = change(row("m", &["a"]), row("n", &["a", "c"]));
        assert_eq!(hits(&dispatch, &tagged), [(5, Match::Yes, Match::Yes)]);
    }

    #[test]
    fn other_functions_are_evaluated_and_absent_conditions_match() {
        let schema = schema();
        let mut dispatch = Dispatch::new(&schema, HashSeed::FIXED);
        let not = subscription(vec![
            clause(NAME, Function::Equal, set(&["a"])),
            clause(NAME, Function::NotEqual, set(&["b"])),
        ]);
        dispatch.add(&schema, &not, GroupId(1));
        dispatch.add(&schema, &subscription(vec![]), GroupId(2));
        dispatch.add(
            &schema,
            &subscription(vec![Clause::Constant(false)]),
            GroupId(3),
        );
        assert_eq!(
            hits(&dispatch, &change(None, row("n", &[]))),
            [(2, Match::No, Match::Yes), (1, Match::No, Match::Maybe)]
        );
        dispatch.remove(&schema, &not, GroupId(1));
        dispatch.remove(&schema, &subscription(vec![]), GroupId(2));
        assert_eq!(hits(&dispatch, &change(None, row("n", &[]))), []);
    }
}
