//! A moment among many segments, found by its time and by counting commits back.

use std::time::{SystemTime, UNIX_EPOCH};

use super::{Setup, WRITTEN, beside, commit, compact, figures, offline_state_at, state_at, titles};
use crate::error::Error;
use crate::figure::Figure;

/// The number of commits of each segment.
const COMMITS: u32 = 10;

pub(super) fn measure(setup: &Setup) -> Result<Vec<Figure>, Error> {
    let segments = setup.scale.pick(100, 1_000);
    let server = setup.serve()?;
    server.control("ovsdb-server/set-setting", &["keep-history", "100G"])?;
    let address = server.address();
    let mut middle_ms = 0;
    for segment in 0..segments {
        if segment == segments / 2 {
            let now = SystemTime::now().duration_since(UNIX_EPOCH);
            middle_ms = now.unwrap_or_default().as_millis();
        }
        commit(address, WRITTEN, COMMITS, u64::from(segment))?;
        compact(&server)?;
    }
    let mut all = Vec::new();
    let at = format!("@{middle_ms}");
    let (took, (), latencies) = beside(address, || state_at(address, &at))?;
    all.extend(figures(
        titles!("one of many segments, by a time"),
        (took, latencies),
    ));
    let at = format!("HEAD~{}", segments / 2 * COMMITS);
    let (took, (), latencies) = beside(address, || state_at(address, &at))?;
    all.extend(figures(
        titles!("one of many segments, by a number of commits"),
        (took, latencies),
    ));
    all.extend(offline_state_at(setup, &server, &at)?);
    Ok(all
        .into_iter()
        .map(|figure| figure.at("segments", segments))
        .collect())
}
