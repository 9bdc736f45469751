//! Tests of the bytes of each input. Recordings of earlier builds must stay readable, so a change
//! here needs a new version of the format ([`crate::recording::MAGIC`]).

use std::collections::BTreeMap;

use corvid_log::cluster::Index;
use corvid_monitor::Version;

use super::*;
use crate::applied_index::AppliedIndex;
use crate::job::JobNumber;
use crate::message::Control;
use crate::remote_status::{RemoteStatus, RemoteStatuses};
use crate::replication::{Exclusions, Following, Role, SourceId};

/// An input and its bytes in hexadecimal; a `-` separates parts for readability.
struct Pinned(ToDatabase, String);

fn pinned(input: ToDatabase, hex: impl Into<String>) -> Pinned {
    Pinned(input, hex.into())
}

fn order(control: Control, hex: &str) -> Pinned {
    pinned(ToDatabase::Control(control), format!("09{hex}"))
}

fn fence(completion: Completion, hex: &str) -> Pinned {
    pinned(
        ToDatabase::Fence(SessionId(1), completion),
        format!("0201-{hex}"),
    )
}

fn stored(reply: StorageReply, hex: &str) -> Pinned {
    pinned(ToDatabase::Storage(reply), hex)
}

fn failed() -> StoreError {
    StoreError {
        details: "d".to_owned(),
        io_error: "e".to_owned(),
    }
}

/// A request of a session whose description is recorded only with its first request.
fn request(info: &Arc<SessionInfo>, method: DatabaseMethod) -> Request {
    Request {
        session: SessionId(1),
        info: info.clone(),
        arrived_ms: 300,
        stamp: 0,
        id: b"7"[..].into(),
        method,
        frame: b"[1]".to_vec(),
        params: 0..3,
        seqno: Some(4),
        blocked: true,
        foreign_monitors: vec![b"m"[..].into()],
        once: None,
        client: None,
    }
}

fn to_database(request: Request) -> ToDatabase {
    ToDatabase::Request(Box::new(request))
}

/// The end of each request: arrival, id, frame, range of parameters, number, blocked, monitors.
const REQUEST_END: &str = "-ac02-0137-035b315d-0003-0104-01-01016d";

fn requests() -> Vec<Pinned> {
    let info = SessionInfo::new(true, "r".to_owned(), Some("c".to_owned()));
    let mut info = info.of_peer("p".into(), "q".into()).of_trusted_relay(true);
    info.epoch = SchemaEpoch(2);
    let info = Arc::new(info);
    let of = |method| request(&info, method);
    let mut pins = vec![pinned(
        to_database(of(DatabaseMethod::Transact)),
        format!("0001-01-01-0172-010163-0170-0171-01-02-00{REQUEST_END}"),
    )];
    let methods = [
        DatabaseMethod::Transact,
        DatabaseMethod::Convert,
        DatabaseMethod::GetSchema,
        DatabaseMethod::Monitor(Version::V1),
        DatabaseMethod::Monitor(Version::V2),
        DatabaseMethod::Monitor(Version::V3),
        DatabaseMethod::MonitorCondChange,
        DatabaseMethod::MonitorCancel,
    ];
    for (number, method) in methods.into_iter().enumerate() {
        let bytes = format!("0001-00-{number:02x}{REQUEST_END}");
        pins.push(pinned(to_database(of(method)), bytes));
    }
    let ids = ["11".repeat(16), "22".repeat(16)];
    let once = Once::sent(Uuid([0x11; 16]), Some(Uuid([0x22; 16])));
    let of_once = Request {
        once: Some(once),
        ..of(DatabaseMethod::Transact)
    };
    let bytes = format!("0001-00-08-10{}-0110{}{REQUEST_END}", ids[0], ids[1]);
    pins.push(pinned(to_database(of_once), bytes));
    let client = RelayedClient::parse(br#"{"read_only":true}"#).expect("a client");
    let of_client = Request {
        client: Some(Box::new(client.clone())),
        ..of(DatabaseMethod::Transact)
    };
    // {"read_only":true}
    let client_hex = "127b22726561645f6f6e6c79223a747275657d";
    let bytes = format!("0001-00-09-{client_hex}-00{REQUEST_END}");
    pins.push(pinned(to_database(of_client), bytes));
    let of_both = Request {
        client: Some(Box::new(client)),
        once: Some(Once::sent(once.id, None)),
        ..of(DatabaseMethod::Transact)
    };
    let bytes = format!("0001-00-09-{client_hex}-0110{}-00{REQUEST_END}", ids[0]);
    pins.push(pinned(to_database(of_both), bytes));
    pins
}

fn controls() -> Vec<Pinned> {
    let following = Following {
        id: SourceId(3),
        excluded: Exclusions::of("", "a,b"),
        server_id: Uuid([0x11; 16]),
    };
    let backup = Role::Backup(Box::new(following));
    let backup_hex = format!("05-07-01-03-{}-03612c62", "11".repeat(16));
    let status = RemoteStatus {
        is_connected: true,
        status: BTreeMap::from([("k".to_owned(), "v".to_owned())]),
    };
    let statuses = RemoteStatuses::from([("r".to_owned(), status)]);
    let watch = Control::WatchColumn {
        name: "n".to_owned(),
        table: "t".to_owned(),
        column: "c".to_owned(),
        texts_only: true,
    };
    vec![
        order(Control::Transact(b"[]".to_vec()), "00-025b5d"),
        order(Control::Compact(None), "01-00"),
        order(Control::Compact(Some(200)), "01-01c801"),
        order(Control::EnableColumnDiff, "02"),
        order(Control::Snapshot(7), "03-07"),
        order(Control::Remove, "04"),
        order(Control::SetRole(Role::Active, 7), "05-07-00"),
        order(Control::SetRole(backup, 7), &backup_hex),
        order(Control::StorageStatus(7), "06-07"),
        order(watch, "07-016e-0174-0163-01"),
        order(Control::UnwatchColumn("n".to_owned()), "08-016e"),
        order(Control::SetSlow(300), "09-ac02"),
        order(Control::SetHistory(true), "0a-01"),
        order(Control::SetAudited(false), "0b-00"),
        order(Control::Report(7), "0c-07"),
        order(Control::LogRows("t".to_owned(), true), "0d-0174-01"),
        order(
            Control::ShowStatus(Arc::new(statuses)),
            "0e-01-0172-01-01-016b-0176",
        ),
        order(Control::EnableNoDataConversion, "0f"),
        order(
            Control::ShowIndex(AppliedIndex::new("D", Index(0))),
            "10-0144",
        ),
        order(Control::SetRecordClients(true), "11-01"),
    ]
}

fn others() -> Vec<Pinned> {
    let rewrite = |outcome, hex: &str| {
        let reply = StorageReply::Rewrite(RewriteNumber(3), outcome);
        stored(reply, &format!("0603-{hex}"))
    };
    let appended = |outcome, hex: &str| {
        let reply = StorageReply::Appended(LogPosition(9), outcome);
        stored(reply, &format!("0509-{hex}"))
    };
    let source = |event, hex: &str| {
        pinned(
            ToDatabase::Source(SourceId(2), event),
            format!("0802-{hex}"),
        )
    };
    let size = FileSize { base: 1, end: 200 };
    vec![
        pinned(
            ToDatabase::Cancel(SessionId(300), b"7"[..].into()),
            "01-ac02-0137",
        ),
        fence(Completion::None, "00"),
        fence(Completion::Request, "01"),
        fence(Completion::MonitorAdded(b"a"[..].into()), "02-0161"),
        fence(
            Completion::MonitorRenamed(b"a"[..].into(), b"b"[..].into()),
            "03-0161-0162",
        ),
        fence(Completion::MonitorRemoved(b"a"[..].into()), "04-0161"),
        fence(Completion::MonitorLost(b"a"[..].into()), "05-0161"),
        fence(Completion::NotificationFence, "06"),
        fence(Completion::LockNotification, "07"),
        fence(Completion::IndexFence, "08"),
        pinned(ToDatabase::Drained(SessionId(2)), "03-02"),
        pinned(ToDatabase::Closed(SessionId(2)), "04-02"),
        appended(Ok(()), "00"),
        appended(Err(failed()), "01-0164-0165"),
        rewrite(Ok(RewriteStage::Written), "00"),
        rewrite(Ok(RewriteStage::InPlace(size)), "01-01-c801"),
        rewrite(Ok(RewriteStage::Lasting), "02"),
        rewrite(Err(failed()), "03-0164-0165"),
        source(SourceEvent::Connected(1), "00-01"),
        source(
            SourceEvent::Message(Pieces::from(b"[]".to_vec())),
            "01-025b5d",
        ),
        source(SourceEvent::Disconnected, "02"),
    ]
}

fn bytes_of(hex: &str) -> Vec<u8> {
    let digits: Vec<char> = hex.chars().filter(|c| *c != '-').collect();
    let byte = |pair: &[char]| u8::from_str_radix(&String::from_iter(pair), 16);
    let bytes: Result<Vec<u8>, _> = digits.chunks(2).map(byte).collect();
    bytes.expect("hexadecimal digits")
}

#[test]
fn every_input_has_the_bytes_of_the_format_and_is_read_back() {
    let (mut writing, mut reading) = (Sessions::default(), Sessions::default());
    let mut again = Sessions::default();
    for Pinned(input, hex) in [requests(), controls(), others()].into_iter().flatten() {
        let mut written = Vec::new();
        write(&mut Writer(&mut written), &input, &mut writing);
        assert_eq!(written, bytes_of(&hex), "{input:?}");
        let mut from = Reader(&written);
        let Ok(Input::Plain(back)) = read(&mut from, &mut reading) else {
            panic!("{input:?} cannot be read back");
        };
        assert!(from.is_empty(), "{input:?} is longer than what is read");
        let mut rewritten = Vec::new();
        write(&mut Writer(&mut rewritten), &back, &mut again);
        assert_eq!(rewritten, written, "{input:?} is read as {back:?}");
        for length in 0..written.len() {
            // Start from the descriptions of sessions as they were before the input.
            let mut known = reading.clone();
            let cut_off = read(&mut Reader(&written[..length]), &mut known);
            assert!(cut_off.is_err(), "{input:?} in {length} bytes");
        }
    }
}

#[test]
fn a_result_of_a_job_is_read_as_the_job_to_be_done_again() {
    let done = ToDatabase::JobDone(JobNumber(5), JobResult::DeferredBody(SessionId(300)));
    let mut written = Vec::new();
    write(&mut Writer(&mut written), &done, &mut Sessions::default());
    assert_eq!(written, bytes_of("07-03-ac02-00"));
    let read = read(&mut Reader(&written), &mut Sessions::default());
    let Ok(Input::Done(key, is_refused)) = read else {
        panic!("it cannot be read back");
    };
    assert_eq!((key.kind, key.number, is_refused), (3, 300, false));
}

#[test]
fn an_input_of_an_unknown_kind_is_damage() {
    for hex in ["0a", "09-11", "0201-09", "0001-00-0a"] {
        let read = read(&mut Reader(&bytes_of(hex)), &mut Sessions::default());
        assert!(read.is_err(), "{hex}");
    }
}
