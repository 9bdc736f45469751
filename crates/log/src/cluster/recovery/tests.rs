//! Files of members cut at every byte, with every bit flipped, and with holes; records that must
//! not be there.

use super::*;
use crate::cluster::snapshot_header::{MemberIdentity, SnapshotHeader};
use crate::cluster::{Cid, Data, Eid, Entry, Payload, Servers, Sid, append_record};
use corvid_data::Uuid;

fn uuid(last: u8) -> Uuid {
    let mut bytes = [last; 16];
    bytes[6] = 0x40;
    bytes[8] = 0x80;
    Uuid(bytes)
}

const OWN: u8 = 1;
const PEER: u8 = 2;
const BODY: &str = r#"[{"name":"D","tables":{}},{"_comment":"]}\\"}]"#;

fn servers() -> Servers {
    let text = format!(
        r#"{{"{}":"tcp:127.0.0.1:1","{}":"tcp:127.0.0.1:2"}}"#,
        uuid(OWN),
        uuid(PEER)
    );
    Servers::decode(text.as_bytes()).expect("a list")
}

fn header(own: u8) -> Vec<u8> {
    let identity = MemberIdentity {
        server_id: Sid(uuid(own)),
        cluster_id: Cid::new(uuid(9)),
        name: "D".to_owned(),
        local_address: "tcp:127.0.0.1:1".to_owned(),
    };
    let meta = SnapshotMeta {
        index: Index(4),
        term: Term(2),
        eid: Eid(uuid(20)),
        servers: servers(),
        election_timer_ms: 2000,
        body_bytes: 0,
    };
    let mut out = Vec::new();
    let Ok(()) = SnapshotHeader::new(&identity, &meta).write::<std::convert::Infallible>(
        |sink| sink(BODY.as_bytes()),
        &mut |piece| {
            out.extend_from_slice(piece);
            Ok(())
        },
    );
    out
}

fn entry(term: u64, index: u64, commit: Option<u8>) -> Kind {
    Kind::Entry(Entry {
        term: Term(term),
        index: Index(index),
        servers: None,
        election_timer_ms: None,
        payload: commit.map(|eid| Payload {
            eid: Eid(uuid(eid)),
            data: Data::of(None, Some(br#"{"t":{}}"#)),
        }),
    })
}

fn vote(term: u64, server: u8) -> Kind {
    Kind::Vote {
        term: Term(term),
        vote: Sid(uuid(server)),
    }
}

/// A file with these records after its header, and the offset just past each record.
fn file(kinds: Vec<Kind>) -> (Vec<u8>, Vec<usize>) {
    file_of(header(OWN), kinds)
}

fn file_of(mut file: Vec<u8>, kinds: Vec<Kind>) -> (Vec<u8>, Vec<usize>) {
    let mut ends = vec![file.len()];
    for kind in kinds {
        Record::new(kind).append(&mut file);
        ends.push(file.len());
    }
    (file, ends)
}

fn ordinary() -> Vec<Kind> {
    vec![
        vote(3, OWN),
        Kind::Leader {
            term: Term(3),
            leader: Sid(uuid(OWN)),
        },
        entry(3, 5, None),
        Kind::CommitIndex(Index(5)),
        entry(3, 6, Some(21)),
        Kind::CommitIndex(Index(6)),
        entry(3, 7, Some(22)),
        Kind::Term(Term(5)),
        vote(5, PEER),
        entry(5, 7, Some(23)),
    ]
}

fn open(bytes: &[u8]) -> Result<Recovered, RecoveryError> {
    recover(bytes, bytes.len() as u64)
}

fn opened(kinds: Vec<Kind>) -> Recovered {
    open(&file(kinds).0).expect("a good file")
}

fn refused(kinds: Vec<Kind>) -> String {
    match open(&file(kinds).0) {
        Err(error) => error.to_wire("a.db").to_string(),
        Ok(recovered) => panic!("opened: {recovered:?}"),
    }
}

#[test]
fn the_state_of_a_member_is_read() {
    let (bytes, ends) = file(ordinary());
    let recovered = open(&bytes).expect("a good file");
    assert_eq!(recovered.server_id, Sid(uuid(OWN)));
    assert_eq!(
        (recovered.term, recovered.vote),
        (Term(5), Some(Sid(uuid(PEER))))
    );
    assert_eq!((recovered.leader, &recovered.damage), (None, &None));
    assert_eq!(recovered.records, 11);
    assert_eq!(recovered.base, ends[0] as u64);
    assert_eq!(recovered.good_end, bytes.len() as u64);
    let joined = recovered.joined().expect("a member");
    assert_eq!(
        (joined.last_index(), joined.last_term()),
        (Index(7), Term(5))
    );
    assert_eq!(
        (joined.commit, joined.last_eid()),
        (Index(6), Eid(uuid(23)))
    );
    assert_eq!(joined.committed().len(), 2);
    assert_eq!(
        (joined.servers(), joined.election_timer_ms()),
        (&servers(), 2000)
    );
    let body = usize::try_from(joined.body.offset).expect("small");
    assert_eq!(&bytes[body..body + BODY.len()], BODY.as_bytes());
    assert_eq!(joined.snapshot.body_bytes, BODY.len() as u64);
    // The entry that was superseded is gone.
    let texts: Vec<&[u8]> = joined.entries.iter().map(|entry| &entry.text[..]).collect();
    let commit = |eid| format!(r#""eid":"{}","data":[null,{{"t":{{}}}}]"#, uuid(eid));
    assert_eq!(
        texts,
        [&b""[..], commit(21).as_bytes(), commit(23).as_bytes()]
    );
    let (eid, data) = joined.entries[2].commit.clone().expect("data");
    assert_eq!(
        (eid, &data[..]),
        (Eid(uuid(23)), &br#"[null,{"t":{}}]"#[..])
    );
}

#[test]
fn every_prefix_of_a_file_opens_as_far_as_its_last_whole_record() {
    let (bytes, ends) = file(ordinary());
    for length in 0..=bytes.len() {
        let prefix = &bytes[..length];
        let whole = ends.iter().take_while(|end| **end <= length).count();
        let Some(good) = whole.checked_sub(1) else {
            assert!(open(prefix).is_err(), "{length}");
            continue;
        };
        let mut recovered = open(prefix).unwrap_or_else(|error| panic!("{length}: {error:?}"));
        let damage = recovered.damage.take();
        let kinds = ordinary().into_iter().take(good).collect();
        assert_eq!(recovered, opened(kinds), "{length}");
        assert_eq!(damage.is_some(), ends[good] < length, "{length}");
        if let Some(damage) = damage {
            assert!(!damage.may_have_forgotten(), "{length}: {damage:?}");
            assert_eq!(damage.record, whole as u64, "{length}");
        }
    }
}

#[test]
fn a_flipped_bit_never_makes_a_member_forget_silently() {
    let (bytes, _) = file(ordinary());
    let good = open(&bytes).expect("a good file");
    let mut damaged = 0;
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut rotten = bytes.clone();
            rotten[at] ^= 1 << bit;
            match open(&rotten) {
                Err(_) => damaged += 1,
                Ok(recovered) if recovered.may_have_forgotten() => damaged += 1,
                // The flip changed the case of a hash digit, which is not damage.
                Ok(recovered) => assert_eq!(recovered, good, "byte {at}, bit {bit}"),
            }
        }
    }
    assert!(damaged > bytes.len() * 7, "{damaged}");
}

#[test]
fn records_behind_a_cut_make_a_member_forgetful() {
    let (bytes, ends) = file(ordinary());
    for good in 1..ends.len() - 1 {
        for missing in [1, 10, 50] {
            let cut = ends[good] - missing;
            let gap = [&bytes[..cut], &bytes[ends[good]..]].concat();
            match open(&gap) {
                Err(_) => {}
                Ok(recovered) => assert!(recovered.may_have_forgotten(), "{good} {missing}"),
            }
        }
    }
}

#[test]
fn holes_were_never_synced() {
    let (bytes, ends) = file(ordinary());
    // The blocks of record 5 and a part of record 6 were never written; the blocks after them were.
    for to in [ends[5] - 1, ends[5] + 20, bytes.len()] {
        let mut holey = bytes.clone();
        holey[ends[4] + 3..to].fill(0);
        let recovered = open(&holey).expect("a good beginning");
        assert_eq!(recovered.good_end, ends[4] as u64);
        assert!(
            recovered.damage.is_some() && !recovered.may_have_forgotten(),
            "{to}"
        );
    }
    // A few zeros do not make a block.
    let mut rotten = bytes.clone();
    rotten[ends[4] + 60..ends[4] + 64].fill(0);
    assert!(
        open(&rotten)
            .expect("a good beginning")
            .may_have_forgotten()
    );
    // A hole after whole records does not excuse damage before them either.
    let mut both = bytes.clone();
    both[ends[3] + 60] ^= 1;
    both[ends[8]..].fill(0);
    assert!(open(&both).expect("a good beginning").may_have_forgotten());
}

#[test]
fn records_that_must_not_be_there_are_explained() {
    let in_record = |text: &str| format!("ovsdb error: error reading record 1 from D log: {text}");
    let first = |kind| refused(vec![kind]);
    assert_eq!(
        first(entry(3, 7, None)),
        in_record("record 1 with index 7 skips past expected index 5")
    );
    assert_eq!(
        first(entry(1, 5, None)),
        in_record("record 1 with index 5 term 1 precedes previous entry's term 2")
    );
    assert_eq!(
        first(Kind::CommitIndex(Index(5))),
        in_record("record 1 advances commit index to 5 but last log index is 4")
    );
    assert_eq!(
        first(Kind::Note("left".to_owned())),
        in_record(
            "record 1 indicates server has left the cluster; it cannot be added back (use \"ovsdb-tool join-cluster\" to add a new server)"
        )
    );
    let mut votes = ordinary();
    votes.truncate(1);
    votes.push(vote(3, PEER));
    assert!(refused(votes).ends_with("but a previous record for the same term voted for 0101"));
    // The reference would replace the committed entry.
    let kinds = vec![
        entry(3, 5, None),
        entry(3, 6, None),
        Kind::CommitIndex(Index(6)),
        entry(4, 6, None),
    ];
    assert_eq!(
        refused(kinds),
        "ovsdb error: error reading record 4 from D log: record 4 attempts to truncate log from 7 to 6 entries, but commit index is already 6"
    );
    let mut malformed = header(OWN);
    append_record(&mut malformed, 20, |body| {
        body.extend_from_slice(b"{\"commit_index\":0}");
    });
    let error = open(&malformed).expect_err("no record").to_wire("a.db");
    assert_eq!(
        error.to_string(),
        "syntax \"{\"commit_index\":0}\": syntax error: error reading record 1 from D log: Parsing raft log record failed: Required 'term' member is missing."
    );
    let (joining, _) = file_of(header(7), ordinary());
    assert!(open(&joining).is_ok(), "in no list yet");
}

#[test]
fn a_joining_server_keeps_its_votes() {
    let header = format!(
        r#"{{"server_id":"{}","name":"D","local_address":"unix:a","remote_addresses":["unix:b"]}}"#,
        uuid(OWN)
    );
    let mut bytes = Vec::new();
    append_record(&mut bytes, header.len(), |body| {
        body.extend_from_slice(header.as_bytes());
    });
    let begin = bytes.len();
    for kind in [
        Kind::Term(Term(4)),
        vote(6, PEER),
        Kind::Term(Term(7)),
        vote(7, OWN),
    ] {
        Record::new(kind).append(&mut bytes);
    }
    let recovered = open(&bytes).expect("a joining server");
    assert_eq!(
        (recovered.term, recovered.vote),
        (Term(7), Some(Sid(uuid(OWN))))
    );
    assert_eq!(
        recovered.membership,
        Membership::Joining {
            remote_addresses: vec!["unix:b".to_owned()]
        }
    );
    for length in begin..bytes.len() {
        let recovered = open(&bytes[..length]).expect("a good header");
        assert!(!recovered.may_have_forgotten(), "{length}");
    }
    Record::new(entry(7, 2, None)).append(&mut bytes);
    assert!(open(&bytes).is_err());
}

#[test]
fn entries_of_other_writers_get_our_form() {
    let mut bytes = header(OWN);
    let text = format!(
        "{{\"data\":[null,\n{{}} ],\"comment\":\"c\",\"eid\":\"{}\",\n\"index\":5,\"term\":2}}",
        uuid(8)
    );
    append_record(&mut bytes, text.len(), |body| {
        body.extend_from_slice(text.as_bytes());
    });
    let recovered = open(&bytes).expect("a good file");
    let entry = &recovered.joined().expect("a member").entries[0];
    let expected = format!("\"eid\":\"{}\",\"data\":[null, {{}} ]", uuid(8));
    assert_eq!(String::from_utf8_lossy(&entry.text), expected);
}

/// Checks that a damaged file admits all promises that the member has made. Returns whether its
/// cluster can heal it.
fn check_promises(rotten: &[u8], good: &Recovered, context: &str) -> bool {
    let Ok(recovered) = open(rotten) else {
        return false;
    };
    let joined = good.joined().expect("a member");
    let Membership::Damaged(promises) = &recovered.membership else {
        assert!(!recovered.may_have_forgotten() || has_obstacle(&recovered));
        return false;
    };
    assert_eq!(
        (recovered.term, recovered.vote),
        (good.term, good.vote),
        "{context}"
    );
    assert_eq!(recovered.server_id, good.server_id, "{context}");
    let last = (joined.last_term(), joined.last_index());
    assert!(
        promises.last >= last,
        "{context}: {:?} {last:?}",
        promises.last
    );
    true
}

fn has_obstacle(recovered: &Recovered) -> bool {
    let damage = recovered.damage.as_ref();
    damage.is_some_and(|damage| damage.obstacle.is_some())
}

#[test]
fn a_flipped_bit_behind_the_header_hides_no_promise() {
    let mut kinds = ordinary();
    kinds.insert(8, Kind::CommitIndex(Index(6)));
    for end in 5..=kinds.len() {
        let (bytes, ends) = file(kinds[..end].to_vec());
        let good = open(&bytes).expect("a good file");
        for at in ends[0]..bytes.len() {
            for bit in [0, 3, 5, 6] {
                let mut rotten = bytes.clone();
                rotten[at] ^= 1 << bit;
                let context = format!("{end} records, byte {at}, bit {bit}");
                let is_healed = check_promises(&rotten, &good, &context);
                let is_good = open(&rotten).is_ok_and(|opened| opened == good);
                assert!(is_healed || is_good, "{context}: {:?}", open(&rotten));
            }
        }
    }
}

#[test]
fn a_flipped_bit_in_the_snapshot_hides_no_promise() {
    let (bytes, ends) = file(ordinary());
    let good = open(&bytes).expect("a good file");
    let mut healed = 0;
    for at in 0..ends[0] {
        let mut rotten = bytes.clone();
        rotten[at] ^= 1;
        let Ok(recovered) = open(&rotten) else {
            continue;
        };
        if let Membership::Damaged(promises) = &recovered.membership {
            healed += 1;
            assert_eq!((recovered.term, recovered.vote), (good.term, good.vote));
            assert_eq!(promises.last, (Term(5), Index(7)), "{at}");
        }
    }
    let body = bytes
        .windows(BODY.len())
        .position(|it| it == BODY.as_bytes());
    let body = body.expect("the body is there");
    let mut rotten = bytes.clone();
    rotten[body + 12] ^= 1;
    assert!(check_promises(&rotten, &good, "in the body"));
    assert!(healed > BODY.len() / 2, "{healed}");
    // Without an entry after it, only the damaged record has the position of the last entry.
    let (mut rotten, _) = file(vec![vote(3, OWN)]);
    rotten[body + 12] ^= 1;
    assert!(open(&rotten).is_err());
}

#[test]
fn foreign_bytes_never_hide_a_promise() {
    let (mut healed, mut refused) = (0, 0);
    let mut kinds = ordinary();
    kinds.extend([Kind::CommitIndex(Index(7)), entry(5, 8, Some(24))]);
    for end in [6, 8, 9, 10, 12] {
        let (bytes, ends) = file(kinds[..end].to_vec());
        let good = open(&bytes).expect("a good file");
        for length in [2, 9, 40, 130, 300] {
            for at in (ends[0]..bytes.len() - length.min(bytes.len() - ends[0])).step_by(3) {
                for foreign in [0x55, b'\n', b'1'] {
                    let mut rotten = bytes.clone();
                    rotten[at..at + length].fill(foreign);
                    let context = format!("{end} records, {length} bytes from {at}");
                    if check_promises(&rotten, &good, &context) {
                        healed += 1;
                    } else {
                        refused += 1;
                    }
                }
            }
        }
    }
    assert!(healed > 500 && refused > 500, "{healed} {refused}");
}

#[test]
fn the_reason_why_nobody_can_heal_a_file_is_known() {
    let obstacle = |kinds: Vec<Kind>, record: usize, from: usize| {
        let (mut bytes, ends) = file(kinds);
        bytes[ends[record] - from..ends[record] - 4].fill(b'x');
        let recovered = open(&bytes).expect("a good beginning");
        recovered.damage.and_then(|damage| damage.obstacle)
    };
    // A commit index and a vote are lost. A later vote makes up for it.
    assert_eq!(obstacle(ordinary(), 4, 10), None);
    assert_eq!(obstacle(ordinary(), 9, 40), Some(Obstacle::Vote));
    // A long record holds no vote, whichever of its bytes are lost.
    assert_eq!(obstacle(ordinary(), 10, 60), None);
    assert_eq!(obstacle(ordinary(), 10, 140), Some(Obstacle::Vote));
    let alone = Entry {
        term: Term(3),
        index: Index(5),
        servers: Servers::decode(format!(r#"{{"{}":"tcp:127.0.0.1:1"}}"#, uuid(OWN)).as_bytes())
            .ok(),
        election_timer_ms: None,
        payload: None,
    };
    let kinds = vec![
        vote(3, OWN),
        Kind::Entry(alone),
        entry(3, 6, Some(22)),
        Kind::CommitIndex(Index(6)),
    ];
    assert_eq!(obstacle(kinds, 3, 60), Some(Obstacle::Alone));
}

#[test]
fn a_server_opens_its_file_after_its_removal_is_committed() {
    // The member joined by a snapshot older than the list that contains it.
    let joiner = 3;
    let list = |index, servers| {
        let Kind::Entry(entry) = entry(2, index, None) else {
            unreachable!("an entry");
        };
        Kind::Entry(Entry {
            servers: Some(servers),
            ..entry
        })
    };
    let text = format!(r#"{{"{}":"tcp:127.0.0.1:3"}}"#, uuid(joiner));
    let with_joiner = Servers::decode(text.as_bytes()).expect("a list");
    let kinds = vec![
        list(5, with_joiner),
        list(6, servers()),
        Kind::CommitIndex(Index(6)),
    ];
    let (bytes, _) = file_of(header(joiner), kinds);
    let recovered = open(&bytes).expect("a good file");
    let joined = recovered.joined().expect("a member");
    assert_eq!((joined.commit, joined.servers()), (Index(6), &servers()));
}
