//! A bounded run of every target. `CORVID_FUZZ_COUNT` sets the number of inputs for each target,
//! and `CORVID_FUZZ_SEED` sets the seed.

use std::path::Path;

use corvid_fuzzing::{TARGETS, campaign};

/// The default number of inputs for each target. All targets together take a few seconds.
const COUNT_DEFAULT: u64 = 4000;

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| {
        text.parse()
            .unwrap_or_else(|_| panic!("{name} is no number: {text}"))
    })
}

/// Returns the seeds of a target, in a stable order.
fn seeds(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("corpus")
        .join(target);
    let entries =
        std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<_> = entries
        .map(|entry| entry.expect("a readable folder").path())
        .collect();
    paths.sort_unstable();
    paths
        .iter()
        .map(|path| std::fs::read(path).expect("a readable seed"))
        .collect()
}

fn run(name: &str) {
    let target = TARGETS
        .iter()
        .find(|target| target.name == name)
        .expect("a target of that name");
    let seed = setting("CORVID_FUZZ_SEED", 1);
    let count = setting("CORVID_FUZZ_COUNT", COUNT_DEFAULT);
    println!("fuzzing `{name}` with seed {seed}, {count} inputs");
    campaign::run(
        target,
        &seeds(name),
        seed,
        usize::try_from(count).expect("a count that fits"),
    );
}

#[test]
fn frame() {
    run("frame");
}

#[test]
fn read() {
    run("read");
}

#[test]
fn message() {
    run("message");
}

#[test]
fn notation() {
    run("notation");
}

#[test]
fn schema() {
    run("schema");
}

#[test]
fn operations() {
    run("operations");
}

#[test]
fn log_records() {
    run("log_records");
}

#[test]
fn cluster_records() {
    run("cluster_records");
}

#[test]
fn segments() {
    run("segments");
}

#[test]
fn peer_messages() {
    run("peer_messages");
}

#[test]
fn member_messages() {
    run("member_messages");
}

#[test]
fn client() {
    run("client");
}

#[test]
fn tls_records() {
    run("tls_records");
}

#[test]
fn certificates() {
    run("certificates");
}

#[test]
fn every_target_has_a_test() {
    assert_eq!(TARGETS.len(), 14);
}
