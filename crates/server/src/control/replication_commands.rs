//! The control commands of active-backup replication and of relays (docs/spec/cli.md 2.4,
//! docs/spec/distribution.md 3.1).
//!
//! A command that changes roles is answered once every database has its new role. After the reply
//! to a change to active, clients can write; after the reply to a change to backup, they cannot.

use corvid_shell::unixctl::{Command, Registry, Replier};

use crate::control::commands::by_hand;
use crate::server::Server;

/// Registers the commands.
pub(crate) fn register(registry: &mut Registry<Server>) {
    registry.add([
        Command::<Server>::new(
            "ovsdb-server/set-active-ovsdb-server",
            "",
            1..=1,
            "set the active server to copy",
            |server, args| {
                by_hand(server)?;
                server.set_sync_source(&args[0]);
                Ok(String::new())
            },
        )
        .shown("SERVER"),
        Command::new(
            "ovsdb-server/get-active-ovsdb-server",
            "",
            0..=0,
            "print the active server that is copied",
            |server, _| Ok(server.sync_source()),
        ),
        Command::deferred(
            "ovsdb-server/connect-active-ovsdb-server",
            "",
            0..=0,
            "become a backup of the active server",
            |server, _, replier| {
                if let Some(replier) = allowed(server, replier) {
                    server.become_backup(replier);
                }
            },
        ),
        Command::deferred(
            "ovsdb-server/disconnect-active-ovsdb-server",
            "",
            0..=0,
            "stop being a backup",
            |server, _, replier| {
                if let Some(replier) = allowed(server, replier) {
                    server.become_active(replier);
                }
            },
        ),
        Command::<Server>::new(
            "ovsdb-server/set-active-ovsdb-server-probe-interval",
            "",
            1..=1,
            "set the probe interval of the active server, in milliseconds",
            |server, args| {
                by_hand(server)?;
                let interval_ms = u64::try_from(probe_interval(&args[0])?);
                server.set_sync_probe_interval(interval_ms.unwrap_or(0));
                Ok(String::new())
            },
        )
        .shown("MS"),
        Command::<Server>::new(
            "ovsdb-server/set-relay-source-probe-interval",
            "",
            1..=1,
            "set the probe interval of relay sources, in milliseconds; 0: none",
            |server, args| {
                by_hand(server)?;
                server.set_relay_probe_interval(probe_interval(&args[0])?.into());
                Ok(String::new())
            },
        )
        .shown("MS"),
        Command::<Server>::deferred(
            "ovsdb-server/set-sync-exclude-tables",
            "",
            0..=1,
            "set the tables that are not copied; without an argument, copy all",
            |server, args, replier| {
                if let Some(replier) = allowed(server, replier) {
                    let list = args.first().map_or("", String::as_str);
                    server.set_sync_excluded(list, replier);
                }
            },
        )
        .shown("[DB:TABLE,...]"),
        Command::new(
            "ovsdb-server/get-sync-exclude-tables",
            "",
            0..=0,
            "print the tables that are not copied",
            |server, _| Ok(server.sync_excluded()),
        ),
        Command::deferred(
            "ovsdb-server/sync-status",
            "",
            0..=0,
            "print whether each database is active or a backup, and of which server",
            |server, _, replier| server.sync_status(replier),
        ),
    ]);
}

/// Parses an interval, ms.
///
/// # Errors
/// The text is not an integer; the error is the reference's text.
fn probe_interval(text: &str) -> Result<i32, String> {
    let interval_ms = text.trim_ascii_start().parse();
    interval_ms.map_err(|_| "Invalid probe interval, integer value expected".to_owned())
}

/// Returns the replier if commands may change the configuration; otherwise answers it with the
/// error.
fn allowed(server: &Server, replier: Replier) -> Option<Replier> {
    match by_hand(server) {
        Ok(()) => Some(replier),
        Err(error) => {
            replier.reply(Err(error));
            None
        }
    }
}
