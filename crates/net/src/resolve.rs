//! Addresses of host names: immediately for programs that may block, on a thread for programs that
//! must not.
//!
//! A daemon asks on every attempt to connect: the first attempt starts the look-up and fails, a
//! later one finds the result. Results are kept for [`KEEP_MS`]. At most one look-up per name is in
//! flight.

use std::collections::HashMap;
use std::net::{IpAddr, ToSocketAddrs};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use crate::clock;
use crate::fork::Home;
use crate::logging::{self, Module, RateLimit};

/// How long a result is used, ms.
const KEEP_MS: u64 = 30_000;
/// The maximum number of cached names; one more removes all resolved names. Remotes name a handful
/// of hosts.
const NAMES_MAX: usize = 256;

static CACHE: Mutex<Option<HashMap<String, Entry>>> = Mutex::new(None);

enum Entry {
    /// A thread of this process is looking the name up. A forked child starts over.
    Pending(Home),
    Known {
        ip: Option<IpAddr>,
        at_ms: u64,
    },
}

fn cache() -> MutexGuard<'static, Option<HashMap<String, Entry>>> {
    CACHE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Looks a name up, and blocks until it is resolved.
#[must_use]
pub fn now(name: &str) -> Option<IpAddr> {
    static LIMIT: RateLimit = RateLimit::new(5, 5);
    match (name, 0).to_socket_addrs() {
        Ok(mut addresses) => addresses.next().map(|address| address.ip()),
        Err(_) => {
            logging::warn_limited(
                &LIMIT,
                Module::DnsResolve,
                format_args!("{name}: failed to resolve"),
            );
            None
        }
    }
}

/// The address of a name if it is resolved; otherwise starts a look-up.
#[must_use]
pub fn later(name: &str) -> Option<IpAddr> {
    let mut guard = cache();
    let cache = guard.get_or_insert_with(HashMap::new);
    match cache.get(name) {
        Some(Entry::Pending(home)) if home.is_this_process() => return None,
        Some(Entry::Known { ip, at_ms }) if clock::mono_ms() < at_ms + KEEP_MS => return *ip,
        _ => {}
    }
    if cache.len() >= NAMES_MAX {
        cache.retain(|_, entry| matches!(entry, Entry::Pending(_)));
    }
    cache.insert(name.to_owned(), Entry::Pending(Home::this_process()));
    drop(guard);
    let owned = name.to_owned();
    let started = thread::Builder::new()
        .name("resolver".into())
        .spawn(move || {
            let ip = now(&owned);
            let entry = Entry::Known {
                ip,
                at_ms: clock::mono_ms(),
            };
            self::cache()
                .get_or_insert_with(HashMap::new)
                .insert(owned, entry);
        });
    if started.is_err() {
        self::cache().get_or_insert_with(HashMap::new).remove(name);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_resolved_after_the_first_attempt() {
        let started = clock::mono_ms();
        let mut found = later("localhost");
        while found.is_none() && clock::mono_ms() < started + 10_000 {
            thread::yield_now();
            found = later("localhost");
        }
        assert!(found.is_some_and(|ip| ip.is_loopback()));
    }
}
