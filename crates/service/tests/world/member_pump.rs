//! The turns of a member's thread: the order of their steps, and the end of a member.

use bytes::Bytes;
use corvid_consensus::member::{CommandToken, KeptEntries, Repeated, ServerRow};
use corvid_consensus::{
    ConnectionNumber, Member, MemberEvent, Peers, PeersSettings, Recovered, Settings,
};
use corvid_rpc::Level;
use corvid_service::member::{MemberEffects, MemberPump};
use corvid_service::message::{Control, ToDatabase};

use crate::member_file::{Threads, opened, recovered};

/// Effects that do nothing: the steps of a turn are listed as text.
#[derive(Default)]
struct Still {
    parts: Vec<String>,
    /// An operator has stopped the member.
    is_ended: bool,
}

impl MemberEffects for Still {
    type Storage = Threads;

    fn receive(&mut self, _: u64, _: &mut Peers) {
        self.parts.push("receive".to_owned());
    }

    fn deliver_mail(&mut self, now_ms: u64, pump: &mut MemberPump<Threads>) {
        self.parts.push("mail".to_owned());
        if self.is_ended {
            pump.begin_end(now_ms);
        }
    }

    fn dial(&mut self, _: u64, _: ConnectionNumber, address: &str, _: &mut Peers) {
        self.parts.push(format!("dial {address}"));
    }

    fn write(&mut self, _: ConnectionNumber, _: Bytes) {}

    fn close(&mut self, _: u64, _: ConnectionNumber) {}

    fn flush(&mut self, _: u64, _: &mut Member, _: &mut Peers) {
        self.parts.push("flush".to_owned());
    }

    fn has_database(&self) -> bool {
        true
    }

    fn post(&mut self, events: &mut Vec<ToDatabase>) {
        for event in events.drain(..) {
            self.parts.push(match event {
                ToDatabase::Member(MemberEvent::Follows { .. }) => "post follows".to_owned(),
                other => format!("post {other:?}"),
            });
        }
    }

    fn show_row(&mut self, _: u64, _: ServerRow) {
        self.parts.push("row".to_owned());
    }

    fn answer(&mut self, token: CommandToken, _: Result<String, String>) {
        self.parts.push(format!("answer {}", token.0));
    }

    fn left(&mut self) {}

    fn failed(&mut self, reason: String) {
        panic!("{reason}");
    }

    fn log(&mut self, _: u64, _: Level, _: Option<Repeated>, _: &str) {}

    fn observe_growth(&mut self) {
        self.parts.push("growth".to_owned());
    }
}

/// The only member of its cluster.
fn pump() -> MemberPump<Threads> {
    let file = recovered();
    let settings = Settings::of_file(&file, KeptEntries::DEFAULT);
    let peers = Peers::new(PeersSettings::of_file(&file, 1 << 20));
    let state = Recovered::of_file(file).expect("it has no entries");
    MemberPump::new(Member::new(settings, state, 0, 1), peers, opened(), true)
}

#[test]
fn bytes_precede_mail_and_events_follow_the_flush_and_then_the_row() {
    let mut pump = pump();
    let mut still = Still::default();
    pump.turn(0, &mut still);
    let parts = still.parts.iter().map(String::as_str);
    let parts: Vec<&str> = parts
        .filter(|part| {
            ["receive", "mail", "flush", "row"].contains(part) || part.starts_with("post")
        })
        .collect();
    let [first @ .., row] = &parts[..] else {
        panic!("nothing happened");
    };
    assert_eq!(first[..3], ["receive", "mail", "flush"]);
    assert!(
        first.len() > 3 && first[3..].iter().all(|part| part.starts_with("post")),
        "{parts:?}"
    );
    // The row comes last: a client that reads it finds a database that knows its contents.
    assert_eq!(*row, "row");
    assert!(!pump.has_events(), "all are posted");
}

#[test]
fn a_member_whose_end_is_not_acknowledged_ends_by_itself_after_a_while() {
    let mut pump = pump();
    let mut still = Still::default();
    pump.turn(0, &mut still);
    still.is_ended = true;
    pump.turn(10, &mut still);
    still.parts.clear();
    // The pump cannot tell at once whether another member takes over. It stops waiting after five
    // seconds.
    pump.turn(5010, &mut still);
    assert!(pump.is_done());
    assert!(
        still.parts.iter().all(|part| !part.starts_with("answer")),
        "nobody gave a command: {:?}",
        still.parts
    );
    let (_, events) = pump.end(5010);
    assert!(
        matches!(
            events[..],
            [
                ..,
                ToDatabase::Member(MemberEvent::Follows { leader: None, .. }),
                ToDatabase::Control(Control::Remove)
            ]
        ),
        "{events:?}"
    );
}
