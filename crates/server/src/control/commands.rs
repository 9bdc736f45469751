//! The control commands of the server (docs/spec/cli.md 2.4), except those of replication and
//! clusters, as a table. `docs/internals/add-a-control-command.md` explains how to add a command.

use corvid_net::errno;
use corvid_service::message::Control;
use corvid_shell::unixctl::{Command, Registry, register_builtin};
use corvid_shell::vlog::FileError;
use corvid_shell::{memory, vlog};

use crate::control::{cluster_commands, replication_commands, reports};
use crate::remotes::options::RemoteOptions;
use crate::server::Server;

/// Registers the commands that every server has.
pub(crate) fn register(registry: &mut Registry<Server>) {
    registry.add([
        Command::new("exit", "", 0..=0, "end the server", |server, _| {
            server.exit();
            Ok(String::new())
        }),
        Command::deferred(
            "ovsdb-server/add-db",
            "DB",
            1..=1,
            "serve a database file, or relay:NAME:REMOTES",
            |server, args, replier| match by_hand(server) {
                Ok(()) => server.add_database(&args[0], replier),
                Err(error) => replier.reply(Err(error)),
            },
        ),
        Command::deferred(
            "ovsdb-server/remove-db",
            "DB",
            1..=1,
            "stop serving a database",
            |server, args, replier| {
                if let Err(error) = by_hand(server) {
                    return replier.reply(Err(error));
                }
                let name = &args[0];
                let reason = format!("removing {name} database by user request");
                server.remove_database(name, &reason, Some(replier));
            },
        ),
        Command::new(
            "ovsdb-server/list-dbs",
            "",
            0..=0,
            "list the databases",
            |server, _| Ok(lines(server.databases().names())),
        ),
        Command::deferred(
            "ovsdb-server/add-remote",
            "REMOTE",
            1..=1,
            "connect or listen to REMOTE",
            |server, args, replier| {
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
        ),
        Command::new(
            "ovsdb-server/remove-remote",
            "REMOTE",
            1..=1,
            "undo add-remote; its sessions are closed",
            |server, args| {
                by_hand(server)?;
                server.remove_remote(&args[0]).map(|()| String::new())
            },
        ),
        Command::new(
            "ovsdb-server/list-remotes",
            "",
            0..=0,
            "list the remotes, except those configured by database rows",
            |server, _| Ok(lines(server.remote_names())),
        ),
        Command::deferred(
            "ovsdb-server/reload",
            "",
            0..=0,
            "read the configuration file again",
            |server, _, replier| server.reload(Some(replier)),
        ),
        Command::new(
            "ovsdb-server/reconnect",
            "",
            0..=0,
            "close all sessions; clients connect again",
            |server, _| {
                server.reconnect();
                Ok(String::new())
            },
        ),
        Command::new(
            "ovsdb-server/disable-monitor-cond",
            "",
            0..=0,
            "refuse conditional monitors from now on (for tests)",
            |server, _| {
                server.disable_monitor_cond();
                Ok(String::new())
            },
        ),
        Command::deferred(
            "ovsdb-server/list-sessions",
            "",
            0..=0,
            "list the sessions: peer, remote, role, monitors, locks, bytes, backlog, age, last request",
            |server, _, replier| server.list_sessions(replier),
        ),
        Command::deferred(
            "ovsdb-server/close-session",
            "ID",
            1..=1,
            "close the session with this id (see list-sessions)",
            |server, args, replier| server.close_session(&args[0], replier),
        ),
        Command::<Server>::deferred(
            "ovsdb-server/status",
            "",
            0..=1,
            "print the state of the server, its databases and sessions, for people or as JSON",
            |server, args, replier| match args.first().map(String::as_str) {
                None => server.status(false, replier),
                Some("--json") => server.status(true, replier),
                Some(_) => replier.reply(Err("the only argument is --json".to_owned())),
            },
        )
        .shown("[--json]"),
        Command::deferred(
            "ovsdb-server/list-settings",
            "",
            0..=0,
            "list the settings and their present values",
            |server, _, replier| server.list_settings(replier),
        ),
        Command::new(
            "ovsdb-server/set-setting",
            "NAME VALUE",
            2..=2,
            "change a setting until the server exits",
            |server, args| {
                let outcome = server.set_setting(&args[0], &args[1]);
                outcome.map(|()| String::new())
            },
        ),
        Command::<Server>::deferred(
            "ovsdb-server/compact",
            "",
            0..=1,
            "drop history from the file of DB, or of all databases",
            |server, args, replier| server.compact(args.first().map(String::as_str), replier),
        )
        .shown("[DB]"),
        Command::deferred(
            "ovsdb-server/history",
            "DB",
            1..=1,
            "list the files of DB's history on disk (see --keep-history)",
            |server, args, replier| server.show_history(&args[0], replier),
        ),
        Command::deferred(
            "ovsdb-server/get-db-storage-status",
            "DB",
            1..=1,
            "print the state of DB's storage",
            |server, args, replier| server.storage_status(&args[0], replier),
        ),
        Command::deferred(
            "ovsdb-server/backup",
            "DB FILE",
            2..=2,
            "write a copy of DB to FILE while serving it",
            |server, args, replier| server.backup(&args[0], &args[1], replier),
        ),
        Command::deferred(
            "memory/show",
            "",
            0..=0,
            "print memory usage: atoms, cells, monitors, sessions, ...",
            |server, _, replier| {
                server.ask_all(|server, reports| {
                    replier.reply(Ok(memory::show(server.usage(&reports))));
                });
            },
        ),
        Command::deferred(
            "ovsdb-server/tlog-list",
            "",
            0..=0,
            "list the tables whose row changes are logged",
            |server, _, replier| {
                server.ask_all(|_, reports| replier.reply(Ok(reports::row_logs(&reports))));
            },
        ),
        Command::deferred(
            "ovsdb-server/tlog-set",
            "DB:TABLE on|off",
            2..=2,
            "start or stop logging row changes of a table",
            |server, args, replier| {
                let args = args.to_vec();
                server.ask_all(move |server, reports| {
                    let outcome = set_row_log(server, &reports, &args[0], &args[1]);
                    replier.reply(outcome.map(|()| String::new()).map_err(str::to_owned));
                });
            },
        ),
        Command::new(
            "ovsdb-server/memory-trim-on-compaction",
            "on|off",
            1..=1,
            "return unused memory to the system after a compaction, or not",
            |server, args| {
                server.set_trims_memory(match args[0].as_str() {
                    "on" => true,
                    "off" => false,
                    _ => return Err("invalid argument".to_owned()),
                });
                Ok(String::new())
            },
        ),
        Command::new(
            "ovsdb-server/perf-counters-show",
            "",
            0..=0,
            "accepted for compatibility",
            |_, _| Ok("performance counter is not supported on this platform\n".to_owned()),
        ),
        Command::new(
            "ovsdb-server/perf-counters-clear",
            "",
            0..=0,
            "accepted for compatibility",
            |_, _| Ok(String::new()),
        ),
    ]);
}

/// Checks that commands may change the configuration.
///
/// # Errors
/// A configuration file is in use. Only that file may change the configuration.
pub(crate) fn by_hand(server: &Server) -> Result<(), String> {
    server.config_file().map_or(Ok(()), |path| {
        Err(format!(
            "Update the {path} and use ovsdb-server/reload instead"
        ))
    })
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
    server
        .databases()
        .control(database, Control::LogRows(table.to_owned(), is_logged));
    Ok(())
}

/// Registers the command that reverts `--disable-file-column-diff`; the command exists only with
/// that option.
pub(crate) fn register_column_diff(registry: &mut Registry<Server>) {
    registry.add([Command::new(
        "ovsdb/file/column-diff-enable",
        "",
        0..=0,
        "revert --disable-file-column-diff (exists only with that option)",
        |server, _| {
            server.enable_column_diff();
            Ok(String::new())
        },
    )]);
}

/// Registers the command that reverts `--disable-file-no-data-conversion`; the command exists only
/// with that option. It affects clustered databases only: a standalone file has no conversion
/// records.
pub(crate) fn register_no_data_conversion(registry: &mut Registry<Server>) {
    registry.add([Command::new(
        "ovsdb/file/no-data-conversion-enable",
        "",
        0..=0,
        "revert --disable-file-no-data-conversion (exists only with that option)",
        |server, _| {
            server.enable_no_data_conversion();
            Ok(String::new())
        },
    )]);
}

/// Registers the command that reopens the audit log after rotation. `vlog/reopen`, which rotation
/// scripts run, does so too.
pub(crate) fn register_audit(registry: &mut Registry<Server>) {
    registry.add([
        Command::deferred(
            "ovsdb-server/reopen-audit-log",
            "",
            0..=0,
            "reopen the audit log after it has been renamed (exists only with --audit-log)",
            |server, _, replier| server.reopen_audit_log(replier),
        ),
        Command::deferred(
            "vlog/reopen",
            "",
            0..=0,
            "reopen the log file and the audit log after they have been renamed",
            |server, _, replier| match vlog::reopen_file() {
                // A server without a log file still reopens its audit log.
                Ok(()) | Err(FileError::NotConfigured) => server.reopen_audit_log(replier),
                Err(FileError::Open(_, error)) => replier.reply(Err(errno::text(&error))),
                Err(error) => replier.reply(Err(error.to_string())),
            },
        ),
    ]);
}

/// All commands with their meanings, for the manual.
#[must_use]
pub(crate) fn all() -> Registry<Server> {
    let mut registry = Registry::default();
    register_audit(&mut registry);
    // Registered after the audit log's `vlog/reopen`, which it replaces: most servers have no audit
    // log.
    register_builtin(&mut registry);
    register(&mut registry);
    replication_commands::register(&mut registry);
    register_column_diff(&mut registry);
    register_no_data_conversion(&mut registry);
    cluster_commands::register(&mut registry);
    registry
}

fn lines<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.map(|name| format!("{name}\n")).collect()
}
