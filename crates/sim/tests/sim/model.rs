//! The engine compared with the naive model: generated schemas and transactions, with equal results
//! and contents after each.

use corvid_sim::generator::{Generator, Profile};
use corvid_sim::model_check::ModelCheck;
use corvid_sim::world::dice::{self, Dice};

/// Number of transactions on one schema.
const TRANSACTIONS: usize = 100;

#[test]
fn generated_transactions_have_the_results_of_the_model() {
    let seed = dice::seed("model");
    let cases = dice::cases(12_000);
    let (mut commits, mut failures) = (0, 0);
    for schema in 0..cases.div_ceil(TRANSACTIONS) {
        let profile = Profile {
            suits_reference: false,
            keeps_reals_exact: false,
            damage_percent: 4,
        };
        let mut generator = Generator::new(Dice::new(seed.wrapping_add(schema as u64)), profile);
        let mut bench = ModelCheck::new(&generator);
        for number in 0..TRANSACTIONS {
            let operations = generator.transaction();
            let (is_read_only, again) = (generator.dice.chance(2), generator.dice.chance(15));
            let before = bench.versions();
            let done = bench.transact(&operations, is_read_only, again).unwrap_or_else(|problem| {
                let operations: Vec<String> = operations.iter().map(ToString::to_string).collect();
                panic!(
                    "CORVID_SEED={seed}, schema {schema}, transaction {number}: {problem}\nschema: {}\noperations: {}",
                    generator.schema.json,
                    operations.join("\n  ")
                )
            });
            commits += usize::from(done.delta.is_some());
            failures += usize::from(!done.faults.is_empty());
            for (row, (version, expected)) in bench.versions() {
                let Some((old_version, old_expected)) = before.get(&row) else {
                    continue;
                };
                assert_eq!(
                    version == *old_version,
                    expected == *old_expected,
                    "CORVID_SEED={seed}, schema {schema}, transaction {number}: version of {row:?} renewed or not"
                );
            }
            for (table, rows) in &bench.model.tables {
                generator.set_rows(table, rows.keys().map(ToString::to_string).collect());
            }
        }
    }
    println!("{cases} transactions: {commits} commits, {failures} failures");
    assert!(
        commits * 4 > cases,
        "too few of {cases} transactions commit: {commits}"
    );
}
