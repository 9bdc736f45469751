//! The default directories of files, and how relative names are completed.
//!
//! Each directory comes from its environment variable (an empty one counts as unset, except `OVS_SYSCONFDIR`), else from
//! a default that can be changed at build time with `CORVID_RUNDIR`, `CORVID_LOGDIR`, `CORVID_SYSCONFDIR` and
//! `CORVID_PKGDATADIR`. Read on every call; nothing is cached, so tests may set the variables.

use std::env;
use std::path::{Path, PathBuf};

use crate::os_name;

/// [`run`], unless its variable is set.
pub const RUNDIR: &str = built_in(option_env!("CORVID_RUNDIR"), "/var/run/openvswitch");
/// [`log`], unless its variable is set.
pub const LOGDIR: &str = built_in(option_env!("CORVID_LOGDIR"), "/var/log/openvswitch");
/// The parent of [`db`], unless a variable is set.
pub const SYSCONFDIR: &str = built_in(option_env!("CORVID_SYSCONFDIR"), "/etc");
/// [`pkgdata`], unless its variable is set.
pub const PKGDATADIR: &str = built_in(option_env!("CORVID_PKGDATADIR"), "/usr/share/openvswitch");

const fn built_in(chosen: Option<&'static str>, default: &'static str) -> &'static str {
    match chosen {
        Some(directory) => directory,
        None => default,
    }
}

/// Pidfiles, sockets and relative socket names (`OVS_RUNDIR`).
#[must_use]
pub fn run() -> PathBuf {
    from_env("OVS_RUNDIR").unwrap_or_else(|| RUNDIR.into())
}

/// Log files (`OVS_LOGDIR`).
#[must_use]
pub fn log() -> PathBuf {
    from_env("OVS_LOGDIR").unwrap_or_else(|| LOGDIR.into())
}

/// Databases: `OVS_DBDIR`, else `$OVS_SYSCONFDIR/openvswitch`.
#[must_use]
pub fn db() -> PathBuf {
    from_env("OVS_DBDIR").unwrap_or_else(|| match env::var_os("OVS_SYSCONFDIR") {
        // Not joined as paths are: an empty one means the root, as in the reference.
        Some(mut directory) => {
            directory.push("/openvswitch");
            directory.into()
        }
        None => Path::new(SYSCONFDIR).join("openvswitch"),
    })
}

/// Schemas (`OVS_PKGDATADIR`).
#[must_use]
pub fn pkgdata() -> PathBuf {
    from_env("OVS_PKGDATADIR").unwrap_or_else(|| PKGDATADIR.into())
}

fn from_env(variable: &str) -> Option<PathBuf> {
    env::var_os(variable)
        .filter(|value| !value.is_empty())
        .map(PathBuf::from)
}

/// `name` under `directory`, unless it is absolute.
#[must_use]
pub fn absolute_under(directory: &Path, name: &str) -> PathBuf {
    // `Path::join` replaces the base by an absolute name.
    directory.join(os_name::path(name))
}
