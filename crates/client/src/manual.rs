//! What `ovsdb-client` tells people of itself: `--help`, the manual page, completions.
//!
//! Options come from the table in [`crate::settings`], commands from the one in [`crate::commands`].

use corvid_os::manual::{Chapter, Entry, Manual, Places, help, shared};

use crate::commands::{COMMANDS, TOPICS};
use crate::settings;

const DEFAULTS: &str = "\
The default SERVER is unix:{rundir}/db.sock. The default DATABASE is Open_vSwitch, or the only one there is.

SERVER may be a list with commas between; one that suits is used.";

/// What `--help` and the command `help` print.
pub(crate) fn help() -> String {
    help::text(&manual(), &Places::of_process())
}

/// All of it.
#[must_use]
pub fn manual() -> Manual {
    Manual {
        name: "ovsdb-client",
        section: 1,
        purpose: "Open vSwitch database JSON-RPC client",
        usage: &["[OPTIONS] COMMAND [ARG...]"],
        groups: settings::GROUPS.to_vec(),
        options: settings::entries(),
        commands: commands(),
        notes: vec![
            Chapter::prose("Defaults", DEFAULTS),
            shared::active_methods("Active SERVER connection methods"),
            shared::passive_methods(
                "Passive SERVER connection methods, which wait for one connection",
            ),
        ],
        ..Manual::default()
    }
}

fn commands() -> Vec<Chapter> {
    let of_topic = |topic| Chapter {
        title: topic,
        text: "",
        entries: COMMANDS
            .iter()
            .filter(|command| command.topic == topic)
            .map(|command| Entry {
                term: command.usage.to_owned(),
                meaning: command.meaning,
                detail: "",
            })
            .collect(),
    };
    TOPICS.into_iter().map(of_topic).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_has_a_meaning() {
        assert_eq!(manual().complaints(), [""; 0]);
    }

    #[test]
    fn every_command_is_shown() {
        let shown: usize = commands().iter().map(|chapter| chapter.entries.len()).sum();
        assert_eq!(shown, COMMANDS.len());
    }
}
