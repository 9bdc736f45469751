//! One member's database: the ids of the entries that it has applied.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use corvid_consensus::{
    Committed, Finding, Forward, ForwardOutcome, MemberEvent, MemberRequest, Proposal,
};
use corvid_data::Uuid;
use corvid_log::cluster::{Eid, Index, Sid, Term};

/// The database of one member.
#[derive(Debug, Default)]
pub(crate) struct Replica {
    pub(crate) leads: Option<Term>,
    pub(crate) follows: Option<(Term, Option<Sid>)>,
    pub(crate) index: Index,
    pub(crate) applied: Vec<(Index, Eid)>,
    /// Proposals that have no entry yet.
    own: VecDeque<Eid>,
    /// Forwarded transactions whose fate is unknown, with their terms.
    pub(crate) doubt: BTreeMap<Eid, Term>,
    /// Transactions that certainly happened: own entries, and forwarded ones that came back.
    pub(crate) acknowledged: Vec<Eid>,
    executed: Vec<Eid>,
    pub(crate) outcomes: u64,
    /// The election timer, since it has led.
    pub(crate) timer_ms: Option<u64>,
    pub(crate) findings: Vec<(Eid, Finding)>,
}

/// The data of an entry. The last byte of its id is its length in MiB; 0 makes it short.
fn data(eid: Eid) -> Bytes {
    let Uuid(bytes) = eid.0;
    let comment = "x".repeat(usize::from(bytes[15]) << 20);
    Bytes::from(format!(
        r#"[null,{{"t":{{"{}":{{}}}},"_comment":"{comment}"}}]"#,
        eid.0
    ))
}

impl Replica {
    pub(crate) fn body(&self) -> Vec<u8> {
        let ids: Vec<String> = self
            .applied
            .iter()
            .map(|(index, eid)| format!("{} {}", index.0, eid.0))
            .collect();
        format!("[{}]", ids.join(",")).into_bytes()
    }

    pub(crate) fn load(body: &[u8]) -> Vec<(Index, Eid)> {
        let text = std::str::from_utf8(body).expect("text");
        let inner = text.trim_start_matches('[').trim_end_matches(']');
        let parts = inner.split(',').filter(|part| !part.is_empty());
        parts
            .map(|part| {
                let (index, eid) = part.split_once(' ').expect("a pair");
                let eid = Uuid::parse(eid.as_bytes()).expect("an id");
                (Index(index.parse().expect("a number")), Eid(eid))
            })
            .collect()
    }

    pub(crate) fn last_eid(&self) -> Eid {
        self.applied.last().map_or(Eid(Uuid([9; 16])), |it| it.1)
    }

    /// A client wants commits on this member.
    pub(crate) fn write(&mut self, eids: &[Eid]) -> Vec<MemberRequest> {
        if let Some(term) = self.leads {
            self.own.extend(eids);
            let proposals = eids
                .iter()
                .map(|eid| Proposal {
                    eid: *eid,
                    data: data(*eid),
                    result: None,
                })
                .collect();
            return vec![MemberRequest::Propose { term, proposals }];
        }
        let Some((term, Some(_))) = self.follows else {
            return Vec::new();
        };
        eids.iter()
            .map(|eid| {
                self.doubt.insert(*eid, term);
                let forward = Box::new(Forward {
                    id: *eid,
                    method: corvid_consensus::ForwardMethod::default(),
                    params: Bytes::from_static(b"[]"),
                    client: corvid_consensus::ClientIdentity::default(),
                    elapsed_ms: 0,
                    once: None,
                });
                MemberRequest::Forward { term, forward }
            })
            .collect()
    }

    pub(crate) fn event(&mut self, event: MemberEvent, body: &[u8]) -> Vec<MemberRequest> {
        match event {
            MemberEvent::Leads { term } => {
                assert_ne!(self.leads, Some(term), "told twice");
                assert!(self.timer_ms.is_some(), "it knows what it may propose");
                (self.leads, self.follows) = (Some(term), None);
                assert!(self.own.is_empty());
                self.executed.clear();
            }
            MemberEvent::Follows { term, leader } => {
                (self.leads, self.follows) = (None, Some((term, leader)));
                self.own.clear();
            }
            MemberEvent::Committed {
                through,
                term,
                entries,
            } => {
                assert!(through > self.index, "{through:?} after {:?}", self.index);
                for entry in entries {
                    let (index, eid) = match entry {
                        Committed::Own { index, eid } => {
                            assert_eq!(self.own.pop_front(), Some(eid), "own entries in order");
                            self.acknowledged.push(eid);
                            (index, eid)
                        }
                        Committed::Data {
                            index,
                            eid,
                            data: found,
                            ..
                        } => {
                            assert!(self.leads.is_none(), "another's entry at a leader");
                            assert_eq!(found, data(eid));
                            if self.doubt.remove(&eid).is_some() {
                                self.acknowledged.push(eid);
                            }
                            (index, eid)
                        }
                    };
                    assert!(index > self.index && index <= through);
                    self.applied.push((index, eid));
                }
                self.index = through;
                // Transactions that were forwarded in an earlier term never happened.
                self.doubt.retain(|_, forwarded| *forwarded >= term);
                return vec![MemberRequest::Applied(through)];
            }
            MemberEvent::Replaced { index, .. } => {
                assert!(index > self.index);
                let after = std::mem::replace(&mut self.index, index);
                self.applied = Replica::load(body);
                let mut requests = vec![MemberRequest::Applied(index)];
                let sought = std::mem::take(&mut self.doubt);
                if !sought.is_empty() {
                    requests.push(MemberRequest::Find {
                        after,
                        through: index,
                        ids: sought.into_keys().collect(),
                    });
                }
                return requests;
            }
            MemberEvent::Execute { origin, forwards } => {
                let mut requests = Vec::new();
                assert_eq!(self.leads, Some(origin.term));
                for forward in forwards {
                    let id = forward.id;
                    assert!(!self.executed.contains(&id), "executed twice");
                    self.executed.push(id);
                    requests.extend(self.write(&[id]));
                    requests.push(MemberRequest::Outcome {
                        origin,
                        id,
                        outcome: ForwardOutcome::Proposed(Bytes::from_static(b"[{}]")),
                    });
                }
                return requests;
            }
            MemberEvent::Compacted { .. } => {}
            MemberEvent::ElectionTimer { timer_ms } => self.timer_ms = Some(timer_ms),
            MemberEvent::Outcome { .. } => self.outcomes += 1,
            MemberEvent::Found { through, findings } => {
                for (id, finding) in &findings {
                    let mut applied = self.applied.iter();
                    let is_there = applied.any(|(index, eid)| eid == id && *index <= through);
                    match finding {
                        Finding::Committed => assert!(is_there, "{id:?} is no entry"),
                        Finding::Absent => assert!(!is_there, "{id:?} is an entry"),
                        Finding::Unknown => {}
                    }
                }
                self.findings.extend(findings);
            }
        }
        Vec::new()
    }
}
