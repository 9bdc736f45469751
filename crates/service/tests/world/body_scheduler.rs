//! Contents, results and updates that are written in slices
//! ([`corvid_service::job::body_scheduler`]): short ones finish first, and all have the same bytes
//! as without competition.

mod served;

use corvid_monitor::Version;
use corvid_service::message::DatabaseMethod;

use served::{Dice, Served};

const SMALL: &str = r#"["D","m",{"Small":{"columns":["n"]}}]"#;

/// A monitor request for the large table, different for each number.
fn big(number: u64) -> String {
    format!(r#"["D","m",{{"Big":[{{"columns":["k","n"],"where":[["n",">=",-{number}]]}}]}}]"#)
}

/// A database with a large and a small table whose contents are always written by jobs.
fn served(slice_steps: u64) -> Served {
    let mut served = Served::new(slice_steps, 0);
    served.insert("Big", 10_000);
    served.insert("Small", 20);
    served
}

#[test]
fn contents_of_a_small_table_do_not_wait_for_large_tables() {
    let mut alone = served(20);
    alone.ask(1, DatabaseMethod::Monitor(Version::V2), SMALL);
    let own = alone.turns_until(1);
    assert!((3..10).contains(&own), "{own} slices");

    let mut served = served(20);
    for number in 0..10 {
        served.ask(
            10 + number,
            DatabaseMethod::Monitor(Version::V2),
            &big(number),
        );
    }
    for _ in 0..123 {
        served.turn();
    }
    assert!(served.told.is_empty(), "the large ones have just begun");
    served.ask(1, DatabaseMethod::Monitor(Version::V2), SMALL);
    assert!(served.turns_until(1) <= 2 * own);
    assert_eq!(served.told.len(), 1, "nobody else is told yet");
    served.finish();
    assert_eq!(served.told.len(), 11);
    assert_eq!(served.told[&1], alone.told[&1]);
}

#[test]
fn contents_of_a_large_table_do_not_wait_for_a_stream_of_small_ones() {
    let mut alone = served(2000);
    alone.ask(1, DatabaseMethod::Monitor(Version::V2), &big(0));
    let own = alone.turns_until(1);
    let mut served = served(2000);
    served.ask(1, DatabaseMethod::Monitor(Version::V2), &big(0));
    let turns = (1..).find(|number| {
        // Different each time, because equal contents would be shared.
        let small = format!(r#"["D","m",{{"Small":[{{"where":[["n",">=",-{number}]]}}]}}]"#);
        served.ask(1 + number, DatabaseMethod::Monitor(Version::V2), &small);
        served.turn();
        served.told.contains_key(&1)
    });
    assert!(
        turns.is_some_and(|turns| turns <= 2 * own as u64),
        "{turns:?} for {own}"
    );
    assert_eq!(served.told[&1], alone.told[&1]);
}

#[test]
fn of_contents_that_exceed_the_limit_together_one_is_sent_and_the_others_refused() {
    let mut served = served(1000);
    let memory = served.limit_replies(200_000);
    for number in 0..5 {
        served.ask(
            1 + number,
            DatabaseMethod::Monitor(Version::V2),
            &big(number),
        );
    }
    served.finish();
    let whole: Vec<_> = served
        .told
        .values()
        .filter(|told| told.len() > 500_000)
        .collect();
    let refused = served
        .told
        .values()
        .filter(|told| told.windows(19).any(|part| part == b"resources exhausted"));
    assert_eq!((whole.len(), refused.count()), (1, 4));
    let length = whole[0].len();
    assert!(
        (length - 200..length).contains(&memory.held()),
        "{}",
        memory.held()
    );
    assert_eq!(memory.refused(), 4);
    served.told.clear();
    served.wait();
    assert_eq!(memory.held(), 0);
}

/// All bytes that each client gets in a random run, by connection.
fn life(seed: u64, (slice_steps, is_whole): (u64, bool), rows_max: usize) -> Served {
    let mut dice = Dice(seed);
    let mut served = Served::new(slice_steps, rows_max);
    served.insert("Big", 500 + dice.below(1500));
    served.insert("Small", dice.below(50));
    let sessions = 2 + dice.below(10);
    // Everything is written between phases, so only the order within a phase differs.
    let finish_phase = |served: &mut Served, dice: &mut Dice| {
        let turns = dice.below(20);
        for _ in 0..if is_whole { 0 } else { turns } {
            served.turn();
        }
        if is_whole {
            served.finish();
        }
    };
    for session in 1..=sessions {
        let method = match dice.below(3) {
            0 => DatabaseMethod::Monitor(Version::V1),
            1 => DatabaseMethod::Monitor(Version::V2),
            _ => DatabaseMethod::Monitor(Version::V3),
        };
        let columns = [r#""k""#, r#""n""#, r#""k","n""#][dice.below(3) as usize];
        let condition = match (method, dice.below(3)) {
            (DatabaseMethod::Monitor(Version::V1), _) | (_, 0) => String::new(),
            (_, 1) => format!(r#","where":[["n","<",{}]]"#, dice.below(3000)),
            _ => format!(
                r#","where":[["k","==","row{}"],["n",">",{}]]"#,
                dice.below(100),
                dice.below(1000)
            ),
        };
        let big = format!(r#""Big":[{{"columns":[{columns}]{condition}}}]"#);
        let tables = match dice.below(3) {
            0 => big,
            1 => format!(r#"{big},"Small":[{{}}]"#),
            _ => r#""Small":[{"columns":["n"]}]"#.to_owned(),
        };
        let since = match method {
            DatabaseMethod::Monitor(Version::V3) => r#","00000000-0000-0000-0000-000000000000""#,
            _ => "",
        };
        served.ask(
            session,
            method,
            &format!(r#"["D","m",{{{tables}}}{since}]"#),
        );
        finish_phase(&mut served, &mut dice);
    }
    served.finish();
    for round in 0..3 {
        let (from, to) = (dice.below(500), dice.below(2000));
        let update = format!(
            r#"["D",{{"op":"mutate","table":"Big","where":[["n",">",{from}],["n","<",{to}]],"mutations":[["n","+=",1]]}},{{"op":"insert","table":"Small","row":{{"n":{round}}}}},{{"op":"delete","table":"Big","where":[["n","==",{to}]]}}]"#
        );
        served.ask(1, DatabaseMethod::Transact, &update);
        finish_phase(&mut served, &mut dice);
        served.finish();
        for session in 1..=sessions {
            let sort = if dice.below(2) == 0 {
                r#","sort":["n","k"]"#
            } else {
                ""
            };
            let columns =
                [r#","columns":["n"]"#, r#","columns":["k","n"]"#, ""][dice.below(3) as usize];
            let limit = dice.below(3000);
            let select = format!(
                r#"["D",{{"op":"select","table":"Big","where":[["n","<",{limit}]]{columns}{sort}}},{{"op":"select","table":"Small","where":[]}}]"#
            );
            served.ask(session, DatabaseMethod::Transact, &select);
            finish_phase(&mut served, &mut dice);
        }
        served.finish();
    }
    served
}

#[test]
fn bodies_written_in_slices_equal_those_written_at_once() {
    for seed in 0..8 {
        let at_once = life(seed, (u64::MAX, true), 0);
        for slice_steps in [1 + seed % 7, 50, 700] {
            let sliced = life(seed, (slice_steps, false), 0);
            assert!(sliced.slices > at_once.slices, "seed {seed}");
            assert_eq!(sliced.told.len(), at_once.told.len(), "seed {seed}");
            for (session, told) in &sliced.told {
                let expected = &at_once.told[session];
                assert!(
                    told == expected,
                    "seed {seed}, session {session}, slices of {slice_steps} steps"
                );
            }
        }
        // The database itself writes contents, results and updates of any length.
        let by_itself = life(seed, (1, true), usize::MAX - 1);
        assert_eq!(by_itself.slices, 0, "seed {seed}");
        assert!(by_itself.told == at_once.told, "seed {seed}");
    }
}
