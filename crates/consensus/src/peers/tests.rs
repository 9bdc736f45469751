//! Connections in virtual time: two members connected to each other, and one member facing scripted
//! bytes.

use bytes::Bytes;
use corvid_data::Uuid;
use corvid_log::cluster::{Cid, Term};

mod claims;
mod long;

use super::*;
use crate::entry::EntryBody;
use crate::message::PeerMessage;
use crate::wire::{self, Envelope};
use corvid_log::cluster::{Eid, Index};

const A: Sid = Sid(Uuid([0xaa; 16]));
const B: Sid = Sid(Uuid([0xbb; 16]));
const D: Sid = Sid(Uuid([0xdd; 16]));

fn cid() -> Cid {
    Cid::new(Uuid([0xcc; 16])).expect("not zero")
}

fn address(sid: Sid) -> String {
    format!("tcp:10.0.0.{}:6644", sid.0.0[0])
}

fn member(sid: Sid, cid: Option<Cid>) -> Peers {
    Peers::new(PeersSettings {
        sid,
        cid,
        address: address(sid),
        message_bytes_max: 1 << 20,
    })
}

fn target(sid: Sid) -> DialTarget {
    DialTarget {
        address: address(sid),
        sid: Some(sid),
    }
}

fn envelope(from: Sid, to: Sid) -> Envelope {
    Envelope {
        cluster: Some(cid()),
        to: Some(to),
        from,
    }
}

fn hello(from: Sid, to: Sid) -> Vec<u8> {
    wire::encode_hello(&envelope(from, to), &address(from))
}

fn message(term: u64) -> PeerMessage {
    PeerMessage::NotMember { term: Term(term) }
}

fn outputs(peers: &mut Peers) -> Vec<PeersOutput> {
    std::iter::from_fn(|| peers.next_output()).collect()
}

/// The lines of the log, except those at debug level.
fn lines(outputs: &[PeersOutput]) -> Vec<String> {
    let lines = outputs.iter().filter_map(|output| match output {
        PeersOutput::Log { level, text } if *level > Level::Debug => {
            Some(format!("{level:?} {text}"))
        }
        _ => None,
    });
    lines.collect()
}

fn is_closed(outputs: &[PeersOutput], number: ConnectionNumber) -> bool {
    outputs.contains(&PeersOutput::Close { number })
}

fn dialled(outputs: &[PeersOutput]) -> Option<ConnectionNumber> {
    outputs.iter().find_map(|output| match output {
        PeersOutput::Dial { number, .. } => Some(*number),
        _ => None,
    })
}

/// A member with an accepted connection on which B has identified itself.
fn accepted_from_b() -> (Peers, ConnectionNumber) {
    let mut a = member(A, Some(cid()));
    let number = a.accepted(0, "tcp:b:1");
    a.received(0, number, &hello(B, A));
    outputs(&mut a);
    (a, number)
}

/// Two members and the network between them. Nothing is lost, and everything arrives at once.
struct Pair {
    members: [Peers; 2],
    /// The two ends of each connection.
    links: Vec<[ConnectionNumber; 2]>,
    events: [Vec<PeersOutput>; 2],
}

impl Pair {
    fn new(a: Peers, b: Peers) -> Pair {
        Pair {
            members: [a, b],
            links: Vec::new(),
            events: [Vec::new(), Vec::new()],
        }
    }

    fn run(&mut self, now_ms: u64) {
        loop {
            let mut is_idle = true;
            for side in [0, 1] {
                while let Some(output) = self.members[side].next_output() {
                    is_idle = false;
                    self.carry_out(now_ms, side, output);
                }
            }
            if is_idle {
                return;
            }
        }
    }

    fn carry_out(&mut self, now_ms: u64, side: usize, output: PeersOutput) {
        let other = 1 - side;
        match output {
            PeersOutput::Dial { number, address } => {
                let peer = self.members[other].accepted(now_ms, "tcp:peer:1");
                assert_eq!(address, self.members[other].settings.address);
                let mut link = [peer; 2];
                link[side] = number;
                self.links.push(link);
                self.members[side].connected(now_ms, number);
            }
            PeersOutput::Write { number, bytes } => {
                let link = self.links.iter().find(|link| link[side] == number);
                if let Some(link) = link {
                    let peer = link[other];
                    self.members[side].written(now_ms, number, bytes.len());
                    // Split at an arbitrary place.
                    let (first, last) = bytes.split_at(bytes.len() / 3);
                    self.members[other].received(now_ms, peer, first);
                    self.members[other].received(now_ms, peer, last);
                }
            }
            PeersOutput::Close { number } => {
                let position = self.links.iter().position(|link| link[side] == number);
                if let Some(position) = position {
                    let peer = self.links.remove(position)[other];
                    self.members[other].closed(now_ms, peer, End::Closed);
                }
            }
            event => self.events[side].push(event),
        }
    }
}

#[test]
fn two_members_find_each_other_and_talk() {
    let mut pair = Pair::new(member(A, Some(cid())), member(B, Some(cid())));
    pair.members[0].set_targets(0, &[target(A), target(B)]);
    pair.members[1].set_targets(0, &[target(A), target(B)]);
    pair.run(0);
    assert!(pair.members[0].is_up(B) && pair.members[1].is_up(A));
    assert_eq!(pair.members[0].connections_text(), "->bbbb <-bbbb");
    assert_eq!(pair.members[0].connection_count(), 2);
    pair.events = [Vec::new(), Vec::new()];
    for number in 1..=40 {
        pair.members[0].send(0, B, &message(number));
        pair.members[1].send(0, A, &message(number));
    }
    pair.run(0);
    for (side, from) in [(0, B), (1, A)] {
        let expected: Vec<PeersOutput> = (1..=40)
            .map(|number| PeersOutput::Message {
                from,
                message: message(number),
            })
            .collect();
        assert_eq!(pair.events[side], expected);
    }
    assert_eq!(pair.members[0].backlog_bytes(), 0);
    // B is no longer a member.
    pair.members[0].set_targets(0, &[target(A)]);
    pair.run(0);
    assert_eq!(pair.members[0].connections_text(), "<-bbbb");
    assert!(pair.members[0].is_up(B), "the accepted connection stays");
    assert_eq!(pair.members[0].disconnections(), 1);
}

#[test]
fn a_joining_server_learns_its_cluster_from_the_first_member() {
    let mut pair = Pair::new(member(A, None), member(B, Some(cid())));
    let target = DialTarget {
        address: address(B),
        sid: None,
    };
    pair.members[0].set_targets(0, &[target]);
    pair.run(0);
    assert_eq!(
        lines(&pair.events[0]),
        [
            "Info tcp:10.0.0.187:6644: connecting...",
            "Info tcp:10.0.0.187:6644: connected",
            "Info tcp:10.0.0.187:6644: learned server ID bbbb",
            "Info tcp:10.0.0.187:6644: learned cluster ID cccc",
        ]
    );
    assert!(pair.events[0].contains(&PeersOutput::LearnedCluster(cid())));
    assert_eq!(
        lines(&pair.events[1]),
        [
            "Info tcp:peer:1: learned server ID aaaa",
            "Info tcp:peer:1: learned remote address tcp:10.0.0.170:6644",
        ]
    );
    assert!(pair.events[1].contains(&PeersOutput::PeerUp(A)));
    // Its probe does not wait for the longest possible election timer.
    assert_eq!(pair.members[0].deadline_ms(0), Some(2000));
}

#[test]
fn a_joining_server_learns_its_cluster_from_a_server_that_joined_later() {
    let mut pair = Pair::new(member(A, None), member(B, None));
    pair.members[0].set_targets(0, &[target(B)]);
    pair.run(0);
    assert!(pair.members[0].is_up(B));
    // B becomes a member, and then the leader, after the connection was made.
    pair.members[1].settings.cid = Some(cid());
    pair.events[0].clear();
    pair.members[1].send(1, A, &message(1));
    pair.run(1);
    let learned = PeersOutput::LearnedCluster(cid());
    let place = |wanted: &PeersOutput| pair.events[0].iter().position(|it| it == wanted);
    let arrived = PeersOutput::Message {
        from: B,
        message: message(1),
    };
    assert!(place(&learned) < place(&arrived) && place(&learned).is_some());
    // Its answers name the cluster.
    pair.members[0].send(2, B, &message(2));
    pair.run(2);
    assert!(pair.events[1].contains(&PeersOutput::Message {
        from: A,
        message: message(2),
    }));
    assert_eq!(pair.members[0].disconnections(), 0);
}

#[test]
fn waits_double_up_to_eight_seconds() {
    let mut a = member(A, Some(cid()));
    a.set_targets(0, &[target(B)]);
    let mut now_ms = 0;
    let mut waits = Vec::new();
    for _ in 0..6 {
        let number = dialled(&outputs(&mut a)).expect("an attempt");
        let refused = End::Failed("Connection refused".to_owned());
        a.closed(now_ms, number, refused);
        let due_ms = a.deadline_ms(now_ms).expect("another attempt");
        waits.push(due_ms - now_ms);
        a.time(due_ms - 1);
        assert_eq!(dialled(&outputs(&mut a)), None);
        now_ms = due_ms;
        a.time(now_ms);
    }
    assert_eq!(waits, [1000, 2000, 4000, 8000, 8000, 8000]);
    assert_eq!(a.connections_text(), "(->bbbb)");
    assert_eq!(a.disconnections(), 0, "never connected");
}

/// A member with a connection that it dialled to B, established at 0.
fn connected_to_b() -> (Peers, ConnectionNumber) {
    let mut a = member(A, Some(cid()));
    a.set_targets(0, &[target(B)]);
    let number = dialled(&outputs(&mut a)).expect("an attempt");
    a.connected(0, number);
    a.received(0, number, &hello(B, A));
    outputs(&mut a);
    (a, number)
}

fn refusal() -> End {
    End::Failed("Connection refused".to_owned())
}

#[test]
fn a_server_whose_connections_end_and_that_refuses_new_ones_is_gone() {
    let (mut a, number) = connected_to_b();
    a.closed(5000, number, End::Closed);
    let ended = outputs(&mut a);
    assert!(ended.contains(&PeersOutput::PeerDown(B)));
    let number = dialled(&ended).expect("an attempt without a wait");
    a.refused(5001, number, refusal());
    assert!(outputs(&mut a).contains(&PeersOutput::PeerRefused(B)));
    assert_eq!(a.deadline_ms(5001), Some(6001), "then the usual waits");
}

#[test]
fn a_process_that_ends_may_take_one_connection_more() {
    let (mut a, number) = connected_to_b();
    a.closed(5000, number, End::Closed);
    let number = dialled(&outputs(&mut a)).expect("an attempt");
    a.connected(5000, number);
    a.closed(5001, number, End::Closed);
    a.time(5001);
    let number = dialled(&outputs(&mut a)).expect("another one at once");
    a.refused(5001, number, refusal());
    assert!(outputs(&mut a).contains(&PeersOutput::PeerRefused(B)));
}

#[test]
fn a_server_with_another_connection_is_not_gone() {
    let (mut a, number) = connected_to_b();
    let accepted = a.accepted(0, "tcp:b:1");
    a.received(0, accepted, &hello(B, A));
    a.closed(5000, number, End::Closed);
    let number = dialled(&outputs(&mut a)).expect("an attempt");
    a.refused(5001, number, refusal());
    assert!(!outputs(&mut a).contains(&PeersOutput::PeerRefused(B)));
    // The refusal counts once that connection ends too.
    a.closed(5002, accepted, End::Closed);
    let number = dialled(&outputs(&mut a)).expect("an attempt");
    a.refused(5003, number, refusal());
    assert!(outputs(&mut a).contains(&PeersOutput::PeerRefused(B)));
}

#[test]
fn a_connection_that_was_reset_on_the_way_is_made_again_at_once() {
    let (mut a, number) = connected_to_b();
    a.closed(
        5000,
        number,
        End::Failed("Connection reset by peer".to_owned()),
    );
    let number = dialled(&outputs(&mut a)).expect("an attempt");
    a.connected(5000, number);
    a.received(5000, number, &hello(B, A));
    let again = outputs(&mut a);
    assert!(again.contains(&PeersOutput::PeerUp(B)));
    // A connection that ends soon after it was made is not redialled at once: the usual wait
    // applies.
    a.closed(5100, number, End::Closed);
    a.time(5100);
    outputs(&mut a);
    let number = a.remotes.values().find_map(|remote| remote.number);
    if let Some(number) = number {
        a.connected(5100, number);
        a.received(5100, number, &hello(B, A));
        a.closed(5200, number, End::Closed);
    }
    outputs(&mut a);
    a.time(5300);
    assert_eq!(dialled(&outputs(&mut a)), None);
}

#[test]
fn an_attempt_that_takes_too_long_is_given_up() {
    let mut a = member(A, Some(cid()));
    a.set_targets(0, &[target(B)]);
    let number = dialled(&outputs(&mut a)).expect("an attempt");
    a.time(999);
    assert!(outputs(&mut a).is_empty());
    a.time(1000);
    let given_up = outputs(&mut a);
    assert!(is_closed(&given_up, number));
    assert_eq!(
        lines(&given_up),
        ["Info tcp:10.0.0.187:6644: connection attempt timed out"]
    );
    // A late report about the connection changes nothing.
    a.connected(1001, number);
    assert_eq!(a.connection_count(), 0);
}

#[test]
fn another_server_at_a_members_address_is_refused() {
    let mut a = member(A, Some(cid()));
    a.set_targets(0, &[target(B)]);
    let number = dialled(&outputs(&mut a)).expect("an attempt");
    a.connected(0, number);
    outputs(&mut a);
    a.received(0, number, &hello(D, A));
    let refused = outputs(&mut a);
    assert!(is_closed(&refused, number));
    assert_eq!(
        lines(&refused)[0],
        "Warn tcp:10.0.0.187:6644: ignoring message with unexpected server ID dddd (expected bbbb)"
    );
    assert!(!refused.contains(&PeersOutput::PeerUp(D)));
    assert!(!refused.contains(&PeersOutput::PeerDown(D)));
    // The same refusal after the wait is not news.
    a.time(1000);
    let number = dialled(&outputs(&mut a)).expect("another attempt");
    a.connected(1000, number);
    outputs(&mut a);
    a.received(1000, number, &hello(D, A));
    let refused = outputs(&mut a);
    assert!(is_closed(&refused, number));
    assert!(!lines(&refused).iter().any(|line| line.contains("ignoring")));
}

#[test]
fn a_list_that_names_another_server_resets_the_connection() {
    let mut a = member(A, Some(cid()));
    let unnamed = DialTarget {
        sid: None,
        ..target(B)
    };
    a.set_targets(0, &[unnamed]);
    let number = dialled(&outputs(&mut a)).expect("an attempt");
    a.connected(0, number);
    a.received(0, number, &hello(D, A));
    assert!(outputs(&mut a).contains(&PeersOutput::PeerUp(D)));
    a.set_targets(0, &[target(B)]);
    let refused = outputs(&mut a);
    assert!(is_closed(&refused, number) && refused.contains(&PeersOutput::PeerDown(D)));
}

#[test]
fn refused_messages_are_a_line_and_a_reset() {
    let other = Cid::new(Uuid([0xee; 16]));
    let foreign = Envelope {
        cluster: other,
        ..envelope(B, A)
    };
    for (bytes, line) in [
        (
            wire::encode(&envelope(D, A), &message(1)).to_vec(),
            "Warn tcp:b:1: ignoring message with unexpected server ID dddd (expected bbbb)",
        ),
        (
            hello(D, A),
            "Warn tcp:b:1: ignoring message with unexpected server ID dddd (expected bbbb)",
        ),
        (
            wire::encode(&envelope(B, D), &message(1)).to_vec(),
            "failed: misrouted message (addressed to dddd but we're aaaa)",
        ),
        (
            wire::encode(&foreign, &message(1)).to_vec(),
            "failed: wrong cluster eeee (expected cccc)",
        ),
        (
            br#"{"id":null,"method":"x","params":[{}]}"#.to_vec(),
            "Info tcp:b:1: ovsdb error: unknown method x",
        ),
        (
            b"HTTP/1.1".to_vec(),
            "Warn tcp:b:1: error parsing stream: line 0, column 0, byte 0: invalid character 'H'",
        ),
        (
            vec![b'['; 5000],
            "Warn tcp:b:1: error parsing stream: line 0, column 1008, byte 1008: input exceeds maximum nesting depth 1008",
        ),
        (
            [b"[\"".as_slice(), &vec![b'x'; 1 << 20]].concat(),
            "Warn tcp:b:1: message is longer than 1048576 bytes",
        ),
    ] {
        let (mut a, number) = accepted_from_b();
        a.received(1, number, &bytes);
        let refused = outputs(&mut a);
        assert_eq!(lines(&refused).len(), 1, "{:?}", lines(&refused));
        assert!(lines(&refused)[0].ends_with(line), "{:?}", lines(&refused));
        assert!(is_closed(&refused, number));
        assert!(refused.contains(&PeersOutput::PeerDown(B)));
        let is_message = |output: &PeersOutput| matches!(output, PeersOutput::Message { .. });
        assert!(!refused.iter().any(is_message));
        assert_eq!((a.connection_count(), a.disconnections()), (0, 1));
        // The rest of the bytes that had arrived is ignored.
        a.received(1, number, &hello(B, A));
        assert!(outputs(&mut a).is_empty());
    }
}

#[test]
fn the_first_message_must_be_hello() {
    for (bytes, line) in [
        (
            wire::encode(&envelope(B, A), &message(1)).to_vec(),
            "Info tcp:b:1: the first message of server bbbb is not hello_request",
        ),
        (
            hello(A, A),
            "Warn tcp:b:1: the server at the other end has this server's ID",
        ),
        (
            [b"[\"".as_slice(), &vec![b'x'; HELLO_BYTES_MAX]].concat(),
            "Warn tcp:b:1: message is longer than 16384 bytes",
        ),
    ] {
        let mut a = member(A, Some(cid()));
        let number = a.accepted(0, "tcp:b:1");
        outputs(&mut a);
        a.received(0, number, &bytes);
        let refused = outputs(&mut a);
        assert_eq!(lines(&refused), [line]);
        assert!(is_closed(&refused, number));
    }
    let mut a = member(A, Some(cid()));
    let number = a.accepted(0, "tcp:b:1");
    outputs(&mut a);
    // The peer answers probes, but does not identify itself.
    for now_ms in (1000..IDENTIFICATION_MS).step_by(1000) {
        a.received(now_ms, number, br#"{"id":"echo","result":[],"error":null}"#);
        a.time(now_ms);
        assert!(lines(&outputs(&mut a)).is_empty());
    }
    a.time(IDENTIFICATION_MS);
    let given_up = outputs(&mut a);
    assert!(is_closed(&given_up, number));
    assert_eq!(
        lines(&given_up),
        ["Info tcp:b:1: the peer did not identify itself, disconnecting"]
    );
}

#[test]
fn an_address_at_which_nobody_says_who_it_is_gets_advice_once() {
    let mut a = member(A, None);
    let target = DialTarget {
        address: "tcp:b:2".to_owned(),
        sid: None,
    };
    a.set_targets(0, &[target]);
    let mut said = Vec::new();
    let mut now_ms = 0;
    while now_ms < 100_000 {
        for output in outputs(&mut a) {
            match output {
                PeersOutput::Dial { number, .. } => a.connected(now_ms, number),
                PeersOutput::Log { level, text } if text.contains("did not identify") => {
                    said.push((level, text));
                }
                _ => {}
            }
        }
        let open: Vec<ConnectionNumber> = a.connections.keys().copied().collect();
        for number in open {
            a.received(now_ms, number, br#"{"id":"echo","result":[],"error":null}"#);
        }
        now_ms += 500;
        a.time(now_ms);
    }
    assert!(said.len() > 3, "{said:?}");
    assert!(said[0].1.contains("it runs another program"), "{said:?}");
    assert_eq!(said[0].0, Level::Warn);
    assert!(said[1..].iter().all(|(level, _)| *level == Level::Debug));
}

#[test]
fn a_member_of_the_reference_is_refused_with_advice() {
    let id = |sid: Sid| sid.0.to_string();
    let (cluster, from) = (cid().uuid().to_string(), id(B));
    let advice =
        "Stop all members, install the same program on each, and start them on their files";
    for (text, found) in [
        (
            format!(
                r#"{{"id":null,"method":"hello_request","params":[{{"cluster":"{cluster}","from":"{from}","address":"tcp:1.2.3.4:5"}}]}}"#
            ),
            "server bbbb cannot be a member of this cluster: members must exchange messages as \"corvid 1\", and its hello_request announces none",
        ),
        (
            format!(
                r#"{{"id":null,"method":"hello_request","params":[{{"cluster":"{cluster}","from":"{from}","address":"tcp:1.2.3.4:5","comment":"corvid 2"}}]}}"#
            ),
            "server bbbb cannot be a member of this cluster: members must exchange messages as \"corvid 1\", and its hello_request announces \"corvid 2\"",
        ),
        (
            format!(
                r#"{{"id":null,"method":"add_server_request","params":[{{"from":"{from}","address":"tcp:1.2.3.4:5"}}]}}"#
            ),
            "the server cannot be a member of this cluster: members must exchange messages as \"corvid 1\", and it sent add_server_request",
        ),
    ] {
        let mut a = member(A, Some(cid()));
        for attempt in 0..2 {
            let number = a.accepted(0, "tcp:b:1");
            outputs(&mut a);
            a.received(0, number, text.as_bytes());
            let refused = outputs(&mut a);
            assert!(is_closed(&refused, number));
            let expected = match attempt {
                0 => vec![format!("Warn tcp:b:1: {found}. {advice}")],
                _ => Vec::new(),
            };
            assert_eq!(lines(&refused), expected);
        }
    }
}

#[test]
fn a_silent_peer_is_probed_and_dropped() {
    let (mut a, number) = accepted_from_b();
    a.set_election_timer(2000);
    assert_eq!(a.deadline_ms(0), Some(3000));
    a.time(2999);
    assert!(outputs(&mut a).is_empty());
    a.time(3000);
    let probe = outputs(&mut a);
    assert!(
        matches!(&probe[..], [PeersOutput::Write { bytes, .. }] if bytes == corvid_rpc::message::PROBE)
    );
    a.time(6000);
    let dropped = outputs(&mut a);
    assert_eq!(
        lines(&dropped),
        ["Error tcp:b:1: no response to inactivity probe after 3 seconds, disconnecting"]
    );
    assert!(is_closed(&dropped, number) && dropped.contains(&PeersOutput::PeerDown(B)));
}

#[test]
fn probes_of_the_peer_are_answered() {
    let (mut a, number) = accepted_from_b();
    a.received(1, number, corvid_rpc::message::PROBE);
    let answer = PeersOutput::Write {
        number,
        bytes: bytes::Bytes::from_static(br#"{"id":"echo","result":[],"error":null}"#),
    };
    assert_eq!(outputs(&mut a), [answer]);
}

#[test]
fn a_peer_that_does_not_read_is_disconnected() {
    for (limits, line) in [
        (
            BacklogLimits::default(),
            "Warn sending backlog exceeded maximum number of messages (501 > 500), disconnecting, jsonrpc: tcp:b:1.",
        ),
        (
            BacklogLimits {
                messages_max: 500,
                bytes_max: 10_000,
            },
            "Warn sending backlog exceeded maximum size (10088 > 10000 bytes), disconnecting, jsonrpc: tcp:b:1.",
        ),
    ] {
        let (mut a, number) = accepted_from_b();
        a.set_backlog_limits(limits);
        let hello_bytes = usize::try_from(a.backlog_bytes()).expect("fits");
        a.written(0, number, hello_bytes);
        let mut all = Vec::new();
        while a.is_up(B) {
            a.send(0, B, &message(1));
            a.time(0);
            all.extend(outputs(&mut a));
        }
        let lines = lines(&all);
        assert!(
            lines[0].starts_with(
                "Info excessive sending backlog, jsonrpc: tcp:b:1, num of msgs: 50, backlog: "
            ),
            "{lines:?}"
        );
        assert_eq!(lines.last().map(String::as_str), Some(line));
        assert!(lines.len() <= 5, "{lines:?}");
        assert!(is_closed(&all, number));
        assert_eq!(a.backlog_bytes(), 0);
        a.send(0, B, &message(1));
        assert!(outputs(&mut a).is_empty(), "lost");
    }
}

#[test]
fn entries_for_a_slow_peer_are_not_kept_without_limit() {
    let (mut a, number) = long::receiver(A, B, 1 << 26);
    let data = [b"[\"".as_slice(), &vec![b'x'; 8 << 20], b"\"]"].concat();
    let append = PeerMessage::Append {
        term: Term(1),
        prev_index: Index(1),
        prev_term: Term(1),
        commit: Index(1),
        entries: vec![(Term(1), EntryBody::commit(Eid(Uuid([1; 16])), &data))],
    };
    for _ in 0..40 {
        a.send(0, B, &append);
    }
    let all = outputs(&mut a);
    assert!(a.backlog_bytes() < APPEND_BACKLOG_BYTES_MAX + (9 << 20));
    assert_eq!(lines(&all).len(), 1);
    assert!(lines(&all)[0].contains("bytes are unsent, sending no entries until"));
    // Signs of life still leave.
    let heartbeat = PeerMessage::Heartbeat {
        term: Term(1),
        commit: Index(1),
    };
    a.send(0, B, &heartbeat);
    let heartbeat = outputs(&mut a);
    assert!(matches!(heartbeat[..], [PeersOutput::Write { .. }]));
    let mut unsent: usize = long::written(all).iter().map(Bytes::len).sum();
    unsent += long::written(heartbeat)[0].len();
    while a.backlog_bytes() > 0 {
        a.written(0, number, unsent);
        unsent = long::written(outputs(&mut a)).iter().map(Bytes::len).sum();
    }
    a.send(0, B, &append);
    assert!(!long::written(outputs(&mut a)).is_empty());
}

#[test]
fn messages_go_over_the_connection_that_was_identified_last() {
    let (mut a, first) = accepted_from_b();
    let second = a.accepted(0, "tcp:b:2");
    a.received(0, second, &hello(B, A));
    assert!(outputs(&mut a).contains(&PeersOutput::PeerUp(B)), "again");
    a.send(0, B, &message(1));
    assert!(matches!(outputs(&mut a)[..], [PeersOutput::Write { number, .. }] if number == second));
    a.closed(0, second, End::Closed);
    assert!(
        outputs(&mut a).contains(&PeersOutput::PeerUp(B)),
        "over the other"
    );
    a.send(0, B, &message(1));
    assert!(matches!(outputs(&mut a)[..], [PeersOutput::Write { number, .. }] if number == first));
    a.refuse(0, B, "forged");
    let refused = outputs(&mut a);
    assert_eq!(
        lines(&refused),
        ["Warn tcp:b:1: refused message of bbbb: forged"]
    );
    assert!(refused.contains(&PeersOutput::PeerDown(B)));
}

#[test]
fn accepted_connections_are_bounded() {
    let mut a = member(A, Some(cid()));
    let mut numbers = Vec::new();
    for _ in 0..ACCEPTED_PER_SERVER_MAX + 1 {
        let number = a.accepted(0, "tcp:b:1");
        a.received(0, number, &hello(B, A));
        numbers.push(number);
    }
    let closed = outputs(&mut a);
    assert!(is_closed(&closed, numbers[0]) && !is_closed(&closed, numbers[1]));
    assert!(a.is_up(B));
    for _ in 0..2 * ACCEPTED_MAX {
        a.accepted(0, "tcp:b:1");
    }
    assert_eq!(a.connection_count(), ACCEPTED_MAX);
    assert!(a.is_up(B), "strangers are closed first");
}

#[test]
fn unfinished_messages_of_all_connections_are_bounded() {
    let mut a = member(A, Some(cid()));
    let begun = [b"[\"".as_slice(), &vec![b'x'; 900 << 10]].concat();
    let numbers = [1, 2, 3].map(|count| {
        let number = a.accepted(0, "tcp:b:1");
        a.received(0, number, &hello(B, A));
        a.received(0, number, &begun[..begun.len() - count]);
        number
    });
    let refused = outputs(&mut a);
    assert!(is_closed(&refused, numbers[0]), "the longest");
    assert!(
        lines(&refused)
            .iter()
            .any(|line| line.contains("incomplete messages of all peers take too much memory"))
    );
    assert_eq!(a.connection_count(), 2);
}

#[test]
fn long_errors_are_cut_in_the_log() {
    let (mut a, number) = accepted_from_b();
    let noise = format!(
        r#"{{"id":null,"method":"heartbeat","params":[{{"x":"{}"}}]}}"#,
        "é".repeat(5000)
    );
    a.received(0, number, noise.as_bytes());
    let lines = lines(&outputs(&mut a));
    assert!(lines[0].len() < LOG_BYTES_MAX + 20 && lines[0].ends_with("..."));
}
