//! Every page as axe-core judges it, in both colour schemes. Skipped loudly without a browser or
//! without axe-core, which `tests/setup/axe.sh` fetches.

use std::fs;
use std::path::Path;
use std::process::Command;

use corvid_tests::peer;
use serde_json::Value;

use super::Shown;
use super::browser::{address, browser};

/// The SHA-512 digest of the file, which runs in the pages of the console.
const DIGEST: &str = "2f67667c2e8b124450ed7fb5775284040dd07bf13c3af0789124abfa5b8c362945b6e06cbe096b41c74cf6377aba215b788f8fa9ac7e33ab3fbda93fa2489d07";

/// The source of axe-core, if it is there.
fn axe() -> Option<String> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.venv/axe.min.js");
    let digest = Command::new("sha512sum").arg(&file).output();
    let digest = digest.ok().filter(|output| output.status.success());
    let Some(digest) = digest else {
        peer::say_skipped("axe-core is not installed: the accessibility of the console's pages");
        return None;
    };
    let digest = String::from_utf8_lossy(&digest.stdout).into_owned();
    assert!(
        digest.starts_with(DIGEST),
        "{}: another file than the test knows: {digest}",
        file.display()
    );
    fs::read_to_string(file).ok()
}

#[test]
fn axe_finds_nothing_on_any_page() {
    let (Some(axe), Some(browser)) = (axe(), browser()) else {
        return;
    };
    let mut shown = Shown::start(&["--writable"]);
    let (switch, _) = shown.add_switch("sw0", &["p0", "p1", "p1"]);
    shown.page("/db/net/table/Port");
    let mut complaints = Vec::new();
    for scheme in ["light", "dark"] {
        browser.prefer(scheme).unwrap();
        for path in [
            "/".to_owned(),
            "/login".to_owned(),
            "/nothing".to_owned(),
            "/db/net".to_owned(),
            "/db/net/tables".to_owned(),
            "/db/net/network".to_owned(),
            "/db/net/changes".to_owned(),
            "/db/net/servers".to_owned(),
            "/db/net/query".to_owned(),
            "/db/net/query?op=update&table=Port".to_owned(),
            "/db/net/query?op=mutate&table=Port".to_owned(),
            "/db/net/table/Port".to_owned(),
            "/db/net/table/Port?where=name+~".to_owned(),
            "/db/net/table/Port/values/name".to_owned(),
            format!("/db/net/table/Switch/row/{switch}"),
        ] {
            browser.open(&address(&shown, &path)).unwrap();
            browser.run(&axe).unwrap();
            // All of the page, what is folded too.
            browser
                .run(
                    "document.querySelectorAll('details').forEach((one) => { one.open = true; });
                    window.axe.run(document, { resultTypes: ['violations'] }).then(
                        (found) => { window.found = found.violations.map((one) =>
                            [one.id, one.help, one.nodes.map((node) => node.html + ' ' + node.failureSummary).slice(0, 3)]); },
                        (error) => { window.found = [[String(error)]]; });",
                )
                .unwrap();
            browser
                .wait_for("return window.found !== undefined")
                .unwrap();
            let found = browser.run("return window.found").unwrap();
            let found: Vec<Value> = found.as_array().cloned().unwrap_or_default();
            complaints.extend(
                found
                    .into_iter()
                    .map(|one| format!("{path}, {scheme}: {one}")),
            );
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}
