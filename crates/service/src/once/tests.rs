//! Tests: what is remembered of transactions and commits, in memory and in snapshots.

use corvid_log::cluster::{Eid, Term};

use super::*;

fn id(number: u64) -> Uuid {
    Uuid(u128::from(number).to_be_bytes())
}

fn result(length: usize) -> OnceOutcome {
    OnceOutcome::Result(Some(vec![b'x'; length].into()))
}

#[test]
fn a_snapshot_names_the_commits_that_it_contains() {
    let mut table = OnceTable::new(id(1));
    table.committed(id(2));
    assert!(table.ids_through(id(2)).is_empty(), "no client sends ids");
    let (done, undone) = (Once::sent(id(10), None), Once::sent(id(11), None));
    assert_eq!(table.judge(done), Verdict::New);
    table.committed(table.commit_id(done.id, Some(3)));
    let last = table.last().expect("a commit");
    table.remember(Key::of_commit(last), result(7), true);
    table.committed(table.commit_id(undone.id, Some(3)));
    let named = table.ids_through(last);
    assert_eq!(named, [id(1), id(2), last], "later ones may be undone");
    assert!(table.ids_through(id(9)).is_empty(), "it is not remembered");

    let named: Vec<Eid> = named.into_iter().map(Eid).collect();
    let comment = recorded::snapshot_comment("compacting", &named);
    assert_eq!(comment.lines().next(), Some("compacting"));
    let recorded = RecordedCommits::of_snapshot(&comment);
    let repeated = |after: u64| Once::sent(undone.id, Some(id(after)));
    let lost = OnceOutcome::Result(None);
    // A restarted server knows neither the result nor what happened before.
    let mut restarted = OnceTable::restored(last, &recorded);
    assert!(restarted.has_ids());
    assert_eq!(restarted.judge(done), Verdict::Executed(&lost));
    assert_eq!(restarted.judge(repeated(2)), Verdict::New);
    assert_eq!(restarted.judge(repeated(9)), Verdict::Unknown);
    // One that has installed the snapshot still knows what it was told.
    table.install(last, &recorded);
    assert_eq!(table.judge(done), Verdict::Executed(&result(7)));
    assert_eq!(table.judge(repeated(2)), Verdict::New);
    assert_eq!(table.judge(repeated(9)), Verdict::Unknown);
}

#[test]
fn a_snapshot_whose_names_end_too_early_names_its_last_commit_only() {
    let comment = recorded::snapshot_comment("compacting", &[Eid(id(1)), Eid(id(2))]);
    for (last, names) in [(2, vec![id(1), id(2)]), (3, vec![id(3)])] {
        let recorded = RecordedCommits::of_snapshot(&comment).through(Eid(id(last)));
        let ids: Vec<Uuid> = recorded.iter().map(|commit| commit.id).collect();
        assert_eq!(ids, names);
    }
}

#[test]
fn entries_of_clients_with_ids_are_recognized() {
    let table = OnceTable::new(id(1));
    for (commit, has_ids) in [
        (table.commit_id(id(10), Some(0x1_0203)), true),
        (Uuid([0x77; 16]), false),
    ] {
        let mut recorded = RecordedCommits::of_snapshot("compacting");
        recorded.append_entry(Eid(commit), Term(0x1_0203));
        assert_eq!(recorded.has_ids(), has_ids);
        let mut restarted = OnceTable::restored(commit, &recorded);
        assert_eq!(restarted.has_ids(), has_ids);
        let sent = Once::sent(id(10), None);
        let is_known = matches!(restarted.judge(sent), Verdict::Executed(_));
        assert_eq!(is_known, has_ids);
    }
}

#[test]
fn params_name_an_id_a_commit_and_a_transaction() {
    let (uuid, after) = (id(7), id(8));
    let text = format!(r#"["{uuid}", "{after}", ["D",{{"op":"comment"}}]]"#);
    let read = OnceParams::parse(text.as_bytes()).expect("well formed");
    let known = Once {
        id: uuid,
        after: Some(after),
        is_repeated: true,
        came: None,
    };
    assert_eq!((read.once, read.client), (Some(known), None));
    assert_eq!(read.params, br#"["D",{"op":"comment"}]"#);
    let first = format!(r#"["{uuid}", null, ["D"], {{"read_only":true}}]"#);
    let read = OnceParams::parse(first.as_bytes()).expect("well formed");
    assert_eq!(read.once.expect("an id").after, None);
    assert!(read.client.expect("a client").is_read_only());
    let plain = OnceParams::parse(br#"[null,null,["D"],{}]"#).expect("well formed");
    assert!(plain.once.is_none() && plain.client.is_some());
    for wrong in [
        r#"["D"]"#.to_owned(),
        format!(r#"["{uuid}",1,["D"]]"#),
        r#"["5e1f3c9a-0001-4a00-9c66-2f0d8e5b7a11",null,["D"]]"#.to_owned(),
        r#"["00000000-0000-0000-0000-000000000000",null,["D"]]"#.to_owned(),
        format!(r#"["{uuid}","x",["D"]]"#),
        format!(r#"["{uuid}","{after}","D"]"#),
        format!(r#"["{uuid}","{after}",["D"],2]"#),
        format!(r#"["{uuid}","{after}",["D"],{{}},2]"#),
        r#"[null,null,["D"]]"#.to_owned(),
        "{}".to_owned(),
    ] {
        assert!(OnceParams::parse(wrong.as_bytes()).is_none(), "{wrong}");
    }
}

#[test]
fn nothing_that_may_have_been_forgotten_is_executed_again() {
    let mut table = OnceTable::new(id(1));
    let of = |after| Once {
        id: id(9),
        after: Some(id(after)),
        is_repeated: true,
        came: None,
    };
    assert_eq!(table.judge(of(1)), Verdict::New);
    assert_eq!(table.judge(of(0)), Verdict::Unknown, "no history");
    assert_eq!(table.judge(of(5)), Verdict::Unknown, "an earlier one");
    table.committed(id(2));
    assert_eq!(table.judge(of(1)), Verdict::New);
    assert_eq!(table.judge(of(2)), Verdict::New);
    let commit = table.commit_id(id(9), Some(5));
    table.committed(commit);
    let lost = OnceOutcome::Result(None);
    let known = Verdict::Executed(&lost);
    assert_eq!(table.judge(of(1)), known, "only its result is lost");
    let first = Once {
        id: id(9),
        after: None,
        is_repeated: false,
        came: None,
    };
    assert_eq!(table.judge(first), known, "whatever its client tells");
    table.remember(Key::of(id(9)), result(10), false);
    table.remember(Key::of_commit(commit), result(20), true);
    let length = 20 + OUTCOME_OVERHEAD_BYTES;
    assert_eq!((table.bytes, table.get(first)), (length, Some(&result(20))));
    table.undone(commit);
    assert_eq!((table.bytes, table.get(first).is_none()), (0, true));
    assert_eq!(table.judge(of(1)), Verdict::New);
    table.committed(table.commit_id(id(10), None));
    table.remember(Key::of(id(10)), result(RESULT_BYTES_MAX + 1), true);
    let of_10 = Once {
        id: id(10),
        ..first
    };
    assert_eq!(table.get(of_10), Some(&lost));
}

#[test]
fn no_two_commits_have_the_same_id() {
    let mut table = OnceTable::new(id(1));
    let first = Once {
        id: id(9),
        after: None,
        is_repeated: false,
        came: None,
    };
    let mut before = BTreeMap::new();
    for generation in 0..3 {
        assert_eq!(table.judge(first), Verdict::New);
        for term in [None, Some(7), Some(8)] {
            let commit = table.commit_id(id(9), term);
            assert_eq!(Key::of_commit(commit), Key::of(id(9)));
            assert_eq!(before.insert(commit, generation), None);
        }
        table.committed(table.commit_id(id(9), None));
        for number in 0..IDS_MAX as u64 - 1 {
            table.committed(id(100 + number));
        }
        let known = Verdict::Executed(&OnceOutcome::Result(None));
        assert_eq!(table.judge(first), known, "the oldest one");
        table.committed(id(99));
        assert!(table.commits.len() <= IDS_MAX);
        let set = table.known.as_ref().expect("made by now");
        assert_eq!(set.len(), table.commits.len());
    }
}

#[test]
fn results_are_forgotten_before_ids() {
    let mut table = OnceTable::new(id(1));
    for number in 2..400 {
        table.committed(table.commit_id(id(number), None));
        table.remember(Key::of(id(number)), result(RESULT_BYTES_MAX), true);
    }
    assert!(table.bytes <= RESULTS_BYTES_MAX);
    let first = Once {
        id: id(2),
        after: Some(id(1)),
        is_repeated: true,
        came: None,
    };
    assert_eq!(
        table.judge(first),
        Verdict::Executed(&OnceOutcome::Result(None))
    );
}

#[test]
fn the_id_of_a_commit_names_no_transaction() {
    let table = OnceTable::new(id(1));
    let commit = table.commit_id(id(9), None);
    // The id of a commit does not lead to its transaction.
    let guessed = Once {
        id: transaction_id(commit),
        after: None,
        is_repeated: false,
        came: None,
    };
    assert_eq!(table.get(guessed), None);
    assert_ne!(Key::of(transaction_id(commit)), Key::of_commit(commit));
}
