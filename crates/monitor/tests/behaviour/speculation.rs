//! Requests that are executed while earlier commits are not stored: their replies, and the later
//! notifications.

use corvid_data::{Arc, Delta, Uuid};
use corvid_monitor::{SessionId, StartOutcome, Version};

use crate::fixture::{Fixture, SESSION, ZOO, shown, txn};

const PETS: &str = r#"["Zoo",1,{"Pet":{"columns":["kind"]}}]"#;

impl Fixture {
    /// Executes operations without storing the commit, which gets this number.
    fn execute_only(&mut self, number: u64, operations: &str) -> Arc<Delta> {
        let delta = self.execute(operations);
        self.monitors.execute(&delta, txn(number));
        delta
    }

    fn store(&mut self, delta: &Arc<Delta>) {
        self.monitors.stored(delta, self.database.atom_count());
    }

    /// Executes a monitor request whose contents are short, and returns them. Its reply may be sent
    /// later.
    fn begin_short(&mut self, session: SessionId, version: Version, params: &str) -> String {
        match self.begin(session, version, params, usize::MAX - 1) {
            StartOutcome::Started(started) => shown(&started.result.to_bytes()),
            other => panic!("{other:?}"),
        }
    }
}

fn insert(kind: &str) -> String {
    format!(r#"{{"op":"insert","table":"Pet","row":{{"kind":"{kind}"}}}}"#)
}

#[test]
fn a_monitor_joins_as_of_the_last_executed_commit() {
    let mut fixture = Fixture::new(ZOO);
    let first = fixture.execute_only(1, &insert("owl"));
    let contents = fixture.begin_short(SESSION, Version::V2, PETS);
    assert!(contents.contains("owl"), "{contents}");
    let second = fixture.execute_only(2, &insert("emu"));
    fixture.store(&first);
    assert!(fixture.notifications().is_empty(), "its reply comes first");
    fixture.mark_replied(SESSION, "1");
    assert!(
        fixture.notifications().is_empty(),
        "its contents show the first commit"
    );
    fixture.store(&second);
    let sent = fixture.notifications();
    assert!(sent.len() == 1 && sent[0].contains("emu"), "{sent:?}");
    assert!(!sent[0].contains("owl"), "{sent:?}");
}

#[test]
fn equal_requests_at_different_commits_get_their_own_contents() {
    let mut fixture = Fixture::new(ZOO);
    let mut contents = Vec::new();
    let mut deltas = Vec::new();
    // Two sessions send requests between two commits. A third result is kept, so that it may be
    // shared.
    for number in 1..=4_u64 {
        for twin in 0..2 {
            contents.push(fixture.begin_short(SessionId(10 * number + twin), Version::V2, PETS));
        }
        deltas.push(fixture.execute_only(number, &insert(&format!("kind-{number}"))));
        if number == 3 {
            fixture.store(&deltas[0]);
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
fn contents_of_an_undone_state_are_not_reused() {
    let mut fixture = Fixture::new(ZOO);
    // This monitor keeps the group alive, so that shared texts outlive a request.
    fixture.begin_short(SessionId(7), Version::V2, PETS);
    fixture.mark_replied(SessionId(7), "1");
    let undone = fixture.execute_only(1, &insert("owl"));
    let session = SessionId(8);
    let StartOutcome::ContentsPending(pending) = fixture.begin(session, Version::V2, PETS, 0)
    else {
        panic!("its contents are long");
    };
    fixture.database.undo(&undone);
    fixture.monitors.undo();
    assert!(fixture.monitors.cancel(session, b"1"));

    // After an unrelated commit the states are comparable again.
    fixture.insert_ballast();
    let order = pending.order.expect("the first to ask");
    let written = order.write(|_| std::sync::Arc::new(()));
    fixture.monitors.written(&written);
    let contents = fixture.begin_short(SessionId(9), Version::V2, PETS);
    assert_eq!(contents, "{}", "the owl was never there");
}

#[test]
fn reconnecting_client_can_name_a_commit_that_is_not_stored() {
    let mut fixture = Fixture::new(ZOO);
    let since = |last: Uuid| format!(r#"["Zoo",1,{{"Pet":{{"columns":["kind"]}}}},"{last}"]"#);
    fixture.begin_short(SessionId(7), Version::V3, &since(Uuid::ZERO));
    fixture.mark_replied(SessionId(7), "1");
    fixture.insert_ballast();
    let first = fixture.execute_only(2, &insert("owl"));
    let second = fixture.execute_only(3, &insert("emu"));
    let all = fixture.begin_short(SessionId(8), Version::V3, &since(txn(1)));
    assert!(
        all.contains("owl") && all.contains("emu") && all.starts_with(r#"[true,"t3""#),
        "{all}"
    );
    let one = fixture.begin_short(SessionId(9), Version::V3, &since(txn(2)));
    assert!(!one.contains("owl") && one.contains("emu"), "{one}");
    for delta in [first, second] {
        fixture.store(&delta);
    }
    for session in [8, 9] {
        fixture.mark_replied(SessionId(session), "1");
        assert!(fixture.notifications_to(SessionId(session)).is_empty());
    }
}

#[test]
fn condition_applies_after_the_commits_before_it() {
    let mut fixture = Fixture::new(ZOO);
    let owls = r#"["Zoo",1,{"Pet":{"columns":["kind"],"where":[["kind","==","owl"]]}}]"#;
    fixture.begin_short(SESSION, Version::V2, owls);
    fixture.mark_replied(SESSION, "1");
    let first = fixture.execute_only(1, &format!("{},{}", insert("owl"), insert("emu")));
    let params = r#"[1,2,{"Pet":[{"where":[["kind","==","emu"]]}]}]"#;
    let change = fixture.execute_change(SESSION, params);
    let second = fixture.execute_only(2, &format!("{},{}", insert("owl"), insert("emu")));
    fixture.store(&first);
    let changed = fixture.monitors.apply(SESSION, change).expect("there");
    let frames: Vec<String> = changed.frames.iter().map(crate::fixture::text).collect();
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
    fixture.store(&second);
    let sent = fixture.notifications();
    assert!(sent.len() == 1 && sent[0].contains("emu"), "{sent:?}");
    assert!(!sent[0].contains("owl"), "{sent:?}");
}
