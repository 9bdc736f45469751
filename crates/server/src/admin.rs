//! The commands of the control socket that concern the server (cli.md 2.4).

use corvid_os::unixctl::Registry;

use crate::server::Server;

/// Registers them.
pub fn register(registry: &mut Registry<Server>) {
    registry.register("exit", "", 0, 0, |server: &mut Server, _| {
        server.exit();
        Ok(String::new())
    });
    registry.register(
        "ovsdb-server/add-db",
        "DB",
        1,
        1,
        |server: &mut Server, args| server.add_database(&args[0]).map(|()| String::new()),
    );
    registry.register_deferred(
        "ovsdb-server/remove-db",
        "DB",
        1,
        1,
        |server: &mut Server, args, replier| {
            server.remove_database(&args[0], Some(replier));
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
            if args[0].starts_with("pfd:") {
                replier.reply(Err(
                    "pfd: remotes can only be specified on the command line".to_owned(),
                ));
            } else {
                server.add_remote(&args[0], Some(replier));
            }
        },
    );
    registry.register(
        "ovsdb-server/remove-remote",
        "REMOTE",
        1,
        1,
        |server: &mut Server, args| server.remove_remote(&args[0]).map(|()| String::new()),
    );
    registry.register(
        "ovsdb-server/list-remotes",
        "",
        0,
        0,
        |server: &mut Server, _| Ok(lines(server.remote_names())),
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
    // Databases are never backups yet, and this is what a server without any answers.
    registry.register("ovsdb-server/sync-status", "", 0, 0, |_: &mut Server, _| {
        Ok("state: active\n".to_owned())
    });
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

/// Registers the command that takes `--disable-file-column-diff` back; there is none without the option.
pub fn register_column_diff(registry: &mut Registry<Server>) {
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

fn lines<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.map(|name| format!("{name}\n")).collect()
}
