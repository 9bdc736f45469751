//! `log`, `diff` and `revert`: the history of the database, as `ovsdb-client` reads it.

use corvid_tools::client::{self, HistoryCommand};

use crate::failure::Failure;
use crate::grammar::chain::Invocation;
use crate::server::{self, Server};
use crate::settings::Settings;

pub(super) fn run(
    server: &mut Server,
    invocation: &Invocation,
    settings: &Settings,
) -> Result<(), Failure> {
    server.choose(settings.database.as_deref())?;
    let mut options = invocation.options().to_vec();
    let mut also = |is_given: bool, name: &str| {
        if is_given && !options.iter().any(|(option, _)| option == name) {
            options.push((name.to_owned(), None));
        }
    };
    also(settings.objects.is_some(), "--json");
    also(settings.dry_run, "--dry-run");
    let command = HistoryCommand {
        server: &server::address(settings),
        database: server.database(),
        credentials: settings.credentials.clone(),
        leader_only: settings.leader_only,
        name: invocation.command.name,
        options: &options,
        args: &invocation.args,
    };
    client::run_history(&command).map_err(|failure| Failure::no_match(failure.to_string()))
}
