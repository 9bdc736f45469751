//! The pictures in the documents are what pages look like: `make screenshots` is repeated and
//! compared.
//!
//! Both pictures are made smaller by eight, so that letters blur into grey and other UUIDs, times
//! and a port that goes down count little. A point differs if a colour differs by an eighth of its
//! range; few of those that are not empty in both may. Other fonts than those of the pictures move
//! everything: then the test is skipped loudly.

use std::path::{Path, PathBuf};
use std::process::Command;

use corvid_tests::binary;
use corvid_tests::peer;
use serde_json::json;

use super::browser::browser;

/// The share of the points with contents that may differ, per cent. An empty page differs in two
/// thirds.
const DIFFERENT_MAX: f64 = 10.0;

/// The widths of a text in the two fonts of the pages, as they were when the pictures were taken.
const TEXT_WIDTHS: [f64; 2] = [203.89, 1565.23];

const COMPARE: &str = "
    window.share = undefined;
    const small = async (data) => {
        const image = new Image();
        image.src = 'data:image/png;base64,' + data;
        await image.decode();
        const canvas = document.createElement('canvas');
        canvas.width = Math.round(image.width / 8);
        canvas.height = Math.round(image.height / 8);
        const context = canvas.getContext('2d');
        context.imageSmoothingQuality = 'high';
        context.drawImage(image, 0, 0, canvas.width, canvas.height);
        return context.getImageData(0, 0, canvas.width, canvas.height);
    };
    Promise.all([small(one), small(other)]).then(([one, other]) => {
        if (one.width !== other.width || one.height !== other.height) { window.share = 100; return; }
        let different = 0;
        let drawn = 0;
        for (let at = 0; at < one.data.length; at += 4) {
            const by = [0, 1, 2].map((channel) => Math.abs(one.data[at + channel] - other.data[at + channel]));
            if (Math.max(...by) > 32) different += 1;
            const isDrawn = (data) => [0, 1, 2].some((channel) => data[at + channel] < 239);
            if (isDrawn(one.data) || isDrawn(other.data)) drawn += 1;
        }
        window.share = different * 100 / Math.max(drawn, 1);
    }, (error) => { window.share = String(error); });";

fn base64(file: &Path) -> String {
    let output = Command::new("base64").arg("-w0").arg(file).output();
    let output = output.expect("base64");
    assert!(output.status.success(), "{}: {output:?}", file.display());
    String::from_utf8(output.stdout).expect("text")
}

/// The pictures that are compared. That of the page of servers has figures that differ each time.
const NAMES: [&str; 3] = ["network", "table", "row"];

#[test]
fn pictures_of_the_documents_are_current() {
    let Some(browser) = browser() else {
        return;
    };
    // Fonts of constant width differ by little, so they are measured large.
    let widths = browser
        .run(
            "const context = document.createElement('canvas').getContext('2d');
            const fonts = ['14px system-ui, sans-serif', '100px \"Liberation Mono\", monospace'];
            return fonts.map((font) => {
                context.font = font;
                return context.measureText('Logical network 0123456789').width;
            })",
        )
        .unwrap();
    let widths = widths.as_array().expect("widths").iter();
    let widths: Vec<f64> = widths
        .map(|width| width.as_f64().expect("a width"))
        .collect();
    let mut pairs = widths.iter().zip(TEXT_WIDTHS);
    if pairs.any(|(width, taken)| (width - taken).abs() > 0.5) {
        peer::say_skipped(&format!(
            "pictures of the console: other fonts than those of the pictures ({widths:?} instead of {TEXT_WIDTHS:?})"
        ));
        return;
    }
    let trial = Command::new("unshare")
        .args(["--net", "--pid", "--mount-proc", "--fork", "true"])
        .output();
    if !trial.is_ok_and(|trial| trial.status.success()) {
        peer::say_skipped("pictures of the console: this machine lets nobody make namespaces");
        return;
    }
    let tests = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().expect("a folder");
    let demo = binary::bin("corvid-demo");
    let taken = Command::new(tests.join("screenshots"))
        .arg(folder.path())
        .args(NAMES)
        .env("CORVID_BIN_DIR", demo.parent().expect("a folder"))
        .output()
        .expect("the script");
    assert!(taken.status.success(), "{taken:?}");
    let mut complaints = Vec::new();
    // The page of servers has the sessions and the rates of the moment, so it differs each time.
    for name in NAMES {
        let name = format!("console-{name}.png");
        let one = json!(base64(&tests.join("../docs/images").join(&name)));
        let other = json!(base64(&folder.path().join(&name)));
        browser
            .run(&format!(
                "const one = {one}; const other = {other}; {COMPARE}"
            ))
            .unwrap();
        browser
            .wait_for("return window.share !== undefined")
            .unwrap();
        let share = browser.run("return window.share").unwrap();
        println!("{name}: {share} %");
        if !share.as_f64().is_some_and(|share| share <= DIFFERENT_MAX) {
            complaints.push(format!("{name}: {share} % differ"));
        }
    }
    assert!(
        complaints.is_empty(),
        "{}: look at the page, then `make screenshots`",
        complaints.join(", ")
    );
}
