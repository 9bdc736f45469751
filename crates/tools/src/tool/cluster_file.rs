//! The file of a cluster member, open for reading.

use std::path::Path;

use corvid_disk::log_file::OpenMode;
use corvid_log::Magic;
use corvid_log::cluster::{ClusterReader, Header, Record};

use crate::failure::Failure;
use crate::tool::database::DatabaseFile;

/// A member's file, read up to the end of its header.
#[derive(Debug)]
pub(crate) struct ClusterFile {
    /// The file's name, as the user gave it.
    pub(crate) name: String,
    /// Its first record.
    pub(crate) header: Header,
    records: ClusterReader<DatabaseFile>,
}

impl ClusterFile {
    /// Opens a file that must be a member's. The caller shows the progress.
    ///
    /// # Errors
    /// As for [`DatabaseFile::open`]; a standalone database is `cannot identify file type` here.
    pub(crate) fn open(path: &Path) -> Result<ClusterFile, Failure> {
        let file = DatabaseFile::open_quietly(path, OpenMode::ReadOnly)?;
        if file.magic() != Magic::Clustered {
            let name = file.name().to_owned();
            return Err(Failure::format(
                &name,
                corvid_log::FormatError::Unidentified,
            ));
        }
        ClusterFile::new(file)
    }

    /// Reads the header of a file that is known to be a member's.
    ///
    /// # Errors
    /// The record is damaged, or is not a header.
    pub(crate) fn new(file: DatabaseFile) -> Result<ClusterFile, Failure> {
        let name = file.name().to_owned();
        let mut records = ClusterReader::new(file);
        match records.header() {
            Ok(Some(header)) => Ok(ClusterFile {
                header: header?,
                name,
                records,
            }),
            Ok(None) => Err(Failure::new(format!("{name}: unexpected end of file"))),
            Err(error) => Err(Failure::read(&name, &error)),
        }
    }

    /// The next record with its number; `None` at the end.
    ///
    /// # Errors
    /// The record is damaged, or of an unknown kind.
    pub(crate) fn next(&mut self) -> Result<Option<(u64, Record)>, Failure> {
        match self.records.next() {
            Ok(None) => Ok(None),
            Ok(Some(record)) => Ok(Some((self.records.number(), record?))),
            Err(error) => Err(Failure::read(&self.name, &error)),
        }
    }

    /// The records after the header, for callers that distinguish kinds of damage.
    pub(crate) fn records(&mut self) -> &mut ClusterReader<DatabaseFile> {
        &mut self.records
    }
}
