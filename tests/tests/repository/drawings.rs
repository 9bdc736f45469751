//! The drawings in `docs/images` must be readable by everybody: as text, in light and dark mode,
//! without scripts and without anything that is fetched from elsewhere. Pictures of pages, which
//! `make screenshots` takes, must be small.
//!
//! Reads drawings and documents as text. The rule is a function from a text to complaints, and is
//! tested with the snippets below.

use std::fs;
use std::path::{Path, PathBuf};

use super::links::{collect, targets};

/// The maximum length of a drawing, bytes.
const BYTES_MAX: usize = 20_000;

/// The maximum length of a picture of a page, bytes.
const PICTURE_BYTES_MAX: usize = 150_000;

/// The first bytes of a PNG file.
const PNG: &[u8] = b"\x89PNG\r\n";

/// Texts that each drawing must have, with the reasons.
const NEEDED: [(&str, &str); 5] = [
    ("<title", "a name for screen readers"),
    ("<desc", "a description for screen readers"),
    ("viewBox=\"0 0 ", "a size that scales"),
    ("font-family=\"sans-serif\"", "a font that every system has"),
    (
        "@media (prefers-color-scheme: dark)",
        "colours for dark mode",
    ),
];

/// Texts that no drawing may have, with the reasons.
const FORBIDDEN: [(&str, &str); 6] = [
    ("<script", "scripts do not run in images"),
    ("<image", "images in images are not loaded"),
    ("<foreignObject", "only browsers draw it"),
    ("@import", "nothing is fetched"),
    ("href=\"http", "nothing is fetched"),
    (
        "style=\"",
        "colours belong into the style sheet, which dark mode changes",
    ),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

#[test]
fn drawings_are_readable_and_shown() {
    let mut pages = Vec::new();
    collect(&root(), false, &mut pages);
    collect(&root().join("docs"), true, &mut pages);
    let shown: Vec<String> = pages
        .iter()
        .filter_map(|page| fs::read_to_string(page).ok())
        .flat_map(|text| targets(&text))
        .filter(|target| target.is_image)
        .map(|target| target.link)
        .collect();
    let mut complaints = Vec::new();
    let mut count = 0;
    let folder = fs::read_dir(root().join("docs/images")).expect("docs/images");
    for path in folder.flatten().map(|entry| entry.path()) {
        let name = path.file_name().unwrap_or_default().display().to_string();
        let bytes = fs::read(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
        count += 1;
        let found = match bytes.starts_with(PNG) {
            true => check_picture(&bytes),
            false => check(&String::from_utf8_lossy(&bytes)),
        };
        complaints.extend(found.iter().map(|it| format!("{name}: {it}")));
        if !shown
            .iter()
            .any(|link| link.ends_with(&format!("images/{name}")))
        {
            complaints.push(format!("{name}: no page shows it"));
        }
    }
    assert!(count > 5, "only {count} drawings");
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

/// Returns what is wrong with a picture of a page.
fn check_picture(bytes: &[u8]) -> Vec<String> {
    let is_long = bytes.len() > PICTURE_BYTES_MAX;
    let complaint = || format!("{} bytes, not {PICTURE_BYTES_MAX} at most", bytes.len());
    is_long.then(complaint).into_iter().collect()
}

/// Returns what is wrong with a drawing.
fn check(text: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    if text.len() > BYTES_MAX {
        complaints.push(format!("{} bytes, not {BYTES_MAX} at most", text.len()));
    }
    let missing = NEEDED.iter().filter(|(part, _)| !text.contains(part));
    complaints.extend(missing.map(|(part, why)| format!("lacks {part}: {why}")));
    let present = FORBIDDEN.iter().filter(|(part, _)| text.contains(part));
    complaints.extend(present.map(|(part, why)| format!("has {part}: {why}")));
    let attributes = [" fill=\"", " stroke=\""];
    let is_fixed = |colour: &&str| attributes.iter().any(|it| colour.contains(it));
    complaints.extend(
        text.lines()
            .filter(is_fixed)
            .map(|line| format!("a colour that dark mode cannot change: {line}")),
    );
    complaints
}

mod proofs {
    use super::*;

    #[test]
    fn bad_drawings_are_found() {
        let good = "<svg viewBox=\"0 0 9 9\" font-family=\"sans-serif\"><title>a</title><desc>b</desc>\n\
                    <style>@media (prefers-color-scheme: dark) {}</style>\n<rect class=\"box\"/></svg>";
        assert!(check(good).is_empty(), "{:?}", check(good));
        assert_eq!(
            check(&good.replace("class=\"box\"", "fill=\"red\"")).len(),
            1
        );
        assert_eq!(check(&good.replace("<rect", "<script/><rect")).len(), 1);
        assert_eq!(check(&good.replace("desc", "g")).len(), 1);
        assert_eq!(check_picture(&[0; PICTURE_BYTES_MAX + 1]).len(), 1);
        let long = good.to_owned() + &" ".repeat(BYTES_MAX);
        assert_eq!(check(&long).len(), 1);
    }
}
