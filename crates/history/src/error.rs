//! Why history cannot be read. Every error names the file that is at fault, or quotes the moment
//! that was asked for.

use corvid_data::WireError;

/// An error of reading history.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HistoryError {
    /// A file cannot be read, is damaged, or does not belong here.
    #[error("{file}: {problem}")]
    Unusable {
        /// The file's name, as messages show it.
        file: String,
        /// Why it cannot be used.
        problem: String,
    },
    /// The text of a moment is malformed, or there is no such moment.
    #[error("{0}")]
    Moment(String),
    /// A table or column that no schema of the history has, or a row that is not a UUID.
    #[error("{0}")]
    Filter(String),
}

impl HistoryError {
    /// An error about a file.
    #[allow(clippy::needless_pass_by_value)] // the shape that `map_err` needs
    pub(crate) fn file(file: &str, problem: impl ToString) -> HistoryError {
        HistoryError::Unusable {
            file: file.to_owned(),
            problem: problem.to_string(),
        }
    }

    /// An error about the record at `offset` of a file.
    pub(crate) fn record(file: &str, offset: u64, error: &WireError) -> HistoryError {
        HistoryError::file(
            file,
            format_args!("the record at offset {offset} cannot be used: {error}"),
        )
    }
}
