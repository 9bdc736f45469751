//! `delete` (docs/spec/protocol.md 5.8).

use corvid_data::{TableId, WireError};

use super::{Executable, OperationKind, Source};
use crate::execution::{Execution, Failure};
use crate::rbac::{self, Access};
use crate::work_budget;

/// The members of a `delete`.
pub(crate) struct Delete<'a> {
    table: TableId,
    condition: &'a [u8],
}

impl<'a> Executable<'a> for Delete<'a> {
    fn parse(source: &mut Source<'a, '_>) -> Result<Delete<'a>, WireError> {
        let condition = source.condition()?;
        let table = source.table()?;
        Ok(Delete { table, condition })
    }

    fn depends_on(&self) -> Option<TableId> {
        Some(self.table)
    }

    fn execute(self, execution: &mut Execution<'_, '_>) -> Result<(), Failure> {
        let condition = execution.read_condition(self.table, self.condition)?;
        let slots = execution.matching(self.table, &condition)?;
        execution.spend_on(self.table, &slots, work_budget::CHANGE)?;
        rbac::check(
            execution,
            OperationKind::Delete,
            &Access::Rows,
            self.table,
            execution.rows(self.table, &slots),
        )?;
        for slot in &slots {
            execution.txn.delete(self.table, *slot);
        }
        execution.write_count(slots.len());
        Ok(())
    }
}
