//! Options and invalid command lines.

use crate::client::reference::Compare::{Exactly, Status};
use crate::client::reference::compare_all;
use crate::client::reference::fixture::Fixture;

#[test]
fn bad_command_lines_fail_as_in_the_reference() {
    let Some(fixture) = Fixture::start() else {
        return;
    };
    let cases: &[&[&str]] = &[
        &[],
        &["frobnicate"],
        &["--frobnicate", "list-dbs"],
        &["list-dbs", "one", "two"],
        &["list-dbs", "unix:db.sock", "two"],
        &["get-schema", "mydb", "two"],
        &["monitor"],
        &["monitor", "unix:db.sock", "mydb"],
        &["monitor-cond", "mydb", "[]"],
        &["-f", "yaml", "list-dbs"],
        &["-f"],
        &["--format"],
        &["--no", "list-dbs"],
        &["-d", "yaml", "list-dbs"],
        &["-t", "0", "list-dbs"],
        &["-t", "soon", "list-dbs"],
        &["-t", "5", "list-dbs"],
        &["--pretty=1", "list-dbs"],
        &["-q", "list-dbs"],
        &["-vnonsense", "list-dbs"],
        &[
            "-vconsole:off",
            "get-schema-version",
            "unix:nobody.sock,unix:db.sock",
            "mydb",
        ],
        &["list-dbs", "-vconsole:off", "unix:db.sock"],
        &["list-dbs", "--", "unix:db.sock"],
        &[
            "--timeout=5",
            "--leader-only",
            "--no-leader-only",
            "--force",
            "list-dbs",
        ],
        &["needs-conversion", "nofile"],
        &["convert", "nofile"],
        &["convert", "unix:nobody.sock", "nofile"],
        &["convert", "unix:nobody.sock", "nofile", "more"],
        &["needs-conversion", "word", "nofile"],
        &["transact", "unix:nobody.sock", "xx"],
        &["transact", "unix:nobody.sock,unix:nobody2.sock", "xx"],
        &["transact", "word", "xx"],
        &["transact", "unix:nobody.sock", "{}", "more"],
        &["transact", "unix:nobody.sock"],
        &["query", "unix:nobody.sock", "[]"],
        &["query", "unix:nobody.sock", "[\"mydb\"]"],
        &["wait", "unix:nobody.sock", "mydb", "soon"],
        &["lock", "unix:nobody.sock", "a", "b"],
        &["monitor-cond", "unix:nobody.sock", "mydb", "xx", "T"],
        &["list-dbs", "unix:nobody.sock", "two"],
    ];
    compare_all(&fixture, Exactly, cases.iter().copied());
    let helped: &[&[&str]] = &[
        &["--help"],
        &["-h"],
        &["help"],
        &["help", "me"],
        &["--version"],
        &["-V"],
    ];
    compare_all(&fixture, Status, helped.iter().copied());
}
