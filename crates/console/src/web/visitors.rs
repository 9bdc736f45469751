//! The share of each address: connections, pages at a time, and wrong guesses of the token.
//!
//! An address that floods leaves room for the others, and its share of connections shrinks as they
//! become scarce, so many addresses that flood leave room, too. `127.0.0.1` and `::1` may stand for
//! many viewers, because proxies and tunnels connect from there: some connections are kept for them
//! ([`RESERVED`]), and only their guesses are counted. Addresses of IPv6 count by their first 64
//! bits, of which a host may use all others.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::{PAGES_MAX, TURN_TIMEOUT};

/// The number of connections of one address while more than half are free.
const CONNECTIONS_MAX: usize = 64;

/// After that, an address may have this part of those that are free, and at least
/// [`CONNECTIONS_MIN`].
const SCARCE_PART: usize = 32;

/// The number of connections of one address as long as any are free: a page and its events.
const CONNECTIONS_MIN: usize = 2;

/// The number of connections that only this machine may have.
const RESERVED: usize = 64;

/// The number of connections that all other addresses may have.
const SHARED_MAX: usize = super::CONNECTIONS_MAX - RESERVED;

/// The number of requests of one address that are answered at a time.
const TURNS_MAX: usize = PAGES_MAX / 2;

/// The number of wrong guesses of the token in a row.
const GUESSES_MAX: u32 = 10;

/// After the last guess, one more is allowed after this time.
const GUESS_INTERVAL: Duration = Duration::from_secs(6);

/// The number of addresses that are remembered for their guesses.
const ADDRESSES_MAX: usize = 4096;

/// All addresses that are connected or have guessed lately.
#[derive(Debug, Default)]
pub(crate) struct Visitors(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    by_address: HashMap<IpAddr, Visitor>,
    /// Connections that count, of all addresses.
    shared: usize,
}

impl Known {
    /// The number of connections that an address may have now.
    fn share(&self) -> usize {
        match SHARED_MAX.saturating_sub(self.shared) {
            0 => 0,
            free if free > SHARED_MAX / 2 => CONNECTIONS_MAX,
            free => (free / SCARCE_PART).clamp(CONNECTIONS_MIN, CONNECTIONS_MAX),
        }
    }
}

#[derive(Debug)]
struct Visitor {
    connections: usize,
    turns: Arc<Semaphore>,
    /// Wrong guesses that are not forgotten yet.
    guesses: u32,
    /// When the number of guesses was current.
    counted: Instant,
}

impl Visitor {
    /// Forgets a guess for each interval that has passed.
    fn forget(&mut self, now: Instant) {
        let passed = now.duration_since(self.counted).as_millis() / GUESS_INTERVAL.as_millis();
        let passed = u32::try_from(passed).unwrap_or(u32::MAX);
        if passed >= self.guesses {
            self.guesses = 0;
            self.counted = now;
        } else {
            self.guesses -= passed;
            self.counted += GUESS_INTERVAL * passed;
        }
    }
}

/// One connection; the address is counted until it is dropped.
#[derive(Debug)]
pub(crate) struct Visit {
    visitors: Arc<Visitors>,
    key: IpAddr,
    turns: Option<Arc<Semaphore>>,
}

impl Visitors {
    /// Counts a connection from an address; `None` if the address has too many.
    pub(crate) fn enter(self: &Arc<Visitors>, address: IpAddr) -> Option<Visit> {
        let key = key(address);
        let is_limited = !is_proxy(key);
        let now = Instant::now();
        let mut all = self.lock();
        let share = if is_limited { all.share() } else { usize::MAX };
        if share == 0 {
            return None;
        }
        let known = &mut all.by_address;
        if known.len() >= ADDRESSES_MAX {
            known.retain(|_, visitor| {
                visitor.forget(now);
                visitor.connections > 0 || visitor.guesses > 0
            });
        }
        if known.len() >= ADDRESSES_MAX {
            known.retain(|_, visitor| visitor.connections > 0);
        }
        let visitor = known.entry(key).or_insert_with(|| Visitor {
            connections: 0,
            turns: Arc::new(Semaphore::new(TURNS_MAX)),
            guesses: 0,
            counted: now,
        });
        if visitor.connections >= share {
            return None;
        }
        visitor.connections += 1;
        let turns = is_limited.then(|| visitor.turns.clone());
        all.shared += usize::from(is_limited);
        Some(Visit {
            visitors: self.clone(),
            key,
            turns,
        })
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Visit {
    /// Waits until the address may have one more request answered; `None` if that takes too long.
    pub(crate) async fn turn(&self) -> Option<Option<OwnedSemaphorePermit>> {
        let Some(turns) = &self.turns else {
            return Some(None);
        };
        let turn = timeout(TURN_TIMEOUT, turns.clone().acquire_owned()).await;
        turn.ok()?.ok().map(Some)
    }

    /// Whether the address may guess the token once more.
    pub(crate) fn may_guess(&self) -> bool {
        let mut known = self.visitors.lock();
        known.by_address.get_mut(&self.key).is_none_or(|visitor| {
            visitor.forget(Instant::now());
            visitor.guesses < GUESSES_MAX
        })
    }

    /// Counts a wrong guess.
    pub(crate) fn guessed_wrong(&self) {
        if let Some(visitor) = self.visitors.lock().by_address.get_mut(&self.key) {
            if visitor.guesses == 0 {
                visitor.counted = Instant::now();
            }
            visitor.guesses = visitor.guesses.saturating_add(1);
        }
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        let mut all = self.visitors.lock();
        all.shared -= usize::from(self.turns.is_some());
        let known = &mut all.by_address;
        let Some(visitor) = known.get_mut(&self.key) else {
            return;
        };
        visitor.connections = visitor.connections.saturating_sub(1);
        visitor.forget(Instant::now());
        if visitor.connections == 0 && visitor.guesses == 0 {
            known.remove(&self.key);
        }
    }
}

/// Whether the address may stand for many viewers.
fn is_proxy(key: IpAddr) -> bool {
    key == Ipv4Addr::LOCALHOST || key == Ipv6Addr::LOCALHOST
}

/// The address that is counted.
fn key(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(ip) if !ip.is_loopback() => {
            let network = ip.to_bits() & !u128::from(u64::MAX);
            IpAddr::V6(Ipv6Addr::from_bits(network))
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn an_address_that_floods_leaves_connections_to_others() {
        let visitors = Arc::<Visitors>::default();
        let mut visits: Vec<Visit> = (0..CONNECTIONS_MAX)
            .map(|_| visitors.enter(ip("192.0.2.1")).unwrap())
            .collect();
        assert!(visitors.enter(ip("192.0.2.1")).is_none());
        assert!(visitors.enter(ip("::ffff:192.0.2.1")).is_none());
        assert!(visitors.enter(ip("192.0.2.2")).is_some());
        visits.pop();
        let visit = visitors.enter(ip("192.0.2.1"));
        assert!(visit.is_some());
        drop((visits, visit));
        assert!(visitors.lock().by_address.is_empty(), "nobody is left");
        let of_one_network = |host: usize| visitors.enter(ip(&format!("2001:db8::{host:x}")));
        let visits: Vec<_> = (1..=CONNECTIONS_MAX).map(of_one_network).collect();
        assert!(visits.iter().all(Option::is_some));
        assert!(of_one_network(0xffff).is_none());
        assert!(visitors.enter(ip("2001:db8:0:1::1")).is_some());
    }

    #[test]
    fn many_addresses_that_flood_leave_connections_to_others() {
        let visitors = Arc::<Visitors>::default();
        let mut visits = Vec::new();
        let mut flood = |number: usize| {
            let address = ip(&format!("198.51.{}.{}", number / 250, 1 + number % 250));
            let before = visits.len();
            visits.extend(std::iter::from_fn(|| visitors.enter(address)));
            visits.len() - before
        };
        let shares: Vec<usize> = (0..100).map(&mut flood).collect();
        assert_eq!(shares[0], CONNECTIONS_MAX);
        assert!(shares.is_sorted_by(|one, next| one >= next), "{shares:?}");
        assert!(shares[99] >= CONNECTIONS_MIN, "{shares:?}");
        // When nothing is left, this machine still has its own.
        let rest: usize = (100..1000).map(&mut flood).sum();
        assert!(shares.iter().sum::<usize>() + rest == SHARED_MAX);
        assert!(visitors.enter(ip("192.0.2.1")).is_none());
        let own: Vec<_> = (0..RESERVED).map(|_| visitors.enter(ip("::1"))).collect();
        assert!(own.iter().all(Option::is_some));
        visits.truncate(SHARED_MAX / 4);
        let newcomer = std::iter::from_fn(|| visitors.enter(ip("192.0.2.1")));
        assert_eq!(newcomer.collect::<Vec<_>>().len(), CONNECTIONS_MAX);
        drop(visits);
        assert_eq!(visitors.lock().shared, 0);
    }

    #[test]
    fn a_loopback_address_stands_for_many_viewers() {
        let visitors = Arc::<Visitors>::default();
        for address in ["127.0.0.1", "::1", "::ffff:127.0.0.1"] {
            let visits: Vec<_> = (0..=CONNECTIONS_MAX)
                .map(|_| visitors.enter(ip(address)))
                .collect();
            assert!(visits.iter().all(Option::is_some), "{address}");
        }
    }

    #[test]
    fn an_address_that_floods_leaves_turns_to_others() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap();
        runtime.block_on(async {
            let visitors = Arc::<Visitors>::default();
            let one = visitors.enter(ip("192.0.2.1")).unwrap();
            let mut turns = Vec::new();
            for _ in 0..TURNS_MAX {
                turns.push(one.turn().await.unwrap());
            }
            let one_more = timeout(Duration::from_millis(20), one.turn()).await;
            assert!(one_more.is_err(), "it has all its turns");
            let other = visitors.enter(ip("192.0.2.2")).unwrap();
            assert!(other.turn().await.is_some());
            turns.pop();
            assert!(one.turn().await.is_some());
        });
    }

    #[test]
    fn guesses_are_counted_and_forgotten() {
        let visitors = Arc::<Visitors>::default();
        for address in ["192.0.2.1", "127.0.0.1"] {
            for _ in 0..GUESSES_MAX {
                // A connection each: they are remembered between connections.
                let visit = visitors.enter(ip(address)).unwrap();
                assert!(visit.may_guess());
                visit.guessed_wrong();
            }
            let visit = visitors.enter(ip(address)).unwrap();
            assert!(!visit.may_guess());
            let other = visitors.enter(ip("192.0.2.2")).unwrap();
            assert!(other.may_guess());
            let mut known = visitors.lock();
            let visitor = known.by_address.get_mut(&ip(address)).unwrap();
            visitor.forget(visitor.counted + GUESS_INTERVAL);
            assert_eq!(visitor.guesses, GUESSES_MAX - 1);
            visitor.forget(visitor.counted + GUESS_INTERVAL * GUESSES_MAX);
            assert_eq!(visitor.guesses, 0);
        }
    }
}
