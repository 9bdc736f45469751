//! The tutorial (`docs/client-tutorial.md`) does what it says, on our server and on the reference's where it is installed.

use corvid_tests::binary;
use corvid_tests::server::{Implementation, Server, Setup};

include!(concat!(env!("OUT_DIR"), "/inventory.rs"));
include!(concat!(env!("OUT_DIR"), "/tutorial.rs"));

#[test]
fn the_tutorial_is_true() {
    for implementation in [Implementation::Corvid, Implementation::Reference] {
        if implementation == Implementation::Reference
            && binary::reference("ovsdb-server").is_none()
        {
            eprintln!("SKIPPED: the reference server is not installed");
            continue;
        }
        let schema =
            serde_json::from_str(include_str!("../../server/src/demo/inventory.ovsschema"));
        let setup = Setup {
            databases: vec![schema.expect("JSON")],
            ..Setup::default()
        };
        let server = Server::start(implementation, &setup).expect("a server");
        let remote = format!("unix:{}", server.socket().display());
        tutorial(&remote).unwrap_or_else(|error| panic!("{implementation:?}: {error}"));
    }
}
