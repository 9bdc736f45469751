//! The relays that may speak for their clients (`--trusted-relays`), by the common names of their
//! certificates.
//!
//! The main thread writes the list; shards read it when a session begins. A session keeps the trust
//! it began with. A session without a certificate is never trusted: any client could claim to be a
//! relay.

use std::collections::BTreeSet;
use std::sync::{PoisonError, RwLock};

/// The list of trusted common names.
#[derive(Debug, Default)]
pub(crate) struct TrustedRelays(RwLock<BTreeSet<String>>);

impl TrustedRelays {
    /// Parses a list of names, separated by commas.
    pub(crate) fn new(list: &str) -> TrustedRelays {
        let relays = TrustedRelays::default();
        relays.set(list);
        relays
    }

    /// Replaces the list.
    pub(crate) fn set(&self, list: &str) {
        let names = list
            .split(',')
            .map(str::trim)
            .filter(|name| !name.is_empty());
        let names = names.map(str::to_owned).collect();
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = names;
    }

    /// Whether a session whose certificate has this common name may speak for its clients.
    pub(crate) fn contains(&self, name: Option<&str>) -> bool {
        let names = || self.0.read().unwrap_or_else(PoisonError::into_inner);
        name.is_some_and(|name| names().contains(name))
    }

    /// The names, sorted and separated by commas.
    pub(crate) fn text(&self) -> String {
        let names = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        names.join(",")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_named_certificates_are_trusted() {
        let relays = TrustedRelays::new("relay2, relay1,,");
        assert_eq!(relays.text(), "relay1,relay2");
        assert!(relays.contains(Some("relay1")) && !relays.contains(Some("relay")));
        assert!(!relays.contains(Some("")) && !relays.contains(None));
        relays.set("");
        assert!(!relays.contains(Some("relay1")));
    }
}
