//! Tests the program `ovsdb-idlc`: its commands, options and error messages.

use std::path::PathBuf;
use std::process::{Command, Output};

/// A directory with files, which is removed when this is dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(files: &[(&str, &str)]) -> Folder {
        let name = format!("corvid-idlc-{}-{}", std::process::id(), files.len());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).expect("written");
        for (name, text) in files {
            std::fs::write(path.join(name), text).expect("written");
        }
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn run(arguments: &[&str]) -> (bool, String, String) {
    let program = Command::new(env!("CARGO_BIN_EXE_ovsdb-idlc"))
        .args(arguments)
        .output();
    let Output {
        status,
        stdout,
        stderr,
    } = program.expect("it runs");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    (status.success(), text(stdout), text(stderr))
}

#[test]
fn a_schema_becomes_code_with_annotations_or_without() {
    let folder = Folder::new(&[
        (
            "s",
            r#"{"name":"Zoo","version":"1.0.0","tables":{"Cat":{"columns":{"name":{"type":"string"}}}}}"#,
        ),
        (
            "a",
            "s[\"idlPrefix\"] = \"zoo_\"\ns[\"idlHeader\"] = \"<zoo.h>\"\n",
        ),
    ]);
    let at = folder.0.display().to_string();
    let (is_fine, merged, _) = run(&["-C", &at, "annotate", "s", "a"]);
    assert!(
        is_fine && merged.contains(r#""idlHeader":"<zoo.h>""#),
        "{merged}"
    );
    std::fs::write(folder.0.join("idl"), merged).unwrap();
    let (is_fine, annotated, _) = run(&[&format!("--directory={at}"), "rust", "idl"]);
    let (is_fine_too, plain, _) = run(&["rust", &format!("{at}/s")]);
    assert!(is_fine && is_fine_too && annotated == plain);
    assert!(plain.contains("pub struct Cat(RowId);"), "{plain}");
}

#[test]
fn what_cannot_be_done_is_said() {
    let folder = Folder::new(&[("bad", "{}")]);
    let bad = folder.0.join("bad").display().to_string();
    for (arguments, part) in [
        (&[][..], "missing command name"),
        (&["dance"], "unknown command 'dance'"),
        (&["rust"], "wrong number of arguments"),
        (&["-x"], "invalid option -- 'x'"),
        (&["-C"], "option requires an argument -- 'C'"),
        (
            &["rust", "/nowhere/at/all"],
            "/nowhere/at/all: No such file",
        ),
        (&["rust", &bad], "bad: not a schema"),
    ] {
        let (is_fine, out, error) = run(arguments);
        assert!(
            !is_fine && out.is_empty() && error.contains(part),
            "{arguments:?}: {error}"
        );
    }
    let (is_fine, help, _) = run(&["--help"]);
    assert!(is_fine && help.contains("annotate SCHEMA ANNOTATIONS"));
    let (is_fine, version, _) = run(&["-V"]);
    assert!(is_fine && version.starts_with("ovsdb-idlc (Open vSwitch) "));
}
