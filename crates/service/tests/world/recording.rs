//! Recordings of databases. Every play whose seed says so is recorded and replayed
//! ([`crate::world::World::check_idle`]); here are damaged recordings, and the cost of recording.

use corvid_service::recording::{MAGIC, Outcome, Replay, ReplayEvent};

use crate::world::World;

/// A recorded play with a monitor and a failed write.
fn recording() -> Vec<u8> {
    // A seed that records, and with which shards execute inline.
    let mut world = World::new(2);
    let (writer, watcher) = (world.connect(), world.connect());
    world.ask(watcher, "0", "monitor", r#"["A","m",{"T":{}}]"#);
    world.run();
    for number in 0..20 {
        if number == 10 {
            world.disk("A").failures = 1;
        }
        let insert = format!(r#"{{"op":"insert","table":"T","row":{{"k":"{number}"}}}}"#);
        world.transact(writer, &number.to_string(), "A", &insert);
        world.run();
    }
    assert!(world.take(writer).contains("I/O error"), "a write fails");
    assert!(world.take(watcher).contains(r#""k":"19""#));
    let recording = world.served("A").recording.clone();
    world.check_idle();
    recording
}

fn replay(bytes: &[u8]) -> Result<Outcome, String> {
    let mut replay = Replay::open(bytes).map_err(|damage| damage.0)?;
    Ok(replay.run(&mut |_| {}))
}

#[test]
fn a_recording_is_replayed_to_the_same_bytes_and_shows_what_happened() {
    let bytes = recording();
    let (mut inputs, mut outputs) = (0, 0);
    let mut replay = Replay::open(&bytes).expect("a recording");
    let outcome = replay.run(&mut |seen| match seen {
        ReplayEvent::Batch(_) => {}
        ReplayEvent::Input(_) => inputs += 1,
        ReplayEvent::Output(_) => outputs += 1,
    });
    assert_eq!(outcome.problem, None);
    assert!(outcome.inputs >= 21 && inputs >= outcome.inputs && outputs > inputs);
}

#[test]
fn a_cut_off_or_damaged_recording_is_reported_with_its_batch() {
    let bytes = recording();
    let whole = replay(&bytes).expect("a recording");
    let mut cut_off = 0;
    for length in (0..bytes.len()).step_by(13) {
        match replay(&bytes[..length]) {
            Err(damage) => assert!(
                damage.contains("cut off")
                    || damage.contains("ends before")
                    || damage.contains("not a recording"),
                "{length}: {damage}"
            ),
            Ok(Outcome {
                problem: None,
                batches,
                ..
            }) => assert!(batches < whole.batches),
            Ok(Outcome {
                problem: Some(problem),
                batches,
                ..
            }) => {
                cut_off += 1;
                assert!(problem.contains("cut off"), "{length}: {problem}");
                assert!(problem.contains(&format!("batch {}", batches + 1)));
            }
        }
    }
    assert!(cut_off > 10);
    for position in (MAGIC.len()..bytes.len()).step_by(7) {
        let mut damaged = bytes.clone();
        damaged[position] ^= 1 << (position % 8);
        let outcome = replay(&damaged);
        let problem = match outcome {
            Err(damage) => damage,
            Ok(outcome) => outcome.problem.expect("a byte is another"),
        };
        assert!(
            problem.contains("damaged") || problem.contains("cut off"),
            "{position}: {problem}"
        );
    }
}
