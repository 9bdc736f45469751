//! The rules for using the consensus library, and changes of our source that break them.
//! docs/internals/simulation.md says which test finds each change.
//!
//! Three rules have no mutant and are not listed here. Rule 1 (the library's version and features)
//! is a line of `Cargo.toml`. Rule 4 (kinds of messages that no peer may send) is ensured by the
//! types of messages, which do not have such kinds. Rule 24 (only one module names the library, and
//! decoders are fuzzed) is about the structure of the repository.
//!
//! Invariant: every text to be found occurs exactly once in its file. A unit test checks this.

/// A change at one place.
pub(super) struct Mutant {
    pub(super) name: &'static str,
    pub(super) file: &'static str,
    /// A text of the file. Its part between `«` and `»`, an expression or statements, is replaced.
    pub(super) find: &'static str,
    /// The text that replaces that part.
    pub(super) replace: &'static str,
}

/// A rule, and changes that break it.
pub(super) struct Rule {
    pub(super) number: u32,
    pub(super) text: &'static str,
    pub(super) mutants: &'static [Mutant],
}

const fn mutant(
    name: &'static str,
    file: &'static str,
    find: &'static str,
    replace: &'static str,
) -> Mutant {
    Mutant {
        name,
        file,
        find,
        replace,
    }
}

const GUARD: &str = "crates/consensus/src/guard.rs";
const COMMITTED: &str = "crates/consensus/src/guard/committed.rs";
const FAILURE: &str = "crates/consensus/src/member/failure.rs";
const MEMBER: &str = "crates/consensus/src/member.rs";
const JOINING: &str = "crates/consensus/src/member/roster/joining.rs";
const LEAVING: &str = "crates/consensus/src/member/roster/leaving.rs";
const LOG_FILE: &str = "crates/consensus/src/member/disk/log_file.rs";
const OPENED: &str = "crates/consensus/src/member/opened.rs";
const MESSAGES: &str = "crates/consensus/src/member/messages.rs";
const ROSTER: &str = "crates/consensus/src/member/roster.rs";
const RECEIVING: &str = "crates/consensus/src/member/snapshots/receiving.rs";
const RECORDS: &str = "crates/consensus/src/member/disk/records.rs";
const REWRITE: &str = "crates/consensus/src/member/disk/rewrite.rs";
const SENDING: &str = "crates/consensus/src/member/snapshots/sending.rs";
const TICKER: &str = "crates/consensus/src/member/election/ticker.rs";
const ELECTION: &str = "crates/consensus/src/member/election.rs";
const NODE: &str = "crates/consensus/src/raft_node.rs";
const NODE_COMMITTED: &str = "crates/consensus/src/raft_node/committed.rs";
const MEMORY: &str = "crates/consensus/src/raft_node/log.rs";

/// All rules that a change of our source can break.
pub(super) const RULES: &[Rule] = &[
    Rule {
        number: 2,
        text: "Election timeouts are the member's own, from its seed; the library's are never used.",
        mutants: &[
            mutant(
                "timeouts-of-the-library",
                NODE,
                "«self.raw.raft.set_randomized_election_timeout(ticks);»",
                "",
            ),
            mutant(
                "equal-timeouts",
                TICKER,
                "let more = «self.random(SPREAD_MS)»;",
                "0",
            ),
            mutant(
                "one-timeout-for-ever",
                ELECTION,
                "«self.draw_timeout(cx);»\n        let is_done",
                "",
            ),
        ],
    },
    Rule {
        number: 3,
        text: "A tick is a tenth of the election timer; the rest of a timeout delays one tick.",
        mutants: &[
            mutant(
                "rare-heartbeats",
                NODE,
                "heartbeat_tick: «HEARTBEAT_TICKS»,",
                "9",
            ),
            mutant(
                "timeout-without-remainder",
                TICKER,
                "«self.next_ms += more % period;»",
                "",
            ),
        ],
    },
    Rule {
        number: 5,
        text: "The guard lets no message through that would end the process or break a promise.",
        mutants: &[
            mutant("sender-zero", GUARD, "«from.number() == 0»", "false"),
            mutant(
                "term-range",
                GUARD,
                "«(1..NUMBER_END).contains(&term.0)»",
                "true",
            ),
            mutant(
                "index-range",
                GUARD,
                "«numbers.iter().any(|number| *number >= NUMBER_END)»",
                "false",
            ),
            mutant("entry-terms", GUARD, "«*entry_term < last_term»", "false"),
            mutant(
                "entry-of-a-later-term",
                GUARD,
                "«*entry_term > term»",
                "false",
            ),
            mutant("previous-term", GUARD, "«*prev_term == Term(0)»", "false"),
            mutant(
                "lost-log",
                GUARD,
                "«*commit > view.last_index && *term >= view.term»",
                "false",
            ),
            mutant(
                "reply-ahead",
                GUARD,
                "untimely_if(\n                «*index > view.last_index»,",
                "false",
            ),
            mutant(
                "unsynced-winner",
                GUARD,
                "«view.persisted < view.last_index»",
                "false",
            ),
            mutant(
                "forced-election",
                GUARD,
                "«*term == view.term && view.leader == Some(from)»",
                "true",
            ),
            mutant(
                "second-leader",
                GUARD,
                "«term == view.term && known != from»",
                "false",
            ),
            mutant(
                "leader-beside-this-one",
                GUARD,
                "«term == view.term && known == view.sid»",
                "false",
            ),
            mutant(
                "snapshot-index",
                GUARD,
                "«snapshot.index == Index(0)»",
                "false",
            ),
            mutant(
                "snapshot-term",
                GUARD,
                "«snapshot.term == Term(0)»",
                "false",
            ),
            mutant("server-zero", GUARD, "«ids.contains(&0)»", "false"),
            mutant("servers-alike", GUARD, "«pair[0] == pair[1]»", "false"),
        ],
    },
    Rule {
        number: 6,
        text: "Work of the library is taken and accepted in one step.",
        mutants: &[mutant(
            "work-not-accepted",
            NODE,
            "«self.raw.advance_append_async(ready);»",
            "drop(ready);",
        )],
    },
    Rule {
        number: 7,
        text: "Messages leave, and entries are applied, only after the records that they depend on are stored.",
        mutants: &[
            mutant(
                "early-promises",
                LOG_FILE,
                "«is_hard_stored && promises_nothing(&message)»",
                "true",
            ),
            mutant(
                "messages-before-the-term",
                LOG_FILE,
                "|| «self.mark.hard == hard && !self.is_list_pending()»;",
                "true",
            ),
            mutant(
                "unsynced-term",
                RECORDS,
                "            self.push(Kind::Vote { term, vote });\n        }\n        «self.is_durable = true;»",
                "",
            ),
            mutant(
                "unsynced-entries",
                RECORDS,
                "«self.is_durable = true;»\n        let text = entry.body.text();",
                "",
            ),
            mutant(
                "applied-before-stored",
                NODE,
                "«index.0.min(log.committed).min(log.persisted)»",
                "index.0.min(log.committed)",
            ),
            mutant(
                "place-of-entries",
                NODE,
                "«self.place_entries(&mut message)?;»",
                "",
            ),
            mutant(
                "acknowledged-after-the-term",
                NODE,
                "&& «message.term < self.raw.raft.term»",
                "false",
            ),
        ],
    },
    Rule {
        number: 8,
        text: "Answers to heartbeats do not wait for a slow disk.",
        mutants: &[mutant(
            "late-heartbeat-replies",
            LOG_FILE,
            "«is_hard_stored && promises_nothing(&message)»",
            "false",
        )],
    },
    Rule {
        number: 9,
        text: "A peer that waits for a snapshot is told to the library when the snapshot has arrived or is given up.",
        mutants: &[
            mutant(
                "snapshot-interrupted",
                SENDING,
                "if «self.shipments.remove(&sid).is_some()» {",
                "self.shipments.remove(&sid).is_some() && false",
            ),
            mutant(
                "snapshot-without-time-out",
                SENDING,
                "«shipment.until_ms <= now_ms»",
                "false",
            ),
            mutant(
                "snapshot-unreadable",
                SENDING,
                "«cx.node.snapshot_sent(to, false);»",
                "",
            ),
            mutant(
                "snapshot-arrived-unnoticed",
                SENDING,
                "if «is_waiting»\n            && self\n                .shipments",
                "false",
            ),
        ],
    },
    Rule {
        number: 10,
        text: "A received snapshot is in place before the library sees it; meanwhile no time passes for the library and it hears no message.",
        mutants: &[
            mutant(
                "snapshot-before-its-sync",
                RECEIVING,
                "let snapshot = receiving.meta.clone();«»\n        cx.put(Output::InstallSnapshot {",
                "show(cx, receiving.from, &snapshot);",
            ),
            mutant(
                "time-during-installation",
                MEMBER,
                "if !self.cx.has_failed() && «!self.snapshots.receiving.is_installing()» {",
                "true",
            ),
            mutant(
                "chunk-twice",
                RECEIVING,
                "receiving.from = from;«»",
                "receiving.requested = receiving.written;",
            ),
            mutant(
                "messages-during-installation",
                MESSAGES,
                "if «self.snapshots.receiving.is_installing()» {",
                "false",
            ),
        ],
    },
    Rule {
        number: 11,
        text: "The library hears of a snapshot that is not there yet in one way only; entries behind the snapshot and the term before the first entry stay.",
        mutants: &[
            mutant(
                "no-snapshot-at-present",
                MEMORY,
                "let error = «StorageError::SnapshotTemporarilyUnavailable»;",
                "StorageError::Unavailable",
            ),
            mutant(
                "boundary-term",
                MEMORY,
                "«self.base = (entry.index, entry.term);»",
                "self.base = (entry.index, 0);",
            ),
            mutant(
                "forgotten-behind-the-snapshot",
                MEMORY,
                "let index = «index.0.min(self.snapshot.0)»;",
                "index.0",
            ),
        ],
    },
    Rule {
        number: 12,
        text: "A proposal has at least one entry; one that the library drops waits.",
        mutants: &[
            mutant(
                "proposal-of-nothing",
                NODE,
                "if «bodies.is_empty() || !self.is_leader()» {",
                "!self.is_leader()",
            ),
            mutant(
                "dropped-proposal",
                NODE,
                "let outcome = «self.raw.raft.step(message).is_ok()»;",
                "self.raw.raft.step(message).is_ok() || true",
            ),
        ],
    },
    Rule {
        number: 13,
        text: "Messages, batches of committed entries and entries under way have limits.",
        mutants: &[
            mutant(
                "one-entry-a-message",
                NODE,
                "max_size_per_msg: «MESSAGE_BYTES_MAX»,",
                "0",
            ),
            mutant(
                "committed-without-limit",
                NODE,
                "max_committed_size_per_ready: «COMMITTED_BYTES_MAX»,",
                "u64::MAX",
            ),
            mutant(
                "uncommitted-without-limit",
                NODE,
                "max_uncommitted_size: «UNCOMMITTED_BYTES_MAX»,",
                "u64::MAX",
            ),
        ],
    },
    Rule {
        number: 14,
        text: "One change of the members at a time, by a leader that has committed an entry of its own term and stays.",
        mutants: &[
            mutant("two-changes", NODE, "«!raft.has_pending_conf()»", "true"),
            mutant(
                "change-of-an-earlier-term",
                NODE,
                "«raft.apply_to_current_term()»",
                "true",
            ),
            mutant(
                "change-during-a-transfer",
                NODE,
                "«raft.lead_transferee.is_none()»",
                "true",
            ),
        ],
    },
    Rule {
        number: 15,
        text: "A server that joins has no vote before its list is committed, and none of its traces outlasts the leadership.",
        mutants: &[
            mutant(
                "joiner-votes",
                JOINING,
                "cx.node.apply_change(from, true, «true»);",
                "false",
            ),
            mutant(
                "joiner-stays",
                JOINING,
                "std::mem::take(&mut self.list.joiners) {\n            «cx.node.apply_change(sid, false, false);»",
                "",
            ),
            mutant(
                "joiner-unlisted",
                NODE,
                "«state.learners.push(self.raw.raft.id);»",
                "",
            ),
            mutant(
                "joiner-not-caught-up",
                JOINING,
                "is_caught_up: «false»,",
                "true",
            ),
        ],
    },
    Rule {
        number: 16,
        text: "No leader proposes or applies its own removal.",
        mutants: &[
            mutant(
                "leader-removes-itself",
                ROSTER,
                "if «gone.contains(&own)» {",
                "gone.contains(&own) && !cx.node.is_leader()",
            ),
            mutant(
                "leader-asks-for-its-removal",
                LEAVING,
                "if «cx.node.is_leader()» {\n            // The next",
                "false",
            ),
        ],
    },
    Rule {
        number: 17,
        text: "A removal leaves a majority that is alive and has caught up; a removed server is told.",
        mutants: &[
            mutant("removal-quorum", LEAVING, "«fit < quorum»", "false"),
            mutant(
                "removal-checked-once",
                LEAVING,
                "«self.check_removals(cx, lease, &[target]).map(|()| list)»",
                "Ok(list)",
            ),
            mutant(
                "removed-member-is-not-told",
                LEAVING,
                "«cx.send(from, PeerMessage::NotMember { term });»",
                "let _ = term;",
            ),
        ],
    },
    Rule {
        number: 18,
        text: "The only voter does not stand for election while a part of its log is not stored.",
        mutants: &[mutant(
            "sole-voter-unsynced",
            NODE,
            "!is_sole || «self.unstored == 0»",
            "true",
        )],
    },
    Rule {
        number: 19,
        text: "The library knows servers by half of their ids, so two that begin alike are kept apart.",
        mutants: &[
            mutant(
                "joiner-of-a-known-number",
                JOINING,
                "if «cx.node.collides(from)» {",
                "false",
            ),
            mutant(
                "sender-of-a-known-number",
                NODE,
                "«*self.sids.entry(id).or_insert(from) != from»",
                "self.sids.entry(id).or_insert(from).number() == 0",
            ),
            mutant(
                "vote-for-a-number",
                NODE,
                "fn vote(&self) -> Option<Sid> {\n        «self.sids.get(&self.raw.raft.vote).copied()»",
                "None",
            ),
        ],
    },
    Rule {
        number: 20,
        text: "Records come in the reference's order, and each once.",
        mutants: &[
            mutant(
                "commit-before-its-entries",
                LOG_FILE,
                "        «for entry in &work.entries {\n            records.entry(entry);\n        }\n        if let Some(commit) = work.commit.filter(|commit| *commit > self.commit) {\n            records.commit(commit);\n            self.commit = commit;\n        }»",
                "if let Some(commit) = work.commit.filter(|commit| *commit > self.commit) {\n            records.commit(commit);\n            self.commit = commit;\n        }\n        for entry in &work.entries {\n            records.entry(entry);\n        }",
            ),
            mutant(
                "records-twice",
                REWRITE,
                "«self.file.replace(mark);»",
                "let _ = mark;",
            ),
            mutant(
                "term-unwritten",
                LOG_FILE,
                "«records.hard(self.own, self.hard.0, hard);»",
                "",
            ),
        ],
    },
    Rule {
        number: 21,
        text: "The library knows which entries change the voters.",
        mutants: &[mutant(
            "list-is-no-change",
            NODE,
            "if «changes_voters(&entry.body)» {",
            "false",
        )],
    },
    Rule {
        number: 22,
        text: "A file opens with the members, the commit index and the role that its committed records say.",
        mutants: &[
            mutant(
                "voters-of-the-end",
                OPENED,
                "                «if is_committed {\n                    lists.push((entry.index, list.clone()));\n                }»",
                "lists.push((entry.index, list.clone()));",
            ),
            mutant(
                "joiner-does-not-reopen",
                OPENED,
                "if «is_member || was_member && !is_listed_later» {",
                "is_member || was_member && !is_listed_later || last_list.is_some()",
            ),
            mutant(
                "commit-of-the-end",
                OPENED,
                "let commit = «commit.min(last)»;",
                "last",
            ),
        ],
    },
    Rule {
        number: 23,
        text: "A leader applies only entries that it has synced itself.",
        mutants: &[
            mutant(
                "applied-before-synced",
                LOG_FILE,
                "number: «(!is_waited_for).then_some(work.number)»,",
                "Some(work.number)",
            ),
            mutant(
                "first-sync-unawaited",
                LOG_FILE,
                "let opening = «is_recording».then(|| Waiting {",
                "false",
            ),
        ],
    },
    Rule {
        number: 25,
        text: "A member compares its leader's log with what it has committed, and nothing is acknowledged or counted that was not sent.",
        mutants: &[
            // This mutant must come before the next one, which changes the text by which this place
            // is found.
            mutant(
                "older-leader-compared",
                GUARD,
                "            if «*term >= view.term» {\n                committed::check_append",
                "true",
            ),
            mutant(
                "append-uncompared",
                GUARD,
                "«committed::check_append(view, (*prev_index, *prev_term), entries)?;»",
                "",
            ),
            mutant(
                "snapshot-uncompared",
                GUARD,
                "«committed::check_snapshot(view, snapshot)?;»",
                "",
            ),
            mutant(
                "place-uncompared",
                COMMITTED,
                "    let commit = view.log.commit();\n    «check_entry(view.log, prev_index, prev_term, None)?;»",
                "",
            ),
            mutant(
                "entries-uncompared",
                COMMITTED,
                "        «check_entry(view.log, index, *term, Some(body))?;»",
                "let _ = (term, body);",
            ),
            mutant(
                "boundary-uncompared",
                COMMITTED,
                "«term <= boundary_term»",
                "true",
            ),
            mutant("commits-uncompared", COMMITTED, "«own == theirs»", "true"),
            mutant(
                "histories-uncompared",
                COMMITTED,
                "«commit == Index(0) || commit_term == Term(0)»",
                "true",
            ),
            mutant(
                "acknowledgement-ahead",
                GUARD,
                "«*index > view.sent»",
                "false",
            ),
            mutant(
                "acknowledged-unread",
                NODE,
                "«committed::ask_back(answers, place, |index| log.term(index).unwrap_or_default());»",
                "let _ = (answers, place, log);",
            ),
            mutant(
                "hint-unheeded",
                NODE_COMMITTED,
                "«progress.next_idx = next.max(progress.matched + 1);»",
                "",
            ),
            mutant(
                "unfit-unnoted",
                FAILURE,
                "«records.note(unfit.note(), self.reason.clone());»",
                "",
            ),
        ],
    },
];
