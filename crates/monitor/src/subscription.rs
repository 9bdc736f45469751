//! A subscription: a client's request in canonical form, so that clients with equal requests share
//! a group.
//!
//! Invariant: tables are sorted by id and distinct, and so are the columns of a table; conditions
//! are canonical. So two requests with the same meaning compare equal. `request` builds
//! subscriptions; the dispatcher and the encoders read them. This file knows neither rows nor
//! clients.

use std::sync::Arc as StdArc;

use corvid_data::{ColumnId, RowChange, TableId};
use smallvec::SmallVec;

use crate::condition::TableCondition;

/// Bytes of a subscription's table, apart from its columns and condition.
const TABLE_BYTES: usize = 256;

/// Kinds of row events that a request can select (docs/spec/protocol.md 4.5.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The row exists when the monitor starts.
    Initial,
    /// The row entered the view.
    Insert,
    /// The row left the view.
    Delete,
    /// The row was in view before and is in view after, with different content.
    Modify,
}

/// A set of events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Select(u8);

impl Select {
    /// No event.
    pub(crate) const NONE: Select = Select(0);
    /// Every event, the default of a request.
    pub(crate) const ALL: Select = Select(0b1111);

    /// This set with `event` added or removed.
    pub(crate) fn with(self, event: Event, selected: bool) -> Select {
        let bit = 1 << event as u8;
        Select(if selected {
            self.0 | bit
        } else {
            self.0 & !bit
        })
    }

    /// Events of either set.
    pub(crate) fn union(self, other: Select) -> Select {
        Select(self.0 | other.0)
    }

    /// Whether `event` is in the set.
    pub(crate) fn has(self, event: Event) -> bool {
        self.0 & (1 << event as u8) != 0
    }
}

/// A column and the events that report it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SubscribedColumn {
    /// The column, which may be a standard one.
    pub(crate) column: ColumnId,
    /// The `select` of the request that named it.
    pub(crate) select: Select,
}

/// The part of a subscription for one table.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct TableSubscription {
    /// The table.
    pub(crate) table: TableId,
    /// Union over the table's requests: a request without columns still reports rows that are
    /// inserted or deleted.
    pub(crate) select: Select,
    /// Sorted by column.
    pub(crate) columns: Box<[SubscribedColumn]>,
    /// The same columns as bits.
    mask: ColumnMask,
    /// The rows in view. Shared, because conditions of thousands of clauses pass from one
    /// subscription to the next.
    pub(crate) condition: StdArc<TableCondition>,
}

impl TableSubscription {
    /// Sorts `columns`, which must be distinct.
    pub(crate) fn new(
        table: TableId,
        select: Select,
        mut columns: Vec<SubscribedColumn>,
        condition: TableCondition,
    ) -> TableSubscription {
        columns.sort_unstable_by_key(|subscribed| subscribed.column);
        let mask = columns.iter().map(|subscribed| subscribed.column).collect();
        TableSubscription {
            table,
            select,
            columns: columns.into(),
            mask,
            condition: StdArc::new(condition),
        }
    }

    /// The events that report `column`.
    pub(crate) fn select_of(&self, column: ColumnId) -> Select {
        self.columns
            .binary_search_by_key(&column, |subscribed| subscribed.column)
            .map_or(Select::NONE, |found| self.columns[found].select)
    }

    /// Columns that `event` reports.
    pub(crate) fn columns_for(&self, event: Event) -> impl Iterator<Item = ColumnId> + '_ {
        self.columns
            .iter()
            .filter(move |subscribed| subscribed.select.has(event))
            .map(|subscribed| subscribed.column)
    }

    /// Whether a modification of these columns is visible.
    pub(crate) fn concerns(&self, changed: &ColumnMask) -> bool {
        self.mask.intersects(changed)
    }
}

/// A whole monitor request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Subscription {
    tables: Box<[TableSubscription]>,
}

impl Subscription {
    /// Sorts `tables`, which must be distinct.
    pub(crate) fn new(mut tables: Vec<TableSubscription>) -> Subscription {
        tables.sort_unstable_by_key(|table| table.table);
        Subscription {
            tables: tables.into(),
        }
    }

    /// All tables, by id.
    pub(crate) fn tables(&self) -> &[TableSubscription] {
        &self.tables
    }

    /// The part for `table`, if any.
    pub(crate) fn table(&self, table: TableId) -> Option<&TableSubscription> {
        self.tables
            .binary_search_by_key(&table, |subscribed| subscribed.table)
            .ok()
            .map(|found| &self.tables[found])
    }

    /// The memory that the subscription takes in use, in bytes, most of it for its conditions.
    pub(crate) fn bytes(&self) -> usize {
        let of_table = |table: &TableSubscription| {
            TABLE_BYTES + size_of_val(&*table.columns) + table.condition.bytes()
        };
        self.tables.iter().map(of_table).sum()
    }

    /// This subscription with other conditions for some tables. Tables that it lacks are ignored.
    pub(crate) fn with_conditions(
        &self,
        conditions: &[(TableId, StdArc<TableCondition>)],
    ) -> Subscription {
        let mut tables = self.tables.clone();
        for (table, condition) in conditions {
            if let Ok(found) = tables.binary_search_by_key(table, |subscribed| subscribed.table) {
                tables[found].condition = condition.clone();
            }
        }
        Subscription { tables }
    }
}

/// A set of columns as bits, so that checking whether a change is visible costs a few instructions
/// per group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct ColumnMask {
    own: SmallVec<[u64; 1]>,
    version: bool,
}

impl ColumnMask {
    /// Columns that a modification changed. `_version` always changes, `_uuid` never.
    pub(crate) fn of_change(change: &RowChange) -> ColumnMask {
        let mut mask: ColumnMask = change.diffs.iter().map(|diff| diff.column).collect();
        mask.version = true;
        mask
    }

    /// Adds a column.
    fn add(&mut self, column: ColumnId) {
        if column.is_standard() {
            self.version |= column == ColumnId::VERSION;
            return;
        }
        let (word, bit) = (usize::from(column.0 / 64), column.0 % 64);
        if word >= self.own.len() {
            self.own.resize(word + 1, 0);
        }
        self.own[word] |= 1 << bit;
    }

    /// Whether the sets have a column in common.
    fn intersects(&self, other: &ColumnMask) -> bool {
        (self.version && other.version) || self.own.iter().zip(&other.own).any(|(a, b)| a & b != 0)
    }
}

impl FromIterator<ColumnId> for ColumnMask {
    fn from_iter<I: IntoIterator<Item = ColumnId>>(columns: I) -> ColumnMask {
        let mut mask = ColumnMask::default();
        for column in columns {
            mask.add(column);
        }
        mask
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(number: u16, select: Select) -> SubscribedColumn {
        SubscribedColumn {
            column: ColumnId(number),
            select,
        }
    }

    fn table(number: u16, columns: Vec<SubscribedColumn>) -> TableSubscription {
        TableSubscription::new(
            TableId(number),
            Select::ALL,
            columns,
            TableCondition::Always,
        )
    }

    #[test]
    fn order_of_tables_and_columns_does_not_matter() {
        let all = Select::ALL;
        let one = Subscription::new(vec![
            table(2, vec![column(1, all), column(0, all)]),
            table(1, vec![]),
        ]);
        let other = Subscription::new(vec![
            table(1, vec![]),
            table(2, vec![column(0, all), column(1, all)]),
        ]);
        assert_eq!(one, other);
    }

    #[test]
    fn select_sets_and_clears_single_events() {
        let select = Select::ALL.with(Event::Modify, false);
        assert!(!select.has(Event::Modify));
        assert!(
            select.has(Event::Initial) && select.has(Event::Insert) && select.has(Event::Delete)
        );
        let modify = Select::NONE.with(Event::Modify, true);
        assert_eq!(select.union(modify), Select::ALL);
    }

    #[test]
    fn masks_meet_beyond_the_first_word_and_at_version() {
        let wide: ColumnMask = [ColumnId(3), ColumnId(100)].into_iter().collect();
        let narrow: ColumnMask = [ColumnId(4)].into_iter().collect();
        let far: ColumnMask = [ColumnId(100)].into_iter().collect();
        let version: ColumnMask = [ColumnId::VERSION].into_iter().collect();
        let identity: ColumnMask = [ColumnId::UUID].into_iter().collect();
        assert!(!wide.intersects(&narrow));
        assert!(wide.intersects(&far));
        assert!(!version.intersects(&wide));
        assert!(version.intersects(&version));
        assert!(!identity.intersects(&identity));
    }

    #[test]
    fn columns_are_found_by_event() {
        let quiet = Select::ALL.with(Event::Modify, false);
        let table = table(0, vec![column(1, quiet), column(0, Select::ALL)]);
        assert_eq!(
            table.columns_for(Event::Modify).collect::<Vec<_>>(),
            [ColumnId(0)]
        );
        assert_eq!(table.select_of(ColumnId(1)), quiet);
        assert_eq!(table.select_of(ColumnId(2)), Select::NONE);
    }
}
