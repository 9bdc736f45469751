//! The file of a cluster's member, as a state machine: which requests reach the disk, and in which
//! order, while a new file is made, and what the member and the database learn. The threads are
//! scripted.

use std::sync::Arc;

use bytes::Bytes;
use corvid_consensus::Input;
use corvid_data::Uuid;
use corvid_log::cluster::{
    BodyLocation, Eid, Index, Joined, Recovered, RecoveredMembership, Servers, Sid, SnapshotMeta,
    Term,
};
use corvid_log::storage::{
    FileSize, LogPosition, RewriteNumber, RewriteStage, StorageReply, StorageRequest, StoreError,
};
use corvid_service::member::file::Consequences;
use corvid_service::member::{BodyPart, FileEffects, MemberFile, ReceptionNumber};

use crate::disk::{Handle, Platter};

const BODY: &[u8] = b"[{},{}]";
const HOUR_MS: u64 = 3_600_000;

/// Threads that do nothing: requests that reach them are listed as text.
pub(crate) struct Threads {
    disk: Arc<Platter>,
    stored: Vec<String>,
    checks: Vec<(Sid, Index)>,
    loads: Vec<Result<(), String>>,
    /// The parts of received bodies that reached the disk's thread.
    parts: Vec<(ReceptionNumber, u64, u64)>,
    writes_back: bool,
    is_poisoned: bool,
}

impl FileEffects for Threads {
    type Disk = Platter;

    fn disk(&self) -> &Arc<Platter> {
        &self.disk
    }

    fn store(&mut self, requests: Vec<StorageRequest>) -> Vec<StorageReply> {
        self.stored.extend(requests.iter().map(shown));
        Vec::new()
    }

    fn observe_reply(&mut self, _: &StorageReply) {}

    fn is_poisoned(&self) -> bool {
        self.is_poisoned
    }

    fn open_present(&self) -> Option<Handle> {
        Some(self.disk.open())
    }

    fn begin_check(&mut self, to: Sid, index: Index, _: Handle) -> bool {
        self.checks.push((to, index));
        true
    }

    fn begin_load(&mut self, _: Index, _: Eid, source: Result<(Handle, BodyLocation), String>) {
        self.loads.push(source.map(|_| ()));
    }

    fn begin_write_back(&mut self, part: BodyPart<Handle>) -> bool {
        if self.writes_back {
            self.parts.push((part.reception, part.offset, part.length));
        }
        self.writes_back
    }

    fn draw(&mut self) -> u64 {
        0
    }

    fn date_ms(&self) -> i64 {
        0
    }
}

fn shown(request: &StorageRequest) -> String {
    match request {
        StorageRequest::Append { position, .. } => format!("append {}", position.0),
        StorageRequest::Rewrite(..) => "rewrite".to_owned(),
        StorageRequest::Swap(_) => "swap".to_owned(),
        other => format!("{other:?}"),
    }
}

fn meta(index: u64) -> SnapshotMeta {
    let text = r#"{"07070707-0707-0707-0707-070707070707":"tcp:1.2.3.4:5"}"#;
    SnapshotMeta {
        index: Index(index),
        term: Term(1),
        eid: Eid(Uuid([1; 16])),
        servers: Servers::decode(text.as_bytes()).expect("one server"),
        election_timer_ms: 1000,
        body_bytes: BODY.len() as u64,
    }
}

/// The recovery of a file with a snapshot through entry 10, whose body is [`BODY`].
pub(crate) fn recovered() -> Recovered {
    Recovered {
        server_id: Sid(Uuid([7; 16])),
        cluster_id: None,
        name: "x".to_owned(),
        local_address: "tcp:1.2.3.4:5".to_owned(),
        term: Term(1),
        vote: None,
        leader: None,
        membership: RecoveredMembership::Joined(Box::new(Joined {
            snapshot: meta(10),
            body: BodyLocation {
                offset: 0,
                length: BODY.len() as u64,
            },
            commit: Index(10),
            entries: Vec::new(),
        })),
        unfit: None,
        records: 1,
        base: 7,
        good_end: 7,
        damage: None,
    }
}

/// A member's file, opened from [`recovered`].
pub(crate) fn opened() -> MemberFile<Threads> {
    let disk = Platter::default();
    let handle = disk.handle(BODY);
    let threads = Threads {
        disk: Arc::new(disk),
        stored: Vec::new(),
        checks: Vec::new(),
        loads: Vec::new(),
        parts: Vec::new(),
        writes_back: false,
        is_poisoned: false,
    };
    MemberFile::open(threads, handle, &recovered(), 0)
}

fn append(position: u64) -> StorageRequest {
    StorageRequest::Append {
        position: LogPosition(position),
        record: vec![0; 10].into(),
        durable: true,
    }
}

fn stored(file: &mut MemberFile<Threads>) -> Vec<String> {
    std::mem::take(&mut file.effects_mut().stored)
}

fn stage(number: u64, stage: RewriteStage) -> StorageReply {
    StorageReply::Rewrite(RewriteNumber(number), Ok(stage))
}

fn failure() -> StoreError {
    StoreError {
        details: "x.db: replacement failed".to_owned(),
        io_error: "No space left on device".to_owned(),
    }
}

const SIZE: FileSize = FileSize { base: 9, end: 9 };

#[test]
fn requests_behind_a_swap_wait_for_the_new_file() {
    let mut file = opened();
    let swap = StorageRequest::Swap(RewriteNumber(1));
    assert!(file.store(vec![append(1), swap, append(2)]).is_empty());
    file.store(vec![append(3)]);
    assert_eq!(stored(&mut file), ["append 1", "swap"]);
    let consequences = file.receive(1, stage(1, RewriteStage::InPlace(SIZE)));
    assert!(matches!(consequences.inputs[..], [Input::Storage(_)]));
    assert_eq!(stored(&mut file), ["append 2", "append 3"]);
    file.store(vec![append(4)]);
    assert_eq!(stored(&mut file), ["append 4"]);
}

#[test]
fn requests_behind_a_swap_that_fails_reach_the_old_file() {
    let mut file = opened();
    file.store(vec![StorageRequest::Swap(RewriteNumber(1)), append(2)]);
    let failed = StorageReply::Rewrite(RewriteNumber(1), Err(failure()));
    file.receive(1, failed);
    assert_eq!(stored(&mut file), ["swap", "append 2"]);
}

#[test]
fn a_record_held_during_a_swap_counts_once() {
    let mut file = opened();
    // 60 records of 200 kB: too few for a compaction before the daily one. Counted twice, they
    // would be 120, which are enough.
    for number in 1..=60 {
        let record = StorageRequest::Append {
            position: LogPosition(number),
            record: vec![0; 200_000].into(),
            durable: true,
        };
        file.store(vec![StorageRequest::Swap(RewriteNumber(number)), record]);
        file.receive(
            1,
            StorageReply::Rewrite(RewriteNumber(number), Err(failure())),
        );
    }
    assert_eq!(stored(&mut file).len(), 120);
    assert!(!file.is_compaction_due(HOUR_MS));
}

/// The end of the written bytes according to an input for the member.
fn written(input: Option<Input>) -> Option<Result<u64, StoreError>> {
    let Input::SnapshotWritten { index, end } = input? else {
        panic!("not about a body");
    };
    assert_eq!(index, Index(20));
    Some(end)
}

/// Starts to install a snapshot through entry 20, of whose body `bytes` have arrived.
fn install(file: &mut MemberFile<Threads>, bytes: &'static [u8]) -> Consequences {
    file.begin_snapshot(meta(20));
    let input = file.write_snapshot(Index(20), 0, &Bytes::from_static(bytes));
    assert_eq!(written(input), Some(Ok(bytes.len() as u64)));
    file.install_snapshot(1, meta(20), None, Vec::new())
}

/// The number of the first installation.
const INSTALLATION: u64 = (1 << 63) + 1;

#[test]
fn nothing_reaches_the_old_file_while_a_snapshot_is_installed() {
    let mut file = opened();
    assert!(install(&mut file, BODY).inputs.is_empty());
    file.store(vec![append(1)]);
    assert_eq!(stored(&mut file), ["rewrite"]);
    file.receive(2, stage(INSTALLATION, RewriteStage::Written));
    assert_eq!(stored(&mut file), ["swap"]);
    file.receive(3, stage(INSTALLATION, RewriteStage::InPlace(SIZE)));
    assert_eq!(stored(&mut file), [""; 0]);
    let consequences = file.receive(4, stage(INSTALLATION, RewriteStage::Lasting));
    let [Input::SnapshotInstalled { index, outcome }] = &consequences.inputs[..] else {
        panic!("{consequences:?}");
    };
    assert_eq!((*index, outcome), (Index(20), &Ok(())));
    assert_eq!(stored(&mut file), ["append 1"]);
    // The new file of this test is empty: it has no snapshot.
    file.load_snapshot(Index(20), Eid(Uuid([1; 16])));
    assert!(matches!(file.effects().loads[..], [Err(_)]));
}

#[test]
fn an_installation_that_fails_leaves_the_old_file_to_the_requests_behind_it() {
    let mut file = opened();
    install(&mut file, BODY);
    file.store(vec![append(1)]);
    let failed = StorageReply::Rewrite(RewriteNumber(INSTALLATION), Err(failure()));
    let consequences = file.receive(2, failed);
    assert!(matches!(
        consequences.inputs[..],
        [Input::SnapshotInstalled {
            outcome: Err(_),
            ..
        }]
    ));
    assert_eq!(stored(&mut file), ["rewrite", "append 1"]);
    // The body is still there: the member tries again.
    assert!(
        file.install_snapshot(3, meta(20), None, Vec::new())
            .inputs
            .is_empty()
    );
}

#[test]
fn an_incomplete_snapshot_is_not_installed() {
    let mut file = opened();
    let consequences = install(&mut file, &BODY[..3]);
    assert!(matches!(
        consequences.inputs[..],
        [Input::SnapshotInstalled {
            outcome: Err(_),
            ..
        }]
    ));
    file.store(vec![append(1)]);
    assert_eq!(stored(&mut file), ["append 1"]);
}

#[test]
fn a_failed_append_tells_of_poison_once_nothing_can_be_appended() {
    let mut file = opened();
    let failed = || StorageReply::Appended(LogPosition(1), Err(failure()));
    assert_eq!(file.receive(1, failed()).inputs.len(), 1);
    file.effects_mut().is_poisoned = true;
    let inputs = file.receive(2, failed()).inputs;
    assert!(matches!(
        inputs[..],
        [Input::Storage(_), Input::FilePoisoned]
    ));
}

#[test]
fn a_snapshot_is_checked_before_a_peer_gets_it_and_again_after_a_while() {
    let peer = Sid(Uuid([8; 16]));
    let mut file = opened();
    assert!(!file.check_snapshot(0, peer, Index(9)), "there is none");
    assert!(file.check_snapshot(0, peer, Index(10)));
    assert_eq!(file.effects().checks, [(peer, Index(10))]);
    let (input, is_damaged) = file.snapshot_checked(1, peer, Index(10), Ok(true));
    let Input::SnapshotRead { bytes, .. } = input else {
        panic!("{input:?}");
    };
    assert_eq!(bytes, Ok((BODY.len() as u64, Bytes::new())));
    assert!(!is_damaged);
    assert!(!file.check_snapshot(2, peer, Index(10)));
    assert_eq!(
        file.read_snapshot(Index(10), 1, 3),
        Ok((BODY.len() as u64, Bytes::copy_from_slice(&BODY[1..4])))
    );
    assert!(file.check_snapshot(HOUR_MS, peer, Index(10)));
    let (_, is_damaged) = file.snapshot_checked(HOUR_MS, peer, Index(10), Ok(false));
    assert!(is_damaged);
}

#[test]
fn an_old_file_is_compacted_once_at_a_time() {
    let mut file = opened();
    assert!(!file.is_compaction_due(25 * HOUR_MS), "it is unused");
    file.store(vec![append(1)]);
    assert!(file.is_compaction_due(25 * HOUR_MS));
    assert!(!file.is_compaction_due(25 * HOUR_MS), "it was asked for");
    assert!(file.is_compaction_due(26 * HOUR_MS), "nothing came of it");
    install(&mut file, BODY);
    assert!(!file.is_compaction_due(27 * HOUR_MS), "a new file is made");
    assert_eq!(file.deadline_ms(27 * HOUR_MS), None);
}

/// A file that is receiving a body and hands its parts to the disk.
fn receiving() -> MemberFile<Threads> {
    let mut file = opened();
    file.effects_mut().writes_back = true;
    file.begin_snapshot(meta(20));
    file
}

/// Bytes of the body arrive; returns the end that the member is told at once.
fn arrive(
    file: &mut MemberFile<Threads>,
    from: usize,
    to: usize,
) -> Option<Result<u64, StoreError>> {
    let bytes = Bytes::from_static(&BODY[from..to]);
    written(file.write_snapshot(Index(20), from as u64, &bytes))
}

#[test]
fn a_received_body_is_acknowledged_when_the_disk_has_it() {
    let mut file = receiving();
    assert_eq!(arrive(&mut file, 0, 2), None);
    assert_eq!(arrive(&mut file, 2, 3), None);
    assert_eq!(arrive(&mut file, 3, 5), None);
    let number = ReceptionNumber(1);
    assert_eq!(file.effects().parts, [(number, 0, 2)], "one at a time");
    assert_eq!(written(file.written_back(number, Ok(()))), Some(Ok(2)));
    assert_eq!(file.effects().parts[1..], [(number, 2, 3)]);
    assert_eq!(written(file.written_back(number, Ok(()))), Some(Ok(5)));
    assert_eq!(file.effects().parts.len(), 2);
    assert_eq!(arrive(&mut file, 5, 7), None);
    assert_eq!(written(file.written_back(number, Ok(()))), Some(Ok(7)));
}

#[test]
fn a_part_of_an_earlier_body_tells_nothing_of_the_present_one() {
    let mut file = receiving();
    arrive(&mut file, 0, 2);
    file.begin_snapshot(meta(20));
    assert_eq!(written(file.written_back(ReceptionNumber(1), Ok(()))), None);
    arrive(&mut file, 0, 1);
    let failed = file.written_back(ReceptionNumber(1), Err(failure()));
    assert!(failed.is_none());
    let second = ReceptionNumber(2);
    assert_eq!(file.effects().parts[1..], [(second, 0, 1)]);
    assert_eq!(written(file.written_back(second, Ok(()))), Some(Ok(1)));
}

#[test]
fn a_part_that_the_disk_refuses_ends_the_reception() {
    let mut file = receiving();
    arrive(&mut file, 0, 2);
    let told = written(file.written_back(ReceptionNumber(1), Err(failure())));
    assert_eq!(told, Some(Err(failure())));
    assert!(matches!(arrive(&mut file, 2, 3), Some(Err(_))));
    // If no thread can be started, the bytes go to the disk with the new file.
    let mut file = receiving();
    file.effects_mut().writes_back = false;
    assert_eq!(arrive(&mut file, 0, 7), Some(Ok(7)));
}

#[test]
fn bytes_that_nobody_hands_to_the_disk_are_acknowledged_with_the_part_before_them() {
    let mut file = receiving();
    arrive(&mut file, 0, 2);
    assert_eq!(arrive(&mut file, 2, 7), None);
    file.effects_mut().writes_back = false;
    let told = written(file.written_back(ReceptionNumber(1), Ok(())));
    assert_eq!(told, Some(Ok(7)));
}
