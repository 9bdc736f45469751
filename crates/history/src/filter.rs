//! The part of the history that is asked for, and which records cannot concern it.
//!
//! A record is searched as text before it is parsed. In a record's text a name with its quotes and
//! a colon is a member: in a string the quotes would be escaped. Invariant: a record that is
//! skipped changes no row that the filter wants.

use corvid_data::{Schema, TableId, Uuid};
use corvid_log::CommitClient;
use memchr::memmem::Finder;

use crate::change::RowChange;
use crate::error::HistoryError;

/// Which changes are wanted. The default is all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Rows of this table.
    pub table: Option<String>,
    /// Rows whose UUID begins like this.
    pub row: Option<RowPrefix>,
    /// Changes of this column. The insertion or deletion of a row changes the columns that differ
    /// from their defaults.
    pub column: Option<String>,
    /// Commits whose client or comment contains this text.
    pub client: Option<String>,
}

/// The beginning of a row's UUID.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowPrefix(String);

impl RowPrefix {
    /// Parses hexadecimal digits, with the dashes of a UUID.
    ///
    /// # Errors
    /// It is not the beginning of a UUID.
    pub fn parse(text: &str) -> Result<RowPrefix, HistoryError> {
        let prefix = text.to_ascii_lowercase();
        let fits = |(at, byte): (usize, u8)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        };
        let is_one = prefix.len() <= Uuid::TEXT_LEN && prefix.bytes().enumerate().all(fits);
        if prefix.is_empty() || !is_one {
            let problem = format!("\"{text}\" is not a row's UUID, nor the beginning of one");
            return Err(HistoryError::Filter(problem));
        }
        Ok(RowPrefix(prefix))
    }

    fn matches(&self, uuid: Uuid) -> bool {
        uuid.to_text().starts_with(self.0.as_bytes())
    }
}

/// The changes that a filter wants, of those between two states.
///
/// # Errors
/// The schema does not have the filter's table or column.
pub fn matching(
    filter: &Filter,
    mut changes: Vec<RowChange>,
    schema: &Schema,
) -> Result<Vec<RowChange>, HistoryError> {
    if !Wanted::new(filter, schema).is_possible() && *filter != Filter::default() {
        return Err(impossible(filter));
    }
    changes.retain(|change| {
        let wanted = Wanted::new(filter, &change.schema);
        wanted.wants(change.table, change.uuid) && wanted.wants_change(change)
    });
    Ok(changes)
}

/// The error that no table has what a filter asks for.
pub(crate) fn impossible(filter: &Filter) -> HistoryError {
    HistoryError::Filter(match (&filter.table, &filter.column) {
        (Some(table), Some(column)) => {
            format!("there is no table {table} with a column {column} in the history")
        }
        (Some(table), None) => format!("there is no table {table} in the history"),
        (None, Some(column)) => format!("no table has a column {column} in the history"),
        (None, None) => "there are no tables in the history".to_owned(),
    })
}

/// A filter for the texts of records, under one schema.
#[derive(Debug)]
pub(crate) struct Search {
    row: Option<Finder<'static>>,
    /// The tables whose rows may be wanted; `None` if these are all tables.
    tables: Option<Vec<Finder<'static>>>,
}

impl Search {
    pub(crate) fn new(filter: &Filter, schema: &Schema) -> Search {
        let finder = |text: String| Finder::new(text.as_bytes()).into_owned();
        let row = filter.row.as_ref().map(|row| match row.0.len() {
            Uuid::TEXT_LEN => finder(format!("\"{}\":", row.0)),
            _ => finder(format!("\"{}", row.0)),
        });
        // A record need not name a column: the insertion of a row leaves out those that have their
        // defaults, and its deletion leaves out all.
        let wanted = Wanted::new(filter, schema);
        let tables = schema.iter().filter(|(id, _)| wanted.wants_table(*id));
        let is_every = filter.table.is_none() && filter.column.is_none();
        let names = || {
            tables
                .map(|(_, table)| finder(format!("\"{}\":", table.name)))
                .collect()
        };
        Search {
            row,
            tables: (!is_every).then(names),
        }
    }

    /// Whether a record may change a row that the filter wants. White space between a name and its
    /// colon, which no server writes, is not expected.
    pub(crate) fn may_concern(&self, record: &[u8]) -> bool {
        let occurs = |finder: &Finder<'_>| finder.find(record).is_some();
        self.row.as_ref().is_none_or(occurs)
            && self
                .tables
                .as_ref()
                .is_none_or(|tables| tables.iter().any(occurs))
    }
}

/// Rows whose contents must be known.
pub(crate) trait Selection {
    /// Whether rows of the table may be wanted.
    fn wants_table(&self, table: TableId) -> bool;

    /// Whether the row may be wanted.
    fn wants(&self, table: TableId, uuid: Uuid) -> bool;
}

impl Selection for Wanted<'_> {
    fn wants_table(&self, table: TableId) -> bool {
        self.tables.get(usize::from(table.0)) == Some(&true)
    }

    fn wants(&self, table: TableId, uuid: Uuid) -> bool {
        self.wants_table(table) && self.filter.row.as_ref().is_none_or(|row| row.matches(uuid))
    }
}

/// A filter under one schema.
#[derive(Debug)]
pub(crate) struct Wanted<'f> {
    filter: &'f Filter,
    tables: Vec<bool>,
}

impl<'f> Wanted<'f> {
    pub(crate) fn new(filter: &'f Filter, schema: &Schema) -> Wanted<'f> {
        let is_wanted = |table: &corvid_data::TableSchema| {
            filter
                .table
                .as_ref()
                .is_none_or(|name| **name == *table.name)
                && filter
                    .column
                    .as_ref()
                    .is_none_or(|column| table.column_id(column).is_some())
        };
        Wanted {
            filter,
            tables: schema.tables().iter().map(is_wanted).collect(),
        }
    }

    /// Whether any table may have what is wanted.
    pub(crate) fn is_possible(&self) -> bool {
        self.tables.contains(&true)
    }

    /// Whether the change of a wanted row is wanted.
    pub(crate) fn wants_change(&self, change: &RowChange) -> bool {
        let Some(column) = &self.filter.column else {
            return true;
        };
        let Some(id) = change.table().column_id(column) else {
            return false;
        };
        let value = |columns: &Option<crate::change::Columns>| {
            columns
                .as_ref()
                .and_then(|columns| columns.get(usize::from(id.0)).cloned())
        };
        let (old, new) = (value(&change.old), value(&change.new));
        match (old, new) {
            (Some(old), Some(new)) => old != new,
            (one, other) => one
                .or(other)
                .is_some_and(|datum| !datum.is_default(&change.table().column(id).column_type)),
        }
    }

    /// Whether the commits of this client and with this comment are wanted.
    pub(crate) fn wants_client(
        &self,
        client: Option<&CommitClient>,
        comment: Option<&str>,
    ) -> bool {
        self.filter.client.as_ref().is_none_or(|wanted| {
            client.is_some_and(|client| client.mentions(wanted))
                || comment.is_some_and(|comment| comment.contains(wanted))
        })
    }
}
