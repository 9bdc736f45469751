//! Programs in C that read the past of a database, from a server that offers it and from one that
//! does not.

use std::process::Command;

use corvid_tests::binary;
use corvid_tests::server::Implementation;

use super::{build_test, library, run_test, run_to_ok, server_of, skip, zoo};

#[test]
fn the_past_is_read_by_programs_in_c() {
    run_test("history", false);
    if library().is_none() {
        return;
    }
    if binary::reference("ovsdb-server").is_none() {
        skip("the past on a server that does not read it: the reference is not installed");
        return;
    }
    let dir = tempfile::tempdir().expect("a folder");
    let server = server_of(Implementation::Reference, "zoo", Vec::new());
    let mut command = Command::new(build_test(dir.path(), "history", None));
    let remote = format!("unix:{}", server.socket().display());
    run_to_ok(command.arg(zoo()).arg(remote).arg("unsupported"));
}
