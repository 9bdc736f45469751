//! Makes a standalone database file from a schema and appends records to it, without any tool.
//!
//! A file begins with one record that contains the schema (`docs/spec/storage.md` 1). The other
//! records are transactions (2). Each record has a header line `OVSDB JSON LENGTH SHA1` and a body.
//! Length and hash include the line feed at the end of the body. Called by [`crate::server`].

use std::fs;
use std::io;
use std::path::Path;

use serde_json::Value;
use sha1::{Digest, Sha1};

/// Writes a new database file with the given schema and no rows.
///
/// # Errors
///
/// An error of the operating system, for example if the file exists.
pub fn create(path: &Path, schema: &Value) -> io::Result<()> {
    append_to(&mut fs::File::create_new(path)?, schema)
}

/// Appends a record to a database file that no server has open.
///
/// # Errors
///
/// An error of the operating system.
pub fn append(path: &Path, record: &Value) -> io::Result<()> {
    append_to(&mut fs::File::options().append(true).open(path)?, record)
}

fn append_to(file: &mut fs::File, record: &Value) -> io::Result<()> {
    let body = format!("{record}\n");
    let hash: String = Sha1::digest(body.as_bytes())
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    io::Write::write_all(
        file,
        format!("OVSDB JSON {} {hash}\n{body}", body.len()).as_bytes(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_counts_and_hashes_the_body_with_its_line_feed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("d.db");
        create(&path, &serde_json::json!({"name": "D", "tables": {}})).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(
            text,
            "OVSDB JSON 25 7289d6dc5f6c7ea0bf9dab5f021a1e966f964915\n{\"name\":\"D\",\"tables\":{}}\n"
        );
    }
}
