//! Our server with one database, whose file `a.db` is in a folder of its own.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::database_file;
use crate::process::Process;
use crate::server::Implementation::Corvid;

/// Starts the server with a new database in a new folder. Returns the file, too.
///
/// # Errors
/// The server is not built, or does not start.
pub fn start(schema: &Value, options: &[&str]) -> io::Result<(Process, PathBuf, TempDir)> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("a.db");
    let process = start_in(folder.path(), &file, schema, options)?;
    Ok((process, file, folder))
}

/// Starts the server with a new database in this file.
///
/// # Errors
/// As for [`start`].
pub fn start_in(
    folder: &Path,
    file: &Path,
    schema: &Value,
    options: &[&str],
) -> io::Result<Process> {
    database_file::create(file, schema)?;
    let mut arguments = vec![file.into()];
    arguments.extend(options.iter().map(Into::into));
    let mut process = Process::new(&Corvid.server_binary()?, folder, &arguments);
    process.start()?;
    Ok(process)
}

/// A server with a configuration file, of which one member varies.
#[derive(Debug)]
pub struct Configured {
    /// The server. Its socket is `db.sock` in the folder.
    pub process: Process,
    /// The file of the database.
    pub file: PathBuf,
    /// Where all files are.
    pub folder: TempDir,
    member: String,
}

impl Configured {
    /// Starts the server with this member.
    ///
    /// # Errors
    /// As for [`start`].
    pub fn start(schema: &Value, member: &str, value: &Value) -> io::Result<Configured> {
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("a.db");
        database_file::create(&file, schema)?;
        let option = format!(
            "--config-file={}",
            folder.path().join("config.json").display()
        );
        let program = Corvid.server_binary()?;
        let mut configured = Configured {
            process: Process::without_remote(&program, folder.path(), &[option.into()]),
            file,
            folder,
            member: member.to_owned(),
        };
        configured.write(value)?;
        configured.process.start()?;
        Ok(configured)
    }

    /// Writes the file with another value of the member; null: without the member.
    ///
    /// # Errors
    /// Writing fails.
    pub fn write(&self, value: &Value) -> io::Result<()> {
        let folder = self.folder.path();
        let mut config = json!({
            "remotes": {format!("punix:{}", folder.join("db.sock").display()): null},
            "databases": {self.file.display().to_string(): null},
        });
        if !value.is_null() {
            config[&self.member] = value.clone();
        }
        fs::write(folder.join("config.json"), config.to_string())
    }
}
