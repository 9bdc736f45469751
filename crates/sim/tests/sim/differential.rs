//! Our server and the reference server under the same generated traffic.

use std::io::ErrorKind;

use corvid_sim::differential::{Differential, Progress};
use corvid_sim::world::dice;

/// Number of requests on one schema.
const REQUESTS: usize = 250;

#[test]
fn both_servers_give_the_same_replies() {
    let seed = dice::seed("differential");
    let cases = dice::cases(3_000);
    let mut deviations = std::collections::BTreeMap::new();
    for schema in 0..cases.div_ceil(REQUESTS) {
        let mut differential = match Differential::start(seed.wrapping_add(schema as u64)) {
            Ok(differential) => differential,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                eprintln!("SKIPPED, nothing is compared: {error}");
                return;
            }
            Err(error) => panic!("CORVID_SEED={seed}, schema {schema}: {error}"),
        };
        for number in 0..REQUESTS {
            match differential.step() {
                Ok(Progress::Continues) => {}
                Ok(Progress::Ends) => break,
                Err(problem) => panic!(
                    "CORVID_SEED={seed}, schema {schema}, request {number}:\n{problem}\nschema: {}\nmonitors so far:\n{}",
                    differential.schema(),
                    differential.monitor_requests.join("\n")
                ),
            }
        }
        for (reason, count) in &differential.deviations {
            *deviations.entry(*reason).or_insert(0) += count;
        }
    }
    println!("{cases} requests; documented deviations met: {deviations:#?}");
}
