//! The file with the lines of earlier shells: `$XDG_STATE_HOME/corvid/history`.

use std::ffi::OsString;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

/// Limit on the number of lines.
pub(crate) const LINES_MAX: usize = 5_000;
/// Lines may contain passwords: the folder is the user's alone.
const FOLDER_MODE: u32 = 0o700;

/// The file, whose folder exists; `None` without a place for it.
#[must_use]
pub(crate) fn file() -> Option<PathBuf> {
    let variable = |name: &str| std::env::var_os(name);
    let folder = folder(variable("XDG_STATE_HOME"), variable("HOME"))?;
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(FOLDER_MODE)
        .create(&folder)
        .ok()?;
    Some(folder.join("history"))
}

/// The folder, from the two variables. Relative paths count as unset, as the specification of the
/// base directories asks.
fn folder(state: Option<OsString>, home: Option<OsString>) -> Option<PathBuf> {
    let absolute = |value: OsString| Some(PathBuf::from(value)).filter(|path| path.is_absolute());
    let state = state.and_then(absolute);
    let base = state.or_else(|| Some(home.and_then(absolute)?.join(".local/state")))?;
    Some(base.join("corvid"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_is_in_the_state_of_the_user() {
        let of = |state: Option<&str>, home: Option<&str>| {
            folder(state.map(Into::into), home.map(Into::into))
                .map(|path| path.display().to_string())
        };
        assert_eq!(of(Some("/s"), Some("/h")).as_deref(), Some("/s/corvid"));
        for unset in [None, Some(""), Some("relative")] {
            assert_eq!(
                of(unset, Some("/h")).as_deref(),
                Some("/h/.local/state/corvid")
            );
        }
        assert_eq!(of(None, None), None);
    }
}
