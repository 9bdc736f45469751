//! The control commands of active-backup replication, and of relays (docs/spec/cli.md 2.4, docs/spec/distribution.md 3.1).
//!
//! A command that changes roles is answered when every database has its new role: after the reply of a change to active, clients can write;
//! after that of a change to backup, they cannot.

use corvid_shell::unixctl::{Registry, Replier};

use crate::control::commands::by_hand;
use crate::server::Server;

/// The error of an invalid interval, in the reference's words.
const BAD_INTERVAL: &str = "Invalid probe interval, integer value expected";

/// Registers the commands.
pub(crate) fn register(registry: &mut Registry<Server>) {
    let set_active = "ovsdb-server/set-active-ovsdb-server";
    registry.register(set_active, "", 1, 1, |server: &mut Server, args| {
        by_hand(server)?;
        server.set_sync_source(&args[0]);
        Ok(String::new())
    });
    let get_active = "ovsdb-server/get-active-ovsdb-server";
    registry.register(get_active, "", 0, 0, |server: &mut Server, _| {
        Ok(server.sync_source())
    });
    let connect = "ovsdb-server/connect-active-ovsdb-server";
    registry.register_deferred(connect, "", 0, 0, |server: &mut Server, _, replier| {
        if let Some(replier) = allowed(server, replier) {
            server.become_backup(replier);
        }
    });
    let disconnect = "ovsdb-server/disconnect-active-ovsdb-server";
    registry.register_deferred(disconnect, "", 0, 0, |server: &mut Server, _, replier| {
        if let Some(replier) = allowed(server, replier) {
            server.become_active(replier);
        }
    });
    let set_probe = "ovsdb-server/set-active-ovsdb-server-probe-interval";
    registry.register(set_probe, "", 1, 1, |server: &mut Server, args| {
        by_hand(server)?;
        let interval_ms: i32 = args[0]
            .trim_ascii_start()
            .parse()
            .map_err(|_| BAD_INTERVAL)?;
        server.set_sync_probe_interval(u64::try_from(interval_ms).unwrap_or(0));
        Ok(String::new())
    });
    let set_relay_probe = "ovsdb-server/set-relay-source-probe-interval";
    registry.register(set_relay_probe, "", 1, 1, |server: &mut Server, args| {
        by_hand(server)?;
        let interval_ms: i32 = args[0]
            .trim_ascii_start()
            .parse()
            .map_err(|_| BAD_INTERVAL)?;
        server.set_relay_probe_interval(interval_ms.into());
        Ok(String::new())
    });
    let set_excluded = "ovsdb-server/set-sync-exclude-tables";
    registry.register_deferred(
        set_excluded,
        "",
        0,
        1,
        |server: &mut Server, args, replier| {
            if let Some(replier) = allowed(server, replier) {
                let list = args.first().map_or("", String::as_str);
                server.set_sync_excluded(list, replier);
            }
        },
    );
    let get_excluded = "ovsdb-server/get-sync-exclude-tables";
    registry.register(get_excluded, "", 0, 0, |server: &mut Server, _| {
        Ok(server.sync_excluded())
    });
    let status = "ovsdb-server/sync-status";
    registry.register_deferred(status, "", 0, 0, |server: &mut Server, _, replier| {
        server.sync_status(replier);
    });
}

/// Returns the replier if commands may change the configuration; otherwise answers it with the error.
fn allowed(server: &Server, replier: Replier) -> Option<Replier> {
    match by_hand(server) {
        Ok(()) => Some(replier),
        Err(error) => {
            replier.reply(Err(error));
            None
        }
    }
}
