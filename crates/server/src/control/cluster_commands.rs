//! The control commands for clusters (docs/spec/distribution.md 1.12). They are registered when the first clustered database is served:
//! scripts tell a standalone server by their absence.

use corvid_consensus::member::Command;
use corvid_shell::unixctl::Registry;

use crate::server::Server;

/// Registers the commands.
pub(crate) fn register(registry: &mut Registry<Server>) {
    registry.register("cluster/cid", "DB", 1, 1, |server: &mut Server, args| {
        server.cluster_id(&args[0])
    });
    registry.register("cluster/sid", "DB", 1, 1, |server: &mut Server, args| {
        server.member_id(&args[0])
    });
    registry.register_deferred(
        "cluster/status",
        "DB",
        1,
        1,
        |server: &mut Server, args, replier| server.cluster_status(&args[0], replier),
    );
    registry.register_deferred(
        "cluster/leave",
        "DB",
        1,
        1,
        |server: &mut Server, args, replier| {
            server.command_member(&args[0], Command::Leave, replier);
        },
    );
    registry.register_deferred(
        "cluster/kick",
        "DB SERVER",
        2,
        2,
        |server: &mut Server, args, replier| {
            server.command_member(&args[0], Command::Kick(args[1].clone()), replier);
        },
    );
    registry.register_deferred(
        "cluster/change-election-timer",
        "DB TIME",
        2,
        2,
        |server: &mut Server, args, replier| {
            // The member refuses 0 with the reference's text.
            let timer_ms = args[1].trim().parse().unwrap_or(0);
            server.command_member(&args[0], Command::ChangeElectionTimer(timer_ms), replier);
        },
    );
    registry.register_deferred(
        "cluster/transfer-leadership",
        "DB [SERVER]",
        1,
        2,
        |server: &mut Server, args, replier| {
            let target = args.get(1).cloned();
            server.command_member(&args[0], Command::TransferLeadership(target), replier);
        },
    );
    registry.register(
        "cluster/set-backlog-threshold",
        "DB N_MSGS N_BYTES",
        3,
        3,
        |server: &mut Server, args| {
            let outcome = server.set_backlog_limits(&args[0], &args[1], &args[2]);
            outcome.map(|()| String::new())
        },
    );
    registry.register(
        "cluster/failure-test",
        "FAILURE SCENARIO",
        1,
        1,
        |server: &mut Server, args| server.test_failure(&args[0]).map(str::to_owned),
    );
}

/// Adds the meanings of the commands.
pub(crate) fn describe(registry: &mut Registry<Server>) {
    registry.describe(&[
        (
            "cluster/cid",
            "print the id of DB's cluster (exists once a clustered database is served, as all of cluster/)",
        ),
        ("cluster/sid", "print the id of this server in DB's cluster"),
        ("cluster/status", "print the state of this member of DB's cluster"),
        ("cluster/leave", "leave DB's cluster for good"),
        ("cluster/kick", "remove a server, by address or beginning of its id, from DB's cluster"),
        (
            "cluster/change-election-timer",
            "change the election timer of DB's cluster, in milliseconds; at most doubled at a time",
        ),
        (
            "cluster/transfer-leadership",
            "have another member, or this one, lead DB's cluster",
        ),
        (
            "cluster/set-backlog-threshold",
            "limit unsent messages to another member: number and bytes",
        ),
        ("cluster/failure-test", "provoke a failure (for tests)"),
    ]);
}
