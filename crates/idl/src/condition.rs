//! A condition together with its table.

use corvid_data::TableId;
use corvid_session::Condition;

use crate::typed::{Row, TypedClause, TypedCondition};

/// The condition of one table: the argument of the drivers' `set_condition`. Typed conditions and
/// clauses convert to it, and so does a pair of a table and an untyped condition.
///
/// ```
/// use corvid_session::Condition;
/// use corvid_data::TableId;
/// use corvid_idl::TableCondition;
///
/// let nothing = TableCondition::from((TableId(0), Condition::none()));
/// assert_eq!(nothing.condition, Condition::none());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableCondition {
    /// The table.
    pub table: TableId,
    /// The condition that selects its rows.
    pub condition: Condition,
}

impl From<(TableId, Condition)> for TableCondition {
    fn from((table, condition): (TableId, Condition)) -> TableCondition {
        TableCondition { table, condition }
    }
}

impl<R: Row> From<TypedCondition<R>> for TableCondition {
    fn from(condition: TypedCondition<R>) -> TableCondition {
        TableCondition {
            table: R::TABLE,
            condition: condition.into_condition(),
        }
    }
}

impl<R: Row> From<TypedClause<R>> for TableCondition {
    fn from(clause: TypedClause<R>) -> TableCondition {
        TypedCondition::from(clause).into()
    }
}
