//! Requests that are executed while commits before them are not stored: what they are answered, and what they are told afterwards.

use corvid_data::{Arc, Delta, Uuid};
use corvid_monitor::{Begun, SessionId, Version};

use crate::bed::{Bed, SESSION, ZOO, shown, txn};

const PETS: &str = r#""Zoo",1,{"Pet":{"columns":["kind"]}}"#;

impl Bed {
    /// Executes operations and leaves the commit, with this number, to be stored.
    fn execute_only(&mut self, number: u64, operations: &str) -> Arc<Delta> {
        let delta = self.execute(operations);
        self.monitors.execute(&delta, txn(number));
        delta
    }

    fn store(&mut self, delta: &Arc<Delta>) {
        self.monitors.stored(delta, self.database.atom_count());
    }

    /// Executes a request to monitor; its reply may leave later.
    fn begin(&mut self, session: SessionId, version: Version, params: &str) -> String {
        let params = format!("[{params}]");
        let rows_max = usize::MAX - 1;
        let (monitors, database) = (&mut self.monitors, &mut self.database);
        let begun = monitors.begin(
            database,
            session,
            version,
            params.as_bytes(),
            &|_| false,
            rows_max,
        );
        match begun.expect("a valid request") {
            Begun::Started(started) => shown(&started.result.to_bytes()),
            other => panic!("{other:?}"),
        }
    }

    fn answer(&mut self, session: SessionId) {
        assert!(self.monitors.catch_up(session, b"1"));
        self.monitors.answered(session, b"1");
    }
}

fn insert(kind: &str) -> String {
    format!(r#"{{"op":"insert","table":"Pet","row":{{"kind":"{kind}"}}}}"#)
}

#[test]
fn a_monitor_joins_as_of_the_last_executed_commit() {
    let mut bed = Bed::new(ZOO);
    let first = bed.execute_only(1, &insert("owl"));
    let contents = bed.begin(SESSION, Version::V2, PETS);
    assert!(contents.contains("owl"), "{contents}");
    let second = bed.execute_only(2, &insert("emu"));
    bed.store(&first);
    assert!(bed.told().is_empty(), "its reply comes first");
    bed.answer(SESSION);
    assert!(bed.told().is_empty(), "its contents show the first commit");
    bed.store(&second);
    let told = bed.told();
    assert!(told.len() == 1 && told[0].contains("emu"), "{told:?}");
    assert!(!told[0].contains("owl"), "{told:?}");
}

#[test]
fn equal_requests_at_different_commits_get_what_each_may_see() {
    let mut bed = Bed::new(ZOO);
    let mut contents = Vec::new();
    let mut deltas = Vec::new();
    // Between two commits two sessions ask; somebody holds on to what they are answered, so that it may be shared.
    for number in 1..=4_u64 {
        for twin in 0..2 {
            contents.push(bed.begin(SessionId(10 * number + twin), Version::V2, PETS));
        }
        deltas.push(bed.execute_only(number, &insert(&format!("kind-{number}"))));
        if number == 3 {
            bed.store(&deltas[0]);
        }
    }
    for (asked, contents) in contents.iter().enumerate() {
        for number in 1..=4 {
            let shows = contents.contains(&format!("kind-{number}"));
            assert_eq!(shows, number <= asked / 2, "{asked}: {contents}");
        }
    }
}

#[test]
fn what_was_written_from_a_state_that_is_undone_is_not_used_again() {
    let mut bed = Bed::new(ZOO);
    // Holds the group, so that what is shared outlives a request.
    bed.begin(SessionId(7), Version::V2, PETS);
    bed.answer(SessionId(7));
    let undone = bed.execute_only(1, &insert("owl"));
    let params = format!("[{PETS}]");
    let (monitors, database) = (&mut bed.monitors, &mut bed.database);
    let session = SessionId(8);
    let begin = monitors.begin(
        database,
        session,
        Version::V2,
        params.as_bytes(),
        &|_| false,
        0,
    );
    let Ok(Begun::Awaited(awaited)) = begin else {
        panic!("its contents are long");
    };
    bed.database.undo(&undone);
    bed.monitors.undo();
    assert!(bed.monitors.cancel(session, b"1"));

    // An unrelated commit makes the moments comparable again.
    bed.insert_ballast();
    let order = awaited.order.expect("the first to ask");
    let written = order.write(|_| std::sync::Arc::new(()));
    bed.monitors.written(&written);
    let contents = bed.begin(SessionId(9), Version::V2, PETS);
    assert_eq!(contents, "{}", "the owl was never there");
}

#[test]
fn commits_that_are_not_stored_are_known_to_those_who_come_back() {
    let mut bed = Bed::new(ZOO);
    let since = |last: Uuid| format!(r#""Zoo",1,{{"Pet":{{"columns":["kind"]}}}},"{last}""#);
    bed.begin(SessionId(7), Version::V3, &since(Uuid::ZERO));
    bed.answer(SessionId(7));
    bed.insert_ballast();
    let first = bed.execute_only(2, &insert("owl"));
    let second = bed.execute_only(3, &insert("emu"));
    let all = bed.begin(SessionId(8), Version::V3, &since(txn(1)));
    assert!(
        all.contains("owl") && all.contains("emu") && all.starts_with(r#"[true,"t3""#),
        "{all}"
    );
    let one = bed.begin(SessionId(9), Version::V3, &since(txn(2)));
    assert!(!one.contains("owl") && one.contains("emu"), "{one}");
    for delta in [first, second] {
        bed.store(&delta);
    }
    for session in [8, 9] {
        bed.answer(SessionId(session));
        assert!(bed.told_to(SessionId(session)).is_empty());
    }
}

#[test]
fn a_condition_changes_what_comes_after_the_commits_before_it() {
    let mut bed = Bed::new(ZOO);
    let owls = r#""Zoo",1,{"Pet":{"columns":["kind"],"where":[["kind","==","owl"]]}}"#;
    bed.begin(SESSION, Version::V2, owls);
    bed.answer(SESSION);
    let first = bed.execute_only(1, &format!("{},{}", insert("owl"), insert("emu")));
    let params = r#"[1,2,{"Pet":[{"where":[["kind","==","emu"]]}]}]"#;
    let (monitors, database) = (&mut bed.monitors, &mut bed.database);
    let change = monitors.change_condition(database, SESSION, params.as_bytes(), &|_| false);
    let change = change.expect("valid");
    let second = bed.execute_only(2, &format!("{},{}", insert("owl"), insert("emu")));
    bed.store(&first);
    let changed = bed.monitors.apply(SESSION, change).expect("there");
    let frames: Vec<String> = changed.frames.iter().map(crate::bed::text).collect();
    assert_eq!(frames.len(), 2, "{frames:?}");
    let (before, effect) = (&frames[0], &frames[1]);
    assert!(
        before.contains("insert\":{\"kind\":\"owl") && !before.contains("emu"),
        "{before}"
    );
    assert!(
        effect.contains("emu") && effect.contains("delete"),
        "{effect}"
    );
    bed.store(&second);
    let told = bed.told();
    assert!(told.len() == 1 && told[0].contains("emu"), "{told:?}");
    assert!(!told[0].contains("owl"), "{told:?}");
}
