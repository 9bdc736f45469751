//! Changes of the demo's network: every few seconds something happens in it, as in a network that
//! is used, so that there is something to watch.
//!
//! They are ordinary command lines of `corvid`, and each is undone by a later one.

use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::programs::{about, sibling};

/// The option that makes the demo this program.
pub(crate) const WORD: &str = "--live";

/// The time between two changes.
const PAUSE: Duration = Duration::from_secs(4);

/// The changes, in order; after the last one they begin again.
const CHANGES: [&[&str]; 12] = [
    &["set", "Logical_Switch_Port", "build-3", "up=true"],
    &["set", "Logical_Switch_Port", "app-2", "up=false"],
    &[
        "--id=@p",
        "create",
        "Logical_Switch_Port",
        "name=web-5",
        "addresses=\"02:00:00:00:01:0f 10.0.1.15\"",
        "up=false",
        "--",
        "add",
        "Logical_Switch",
        "web",
        "ports",
        "@p",
    ],
    &["set", "Logical_Switch_Port", "web-5", "up=true"],
    &[
        "set",
        "Load_Balancer",
        "shop",
        "vips:\"203.0.113.10:443\"=\"10.0.1.11:443,10.0.1.12:443,10.0.1.13:443,10.0.1.15:443\"",
    ],
    &["set", "Logical_Switch_Port", "app-2", "up=true"],
    &["set", "Logical_Switch_Port", "build-3", "up=false"],
    &[
        "set",
        "Logical_Router_Port",
        "core-app",
        "external_ids:maintenance=tonight",
    ],
    &[
        "set",
        "Load_Balancer",
        "shop",
        "vips:\"203.0.113.10:443\"=\"10.0.1.11:443,10.0.1.12:443,10.0.1.13:443\"",
    ],
    &[
        "--id=@p",
        "get",
        "Logical_Switch_Port",
        "web-5",
        "--",
        "remove",
        "Logical_Switch",
        "web",
        "ports",
        "@p",
    ],
    &[
        "set",
        "Logical_Switch_Port",
        "db-1",
        "external_ids:backup=running",
    ],
    &[
        "remove",
        "Logical_Router_Port",
        "core-app",
        "external_ids",
        "maintenance",
        "--",
        "remove",
        "Logical_Switch_Port",
        "db-1",
        "external_ids",
        "backup",
    ],
];

/// Makes the changes until the process is ended.
pub(crate) fn run(remote: &str) -> Result<std::convert::Infallible, String> {
    let program = sibling("corvid");
    loop {
        for change in CHANGES {
            thread::sleep(PAUSE);
            let mut command = Command::new(&program);
            command.args([remote, "--database=OVN_Northbound", "--timeout=10"]);
            command
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            // A change may fail: an earlier demo has made it, or a user has changed the network.
            command
                .args(change)
                .status()
                .map_err(|error| about(&program, &error))?;
        }
    }
}
