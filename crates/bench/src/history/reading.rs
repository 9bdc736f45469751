//! States of the past and the commits of one row, from the present file and from the segment that
//! it has become; and a client that was away.

use std::time::Duration;

use corvid_json::Value;

use super::{
    Setup, WRITTEN, accepted, beside, commit, commits_of_row, compact, figures, keeping,
    offline_state_at, state_at, titles,
};
use crate::error::Error;
use crate::figure::Figure;
use crate::server::Server;

/// The commits that a client lacks that was away.
const LACKED: u32 = 20_000;
/// The rows that these commits have changed. The difference is sent only if it is smaller than the
/// contents.
const CHANGED: u32 = 1_000;

pub(super) fn measure(setup: &Setup) -> Result<Vec<Figure>, Error> {
    let commits = setup.commits();
    let server = setup.serve()?;
    server.control("ovsdb-server/set-setting", &["keep-history", "100G"])?;
    commit(server.address(), WRITTEN, commits - LACKED, 1)?;
    let last = since(&server, "00000000-0000-0000-0000-000000000000")?.1;
    commit(server.address(), CHANGED, LACKED, 2)?;
    let address = server.address();

    let mut all = Vec::new();
    let (took, (is_found, _), latencies) = beside(address, || since(&server, &last))?;
    if !is_found {
        return Err(Error::Refused("the client got all contents".to_owned()));
    }
    all.extend(figures(
        titles!("monitor_cond_since after 20,000 commits"),
        (took, latencies),
    ));
    // The probe commits too, so there are a few more commits than these.
    for back in [10, commits / 2, commits - 10] {
        let at = format!("HEAD~{back}");
        let (took, (), latencies) = beside(address, || state_at(address, &at))?;
        let of_server = figures(
            titles!("a state of the past, from the server"),
            (took, latencies),
        );
        all.extend(of_server.map(|figure| figure.at("commits back", back)));
        let offline = offline_state_at(setup, &server, &at)?;
        all.extend(offline.map(|figure| figure.at("commits back", back)));
    }
    all.extend(of_row(
        &server,
        titles!("all commits of a row, from the file"),
    )?);
    compact(&server)?;
    keeping::segment(&server)?;
    all.extend(of_row(
        &server,
        titles!("all commits of a row, from a segment"),
    )?);
    Ok(all)
}

fn of_row(server: &Server, titles: [&'static str; 3]) -> Result<Vec<Figure>, Error> {
    let address = server.address();
    let (took, (count, first), latencies) = beside(address, || commits_of_row(address))?;
    let mut all = figures(titles, (took, latencies)).to_vec();
    let seconds = |time: Duration| time.as_secs_f64();
    all.push(Figure::lower("the first of them", "s", seconds(first)).digits(3));
    all.push(Figure::plain("their number", "", count as f64).digits(0));
    Ok(all)
}

/// Monitors the table from a commit on. Returns whether the server knew the commit, and the id of
/// the last one.
fn since(server: &Server, commit: &str) -> Result<(bool, String), Error> {
    let reply = server.address().request(&format!(
        r#"{{"id":0,"method":"monitor_cond_since","params":["Bench","m",{{"Item":[{{"columns":["name","addresses"]}}]}},"{commit}"]}}"#
    ))?;
    accepted(&reply)?;
    let result = reply.get("result").and_then(Value::as_array);
    match result {
        Some([is_found, last, _]) => Ok((
            is_found.as_bool() == Some(true),
            last.as_str().unwrap_or_default().to_owned(),
        )),
        _ => Err(Error::Refused("a reply of another form".to_owned())),
    }
}
