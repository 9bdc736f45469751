//! File names are bytes: two names that are not UTF-8 are two files.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::process::{Command, Output};

use crate::tool::sandbox::{OURS, Sandbox};

const SCHEMA: &[u8] = br#"{"name":"D","tables":{"t":{"columns":{"i":{"type":"integer"}}}}}"#;

fn run(sandbox: &Sandbox, words: &[&[u8]]) -> Output {
    let words = words.iter().map(|word| OsStr::from_bytes(word));
    Command::new(OURS)
        .args(words)
        .current_dir(sandbox.path("."))
        .output()
        .expect("a program")
}

#[test]
fn names_that_are_not_utf8_are_different_files() {
    let sandbox = Sandbox::new();
    sandbox.write("s", SCHEMA);
    let names: [&[u8]; 3] = [b"gr\xfcn.db", b"gr\xf6n.db", "gr\u{fffd}n.db".as_bytes()];
    for (number, name) in names.iter().enumerate() {
        let created = run(&sandbox, &[b"create", name, b"s"]);
        assert!(created.status.success(), "{created:?}");
        for _ in 0..=number {
            let insert = br#"["D",{"op":"insert","table":"t","row":{}}]"#;
            let inserted = run(&sandbox, &[b"transact", name, insert]);
            assert!(inserted.status.success(), "{inserted:?}");
        }
    }
    for (number, name) in names.iter().enumerate() {
        let path = sandbox.path(".").join(OsStr::from_bytes(name));
        assert!(path.exists(), "{path:?}");
        let select = br#"["D",{"op":"select","table":"t","where":[],"columns":["_uuid"]}]"#;
        let selected = run(&sandbox, &[b"query", name, select]);
        let rows = String::from_utf8_lossy(&selected.stdout)
            .matches("\"_uuid\"")
            .count();
        assert_eq!(rows, number + 1, "{selected:?}");
        let lock = [b".", *name, b".~lock~"].concat();
        let lock = sandbox.path(".").join(OsStr::from_bytes(&lock));
        assert!(lock.exists(), "{lock:?}");
    }
    let compacted = run(&sandbox, &[b"compact", names[0], b"\xe4.db"]);
    assert!(compacted.status.success(), "{compacted:?}");
    assert!(
        sandbox
            .path(".")
            .join(OsStr::from_bytes(b"\xe4.db"))
            .exists()
    );
}
