//! Commits with and without a policy, compactions, and the compression of the file that a
//! compaction has replaced.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use super::{ROWS, Setup, WRITTEN, beside, commit, compact, figures, titles};
use crate::error::Error;
use crate::figure::Figure;
use crate::server::Server;

/// How often the folder of the history is looked at.
const WATCH_EVERY: Duration = Duration::from_millis(10);

pub(super) fn measure(setup: &Setup) -> Result<Vec<Figure>, Error> {
    let commits = setup.commits();
    let mut all = Vec::new();
    let plain = setup.serve()?;
    let without = commit(plain.address(), WRITTEN, commits, 1)?.as_secs_f64();
    let (took, (), latencies) = beside(plain.address(), || compact(&plain))?;
    let compaction = figures(titles!("a compaction without a policy"), (took, latencies));
    drop(plain);

    let server = setup.serve()?;
    server.control("ovsdb-server/set-setting", &["keep-history", "100G"])?;
    let with = commit(server.address(), WRITTEN, commits, 1)?.as_secs_f64();
    all.push(Figure::lower("commits, with a policy", "s", with).at("commits", commits));
    all.push(Figure::lower("commits, with a policy / without", "", with / without).digits(2));
    all.extend(compaction);
    let (took, (), latencies) = beside(server.address(), || compact(&server))?;
    all.extend(figures(
        titles!("a compaction with a policy"),
        (took, latencies),
    ));
    let (took, bytes, latencies) = beside(server.address(), || segment(&server))?;
    all.extend(figures(
        titles!("the compression of the replaced file"),
        (took, latencies),
    ));
    let each = bytes as f64 / f64::from(commits);
    all.push(Figure::lower("the segment", "bytes/commit", each).digits(0));
    all.push(Figure::plain("rows of the table", "", f64::from(ROWS)).digits(0));
    Ok(all)
}

/// Waits until the replaced file is compressed, and returns the length of the segment in bytes.
pub(super) fn segment(server: &Server) -> Result<u64, Error> {
    let file = server.file().ok_or(Error::NeedsProgram)?;
    let mut folder = file.into_os_string();
    folder.push(".history");
    loop {
        let lengths = lengths(Path::new(&folder))?;
        if let [Some(bytes)] = lengths[..] {
            return Ok(bytes);
        }
        thread::sleep(WATCH_EVERY);
    }
}

/// The length of each file of a history; `None` for one that is not compressed, or not yet whole.
fn lengths(folder: &Path) -> Result<Vec<Option<u64>>, Error> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let is_segment = entry.file_name().to_string_lossy().ends_with(".zst");
        // A file that is gone meanwhile was renamed or removed, so another look is needed.
        let length = entry.metadata().ok().map(|metadata| metadata.len());
        found.push(length.filter(|_| is_segment));
    }
    Ok(found)
}
