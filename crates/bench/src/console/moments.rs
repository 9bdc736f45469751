//! The past of a database with 10,000 commits: pages of changes, of a table at a moment, and of the
//! differences between two moments in the picture.

use super::{Setup, median_ms, ms, transact};
use crate::clients::topology;
use crate::database_file;
use crate::error::Error;
use crate::figure::Figure;

const COMMITS: u32 = 10_000;
const PORTS: u32 = 2400;
const PORTS_EACH: u32 = 40;
/// Pages of each kind; their median is reported.
const PAGES: usize = 5;

pub(super) fn measure(setup: &Setup) -> Result<Vec<Figure>, Error> {
    let directory = tempfile::Builder::new().prefix("corvid-bench-").tempdir()?;
    let file = directory.path().join("network.db");
    topology::write_ports_of(&file, PORTS, PORTS_EACH)?;
    let server = setup.serve(&file)?;
    server.control("ovsdb-server/set-setting", &["keep-history", "1G"])?;
    for number in 0..COMMITS {
        let uuid = database_file::uuid(number % PORTS);
        let row = format!(
            r#"{{"op":"update","table":"Logical_Switch_Port","where":[["_uuid","==",["uuid","{uuid}"]]],"row":{{"up":{}}}}}"#,
            (number / PORTS).is_multiple_of(2)
        );
        transact(server.address(), "OVN_Northbound", &row)?;
    }
    let console = setup.console(&server)?;
    console.page_with("/db/bench/network", "switch-59")?;
    let ago = COMMITS - 10;
    let pages = [
        (
            "the latest changes",
            "changes".to_owned(),
            "class=\"commit\"",
        ),
        (
            "changes of the table since 40 commits ago",
            "changes?since=HEAD~40".to_owned(),
            "class=\"commit\"",
        ),
        (
            "differences from 9,990 commits ago",
            format!("changes?from=HEAD~{ago}"),
            "differences",
        ),
        (
            "a table 9,990 commits ago",
            format!("table/Logical_Switch_Port?at=HEAD~{ago}"),
            "<tr data-uuid",
        ),
        (
            "the picture 9,990 commits ago",
            format!("network?at=HEAD~{ago}"),
            "switch-59",
        ),
        (
            "differences from then in the picture",
            format!("network?before=HEAD~{ago}"),
            "switch-59",
        ),
    ];
    let figures = pages.into_iter().map(|(title, path, wanted)| {
        let path = format!("/db/bench/{path}");
        let took = median_ms(PAGES, |_| Ok(console.page_with(&path, wanted)?.took))?;
        Ok(Figure::lower(title, "ms", took).at("commits", COMMITS))
    });
    let mut figures: Vec<Figure> = figures.collect::<Result<_, Error>>()?;
    let again = console.page("/db/bench/network")?;
    figures.push(Figure::lower("the picture now", "ms", ms(again.took)).at("commits", COMMITS));
    Ok(figures)
}
