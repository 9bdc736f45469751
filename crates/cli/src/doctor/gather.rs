//! Collects the facts that the checks judge. Only this part of the doctor has effects.
//!
//! Everything is optional: what cannot be read in time stays unknown.

use std::fs;
use std::path::Path;

use corvid_net::clock;

use super::{Disk, Extra, Facts};
use crate::failure::Failure;
use crate::fleet::{self, Look};
use crate::grammar::chain::Invocation;
use crate::settings::Settings;
use corvid_tools::status::document;
use corvid_tools::status::source::{Control, Source, Status};

/// The facts about these servers, or those of the settings if there are none.
///
/// # Errors
/// A name of a server is unknown.
pub(crate) fn facts(
    invocation: &Invocation,
    servers: &[String],
    settings: &Settings,
) -> Result<Facts, Failure> {
    let fleet = fleet::find(invocation, servers, settings)?;
    let extras: Vec<Extra> = fleet.looks.iter().map(extra).collect();
    Ok(Facts {
        own_expiry_s: fleet.credentials.certificate_expiry_s(),
        now_s: clock::wall_ms() / 1000,
        extras,
        fleet,
    })
}

/// The facts that the server's machine and its pages tell.
fn extra(look: &Look) -> Extra {
    let Some(status) = &look.status else {
        return Extra::default();
    };
    let mut extra = Extra {
        metrics: pages(status).and_then(|pages| {
            let body = pages.page("/metrics").ok()?;
            Some(String::from_utf8_lossy(&body).into_owned())
        }),
        ..Extra::default()
    };
    let Some(path) = status.source.control() else {
        return extra;
    };
    if let Ok(mut control) = Control::open(path) {
        extra.log_levels = control.call("vlog/list", &[]).ok().and_then(Result::ok);
    }
    extra.memory_bytes = memory();
    for (name, database) in document::databases(&status.document) {
        let file = document::text(database, "file").map(Path::new);
        if let Some(disk) = file.and_then(disk) {
            extra.disks.insert(name.to_owned(), disk);
        }
    }
    extra
}

/// The pages of a server: where its status comes from, or where its setting says.
#[must_use]
pub(crate) fn pages(status: &Status) -> Option<Source> {
    if let Source::Pages(_) = &status.source {
        return Some(status.source.clone());
    }
    let settings = status.document.get("settings")?;
    let address = settings.get("metrics-listen")?.as_str()?;
    match address.split_once(':') {
        // Several addresses, each for a database.
        _ if address.contains('=') => None,
        None => None,
        Some(("unix", path)) => path.starts_with('/').then(|| Source::pages(address)),
        Some(("" | "0.0.0.0", port)) => Some(Source::pages(&format!("127.0.0.1:{port}"))),
        Some(_) => Some(Source::pages(&address.replace("[::]", "[::1]"))),
    }
}

/// The memory of this machine, bytes.
fn memory() -> Option<i64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: i64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some(kib.saturating_mul(1024))
}

/// The file system of a file.
fn disk(file: &Path) -> Option<Disk> {
    let room = rustix::fs::statvfs(file).ok()?;
    let bytes = |blocks: u64| i64::try_from(blocks.saturating_mul(room.f_frsize)).ok();
    Some(Disk {
        free_bytes: bytes(room.f_bavail)?,
        bytes: bytes(room.f_blocks)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::tests::look;

    #[test]
    fn the_setting_says_where_the_pages_are() {
        let at = |address: &str| {
            let status =
                format!(r#"{{"databases":[],"settings":{{"metrics-listen":"{address}"}}}}"#);
            let status = look("", &[], Some(&status)).status.unwrap();
            pages(&status).map(|source| source.to_string())
        };
        assert_eq!(at("127.0.0.1:1").as_deref(), Some("http://127.0.0.1:1"));
        assert_eq!(at(":1").as_deref(), Some("http://127.0.0.1:1"));
        assert_eq!(at("[::]:1").as_deref(), Some("http://[::1]:1"));
        assert_eq!(at("unix:/run/x").as_deref(), Some("unix:/run/x"));
        assert_eq!(at("none"), None);
        assert_eq!(at("A=:1,B=:2"), None);
    }
}
