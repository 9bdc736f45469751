//! Hash flooding: keys constructed to collide under the known seed, and their cost under a secret
//! seed. Work is counted and not timed.

mod keys;
mod server;

use std::cell::Cell;
use std::collections::HashSet;
use std::hash::{BuildHasher, Hash, Hasher};

use corvid_data::HashSeed;
use corvid_sim::world::dice::{self, Dice};
use foldhash::fast::FixedState;

use keys::KEYS;
use server::{Row, Server};

/// Number of colliding keys that are put into one map. More keys would take very long.
const FEW: usize = 3_000;

/// A key that counts comparisons with other keys.
struct Counted<'c, K>(K, &'c Cell<u64>);

impl<K: PartialEq> PartialEq for Counted<'_, K> {
    fn eq(&self, other: &Self) -> bool {
        self.1.set(self.1.get() + 1);
        self.0 == other.0
    }
}

impl<K: Eq> Eq for Counted<'_, K> {}

impl<K: Hash> Hash for Counted<'_, K> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

/// Returns the number of comparisons while keys are put into a set one by one.
fn comparisons<K: Hash + Eq>(seed: impl BuildHasher, keys: impl Iterator<Item = K>) -> u64 {
    let count = Cell::new(0);
    #[allow(clippy::mutable_key_type)] // the counter is not part of the key
    let mut set = HashSet::with_hasher(seed);
    for key in keys {
        assert!(set.insert(Counted(key, &count)), "keys differ");
    }
    count.get()
}

fn check<K: Hash + Eq>(
    name: &str,
    secret: HashSeed,
    keys: impl Fn() -> Box<dyn Iterator<Item = K>>,
) {
    let hashes = |seed: HashSeed| {
        keys()
            .map(|key| seed.hash_one(key))
            .collect::<HashSet<_>>()
            .len()
    };
    assert_eq!(hashes(HashSeed::FIXED), 1, "{name} collide");
    let known = comparisons(HashSeed::FIXED, keys().take(FEW));
    let all_pairs = (FEW * (FEW - 1) / 2) as u64;
    assert!(known >= all_pairs, "{name}: {known} of {all_pairs}");

    assert!(hashes(secret) > KEYS - 10, "{name} do not collide");
    let kept = comparisons(secret, keys());
    println!("{name}: {known} comparisons for {FEW} keys, {kept} for {KEYS} under a secret seed");
    assert!(kept < KEYS as u64, "{name}: {kept}");
}

#[test]
fn keys_that_collide_under_the_known_seed_do_not_under_another() {
    let secret = HashSeed::new(dice::seed("flooding"));
    // The keys are hashed as tables hash UUIDs.
    check("identities", secret, || {
        Box::new(keys::uuids().map(|uuid| u128::from_le_bytes(uuid.0)))
    });
    check("strings", secret, || Box::new(keys::strings()));
    check("pairs of integers", secret, || {
        Box::new((0..KEYS as i64).map(|a| (1usize, a, 1usize, keys::SECOND)))
    });
}

/// The reason why a [`HashSeed`] has a shared state of its own.
#[test]
fn seed_of_the_hasher_alone_does_not_prevent_collisions() {
    let state = FixedState::with_seed(dice::seed("flooding"));
    let identities = keys::uuids().map(|uuid| u128::from_le_bytes(uuid.0));
    let hashes: HashSet<u64> = identities.map(|uuid| state.hash_one(uuid)).collect();
    assert_eq!(hashes.len(), 1);
}

/// Returns rows whose UUIDs and index keys all collide under the known seed.
fn hostile() -> Vec<Row> {
    let rows = keys::uuids().zip(keys::strings()).zip(0..);
    rows.map(|((uuid, name), a)| Row {
        uuid,
        name,
        a,
        b: keys::SECOND,
    })
    .collect()
}

fn harmless(dice: &mut Dice) -> Vec<Row> {
    let mut row = |a| {
        let bytes = [dice.draw(), dice.draw()].map(u64::to_le_bytes);
        let uuid = corvid_data::Uuid::from_random(bytes.concat().try_into().expect("16 bytes"));
        Row {
            uuid,
            name: uuid.to_string(),
            a,
            b: 0,
        }
    };
    (0..KEYS as i64).map(&mut row).collect()
}

fn collisions(seed: HashSeed, rows: &[Row]) -> u64 {
    let mut server = Server::new(seed);
    for rows in rows.chunks(100) {
        server.insert(rows);
    }
    assert_eq!(server.rows(), rows.len());
    server.collisions()
}

#[test]
fn colliding_rows_cost_as_much_as_others() {
    let number = dice::seed("flooding");
    let seed = HashSeed::new(number);
    let harmless = collisions(seed, &harmless(&mut Dice::new(number)));
    let hostile_rows = hostile();
    let hostile = collisions(seed, &hostile_rows);
    let known = collisions(HashSeed::FIXED, &hostile_rows[..FEW]);
    println!(
        "collisions: {harmless} of harmless rows, {hostile} of hostile ones, {known} of the first {FEW} under the known seed"
    );
    assert!(hostile < 2 * harmless, "{hostile}, {harmless}");
    // The keys collide in three hash tables: one by UUID, and two indexes.
    assert!(known >= 3 * (FEW * (FEW - 1) / 2) as u64, "{known}");
}
