//! States, positions and changes, compared with what happened.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use corvid_data::{AtomRef, Datum, HashSeed};
use corvid_history::{
    Bound, ColumnChange, Event, Filter, Moment, Part, Position, Range, RowChange, RowPrefix,
    Timeline,
};
use corvid_log::Magic;

use crate::world::{Random, START_MS, State, World, state, unjoined};

const SEEDS: u64 = 40;
const COMMITS: usize = 80;

fn worlds() -> impl Iterator<Item = World> {
    let kinds = [Magic::Standalone, Magic::Clustered];
    (0..SEEDS).map(move |seed| World::of(seed, kinds[seed as usize % 2], COMMITS))
}

pub(crate) fn locate(timeline: &Timeline<Vec<u8>>, moment: &Moment) -> Position {
    timeline
        .locate(moment, "M", &|ms| ms.to_string())
        .expect("a moment of the history")
}

pub(crate) fn state_at(timeline: &Timeline<Vec<u8>>, position: Position) -> State {
    let loaded = timeline.state_at(position, HashSeed::new(1), &mut Random(9));
    state(&loaded.expect("a state"))
}

/// Changes of commits, oldest first: id, comment, changes.
pub(crate) type Commits = Vec<(String, Option<String>, Vec<RowChange>)>;

pub(crate) fn walk(timeline: &Timeline<Vec<u8>>, filter: &Filter, range: Range) -> Commits {
    let mut commits = Vec::new();
    timeline
        .walk(filter, range, &mut |event| {
            match event {
                Event::Commit {
                    id,
                    comment,
                    changes,
                    ..
                } => commits.push((id.to_string(), comment.map(str::to_owned), changes.to_vec())),
                Event::Gap { file, changes, .. } => panic!("a gap before {file}: {changes:?}"),
                Event::Begin { .. } | Event::Schema { .. } => {}
            }
            ControlFlow::Continue(())
        })
        .expect("walked");
    commits
}

/// Applies changes to rows; the old values must be the present ones.
fn replay(rows: &mut State, changes: &[RowChange]) {
    for change in changes {
        let key = (change.table().name.to_string(), change.uuid);
        assert_eq!(rows.get(&key).map(Vec::as_slice), change.old.as_deref());
        match &change.new {
            Some(new) => rows.insert(key, new.to_vec()),
            None => rows.remove(&key),
        };
    }
}

#[test]
fn every_state_is_found_by_number_time_and_id() {
    for mut world in worlds() {
        let timeline = world.timeline();
        let count = world.dates_ms.len();
        let ids: Vec<String> = walk(&timeline, &Filter::default(), Range::default())
            .into_iter()
            .map(|(id, ..)| id)
            .collect();
        for (at, expected) in world.states.iter().enumerate() {
            let back = locate(&timeline, &Moment::Back((count - at) as u64));
            assert_eq!(state_at(&timeline, back), *expected, "commit {at}");
            if at > 0 {
                let time = locate(&timeline, &Moment::Time(world.dates_ms[at - 1]));
                let expected = world.replaced.get(&at).unwrap_or(expected);
                let found = state_at(&timeline, time);
                // A cluster's conversion has no date, so it counts as made with the next commit.
                let is_conversion = world.comments[at - 1].is_empty();
                let is_before = is_conversion && found == world.states[at - 1];
                assert!(is_before || found == *expected, "commit {at}");
            }
        }
        // Conversions are entries without changes.
        for id in &ids {
            let position = locate(&timeline, &Moment::Commit(id.clone()));
            assert!(position >= timeline.beginning().expect("a beginning"));
        }
        let before = Moment::Time(START_MS - 1);
        assert!(timeline.locate(&before, "M", &|ms| ms.to_string()).is_err());
        let before = Moment::Back(count as u64 + 1);
        assert!(timeline.locate(&before, "M", &|ms| ms.to_string()).is_err());
    }
}

#[test]
fn replayed_changes_give_every_state() {
    for seed in 0..SEEDS {
        let kinds = [Magic::Standalone, Magic::Clustered];
        let mut world = World::of(seed, kinds[seed as usize % 2], COMMITS);
        let timeline = world.timeline();
        let mut rows = State::new();
        let mut at = 0;
        timeline
            .walk(&Filter::default(), Range::default(), &mut |event| {
                match event {
                    Event::Commit {
                        changes,
                        comment,
                        date_ms,
                        ..
                    } => {
                        // A commit may be without changes of rows that a file has.
                        at += 1;
                        while *date_ms != Some(world.dates_ms[at - 1]) {
                            assert_eq!(world.states[at], world.states[at - 1]);
                            at += 1;
                        }
                        replay(&mut rows, changes);
                        let expected = world.replaced.get(&at).unwrap_or(&world.states[at]);
                        assert_eq!(rows, *expected, "seed {seed}, commit {at}");
                        assert_eq!(*comment, Some(&*world.comments[at - 1]));
                    }
                    Event::Begin { changes, .. } => replay(&mut rows, changes),
                    Event::Schema { .. } => {
                        // The rows are converted; the next state has them.
                        let is_entry = world.comments.get(at).is_some_and(String::is_empty);
                        at += usize::from(is_entry);
                        rows = world.states[at].clone();
                    }
                    Event::Gap { file, .. } => panic!("seed {seed}: a gap before {file}"),
                }
                ControlFlow::Continue(())
            })
            .expect("walked");
        assert_eq!(Some(&rows), world.states.last(), "seed {seed}");
    }
}

#[test]
fn filters_and_ranges_select_what_the_whole_walk_has() {
    for mut world in worlds() {
        let timeline = world.timeline();
        let all = walk(&timeline, &Filter::default(), Range::default());
        let mut rows = BTreeMap::new();
        for change in all.iter().flat_map(|(_, _, changes)| changes) {
            *rows.entry(change.uuid).or_insert(0) += 1;
        }
        let (row, _) = rows.iter().max_by_key(|(_, count)| **count).expect("rows");
        let text: String = row.to_text().map(char::from).iter().collect();
        for (filter, is_wanted) in [
            (
                Filter {
                    row: Some(RowPrefix::parse(&text).expect("a UUID")),
                    ..Filter::default()
                },
                Box::new(|change: &RowChange| change.uuid == *row)
                    as Box<dyn Fn(&RowChange) -> bool>,
            ),
            (
                Filter {
                    row: Some(RowPrefix::parse(&text[..2]).expect("a UUID")),
                    table: Some("Port".to_owned()),
                    ..Filter::default()
                },
                Box::new(|change: &RowChange| {
                    change.uuid.to_text().starts_with(&text.as_bytes()[..2])
                        && *change.table().name == *"Port"
                }),
            ),
            (
                Filter {
                    column: Some("tag".to_owned()),
                    ..Filter::default()
                },
                Box::new(|change: &RowChange| {
                    let tag = usize::from(change.table().column_id("tag").expect("a column").0);
                    change.columns().iter().any(|(at, _)| *at == tag)
                }),
            ),
            (
                Filter {
                    table: Some("Other".to_owned()),
                    ..Filter::default()
                },
                Box::new(|change: &RowChange| *change.table().name == *"Other"),
            ),
        ] {
            let expected: Vec<(String, String)> = all
                .iter()
                .flat_map(|(id, _, changes)| changes.iter().map(move |change| (id, change)))
                .filter(|(_, change)| is_wanted(change))
                .map(|(id, change)| (id.clone(), format!("{:?}", change.columns())))
                .collect();
            let found: Vec<(String, String)> = walk(&timeline, &filter, Range::default())
                .iter()
                .flat_map(|(id, _, changes)| changes.iter().map(move |change| (id, change)))
                .map(|(id, change)| (id.clone(), format!("{:?}", change.columns())))
                .collect();
            assert_eq!(found, expected, "{filter:?}");
        }
        let client = Filter {
            client: Some("client-1".to_owned()),
            ..Filter::default()
        };
        let expected = all.iter().filter(|(_, comment, _)| {
            comment
                .as_ref()
                .is_some_and(|comment| comment.contains("client-1"))
        });
        let found = walk(&timeline, &client, Range::default());
        assert_eq!(found.len(), expected.count());

        let count = all.len() as u64;
        for _ in 0..5 {
            let mut back = [world.random.below(count), world.random.below(count)];
            back.sort_unstable();
            let [until, since] = back.map(|back| locate(&timeline, &Moment::Back(back)));
            let range = Range {
                since: Some(since),
                until: Some(until),
            };
            let mut rows = state_at(&timeline, since);
            let changes = walk(&timeline, &Filter::default(), range);
            if is_one_schema(&timeline, since, until) {
                for (_, _, changes) in &changes {
                    replay(&mut rows, changes);
                }
                assert_eq!(rows, state_at(&timeline, until));
            }
        }
    }
}

fn is_one_schema(timeline: &Timeline<Vec<u8>>, since: Position, until: Position) -> bool {
    let mut is_one = true;
    let range = Range {
        since: Some(since),
        until: Some(until),
    };
    timeline
        .walk(&Filter::default(), range, &mut |event| {
            is_one &= !matches!(event, Event::Schema { .. });
            ControlFlow::Continue(())
        })
        .expect("walked");
    is_one
}

#[test]
fn a_bounded_history_ends_where_the_file_ended_although_it_has_grown() {
    for mut world in worlds() {
        let bound = world.bound();
        let (count, expected) = (world.dates_ms.len(), world.states.last().cloned());
        let filter = Filter::default();
        let ids = |timeline: &Timeline<Vec<u8>>| -> Vec<String> {
            let commits = walk(timeline, &filter, Range::default()).into_iter();
            commits.map(|(id, ..)| id).collect()
        };
        let before = ids(&world.timeline());
        for _ in 0..10 {
            world.commit();
        }
        let whole = world.timeline();
        let mut bounded = world.timeline();
        let wrong = match bound {
            Bound::Offset(_) => Bound::Index(1),
            Bound::Index(_) => Bound::Offset(1),
        };
        assert!(bounded.end_at(wrong).is_err(), "it would be no bound");
        bounded.end_at(bound).unwrap();
        assert_eq!(ids(&bounded), before);
        assert!(ids(&whole).starts_with(&before));
        let grown = (world.dates_ms.len() - count) as u64;
        for back in 0..3 {
            let position = locate(&bounded, &Moment::Back(back));
            let same = locate(&whole, &Moment::Back(back + grown));
            assert_eq!(state_at(&bounded, position), state_at(&whole, same));
        }
        let now = Moment::Time(*world.dates_ms.last().expect("commits"));
        for position in [
            bounded.end().expect("an end"),
            locate(&bounded, &Moment::Back(0)),
            locate(&bounded, &now),
        ] {
            assert_eq!(Some(state_at(&bounded, position)), expected);
        }
        if let Some(id) = ids(&whole).get(before.len()) {
            let later = Moment::Commit(id.clone());
            assert!(bounded.locate(&later, "M", &|ms| ms.to_string()).is_err());
        }
    }
}

#[test]
fn a_range_that_ends_before_it_begins_is_empty() {
    for mut world in worlds().take(10) {
        let timeline = world.timeline();
        let range = Range {
            since: Some(timeline.end().expect("an end")),
            until: Some(timeline.beginning().expect("a beginning")),
        };
        assert!(walk(&timeline, &Filter::default(), range).is_empty());
    }
}

#[test]
fn a_schema_is_that_of_the_state() {
    let mut versions = std::collections::BTreeSet::new();
    for mut world in worlds() {
        let timeline = world.timeline();
        for back in (0..COMMITS as u64).step_by(7) {
            let position = locate(&timeline, &Moment::Back(back));
            let loaded = timeline.state_at(position, HashSeed::new(1), &mut Random(9));
            let schema = timeline.schema_at(position).expect("a schema");
            assert!(schema.same_as(loaded.expect("a state").schema()));
            versions.insert(schema.version.to_string());
        }
    }
    assert_eq!(versions.len(), 2, "some of them were converted");
}

#[test]
fn a_watched_walk_tells_every_step_in_order_and_ends_when_told_to() {
    for mut world in worlds().take(10) {
        let timeline = world.timeline();
        let (mut steps, mut events) = (Vec::new(), 0);
        let filter = Filter {
            client: Some("nobody".to_owned()),
            ..Filter::default()
        };
        let mut walked = |limit: usize| {
            steps.clear();
            let walked = timeline.walk_watched(
                &filter,
                Range::default(),
                &mut |event| {
                    events += usize::from(matches!(event, Event::Commit { .. }));
                    ControlFlow::Continue(())
                },
                &mut |step| {
                    steps.push((step.part, step.end));
                    match steps.len() < limit {
                        true => ControlFlow::Continue(()),
                        false => ControlFlow::Break(()),
                    }
                },
            );
            walked.expect("walked");
            steps.clone()
        };
        let all = walked(usize::MAX);
        assert!(all.len() >= COMMITS && all.is_sorted());
        assert_eq!(walked(3), all[..3]);
        assert_eq!(events, 0, "none is wanted");
    }
}

#[test]
fn differences_of_states_are_those_of_the_walk() {
    for mut world in worlds().take(10) {
        let timeline = world.timeline();
        let load = |position| {
            let loaded = timeline.state_at(position, HashSeed::new(1), &mut Random(9));
            loaded.expect("a state")
        };
        let (first, last) = (
            timeline.beginning().expect("first"),
            timeline.end().expect("last"),
        );
        let (old, new) = (load(first), load(last));
        let (changes, tables) = corvid_history::diff(&old, &new);
        let mut rows = state(&old);
        replay(&mut rows, &changes);
        let mut expected = state(&new);
        // A conversion that adds a table and a column of another one leaves the rest comparable.
        assert!(tables.iter().all(|table| table == "Other"), "{tables:?}");
        for table in &tables {
            rows.retain(|(name, _), _| name != table);
            expected.retain(|(name, _), _| name != table);
        }
        assert_eq!(rows, expected);
    }
}

#[test]
fn elements_of_sets_and_maps_are_told_apart() {
    let mut world = World::of(3, Magic::Standalone, COMMITS);
    let timeline = world.timeline();
    let mut elements = 0;
    for (_, _, changes) in walk(&timeline, &Filter::default(), Range::default()) {
        for change in changes {
            for (at, column) in change.columns() {
                let value = |columns: &Option<corvid_history::change::Columns>| {
                    columns
                        .as_ref()
                        .map_or(Datum::empty(), |columns| columns[at].clone())
                };
                let (old, new) = (value(&change.old), value(&change.new));
                if let ColumnChange::Elements { removed, added } = column {
                    elements += 1;
                    let mut rebuilt = old.clone();
                    rebuilt.remove_all(&removed);
                    for (key, value) in &added {
                        rebuilt.insert(key.to_owned(), value.map(AtomRef::to_owned));
                    }
                    assert_eq!(rebuilt, new);
                }
            }
        }
    }
    assert!(elements > 10);
}

/// A server that was joining a cluster kept its first file, which has no contents.
#[test]
fn the_file_of_a_server_that_has_not_joined_is_no_part_of_the_history() {
    let text = unjoined();
    assert!(corvid_history::has_not_joined(&text));
    let mut world = World::of(5, Magic::Clustered, COMMITS);
    let count =
        |timeline: &Timeline<Vec<u8>>| walk(timeline, &Filter::default(), Range::default()).len();
    let expected = count(&world.timeline());
    let mut parts = vec![Part::plain("unjoined", Some(0), text)];
    parts.extend(world.parts());
    let timeline = Timeline::of(parts).expect("a timeline");
    assert_eq!(count(&timeline), expected);
    assert!(timeline.gaps().is_empty());
}
