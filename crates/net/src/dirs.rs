//! The default directories of files, and the completion of relative names.
//!
//! Each directory comes from its environment variable (an empty one counts as unset, except
//! `OVS_SYSCONFDIR`), else from a default that can be changed at build time with `CORVID_RUNDIR`,
//! `CORVID_LOGDIR`, `CORVID_SYSCONFDIR` and `CORVID_PKGDATADIR`. Variables are read on every call,
//! so tests may set them.

use std::env;
use std::path::{Path, PathBuf};

use crate::os_name;

/// The default of [`run`].
pub const RUNDIR: &str = built_in(option_env!("CORVID_RUNDIR"), "/var/run/openvswitch");
/// The default of [`log`].
pub const LOGDIR: &str = built_in(option_env!("CORVID_LOGDIR"), "/var/log/openvswitch");
/// The default parent of [`db`].
pub const SYSCONFDIR: &str = built_in(option_env!("CORVID_SYSCONFDIR"), "/etc");
/// The default of [`pkgdata`].
pub const PKGDATADIR: &str = built_in(option_env!("CORVID_PKGDATADIR"), "/usr/share/openvswitch");

const fn built_in(chosen: Option<&'static str>, default: &'static str) -> &'static str {
    match chosen {
        Some(directory) => directory,
        None => default,
    }
}

/// The directory of pidfiles, sockets and relative socket names (`OVS_RUNDIR`).
#[must_use]
pub fn run() -> PathBuf {
    from_env("OVS_RUNDIR").unwrap_or_else(|| RUNDIR.into())
}

/// The directory of log files (`OVS_LOGDIR`).
#[must_use]
pub fn log() -> PathBuf {
    from_env("OVS_LOGDIR").unwrap_or_else(|| LOGDIR.into())
}

/// The directory of databases: `OVS_DBDIR`, else `$OVS_SYSCONFDIR/openvswitch`.
#[must_use]
pub fn db() -> PathBuf {
    from_env("OVS_DBDIR").unwrap_or_else(|| match env::var_os("OVS_SYSCONFDIR") {
        // Concatenated rather than joined as a path: an empty value means the root, as in the
        // reference.
        Some(mut directory) => {
            directory.push("/openvswitch");
            directory.into()
        }
        None => Path::new(SYSCONFDIR).join("openvswitch"),
    })
}

/// The directory of schemas (`OVS_PKGDATADIR`).
#[must_use]
pub fn pkgdata() -> PathBuf {
    from_env("OVS_PKGDATADIR").unwrap_or_else(|| PKGDATADIR.into())
}

fn from_env(variable: &str) -> Option<PathBuf> {
    env::var_os(variable)
        .filter(|value| !value.is_empty())
        .map(PathBuf::from)
}

/// `name` under `directory`, unless `name` is absolute.
#[must_use]
pub fn absolute_under(directory: &Path, name: &str) -> PathBuf {
    // `Path::join` returns an absolute name unchanged.
    directory.join(os_name::path(name))
}
