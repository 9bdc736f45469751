//! The tree of files of a package. Every file has the right mode, whatever the umask is.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Outcome;

/// A directory that represents `/`.
pub(crate) struct Tree {
    root: PathBuf,
}

impl Tree {
    /// Creates an empty tree. Existing files are removed.
    pub(crate) fn new(root: PathBuf) -> Outcome<Tree> {
        if root.exists() {
            fs::remove_dir_all(&root)?;
        }
        make_directory(&root)?;
        Ok(Tree { root })
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Writes a file.
    pub(crate) fn write(&self, path: &str, mode: u32, content: &[u8]) -> Outcome<PathBuf> {
        let place = self.root.join(path);
        let mut missing: Vec<&Path> = place
            .ancestors()
            .skip(1)
            .take_while(|directory| !directory.exists())
            .collect();
        while let Some(directory) = missing.pop() {
            make_directory(directory)?;
        }
        fs::write(&place, content)?;
        fs::set_permissions(&place, fs::Permissions::from_mode(mode))?;
        Ok(place)
    }

    /// Writes a compressed file, as is usual for manual pages and changelogs, without names and
    /// dates.
    pub(crate) fn write_compressed(&self, path: &str, content: &[u8]) -> Outcome {
        let place = self.write(path, 0o644, content)?;
        run(Command::new("gzip").arg("-9n").arg(&place))
    }

    /// Returns the paths of all files, sorted.
    pub(crate) fn files(&self) -> Outcome<Vec<PathBuf>> {
        files_below(&self.root)
    }
}

/// Returns a file itself, or all files below a directory, sorted.
pub(crate) fn files_below(path: &Path) -> Outcome<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut left = vec![path.to_owned()];
    while let Some(path) = left.pop() {
        if path.is_dir() {
            for entry in fs::read_dir(path)? {
                left.push(entry?.path());
            }
        } else {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

fn make_directory(path: &Path) -> Outcome {
    fs::create_dir_all(path)?;
    Ok(fs::set_permissions(
        path,
        fs::Permissions::from_mode(0o755),
    )?)
}

/// Runs a program and waits for its end. It is an error if the program fails.
pub(crate) fn run(command: &mut Command) -> Outcome {
    let name = command.get_program().to_string_lossy().into_owned();
    let status = command
        .status()
        .map_err(|error| format!("{name}: {error}"))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("{name}: {status}").into())
    }
}

/// Runs a program and returns its standard output.
pub(crate) fn output(command: &mut Command) -> Outcome<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command
        .output()
        .map_err(|error| format!("{name}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{name}: {}", output.status).into());
    }
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}
