//! `mutate` (docs/spec/protocol.md 5.5).

use corvid_data::members::Kinds;
use corvid_data::{Row, TableId, TableSchema, WireError};
use smallvec::SmallVec;

use super::{Executable, OperationKind, Source};
use crate::execution::{Execution, Failure};
use crate::mutation::{Mutation, read_mutations};
use crate::rbac::{self, Access};
use crate::transaction::Written;

/// The members of a `mutate`.
pub(crate) struct Mutate<'a> {
    table: TableId,
    condition: &'a [u8],
    mutations: &'a [u8],
}

/// Columns of one row with their new values.
type Mutated = SmallVec<[Written; 4]>;

impl<'a> Executable<'a> for Mutate<'a> {
    fn parse(source: &mut Source<'a, '_>) -> Result<Mutate<'a>, WireError> {
        Ok(Mutate {
            table: source.table()?,
            condition: source.condition()?,
            mutations: source.required("mutations", Kinds::ARRAY)?,
        })
    }

    fn depends_on(&self) -> Option<TableId> {
        Some(self.table)
    }

    fn execute(self, execution: &mut Execution<'_, '_>) -> Result<(), Failure> {
        let schema = execution.txn.database.schema.table(self.table);
        let mutations = read_mutations(schema, self.mutations, &mut execution.names)?;
        let condition = execution.read_condition(self.table, self.condition)?;
        let slots = execution.matching(self.table, &condition)?;
        // Arithmetic visits every element of its column. The other mutators cost O(log n), whatever
        // the size of the set.
        let computed = mutations.iter().filter(|mutation| mutation.visits_all());
        let columns = computed.map(|mutation| mutation.column);
        execution.spend_on_columns(self.table, &slots, &columns)?;
        if !mutations.is_empty() {
            let columns = mutations.iter().map(|mutation| mutation.column).collect();
            rbac::check(
                execution,
                OperationKind::Mutate,
                &Access::Columns(columns),
                self.table,
                execution.rows(self.table, &slots),
            )?;
            for slot in &slots {
                let schema = execution.txn.table_schema(self.table);
                let row = execution.txn.table(self.table).at(*slot);
                let mutated = mutate(schema, row, &mutations)?;
                execution.txn.write(self.table, *slot, mutated.into_iter());
            }
        }
        execution.write_count(slots.len());
        Ok(())
    }
}

/// Applies all mutations in sequence, each to the outcome of the previous ones.
fn mutate(schema: &TableSchema, row: &Row, mutations: &[Mutation]) -> Result<Mutated, WireError> {
    let mut mutated = Mutated::new();
    for mutation in mutations {
        let column = mutation.column;
        let earlier = mutated.iter_mut().find(|written| written.column == column);
        if let Some(written) = earlier {
            mutation.apply(schema.column(column), &mut written.datum)?;
            // The known difference is that of the earlier mutation alone.
            written.diff = None;
        } else {
            let mut datum = row.columns[usize::from(column.0)].clone();
            let diff = mutation.apply(schema.column(column), &mut datum)?;
            mutated.push(Written {
                column,
                datum,
                diff,
            });
        }
    }
    Ok(mutated)
}
