//! The control commands of the server (docs/spec/cli.md 2.4), except those of replication.

use corvid_net::errno;
use corvid_shell::unixctl::{Registry, register_builtin};
use corvid_shell::vlog::FileError;
use corvid_shell::{memory, vlog};

use crate::control::reports;
use crate::control::{cluster_commands, replication_commands};
use crate::remotes::options::RemoteOptions;
use crate::server::Server;

/// Registers the commands that every server has.
pub(crate) fn register(registry: &mut Registry<Server>) {
    registry.register("exit", "", 0, 0, |server: &mut Server, _| {
        server.exit();
        Ok(String::new())
    });
    registry.register_deferred(
        "ovsdb-server/add-db",
        "DB",
        1,
        1,
        |server: &mut Server, args, replier| match by_hand(server) {
            Ok(()) => server.add_database(&args[0], replier),
            Err(error) => replier.reply(Err(error)),
        },
    );
    registry.register_deferred(
        "ovsdb-server/remove-db",
        "DB",
        1,
        1,
        |server: &mut Server, args, replier| {
            if let Err(error) = by_hand(server) {
                return replier.reply(Err(error));
            }
            let name = &args[0];
            let reason = format!("removing {name} database by user request");
            server.remove_database(name, &reason, Some(replier));
        },
    );
    registry.register(
        "ovsdb-server/list-dbs",
        "",
        0,
        0,
        |server: &mut Server, _| Ok(lines(server.database_names())),
    );
    registry.register_deferred(
        "ovsdb-server/add-remote",
        "REMOTE",
        1,
        1,
        |server: &mut Server, args, replier| {
            if let Err(error) = by_hand(server) {
                replier.reply(Err(error));
            } else if args[0].starts_with("pfd:") {
                replier.reply(Err(
                    "pfd: remotes can only be specified on the command line".to_owned(),
                ));
            } else {
                server.add_remote(&args[0], RemoteOptions::default(), replier);
            }
        },
    );
    registry.register(
        "ovsdb-server/remove-remote",
        "REMOTE",
        1,
        1,
        |server: &mut Server, args| {
            by_hand(server)?;
            server.remove_remote(&args[0]).map(|()| String::new())
        },
    );
    registry.register(
        "ovsdb-server/list-remotes",
        "",
        0,
        0,
        |server: &mut Server, _| Ok(lines(server.remote_names())),
    );
    registry.register_deferred(
        "ovsdb-server/reload",
        "",
        0,
        0,
        |server: &mut Server, _, replier| server.reload(Some(replier)),
    );
    registry.register(
        "ovsdb-server/reconnect",
        "",
        0,
        0,
        |server: &mut Server, _| {
            server.reconnect();
            Ok(String::new())
        },
    );
    registry.register(
        "ovsdb-server/disable-monitor-cond",
        "",
        0,
        0,
        |server: &mut Server, _| {
            server.disable_monitor_cond();
            Ok(String::new())
        },
    );
    registry.register_deferred(
        "ovsdb-server/list-sessions",
        "",
        0,
        0,
        |server: &mut Server, _, replier| server.list_sessions(replier),
    );
    registry.register_deferred(
        "ovsdb-server/close-session",
        "ID",
        1,
        1,
        |server: &mut Server, args, replier| server.close_session(&args[0], replier),
    );
    registry.register_deferred(
        "ovsdb-server/list-settings",
        "",
        0,
        0,
        |server: &mut Server, _, replier| server.list_settings(replier),
    );
    registry.register(
        "ovsdb-server/set-setting",
        "NAME VALUE",
        2,
        2,
        |server: &mut Server, args| {
            let outcome = server.set_setting(&args[0], &args[1]);
            outcome.map(|()| String::new())
        },
    );
    registry.register_deferred(
        "ovsdb-server/compact",
        "",
        0,
        1,
        |server: &mut Server, args, replier| {
            server.compact(args.first().map(String::as_str), replier);
        },
    );
    registry.register_deferred(
        "ovsdb-server/get-db-storage-status",
        "DB",
        1,
        1,
        |server: &mut Server, args, replier| server.storage_status(&args[0], replier),
    );
    registry.register_deferred(
        "ovsdb-server/backup",
        "DB FILE",
        2,
        2,
        |server: &mut Server, args, replier| {
            server.backup(&args[0], &args[1], replier);
        },
    );
}

/// Checks that commands may change the configuration.
///
/// # Errors
/// A configuration file is in use, which alone may change it.
pub(crate) fn by_hand(server: &Server) -> Result<(), String> {
    server.config_file().map_or(Ok(()), |path| {
        Err(format!(
            "Update the {path} and use ovsdb-server/reload instead"
        ))
    })
}

/// Registers the commands that need reports of all databases, and those about memory.
pub(crate) fn register_watching(registry: &mut Registry<Server>) {
    registry.register_deferred(
        "memory/show",
        "",
        0,
        0,
        |server: &mut Server, _, replier| {
            server.ask(|server, reports| {
                replier.reply(Ok(memory::show(server.usage(&reports))));
            });
        },
    );
    registry.register_deferred(
        "ovsdb-server/tlog-list",
        "",
        0,
        0,
        |server: &mut Server, _, replier| {
            server.ask(|_, reports| replier.reply(Ok(reports::row_logs(&reports))));
        },
    );
    registry.register_deferred(
        "ovsdb-server/tlog-set",
        "DB:TABLE on|off",
        2,
        2,
        |server: &mut Server, args, replier| {
            let args = args.to_vec();
            server.ask(move |server, reports| {
                let outcome = set_row_log(server, &reports, &args[0], &args[1]);
                replier.reply(outcome.map(|()| String::new()).map_err(str::to_owned));
            });
        },
    );
    registry.register(
        "ovsdb-server/memory-trim-on-compaction",
        "on|off",
        1,
        1,
        |server: &mut Server, args| {
            server.set_trims_memory(match args[0].as_str() {
                "on" => true,
                "off" => false,
                _ => return Err("invalid argument".to_owned()),
            });
            Ok(String::new())
        },
    );
    registry.register(
        "ovsdb-server/perf-counters-show",
        "",
        0,
        0,
        |_: &mut Server, _| Ok("performance counter is not supported on this platform\n".to_owned()),
    );
    registry.register(
        "ovsdb-server/perf-counters-clear",
        "",
        0,
        0,
        |_: &mut Server, _| Ok(String::new()),
    );
}

fn set_row_log(
    server: &Server,
    reports: &reports::Reports,
    table: &str,
    state: &str,
) -> Result<(), &'static str> {
    let (database, table, is_logged) = reports::row_log_of(table, state)?;
    let report = reports.get(database).ok_or("no such database")?;
    let mut tables = report.tables.iter();
    if !tables.any(|known| known.name == table) {
        return Err("no such table");
    }
    server.log_rows(database, table, is_logged);
    Ok(())
}

/// Registers the command that reverts `--disable-file-column-diff`; it exists only with that option.
pub(crate) fn register_column_diff(registry: &mut Registry<Server>) {
    registry.register(
        "ovsdb/file/column-diff-enable",
        "",
        0,
        0,
        |server: &mut Server, _| {
            server.enable_column_diff();
            Ok(String::new())
        },
    );
}

/// Registers the command that reverts `--disable-file-no-data-conversion`; it exists only with that option. It is about clustered
/// databases: a standalone file has no records of conversions.
pub(crate) fn register_no_data_conversion(registry: &mut Registry<Server>) {
    registry.register(
        "ovsdb/file/no-data-conversion-enable",
        "",
        0,
        0,
        |server: &mut Server, _| {
            server.enable_no_data_conversion();
            Ok(String::new())
        },
    );
}

/// Registers the command that opens the audit log again after rotation. `vlog/reopen`, which scripts for rotation run, does so too.
pub(crate) fn register_audit(registry: &mut Registry<Server>) {
    registry.register_deferred(
        "ovsdb-server/audit-reopen",
        "",
        0,
        0,
        |server: &mut Server, _, replier| server.reopen_audit_log(replier),
    );
    registry.register_deferred(
        "vlog/reopen",
        "",
        0,
        0,
        |server: &mut Server, _, replier| match vlog::reopen_file() {
            // A server without a log file has nothing else to open again.
            Ok(()) | Err(FileError::NotConfigured) => server.reopen_audit_log(replier),
            Err(FileError::Open(_, error)) => replier.reply(Err(errno::text(&error))),
            Err(error) => replier.reply(Err(error.to_string())),
        },
    );
}

/// All commands with their meanings, for the manual.
#[must_use]
pub(crate) fn all() -> Registry<Server> {
    let mut registry = Registry::default();
    // First, because its `vlog/reopen` replaces the one of the log.
    register_audit(&mut registry);
    register_builtin(&mut registry);
    register(&mut registry);
    register_watching(&mut registry);
    replication_commands::register(&mut registry);
    register_column_diff(&mut registry);
    register_no_data_conversion(&mut registry);
    cluster_commands::register(&mut registry);
    cluster_commands::describe(&mut registry);
    describe(&mut registry);
    registry
}

/// Adds the meanings of the commands. A test fails when a command has none.
fn describe(registry: &mut Registry<Server>) {
    registry.describe(&[
        ("exit", "end the server"),
        (
            "memory/show",
            "print what takes memory: atoms, cells, monitors, sessions, ...",
        ),
        ("ovsdb-server/add-db", "serve a database file"),
        ("ovsdb-server/add-remote", "connect or listen to REMOTE"),
        (
            "ovsdb-server/audit-reopen",
            "open the audit log again (exists only with --audit-log)",
        ),
        (
            "ovsdb-server/backup",
            "write a copy of DB to FILE, while it is served",
        ),
        (
            "ovsdb-server/close-session",
            "close the session with this number of list-sessions",
        ),
        (
            "ovsdb-server/list-sessions",
            "list the sessions: peer, remote, role, monitors, bytes, backlog, age, last request",
        ),
        (
            "ovsdb-server/list-settings",
            "list what set-setting can change, as it is now",
        ),
        (
            "ovsdb-server/set-setting",
            "change a limit, the slow-transaction threshold or the audit log until the server ends",
        ),
        (
            "ovsdb-server/compact",
            "drop history from the file of DB, or of all databases",
        ),
        (
            "ovsdb-server/disable-monitor-cond",
            "refuse conditional monitors from now on (for tests)",
        ),
        (
            "ovsdb-server/get-db-storage-status",
            "tell whether the storage of DB is in order",
        ),
        ("ovsdb-server/list-dbs", "list the databases"),
        (
            "ovsdb-server/list-remotes",
            "list the remotes, without those that rows configure",
        ),
        (
            "ovsdb-server/memory-trim-on-compaction",
            "whether memory is given back after a compaction",
        ),
        (
            "ovsdb-server/perf-counters-clear",
            "accepted for compatibility",
        ),
        (
            "ovsdb-server/perf-counters-show",
            "accepted for compatibility",
        ),
        (
            "ovsdb-server/reconnect",
            "close all sessions; clients connect again",
        ),
        ("ovsdb-server/reload", "read the configuration file again"),
        ("ovsdb-server/remove-db", "stop serving a database"),
        (
            "ovsdb-server/remove-remote",
            "undo add-remote; its sessions are closed",
        ),
        (
            "ovsdb-server/sync-status",
            "tell whether databases are active or backups, and of whom",
        ),
        (
            "ovsdb-server/tlog-list",
            "list of which tables changed rows are logged",
        ),
        (
            "ovsdb-server/tlog-set",
            "log the changed rows of a table, or stop",
        ),
        (
            "ovsdb-server/connect-active-ovsdb-server",
            "become a backup of the active server",
        ),
        (
            "ovsdb-server/disconnect-active-ovsdb-server",
            "stop being a backup",
        ),
        (
            "ovsdb-server/get-active-ovsdb-server",
            "print the active server that is copied",
        ),
        (
            "ovsdb-server/set-active-ovsdb-server",
            "set the active server to copy",
        ),
        (
            "ovsdb-server/set-active-ovsdb-server-probe-interval",
            "set how often the active server is probed, in milliseconds",
        ),
        (
            "ovsdb-server/set-relay-source-probe-interval",
            "set how often the sources of relays are probed, in milliseconds",
        ),
        (
            "ovsdb-server/get-sync-exclude-tables",
            "print the tables that are not copied",
        ),
        (
            "ovsdb-server/set-sync-exclude-tables",
            "set the tables that are not copied",
        ),
        (
            "ovsdb/file/column-diff-enable",
            "take --disable-file-column-diff back (exists only with it)",
        ),
        (
            "ovsdb/file/no-data-conversion-enable",
            "take --disable-file-no-data-conversion back (exists only with it)",
        ),
    ]);
}

fn lines<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.map(|name| format!("{name}\n")).collect()
}
