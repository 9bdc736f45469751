//! The control commands for clusters (docs/spec/distribution.md 1.12). They are registered when the
//! first clustered database is served: scripts recognize a standalone server by their absence.

use corvid_consensus::member;
use corvid_shell::unixctl::{Command, Registry};

use super::c_number;
use crate::server::Server;

/// The meaning of `cluster/failure-test`, with its scenarios (`member/failure.rs`).
const FAILURE_TEST: &str = "provoke a failure in this process, for tests, or end that (clear): clear, stop-raft-rpc, \
     dont-send-vote-request, delay-election, force-election, transfer-leadership, \
     transfer-leadership-after-sending-append-request, transfer-leadership-after-starting-to-add, \
     crash-before-sending-append-request, crash-after-sending-append-request, \
     crash-before-sending-execute-command-request, crash-after-sending-execute-command-request, \
     crash-before-sending-execute-command-reply, crash-after-sending-execute-command-reply, \
     crash-after-receiving-append-request-update, crash-before-sending-install-snapshot-reply";

/// Registers the commands.
pub(crate) fn register(registry: &mut Registry<Server>) {
    registry.add([
        Command::new(
            "cluster/cid",
            "DB",
            1..=1,
            "print the id of DB's cluster (cluster/ commands exist once a clustered database is served)",
            |server, args| server.databases().cluster_id(&args[0]),
        ),
        Command::new(
            "cluster/sid",
            "DB",
            1..=1,
            "print the id of this server in DB's cluster",
            |server, args| server.databases().member_id(&args[0]),
        ),
        Command::deferred(
            "cluster/status",
            "DB",
            1..=1,
            "print the state of this member of DB's cluster",
            |server, args, replier| server.cluster_status(&args[0], replier),
        ),
        Command::deferred(
            "cluster/leave",
            "DB",
            1..=1,
            "leave DB's cluster for good",
            |server, args, replier| {
                server.command_member(&args[0], member::Command::Leave, replier);
            },
        ),
        Command::deferred(
            "cluster/kick",
            "DB SERVER",
            2..=2,
            "remove a server, given by its address or an id prefix, from DB's cluster",
            |server, args, replier| {
                let kick = member::Command::Kick(args[1].clone());
                server.command_member(&args[0], kick, replier);
            },
        ),
        Command::<Server>::deferred(
            "cluster/change-election-timer",
            "DB TIME",
            2..=2,
            "change the election timer of DB's cluster, in milliseconds; at most doubled at a time",
            |server, args, replier| {
                // The member rejects 0 with the reference's text.
                let timer_ms = c_number::leading(&args[1]);
                let change = member::Command::ChangeElectionTimer(timer_ms);
                server.command_member(&args[0], change, replier);
            },
        )
        .shown("DB MS"),
        Command::deferred(
            "cluster/transfer-leadership",
            "DB [SERVER]",
            1..=2,
            "transfer the leadership of DB's cluster to SERVER, or to any other member",
            |server, args, replier| {
                let transfer = member::Command::TransferLeadership(args.get(1).cloned());
                server.command_member(&args[0], transfer, replier);
            },
        ),
        Command::new(
            "cluster/set-backlog-threshold",
            "DB N_MSGS N_BYTES",
            3..=3,
            "limit unsent messages to another member: number (50 or more) and bytes (0: no limit)",
            |server, args| {
                let outcome = server.databases().set_backlog_limits(&args[0], &args[1], &args[2]);
                outcome.map(|()| String::new())
            },
        ),
        Command::<Server>::new(
            "cluster/failure-test",
            "FAILURE SCENARIO",
            1..=1,
            FAILURE_TEST,
            |server, args| server.test_failure(&args[0]).map(str::to_owned),
        )
        .shown("SCENARIO"),
    ]);
}

#[cfg(test)]
mod tests {
    use super::FAILURE_TEST;
    use crate::member::failure::Scenario;

    #[test]
    fn the_manual_names_scenarios_that_exist() {
        let (_, names) = FAILURE_TEST.split_once("(clear): ").expect("a list");
        let names: Vec<&str> = names.split(", ").collect();
        assert_eq!(names.len(), 16);
        for name in names {
            assert!(Scenario::parse(name).is_some(), "{name}");
        }
    }
}
