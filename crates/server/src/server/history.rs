//! Settings of what databases keep about their commits: the transaction history in memory, the
//! policy of the history on disk, and whether records name clients. The command line gives them, a
//! configuration file may give others, and `set-setting` may change them until the file does.
//!
//! Invariant: a file that is read again without a change leaves what a command has set. This part
//! does not know the databases: it returns what they are to be told.

use corvid_history::Policy;

use super::Config;

/// The settings in force, and where they come from.
#[derive(Debug)]
pub(super) struct HistorySettings {
    /// Databases keep a transaction history in memory.
    is_kept: bool,
    /// Records name the clients of their commits.
    names_clients: bool,
    command_line: CommandLine,
    /// The policy of the configuration file that was applied last.
    policy_of_file: Option<Policy>,
    /// `record-clients` of the same file.
    clients_of_file: Option<bool>,
}

/// The settings of the command line.
#[derive(Debug)]
struct CommandLine {
    is_kept: bool,
    policy: Policy,
    names_clients: bool,
}

impl HistorySettings {
    /// The settings of the command line.
    pub(super) fn new(config: &Config) -> HistorySettings {
        let command_line = CommandLine {
            is_kept: !config.no_history,
            policy: config.keep_history,
            names_clients: config.record_clients,
        };
        HistorySettings {
            is_kept: command_line.is_kept,
            names_clients: command_line.names_clients,
            command_line,
            policy_of_file: None,
            clients_of_file: None,
        }
    }

    /// Whether databases keep a transaction history in memory.
    pub(super) fn is_kept(&self) -> bool {
        self.is_kept
    }

    /// Whether records name the clients of their commits.
    pub(super) fn names_clients(&self) -> bool {
        self.names_clients
    }

    /// Applies a file's setting for transaction histories; `None`: the command line's applies.
    /// Returns the new value if it has changed: a database that is told begins with an empty
    /// history.
    pub(super) fn apply_kept(&mut self, of_file: Option<bool>) -> Option<bool> {
        let is_kept = of_file.unwrap_or(self.command_line.is_kept);
        let before = std::mem::replace(&mut self.is_kept, is_kept);
        (before != is_kept).then_some(is_kept)
    }

    /// Applies a file's policy for the history on disk; `None`: the command line's applies. Returns
    /// the policy that is in force from now on, if the file has changed.
    pub(super) fn apply_policy(&mut self, of_file: Option<Policy>) -> Option<Policy> {
        let before = std::mem::replace(&mut self.policy_of_file, of_file);
        let policy = of_file.unwrap_or(self.command_line.policy);
        (before != of_file).then_some(policy)
    }

    /// Applies a file's setting for the clients in records, as [`HistorySettings::apply_policy`]
    /// does for the policy.
    pub(super) fn apply_clients(&mut self, of_file: Option<bool>) -> Option<bool> {
        let before = std::mem::replace(&mut self.clients_of_file, of_file);
        let names_clients = of_file.unwrap_or(self.command_line.names_clients);
        (before != of_file)
            .then(|| self.set_clients(names_clients))
            .flatten()
    }

    /// Has records name the clients of later commits, or not. Returns the new value if it has
    /// changed.
    pub(super) fn set_clients(&mut self, names_clients: bool) -> Option<bool> {
        let before = std::mem::replace(&mut self.names_clients, names_clients);
        (before != names_clients).then_some(names_clients)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> HistorySettings {
        HistorySettings::new(&Config::default())
    }

    #[test]
    fn databases_are_told_of_changes_only() {
        let mut settings = settings();
        assert!(settings.is_kept());
        assert_eq!(settings.apply_kept(Some(true)), None);
        assert_eq!(settings.apply_kept(Some(false)), Some(false));
        assert_eq!(settings.apply_kept(None), Some(true));
    }

    #[test]
    fn a_file_without_a_change_leaves_what_a_command_has_set() {
        let mut settings = settings();
        let told = settings.apply_clients(Some(false));
        assert_eq!(told, None, "the command line says the same");
        assert_eq!(settings.set_clients(true), Some(true));
        assert_eq!(settings.apply_clients(Some(false)), None);
        assert!(settings.names_clients());
        assert_eq!(settings.apply_clients(None), Some(false));
    }

    #[test]
    fn the_policy_of_the_command_line_returns_with_a_file_that_has_none() {
        let mut settings = settings();
        let policy = "1d".parse().expect("a policy");
        assert_eq!(settings.apply_policy(None), None);
        assert_eq!(settings.apply_policy(Some(policy)), Some(policy));
        assert_eq!(settings.apply_policy(Some(policy)), None, "no change");
        assert_eq!(settings.apply_policy(None), Some(Policy::default()));
    }
}
