//! Pages of a network that OVN's own programs make and change: 60 switches of 40 ports, with
//! `ovn-northd` running, on our server and on the reference's. On a machine without OVN or without
//! a browser, the tests are skipped and say so.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use corvid_tests::binary;
use corvid_tests::browser::Browser;
use corvid_tests::console::Console;
use corvid_tests::limited;
use corvid_tests::server::{Implementation, Server, Setup};
use serde_json::{Value, json};

/// The size of the network.
const SWITCHES: usize = 60;
const PORTS: usize = 40;

/// The time limit for what programs of OVN bring about on a busy machine.
const LIMIT: Duration = Duration::from_secs(120);

/// Both databases of OVN in one server, `ovn-northd`, and a console.
pub(super) struct Ovn {
    northd: Child,
    console: Console,
    server: Server,
}

impl Drop for Ovn {
    fn drop(&mut self) {
        let _ = self.northd.kill();
        let _ = self.northd.wait();
    }
}

impl Ovn {
    /// `None`: OVN is not installed here.
    pub(super) fn start(implementation: Implementation) -> Option<Ovn> {
        let schema = |name: &str| -> Option<Value> {
            let path = PathBuf::from(format!("/usr/share/ovn/{name}.ovsschema"));
            serde_json::from_slice(&std::fs::read(path).ok()?).ok()
        };
        let parts = (
            schema("ovn-nb"),
            schema("ovn-sb"),
            binary::reference("ovn-northd"),
        );
        let (Some(nb), Some(sb), Some(northd)) = parts else {
            // Past the test runner, which captures the output of tests.
            let _ = writeln!(
                std::io::stderr(),
                "SKIPPED: the console with OVN: ovn-central is not installed"
            );
            return None;
        };
        if implementation == Implementation::Reference && implementation.server_binary().is_err() {
            return None;
        }
        let setup = Setup {
            databases: vec![nb, sb],
            ..Setup::default()
        };
        let server = Server::start(implementation, &setup).expect("a server");
        let socket = server.socket();
        let folder = server.dir();
        let database = |option: &str| format!("--{option}=unix:{}", socket.display());
        let northd = Command::new(northd)
            .args([database("ovnnb-db"), database("ovnsb-db")])
            .arg(format!("--unixctl={}", folder.join("northd.ctl").display()))
            .arg(format!(
                "--log-file={}",
                folder.join("northd.log").display()
            ))
            .env("OVN_RUNDIR", folder)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("ovn-northd");
        let console = Console::start(&[
            format!("nb=unix:{}/OVN_Northbound", socket.display()),
            format!("sb=unix:{}/OVN_Southbound", socket.display()),
        ]);
        Some(Ovn {
            northd,
            console: console.expect("a console"),
            server,
        })
    }

    /// Runs a program of OVN, which must succeed. Returns what it prints.
    fn run(&self, program: &str, arguments: &[String]) -> String {
        let path = binary::reference(program).expect("it comes with ovn-northd");
        let socket = format!("--db=unix:{}", self.server.socket().display());
        let mut command = Command::new(path);
        command.arg(socket).arg("--timeout=60").args(arguments);
        let output = limited::output(&mut command).expect("it runs");
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).expect("text")
    }

    pub(super) fn nbctl(&self, line: &str) -> String {
        self.run("ovn-nbctl", &words(line))
    }

    fn sbctl(&self, line: &str) -> String {
        self.run("ovn-sbctl", &words(line))
    }

    /// Makes the switches, their ports and a router between them.
    pub(super) fn make_network(&self) {
        let mut words = vec!["lr-add".to_owned(), "router".to_owned()];
        let mut add = |line: String| {
            words.push("--".to_owned());
            words.extend(line.split(' ').map(str::to_owned));
        };
        for switch in 0..SWITCHES {
            add(format!("ls-add sw{switch}"));
            for port in 0..PORTS {
                add(format!("lsp-add sw{switch} p{switch}-{port}"));
            }
            add(format!(
                "lrp-add router r{switch} 02:00:00:00:00:{switch:02x} 10.0.{switch}.1/24"
            ));
            add(format!("lsp-add sw{switch} u{switch}"));
            add(format!("lsp-set-type u{switch} router"));
            add(format!("lsp-set-addresses u{switch} router"));
            add(format!("lsp-set-options u{switch} router-port=r{switch}"));
        }
        self.run("ovn-nbctl", &words);
    }

    /// Number of rows of a table, as `ovsdb-client` says.
    fn count(&self, database: &str, table: &str) -> usize {
        let mut client = self.server.connect().expect("a connection");
        let select =
            json!([database, {"op": "select", "table": table, "where": [], "columns": ["_uuid"]}]);
        let reply = client.call("transact", &select).expect("a reply");
        reply["result"][0]["rows"].as_array().expect("rows").len()
    }

    pub(super) fn address(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.console.port())
    }
}

fn words(line: &str) -> Vec<String> {
    line.split(' ').map(str::to_owned).collect()
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < LIMIT, "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Whether this is true of the page at this moment.
fn holds(browser: &Browser, script: &str) -> bool {
    browser.run(script).expect("a value") == json!(true)
}

fn shows_text(text: &str) -> String {
    format!(
        "return document.querySelector('#part').textContent.includes({})",
        json!(text)
    )
}

fn look_at_ovn(implementation: Implementation) {
    if !Browser::is_installed() {
        let _ = writeln!(
            std::io::stderr(),
            "SKIPPED: the console with OVN: chromium is not installed"
        );
        return;
    }
    let Some(ovn) = Ovn::start(implementation) else {
        return;
    };
    ovn.make_network();
    let ports = SWITCHES * (PORTS + 1);
    wait_until("northd binds each port", || {
        // Each connection to the router has a port at its other end, too.
        ovn.count("OVN_Southbound", "Port_Binding") == ports + SWITCHES
    });
    let browser = Browser::start().expect("a browser");

    // The logical network, with all its switches at once.
    browser
        .open(&ovn.address("/db/nb/network"))
        .expect("the browser answers");
    let all_switches = format!(
        "const cards = [...document.querySelectorAll('#part svg g.card')].map(card => card.textContent);
         return [...Array({SWITCHES}).keys()].every(n => cards.some(text => text.includes('sw' + n)))"
    );
    browser
        .wait_for(&all_switches)
        .expect("the browser answers");
    assert!(holds(&browser, &shows_text("router")));
    browser
        .wait_for("return document.querySelector('#live').textContent == 'live'")
        .expect("the browser answers");
    browser
        .run("window.isTheSame = true")
        .expect("the browser answers");
    for number in 0..5 {
        ovn.nbctl(&format!("ls-add late{number}"));
        browser
            .wait_for(&shows_text(&format!("late{number}")))
            .expect("the browser answers");
    }
    ovn.nbctl("ls-del late0");
    browser
        .wait_for("return !document.querySelector('#part').textContent.includes('late0')")
        .expect("the browser answers");
    assert!(holds(&browser, "return window.isTheSame"), "reloaded");

    // A path through switches and the router.
    browser
        .open(&ovn.address("/db/nb/network?from=p0-0&to=p59-39"))
        .expect("the browser answers");
    for part in ["sw0", "router", "sw59"] {
        browser
            .wait_for(&shows_text(part))
            .expect("the browser answers");
    }
    assert!(!holds(&browser, &shows_text("sw30")), "not on the path");

    // Where ports are bound.
    ovn.sbctl("chassis-add hv1 geneve 10.9.0.1 -- chassis-add hv2 geneve 10.9.0.2");
    ovn.sbctl("lsp-bind p0-0 hv1");
    browser
        .open(&ovn.address("/db/sb/network"))
        .expect("the browser answers");
    browser
        .wait_for(&shows_text("hv1"))
        .expect("the browser answers");
    browser
        .wait_for(&shows_text("hv2"))
        .expect("the browser answers");
    browser
        .wait_for(&shows_text("p0-0"))
        .expect("the browser answers");

    // A table says what the database has.
    for (database, name, table) in [
        ("nb", "OVN_Northbound", "Logical_Switch_Port"),
        ("sb", "OVN_Southbound", "Port_Binding"),
    ] {
        let count = ovn.count(name, table);
        browser
            .open(&ovn.address(&format!("/db/{database}/table/{table}")))
            .expect("the browser answers");
        let count = format!("return document.querySelector('#selected').textContent == '{count}'");
        browser.wait_for(&count).expect("the browser answers");
    }
    assert_eq!(browser.errors().expect("the browser answers"), [""; 0]);
}

#[test]
fn a_network_of_ovn_is_seen_while_it_changes() {
    look_at_ovn(Implementation::Corvid);
}

#[test]
fn a_network_of_ovn_on_the_server_of_the_reference_is_seen_while_it_changes() {
    look_at_ovn(Implementation::Reference);
}
