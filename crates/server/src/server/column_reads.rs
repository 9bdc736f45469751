//! Reads of columns that databases have not answered yet: those that commands wait for, and those
//! that the configuration being applied waits for, with the errors that it gets.
//!
//! Invariant: a column that the configuration waits for is one that is being read.

use std::collections::{HashMap, HashSet};

use corvid_shell::unixctl::Replier;

#[derive(Default)]
pub(super) struct ColumnReads {
    /// Columns of remotes that are being read, by the text of the remote that names the column. The
    /// list of repliers may be empty.
    pub(super) reads: HashMap<String, Vec<Replier>>,
    /// The reads that the configuration waits for.
    pub(super) checked_remotes: HashSet<String>,
    /// The errors of these reads.
    bad_remotes: Vec<String>,
    /// Columns with TLS settings that the configuration waits for.
    tls: Vec<String>,
    /// The error of the first unusable one.
    tls_refusal: Option<String>,
}

impl ColumnReads {
    /// Whether columns of remotes are being read.
    pub(super) fn awaits_remotes(&self) -> bool {
        !self.reads.is_empty()
    }

    /// Notes the error of a read that the configuration waits for.
    pub(super) fn refuse_remote(&mut self, error: String) {
        self.bad_remotes.push(error);
    }

    /// Takes the outcome of all reads of remotes that the configuration has waited for.
    ///
    /// # Errors
    /// The error of each column that is not found, each on its own line.
    pub(super) fn remotes_outcome(&mut self) -> Result<(), String> {
        let bad = std::mem::take(&mut self.bad_remotes);
        if bad.is_empty() {
            Ok(())
        } else {
            Err(bad.join("\n"))
        }
    }

    /// The configuration waits for a column with a TLS setting.
    pub(super) fn await_tls(&mut self, column: &str) {
        self.tls.push(column.to_owned());
    }

    /// Whether such columns are still to be read and none has failed.
    pub(super) fn awaits_tls(&self) -> bool {
        !self.tls.is_empty() && self.tls_refusal.is_none()
    }

    /// A column with a TLS setting has been read. Returns whether the configuration waited for it.
    pub(super) fn end_tls(&mut self, column: &str) -> bool {
        let count = self.tls.len();
        self.tls.retain(|waiting| waiting != column);
        self.tls.len() < count
    }

    /// Notes that a column with a TLS setting, which the configuration waits for, is unusable.
    pub(super) fn refuse_tls(&mut self, error: String) {
        self.tls_refusal.get_or_insert(error);
    }

    /// Takes the error of the first unusable column with a TLS setting.
    pub(super) fn tls_outcome(&mut self) -> Result<(), String> {
        self.tls_refusal.take().map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_unusable_column_ends_the_wait() {
        let mut columns = ColumnReads::default();
        columns.await_tls("db:A,T,key");
        columns.await_tls("db:A,T,ca");
        assert!(columns.awaits_tls());
        assert!(!columns.end_tls("db:A,T,other"), "nobody waits for it");
        assert!(columns.end_tls("db:A,T,key"));
        columns.refuse_tls("no column".to_owned());
        assert!(!columns.awaits_tls(), "the other column cannot help");
        assert_eq!(columns.tls_outcome(), Err("no column".to_owned()));
        assert_eq!(columns.tls_outcome(), Ok(()));
    }

    #[test]
    fn every_error_of_a_remote_has_its_line() {
        let mut columns = ColumnReads::default();
        assert_eq!(columns.remotes_outcome(), Ok(()));
        columns.refuse_remote("one".to_owned());
        columns.refuse_remote("two".to_owned());
        assert_eq!(columns.remotes_outcome(), Err("one\ntwo".to_owned()));
        assert_eq!(columns.remotes_outcome(), Ok(()));
    }
}
