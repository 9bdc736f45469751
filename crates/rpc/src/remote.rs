//! How connections are written: lists of remotes, the schemes of single remotes, and remotes that a
//! database names.
//!
//! Only the outer grammar is here (docs/spec/cli.md 1.5, 3.1, 5.1); the shell reads the part after
//! the scheme.

/// The kinds of connection methods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// `tcp:HOST:PORT`
    Tcp,
    /// `ssl:HOST:PORT`
    Ssl,
    /// `unix:FILE`
    Unix,
    /// `ptcp:[PORT][:IP]`
    PassiveTcp,
    /// `pssl:[PORT][:IP]`
    PassiveSsl,
    /// `punix:FILE`
    PassiveUnix,
    /// `pfd:FD`
    PassiveFd,
}

impl Scheme {
    /// Splits a remote into its scheme and the rest; `None` if the scheme is unknown.
    #[must_use]
    pub fn split(remote: &str) -> Option<(Scheme, &str)> {
        let (scheme, rest) = remote.split_once(':')?;
        let scheme = match scheme {
            "tcp" => Scheme::Tcp,
            "ssl" => Scheme::Ssl,
            "unix" => Scheme::Unix,
            "ptcp" => Scheme::PassiveTcp,
            "pssl" => Scheme::PassiveSsl,
            "punix" => Scheme::PassiveUnix,
            "pfd" => Scheme::PassiveFd,
            _ => return None,
        };
        Some((scheme, rest))
    }

    /// Whether the peer connects to this side.
    #[must_use]
    pub fn is_passive(self) -> bool {
        matches!(
            self,
            Scheme::PassiveTcp | Scheme::PassiveSsl | Scheme::PassiveUnix | Scheme::PassiveFd
        )
    }

    /// The default probe interval, ms: 0 on this machine, [`crate::probe::INTERVAL_MS_DEFAULT`]
    /// over a network.
    #[must_use]
    pub fn probe_interval_ms(self) -> u64 {
        match self {
            Scheme::Unix | Scheme::PassiveUnix | Scheme::PassiveFd => 0,
            Scheme::Tcp | Scheme::Ssl | Scheme::PassiveTcp | Scheme::PassiveSsl => {
                crate::probe::INTERVAL_MS_DEFAULT
            }
        }
    }
}

/// A list of remotes that serve the same database.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RemoteList {
    /// The remotes in the order written.
    pub remotes: Vec<String>,
    /// The value of `cid:`: a cluster id, or at least its first four characters. The last one
    /// counts.
    pub cluster_id: Option<String>,
}

impl RemoteList {
    /// Reads a comma-separated list. File names may contain commas: a comma separates only if
    /// lower-case letters and a colon follow, optionally after blanks.
    ///
    /// ```
    /// use corvid_rpc::remote::RemoteList;
    /// let list = RemoteList::parse("tcp:10.0.0.1:6642, unix:/run/a,b,cid:6731fef6");
    /// assert_eq!(list.remotes, ["tcp:10.0.0.1:6642", "unix:/run/a,b"]);
    /// assert_eq!(list.cluster_id.as_deref(), Some("6731fef6"));
    /// ```
    #[must_use]
    pub fn parse(text: &str) -> RemoteList {
        let mut list = RemoteList::default();
        let mut rest = text;
        while !rest.is_empty() {
            let end = rest
                .match_indices(',')
                .map(|(comma, _)| comma)
                .find(|comma| begins_remote(&rest[comma + 1..]));
            let remote = &rest[..end.unwrap_or(rest.len())];
            list.add(remote.trim_start_matches([' ', '\t']));
            rest = end.map_or("", |comma| &rest[comma + 1..]);
        }
        list
    }

    /// Whether a remote is empty: the list begins or ends with a comma, or two commas precede a
    /// remote. File names may contain commas, so such a list is read as one with odd names.
    ///
    /// ```
    /// use corvid_rpc::remote::RemoteList;
    /// assert!(RemoteList::parse("unix:/a,").has_empty_remote());
    /// assert!(!RemoteList::parse("unix:/a,b").has_empty_remote());
    /// ```
    #[must_use]
    pub fn has_empty_remote(&self) -> bool {
        let is_empty = |remote: &str| remote.is_empty() || remote.ends_with(',');
        let mut remotes = self.remotes.iter();
        remotes.any(|remote| is_empty(remote.trim_end_matches([' ', '\t'])))
    }

    fn add(&mut self, remote: &str) {
        match remote.strip_prefix("cid:") {
            Some(id) if is_cluster_id(id) => self.cluster_id = Some(id.to_owned()),
            _ => self.remotes.push(remote.to_owned()),
        }
    }
}

/// Whether `text` starts, after optional blanks, with lower-case letters and a colon.
fn begins_remote(text: &str) -> bool {
    let text = text.trim_start_matches([' ', '\t']);
    let letters = text.bytes().take_while(u8::is_ascii_lowercase).count();
    letters > 0 && text.as_bytes().get(letters) == Some(&b':')
}

fn is_cluster_id(text: &str) -> bool {
    (4..=36).contains(&text.len())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
}

/// A remote that names a column whose contents are the actual remotes: `db:DB,TABLE,COLUMN`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ColumnRemote<'a> {
    /// Name of the database.
    pub database: &'a str,
    /// Name of the table.
    pub table: &'a str,
    /// Name of the column.
    pub column: &'a str,
}

impl<'a> ColumnRemote<'a> {
    /// Whether `remote` has this form, well written or not.
    #[must_use]
    pub fn matches(remote: &str) -> bool {
        remote.starts_with("db:")
    }

    /// Reads such a remote; `None` if a part is missing. As observed in the reference, empty parts
    /// are skipped and text after the third part is ignored.
    #[must_use]
    pub fn parse(remote: &'a str) -> Option<ColumnRemote<'a>> {
        let mut parts = remote
            .strip_prefix("db:")?
            .split(',')
            .filter(|part| !part.is_empty());
        Some(ColumnRemote {
            database: parts.next()?,
            table: parts.next()?,
            column: parts.next()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{ColumnRemote, RemoteList, Scheme};

    #[test]
    fn commas_separate_only_before_a_scheme() {
        for (text, remotes) in [
            ("unix:/a", vec!["unix:/a"]),
            ("unix:/a,unix:/b", vec!["unix:/a", "unix:/b"]),
            ("unix:/a, unix:/b", vec!["unix:/a", "unix:/b"]),
            ("unix:/a ,unix:/b", vec!["unix:/a ", "unix:/b"]),
            ("unix:/a,foo", vec!["unix:/a,foo"]),
            ("unix:/a,Unix:/b", vec!["unix:/a,Unix:/b"]),
            ("unix:/a,a1:x", vec!["unix:/a,a1:x"]),
            ("unix:/a,:x,unix:/b", vec!["unix:/a,:x", "unix:/b"]),
            ("unix:/a,,unix:/b", vec!["unix:/a,", "unix:/b"]),
            ("unix:/a,unix:/b,", vec!["unix:/a", "unix:/b,"]),
            ("", vec![]),
        ] {
            let list = RemoteList::parse(text);
            assert_eq!(
                (list.remotes, list.cluster_id),
                (remotes.iter().map(ToString::to_string).collect(), None)
            );
        }
    }

    #[test]
    fn empty_remotes_are_noticed() {
        for (text, is_empty) in [
            ("unix:/a,unix:/b", false),
            ("unix:/a,b", false),
            ("unix:/a,,b", false),
            ("cid:6731fef6", false),
            ("unix:/a,", true),
            ("unix:/a, ", true),
            (",unix:/a", true),
            ("unix:/a,,unix:/b", true),
            ("unix:/a, ,unix:/b", true),
            ("cid:6731fef6,", true),
            (" ", true),
        ] {
            let list = RemoteList::parse(text);
            assert_eq!(list.has_empty_remote(), is_empty, "{text}");
        }
    }

    #[test]
    fn a_cluster_id_is_taken_out_of_the_list() {
        let list = RemoteList::parse("tcp:a:1,cid:6731fef6-afef-4e54-bb8b-892b04777101,tcp:b:2");
        assert_eq!(list.remotes, ["tcp:a:1", "tcp:b:2"]);
        assert_eq!(
            list.cluster_id.as_deref(),
            Some("6731fef6-afef-4e54-bb8b-892b04777101")
        );
        assert_eq!(RemoteList::parse("cid:xyz").remotes, ["cid:xyz"]);
    }

    #[test]
    fn schemes_decide_the_side_and_the_probe_interval() {
        for (remote, scheme, is_passive, interval_ms) in [
            ("tcp:[::1]:6640", Scheme::Tcp, false, 5000),
            ("ssl:h:1", Scheme::Ssl, false, 5000),
            ("unix:/a:b", Scheme::Unix, false, 0),
            ("ptcp:6640", Scheme::PassiveTcp, true, 5000),
            ("pssl:6640", Scheme::PassiveSsl, true, 5000),
            ("punix:/a", Scheme::PassiveUnix, true, 0),
            ("pfd:3", Scheme::PassiveFd, true, 0),
        ] {
            let (found, rest) = Scheme::split(remote).unwrap();
            assert_eq!(
                (found, found.is_passive(), found.probe_interval_ms()),
                (scheme, is_passive, interval_ms)
            );
            assert!(remote.ends_with(rest));
        }
        assert_eq!(Scheme::split("db:a,b,c"), None);
        assert_eq!(Scheme::split("tcp"), None);
    }

    #[test]
    fn column_remotes_have_three_parts() {
        let parts = |remote| {
            ColumnRemote::parse(remote).map(|found| (found.database, found.table, found.column))
        };
        assert_eq!(parts("db:D,T,C"), Some(("D", "T", "C")));
        assert_eq!(parts("db:,D,,T,C,more"), Some(("D", "T", "C")));
        assert_eq!(parts("db:D, T,C"), Some(("D", " T", "C")));
        for remote in ["db:", "db:D,T", "db:D,T,", "D,T,C"] {
            assert_eq!(parts(remote), None);
        }
    }
}
