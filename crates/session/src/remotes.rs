//! The remotes that serve the database, and which of them is tried next.
//!
//! Invariant: as long as there are remotes, one of them is the current one. The list is shuffled
//! once, so that the clients of a cluster spread over its servers; then the remotes are tried in
//! rotation.

use corvid_rpc::remote::{RemoteList, Scheme};

use crate::prng::Prng;

/// A list of remotes and a position in it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Remotes {
    names: Vec<String>,
    /// Position of the remote that is connected, or was last tried.
    present: usize,
    /// Whether that remote has been tried.
    has_begun: bool,
}

impl Remotes {
    pub(crate) fn new(list: RemoteList, shuffle: Option<&mut Prng>) -> Remotes {
        let mut names = list.remotes;
        if let Some(prng) = shuffle {
            prng.shuffle(&mut names);
        }
        Remotes {
            names,
            present: 0,
            has_begun: false,
        }
    }

    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// The number of remotes, in the type that counts attempts.
    pub(crate) fn count(&self) -> u32 {
        u32::try_from(self.names.len()).unwrap_or(u32::MAX)
    }

    /// The remote that is connected, or was last tried.
    pub(crate) fn present(&self) -> Option<&str> {
        self.names.get(self.present).map(String::as_str)
    }

    /// Moves to the next remote, or to the first at the first call.
    pub(crate) fn advance(&mut self) -> Option<&str> {
        if std::mem::replace(&mut self.has_begun, true) {
            self.present = (self.present + 1)
                .checked_rem(self.names.len())
                .unwrap_or(0);
        }
        self.present()
    }

    /// Makes `name` the current remote; returns false if it is not listed.
    pub(crate) fn keep(&mut self, name: &str) -> bool {
        match self.names.iter().position(|known| known == name) {
            Some(place) => {
                (self.present, self.has_begun) = (place, true);
                true
            }
            None => false,
        }
    }
}

/// The default probe interval of a remote, ms; 0 for an unknown scheme, which the driver refuses.
pub(crate) fn default_probe_interval_ms(remote: &str) -> u64 {
    Scheme::split(remote).map_or(0, |(scheme, _)| scheme.probe_interval_ms())
}

/// Whether the peer connects to this client.
pub(crate) fn is_passive(remote: &str) -> bool {
    Scheme::split(remote).is_some_and(|(scheme, _)| scheme.is_passive())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remotes(text: &str, seed: u64) -> Remotes {
        Remotes::new(RemoteList::parse(text), Some(&mut Prng::new(seed)))
    }

    #[test]
    fn every_remote_is_tried_in_turn() {
        let mut three = remotes("tcp:a:1,tcp:b:1,tcp:c:1", 7);
        let mut tried: Vec<String> = (0..3)
            .map(|_| three.advance().unwrap().to_owned())
            .collect();
        assert_eq!(three.advance(), Some(tried[0].as_str()));
        tried.sort();
        assert_eq!(tried, ["tcp:a:1", "tcp:b:1", "tcp:c:1"]);
        assert_eq!(remotes("", 1).advance(), None);
    }

    #[test]
    fn seeds_give_every_order() {
        let orders: std::collections::BTreeSet<Vec<String>> = (0..100)
            .map(|seed| remotes("tcp:a:1,tcp:b:1,tcp:c:1", seed).names)
            .collect();
        assert_eq!(orders.len(), 6);
        let unshuffled = Remotes::new(RemoteList::parse("tcp:b:1,tcp:a:1"), None);
        assert_eq!(unshuffled.names(), ["tcp:b:1", "tcp:a:1"]);
    }

    #[test]
    fn a_kept_remote_is_followed_by_its_successor() {
        let mut two = Remotes::new(RemoteList::parse("tcp:a:1,tcp:b:1"), None);
        assert!(!two.keep("tcp:c:1"));
        assert!(two.keep("tcp:b:1"));
        assert_eq!(two.present(), Some("tcp:b:1"));
        assert_eq!(two.advance(), Some("tcp:a:1"));
    }
}
