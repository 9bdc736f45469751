//! A member that starts again after its process was killed: the records that it finds in its file
//! may never have been synced.

use corvid_consensus::message::PeerMessage;
use corvid_consensus::{EntryBody, Input, KeptEntries, Member, Output, Settings};
use corvid_data::Uuid;
use corvid_log::cluster::{Cid, Index, Servers, Sid, Term};
use corvid_log::storage::{LogPosition, StorageReply};

use crate::cluster::sid;
use crate::disk::Disk;

fn member(disk: &Disk) -> Member {
    let settings = Settings {
        sid: disk.sid,
        name: "T".to_owned(),
        address: "tcp:1.2.3.4:5".to_owned(),
        kept: KeptEntries::DEFAULT,
    };
    Member::new(settings, disk.recover(), 0, 1)
}

/// Returns the member's messages for one input, and the replies of its disk. The disk executes the
/// member's requests; its replies are not delivered.
fn handle(
    member: &mut Member,
    disk: &mut Disk,
    input: Input,
) -> (Vec<PeerMessage>, Vec<StorageReply>) {
    member.handle(0, input);
    let (mut sent, mut replies) = (Vec::new(), Vec::new());
    while let Some(output) = member.next_output() {
        match output {
            Output::Send { message, .. } => sent.push(message),
            Output::Store(requests) => {
                replies.extend(
                    requests
                        .into_iter()
                        .flat_map(|request| disk.request(request)),
                );
            }
            _ => {}
        }
    }
    (sent, replies)
}

fn acknowledges(sent: &[PeerMessage]) -> bool {
    let is_promise = |message: &PeerMessage| {
        matches!(
            message,
            PeerMessage::AppendReply {
                index: Index(2),
                rejection: None,
                ..
            }
        )
    };
    sent.iter().any(is_promise)
}

#[test]
fn entries_of_a_killed_process_are_acknowledged_after_the_first_sync() {
    let (own, leader): (Sid, Sid) = (sid(1), sid(2));
    let addresses =
        [own, leader, sid(3)].map(|sid| format!("\"{}\":\"tcp:1.2.3.4:{}\"", sid.0, sid.0.0[15]));
    let servers =
        Servers::decode(format!("{{{}}}", addresses.join(",")).as_bytes()).expect("a list");
    let cid = Cid::new(Uuid([7; 16])).expect("an id");
    let mut disk = Disk::new(own, cid, &servers);
    let append = || Input::Peer {
        from: leader,
        message: PeerMessage::Append {
            term: Term(2),
            prev_index: Index(1),
            prev_term: Term(1),
            commit: Index(1),
            entries: vec![(Term(2), EntryBody::empty())],
        },
    };
    // The entry is written, and the process is killed. The next process finds the entry and cannot
    // know whether it was synced.
    let mut first = member(&disk);
    let (sent, replies) = handle(&mut first, &mut disk, append());
    assert!(!acknowledges(&sent) && !replies.is_empty());
    disk.crash(0);
    let mut second = member(&disk);
    assert_eq!(disk.recover().entries.len(), 1);
    let (sent, replies) = handle(&mut second, &mut disk, append());
    assert!(!acknowledges(&sent), "{sent:?}");
    // The first sync comes before the record of the leader, which is never synced.
    let opened = StorageReply::Appended(LogPosition::OPENING, Ok(()));
    let mut sent = Vec::new();
    for reply in std::iter::once(opened).chain(replies) {
        sent.extend(handle(&mut second, &mut disk, Input::Storage(reply)).0);
    }
    assert!(acknowledges(&sent), "{sent:?}");
}
