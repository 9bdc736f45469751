//! The text of the prompt: `SERVER/DATABASE(ROLE)*> `.

use corvid_json::shown;

/// The part that the server plays for the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// It alone serves the database.
    Standalone,
    /// It leads the database's cluster.
    Leader,
    /// It is a member of the cluster, which another leads.
    Follower,
    /// It serves a copy of another server's database.
    Relay,
    /// It is a member or a relay, without a connection to its cluster or its source.
    CutOff,
}

impl Role {
    /// The role that a row of the table `Database` of `_Server` tells.
    #[must_use]
    pub(crate) fn of(model: Option<&str>, is_leader: bool, is_connected: bool) -> Option<Role> {
        Some(match (model?, is_connected) {
            ("standalone", _) => Role::Standalone,
            ("clustered" | "relay", false) => Role::CutOff,
            ("clustered", true) if is_leader => Role::Leader,
            ("clustered", true) => Role::Follower,
            ("relay", true) => Role::Relay,
            _ => return None,
        })
    }

    fn name(self) -> &'static str {
        match self {
            Role::Standalone => "standalone",
            Role::Leader => "leader",
            Role::Follower => "follower",
            Role::Relay => "relay",
            Role::CutOff => "cut off",
        }
    }
}

/// The facts that the prompt shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Prompt {
    /// The server, as the user named it.
    pub server: String,
    /// The database; `None`: none is chosen.
    pub database: Option<String>,
    /// The server's role for the database, if it tells one.
    pub role: Option<Role>,
    /// There is no connection.
    pub is_lost: bool,
    /// A transaction is open.
    pub is_open: bool,
}

/// The prompt takes at most this part of a line.
const PART_OF_LINE: usize = 2;
/// Names are not cut to fewer letters.
const LETTERS_MIN: usize = 4;

impl Prompt {
    /// The text for a terminal with this number of columns. On a narrow one the name of the server
    /// is left out, then the name of the database is cut.
    #[must_use]
    pub(crate) fn text(&self, columns: usize) -> String {
        let database = shown::line(self.database.as_deref().unwrap_or("-"));
        let role = match (self.is_lost, self.role) {
            (true, _) => "(disconnected)".to_owned(),
            (false, Some(role)) => format!("({})", role.name()),
            (false, None) => String::new(),
        };
        let mark = if self.is_open { "*" } else { "" };
        let end = format!("{role}{mark}> ");
        let server = shown::line(short_server(&self.server));
        let room = (columns / PART_OF_LINE).saturating_sub(end.chars().count());
        if server.chars().count() + 1 + database.chars().count() <= room {
            return format!("{server}/{database}{end}");
        }
        format!("{}{end}", cut(&database, room.max(LETTERS_MIN)))
    }
}

/// A server's address without what does not tell it from others: the folder of a socket, and the
/// other members of a cluster.
fn short_server(server: &str) -> &str {
    let first = server.split(',').next().unwrap_or(server);
    match first.strip_prefix("unix:") {
        Some(path) => path.rsplit('/').next().unwrap_or(path),
        None => first,
    }
}

/// The text, cut to a number of letters.
fn cut(text: &str, letters: usize) -> String {
    match text.chars().count() <= letters {
        true => text.to_owned(),
        false => {
            let mut cut: String = text.chars().take(letters - 1).collect();
            cut.push('…');
            cut
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prompt_tells_server_database_role_and_transaction() {
        let prompt = Prompt {
            server: "unix:/var/run/openvswitch/db.sock".to_owned(),
            database: Some("Lab".to_owned()),
            role: Role::of(Some("clustered"), true, true),
            ..Prompt::default()
        };
        assert_eq!(prompt.text(80), "db.sock/Lab(leader)> ");
        let open = Prompt {
            is_open: true,
            ..prompt.clone()
        };
        assert_eq!(open.text(80), "db.sock/Lab(leader)*> ");
        assert_eq!(open.text(40), "Lab(leader)*> ");
        let lost = Prompt {
            is_lost: true,
            server: "tcp:192.0.2.1:6641,tcp:192.0.2.2:6641".to_owned(),
            ..prompt
        };
        assert_eq!(lost.text(80), "tcp:192.0.2.1:6641/Lab(disconnected)> ");
        assert_eq!(Prompt::default().text(80), "/-> ");
    }

    #[test]
    fn a_narrow_terminal_has_room_for_input_and_names_are_shown() {
        let prompt = Prompt {
            server: "s".to_owned(),
            database: Some("A_Database_With_A_Long_Name\u{1b}[2J".to_owned()),
            role: Some(Role::Standalone),
            ..Prompt::default()
        };
        assert_eq!(prompt.text(40), "A_Dat…(standalone)> ");
        assert_eq!(prompt.text(0), "A_D…(standalone)> ");
        assert!(!prompt.text(200).contains('\u{1b}'));
    }

    #[test]
    fn roles_follow_from_the_row_of_the_database() {
        for (model, is_leader, is_connected, role) in [
            ("standalone", true, true, Some(Role::Standalone)),
            ("clustered", true, true, Some(Role::Leader)),
            ("clustered", false, true, Some(Role::Follower)),
            ("clustered", true, false, Some(Role::CutOff)),
            ("relay", false, true, Some(Role::Relay)),
            ("relay", false, false, Some(Role::CutOff)),
            ("future", false, true, None),
        ] {
            assert_eq!(Role::of(Some(model), is_leader, is_connected), role);
        }
        assert_eq!(Role::of(None, true, true), None);
    }
}
