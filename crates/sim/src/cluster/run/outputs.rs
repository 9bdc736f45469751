//! Executes the outputs of members: records go to the disk, messages over the wire, events to the
//! database. Promises are checked when they leave.

use corvid_consensus::wire::{self, Envelope, Incoming, Receiver};
use corvid_consensus::{Input, MemberEvent, Output, PeerMessage};
use corvid_log::cluster::{Index, Sid};

use super::{MemberRun, Sent};
use crate::cluster::host::Written;
use crate::cluster::oracle::MemberLog;

impl MemberRun {
    pub(super) fn output(&mut self, number: usize, output: Output) -> Result<(), String> {
        let host = &mut self.hosts[number];
        match output {
            Output::Store(requests) => {
                let written = host.note(&requests)?;
                self.written(number, written)?;
                let host = &mut self.hosts[number];
                if let Some(life) = &mut host.life {
                    let was_idle = !life.file.effects().disk_has_work();
                    let replies = life.file.store(requests);
                    life.replies.extend(replies);
                    if was_idle {
                        life.disk_ms = life.disk_ms.max(self.now_ms);
                    }
                }
            }
            Output::Send { to, message } => {
                self.check_promise(number, to, &message)?;
                self.note_vote(number, to, &message)?;
                let to = self.hosts.iter().position(|host| host.identity.sid == to);
                if let Some(to) = to {
                    let message = self.over_the_wire(number, to, &message)?;
                    self.network.send(self.now_ms, number, to, &message);
                }
            }
            Output::Database(event) => {
                if let MemberEvent::Committed { through, .. } = &event {
                    self.committed(number, *through)?;
                }
                if let Some(life) = &mut self.hosts[number].life {
                    if let MemberEvent::Replaced { index, .. } = &event {
                        if *index > self.oracle.commit() {
                            return Err(format!(
                                "host {number} installs a snapshot of {index}, which is not committed"
                            ));
                        }
                        life.reported = *index;
                    }
                    life.events.push_back(event);
                }
            }
            Output::Row(row) => {
                if let Some(life) = &mut host.life {
                    life.row = Some(row);
                }
            }
            Output::Refuse { from, reason } => {
                return Err(format!(
                    "host {number} refuses a message of {from}: {reason}"
                ));
            }
            Output::Failed(why) => {
                return Err(format!("host {number} has failed: {why}"));
            }
            Output::Left => {
                if let Some(life) = &mut host.life {
                    life.ended = Some("left".to_owned());
                }
                for transaction in self.sessions[number].drain(..) {
                    self.oracle.orphaned(transaction);
                }
                self.network.stop(self.now_ms, number);
            }
            Output::ReadSnapshot {
                to,
                index,
                offset,
                bytes_max,
            } => {
                let local_ms = host.clock.local(self.now_ms);
                if let Some(life) = &mut host.life {
                    // The first request asks for the length of the snapshot and for no bytes.
                    if bytes_max == 0 && life.file.check_snapshot(local_ms, to, index) {
                        return Ok(());
                    }
                    let bytes = life.file.read_snapshot(index, offset, bytes_max);
                    life.inbox.push_back(Input::SnapshotRead {
                        to,
                        index,
                        offset,
                        bytes,
                    });
                }
            }
            Output::BeginSnapshot(meta) => {
                if let Some(life) = &mut host.life {
                    life.file.begin_snapshot(meta);
                }
            }
            Output::AbandonSnapshot => {
                if let Some(life) = &mut host.life {
                    life.file.abandon_snapshot();
                }
            }
            Output::WriteSnapshot {
                index,
                offset,
                bytes,
            } => {
                if let Some(life) = &mut host.life {
                    let written = life.file.write_snapshot(index, offset, &bytes);
                    life.inbox.extend(written);
                }
            }
            Output::InstallSnapshot {
                snapshot, records, ..
            } => {
                self.summary.snapshots += 1;
                for input in host.install(self.now_ms, snapshot, records)? {
                    self.queue(number, input);
                }
            }
            Output::MakeSnapshot => {
                if let Some(life) = &mut host.life {
                    life.wants_snapshot = true;
                }
            }
            Output::RejectSnapshot(reason) => {
                if let Some(life) = &mut host.life {
                    life.snapshot = None;
                    life.file.reject_snapshot(reason);
                }
            }
            Output::Rewrite(rewrite) => {
                self.summary.rewrites += 1;
                let written = host.rewrite(*rewrite)?;
                self.written(number, written)?;
            }
            Output::Dial(_)
            | Output::ElectionTimer(_)
            | Output::CommandDone(..)
            | Output::Log(..) => {}
        }
        Ok(())
    }

    fn written(&mut self, number: usize, entries: Vec<Written>) -> Result<(), String> {
        for entry in entries {
            let Written {
                index,
                term,
                body,
                before,
                servers,
                payload,
            } = entry;
            if let Some(payload) = payload {
                self.oracle.has_data(index, term, payload);
            }
            if let Some(servers) = servers {
                let is_listed = |host: &usize| servers.contains(self.hosts[*host].identity.sid);
                let members = (0..self.hosts.len()).filter(is_listed).collect();
                self.oracle.listed(index, term, members);
            }
            self.oracle.written(number, index, term, body, before)?;
        }
        Ok(())
    }

    pub(super) fn queue(&mut self, number: usize, input: Input) {
        if let Some(life) = &mut self.hosts[number].life {
            life.inbox.push_back(input);
        }
    }

    /// Returns a message as the receiver's codec reads it.
    fn over_the_wire(&self, from: usize, to: usize, message: &PeerMessage) -> Result<Sent, String> {
        let [from, to] = [from, to].map(|number| &self.hosts[number].identity);
        let envelope = Envelope {
            cluster: from.cid,
            to: Some(to.sid),
            from: from.sid,
        };
        let text = wire::encode(&envelope, message);
        let receiver = Receiver {
            sid: to.sid,
            cid: to.cid,
        };
        match wire::decode(&text, &receiver) {
            Ok(Incoming::Message {
                cluster,
                message: read,
                ..
            }) if *message == read => Ok(Sent {
                cluster,
                message: read,
            }),
            other => Err(format!("{message:?} is read as {other:?}")),
        }
    }

    /// Checks that everything that an outgoing message promises is synced.
    fn check_promise(&self, number: usize, to: Sid, message: &PeerMessage) -> Result<(), String> {
        let host = &self.hosts[number];
        let Some(life) = &host.life else {
            return Ok(());
        };
        match message {
            PeerMessage::AppendReply {
                term,
                index,
                rejection: None,
                ..
            } if !host.may_acknowledge(*term, *index) => Err(format!(
                "host {number} acknowledges {index} in term {term}, and has synced {}",
                host.log.synced
            )),
            PeerMessage::VoteReply {
                term,
                is_prevote: false,
                is_granted: true,
                ..
            } if !host.has_voted(*term, to) => Err(format!(
                "host {number} votes for {to} in term {term}, and has synced {:?}",
                life.synced_ballot
            )),
            PeerMessage::Vote {
                term,
                is_prevote: false,
                ..
            } if !host.has_voted(*term, host.identity.sid) => Err(format!(
                "host {number} stands in term {term}, and has synced {:?}",
                life.synced_ballot
            )),
            // No message of a leadership leaves before the leadership's term is synced.
            PeerMessage::Append { term, .. }
            | PeerMessage::Heartbeat { term, .. }
            | PeerMessage::SnapshotOffer { term, .. }
                if host.synced_term() < *term =>
            {
                Err(format!(
                    "host {number} leads others in term {term}, and has synced {:?}",
                    life.synced_ballot
                ))
            }
            _ => Ok(()),
        }
    }

    /// Notes the vote in an outgoing message, and checks that it is the only vote of its term.
    fn note_vote(&mut self, number: usize, to: Sid, message: &PeerMessage) -> Result<(), String> {
        let own = self.hosts[number].identity.sid;
        match message {
            PeerMessage::VoteReply {
                term,
                is_prevote: false,
                is_granted: true,
                ..
            } => self.oracle.votes(number, *term, to),
            PeerMessage::Vote {
                term,
                is_prevote: false,
                ..
            } => self.oracle.votes(number, *term, own),
            _ => Ok(()),
        }
    }

    pub(super) fn committed(&mut self, number: usize, through: Index) -> Result<(), String> {
        let Some(life) = &mut self.hosts[number].life else {
            return Ok(());
        };
        let from = std::mem::replace(&mut life.reported, through);
        let (_, in_term) = life.member.role_and_term();
        let logs: Vec<&MemberLog> = self.hosts.iter().map(|host| &host.log).collect();
        self.oracle.committed(number, in_term, from, through, &logs)
    }
}
