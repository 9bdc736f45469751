//! Files that are missing, cut, changed, foreign or out of order.

use std::ops::ControlFlow;

use corvid_history::segment::FrameMemory;
use corvid_history::{Event, Filter, HistoryError, Moment, Part, Range, Timeline};
use corvid_log::Magic;

use crate::reading::locate;
use crate::world::{World, segment};

/// A history of exactly four files.
fn world(magic: Magic) -> World {
    let mut world = World::new(7, magic);
    for _ in 0..4 {
        let commits = world.dates_ms.len() + 10;
        while world.dates_ms.len() < commits {
            world.step();
        }
        world.compact();
    }
    world
}

fn part(number: u64, bytes: Vec<u8>) -> Result<Part<Vec<u8>>, HistoryError> {
    Part::segment(
        &format!("h/{number}"),
        number,
        bytes,
        FrameMemory::default(),
    )
}

fn walk(timeline: &Timeline<Vec<u8>>) -> Result<(usize, usize), HistoryError> {
    let (mut commits, mut gaps) = (0, 0);
    timeline.walk(&Filter::default(), Range::default(), &mut |event| {
        commits += usize::from(matches!(event, Event::Commit { .. }));
        gaps += usize::from(matches!(event, Event::Gap { .. }));
        ControlFlow::Continue(())
    })?;
    Ok((commits, gaps))
}

/// All files of a world but those with these numbers.
fn without(world: &World, missing: &[usize]) -> Timeline<Vec<u8>> {
    let files = world.files.iter().enumerate();
    let mut parts: Vec<Part<Vec<u8>>> = files
        .filter(|(at, _)| !missing.contains(at))
        .map(|(at, text)| part(at as u64 + 1, segment(text)).expect("a segment"))
        .collect();
    parts.push(Part::present("d.db", world.present.clone()).expect("a file"));
    Timeline::of(parts).expect("one database")
}

#[test]
fn a_missing_file_is_a_gap_that_is_said() {
    let world = world(Magic::Standalone);
    let (all, gaps) = walk(&without(&world, &[])).expect("walked");
    assert_eq!(gaps, 0);
    let timeline = without(&world, &[1]);
    assert_eq!(timeline.gaps(), ["segment 2 is missing before h/3"]);
    let (commits, gaps) = walk(&timeline).expect("walked");
    assert!(commits < all, "{commits} {all}");
    assert_eq!(gaps, 1);
    let timeline = without(&world, &[1, 2]);
    let expected = match world.files.len() {
        4 => "segments 2 to 3 are missing before h/4".to_owned(),
        _ => timeline.gaps()[0].clone(),
    };
    assert_eq!(timeline.gaps(), [expected]);
    // Without the oldest one the history just begins later.
    let timeline = without(&world, &[0]);
    assert_eq!(timeline.gaps(), [""; 0]);
    let early = Moment::Time(world.dates_ms[0]);
    let error = timeline.locate(&early, "-9d", &|ms| format!("<{ms}>"));
    let error = error.expect_err("before the history").to_string();
    assert!(
        error.starts_with("\"-9d\" is before the history; the history begins at <"),
        "{error}"
    );
}

#[test]
fn a_foreign_file_is_named() {
    let ours = world(Magic::Standalone);
    let member = world(Magic::Clustered);
    let error = Timeline::of(vec![
        part(1, segment(&member.files[0])).expect("a segment"),
        Part::present("d.db", ours.present.clone()).expect("a file"),
    ])
    .expect_err("another kind");
    assert_eq!(
        error.to_string(),
        "h/1: it does not belong to this history: it is the file of a cluster's member, the others are of a standalone database"
    );
    let replaced = |text: &[u8], from: &str, to: &str| {
        let text = String::from_utf8(text.to_vec())
            .expect("UTF-8")
            .replace(from, to);
        // Hashes are not checked before a record is used, and the name is in the first record.
        segment(text.as_bytes())
    };
    let error = Timeline::of(vec![
        part(
            1,
            replaced(&ours.files[0], "\"name\":\"D\"", "\"name\":\"E\""),
        )
        .expect("a segment"),
        Part::present("d.db", ours.present.clone()).expect("a file"),
    ])
    .expect_err("another name");
    assert!(
        error.to_string().contains("its database is \"E\""),
        "{error}"
    );
    let id = "22222222-2222-4222-8222-222222222222";
    let other = "33333333-2222-4222-8222-222222222222";
    let error = Timeline::of(vec![
        part(1, replaced(&member.files[0], id, other)).expect("a segment"),
        Part::present("d.db", member.present.clone()).expect("a file"),
    ])
    .expect_err("another cluster");
    assert!(
        error
            .to_string()
            .contains(&format!("its cluster ID is {other}")),
        "{error}"
    );
}

#[test]
fn files_out_of_order_are_gaps() {
    let world = world(Magic::Standalone);
    let files: Vec<_> = [1, 0, 2]
        .iter()
        .map(|at| world.files[*at].clone())
        .chain([world.present.clone()])
        .collect();
    let last = files.len() - 1;
    let parts = files
        .into_iter()
        .enumerate()
        .map(|(at, text)| match at == last {
            true => Part::present("d.db", text).expect("a file"),
            false => part(at as u64 + 1, segment(&text)).expect("a segment"),
        });
    let timeline = Timeline::of(parts.collect()).expect("one database");
    let (_, gaps) = walk(&timeline).expect("walked");
    assert!(gaps > 0);
}

#[test]
fn a_damaged_file_is_an_error_that_names_it() {
    for magic in [Magic::Standalone, Magic::Clustered] {
        let world = world(magic);
        let whole = segment(&world.files[0]);
        for length in (0..whole.len()).step_by(97) {
            let error = part(1, whole[..length].to_vec()).expect_err("cut");
            assert!(error.to_string().starts_with("h/1: "), "{error}");
        }
        for at in (0..whole.len()).step_by(211) {
            let mut flipped = whole.clone();
            flipped[at] ^= 4;
            let read = part(1, flipped).and_then(|part| {
                let present = Part::present("d.db", world.present.clone())?;
                walk(&Timeline::of(vec![part, present])?)
            });
            // A few bits of zstd's headers do not matter.
            if let Err(error) = read {
                assert!(error.to_string().starts_with("h/1: "), "{error}");
            }
        }
        // A plain file: its records have hashes.
        let text = &world.present;
        for at in (0..text.len()).step_by(53) {
            let mut flipped = text.clone();
            flipped[at] ^= 4;
            let read = Part::present("d.db", flipped).and_then(|part| {
                let timeline = Timeline::of(vec![part])?;
                part_is_whole(&timeline)
                    .then(|| walk(&timeline))
                    .transpose()
            });
            match read {
                // The scan ended at a header line that is not one: fewer records.
                Ok(_) => {}
                Err(error) => assert!(error.to_string().starts_with("d.db: "), "{error}"),
            }
        }
    }
}

fn part_is_whole(timeline: &Timeline<Vec<u8>>) -> bool {
    let index = timeline.parts()[0].index();
    index.is_ok_and(|index| index.good_length == index.text_length)
}

#[test]
fn a_record_that_is_being_written_is_left_out() {
    let mut world = world(Magic::Standalone);
    let commits = world.dates_ms.len() + 5;
    while world.dates_ms.len() < commits {
        world.step();
    }
    world.swap();
    let whole = without(&world, &[]);
    let (all, _) = walk(&whole).expect("walked");
    let cut = world.present.len() - 3;
    world.present.truncate(cut);
    let timeline = without(&world, &[]);
    let (commits, gaps) = walk(&timeline).expect("walked");
    assert_eq!((commits, gaps), (all - 1, 0));
    locate(&timeline, &Moment::Back(0));
}
