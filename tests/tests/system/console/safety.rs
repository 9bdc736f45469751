//! The rules for readers of pages, and for pages in a browser.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use corvid_tests::binary;
use serde_json::json;

use super::{Shown, between, text_of};

const LOCAL: (&str, &str) = ("Host", "localhost");

#[test]
fn every_response_has_the_headers_that_forbid_foreign_content() {
    let shown = Shown::start(&[]);
    shown.page("/db/net");
    for path in [
        "/",
        "/db/net",
        "/db/net/table/Port",
        "/nothing",
        "/static/console.js",
        "/login",
    ] {
        let answer = shown.console.get(path).unwrap();
        let head = answer.head.to_ascii_lowercase();
        let policy = head
            .lines()
            .find(|line| line.starts_with("content-security-policy: "));
        let policy = policy.unwrap_or_else(|| panic!("{path}: {head}"));
        assert!(policy.contains("default-src 'none'"), "{policy}");
        assert!(policy.contains("frame-ancestors 'none'"), "{policy}");
        assert!(
            !policy.contains("unsafe") && !policy.contains('*'),
            "{policy}"
        );
        for header in [
            "x-content-type-options: nosniff",
            "referrer-policy: no-referrer",
            "cross-origin-resource-policy: same-origin",
            "cache-control: no-store",
        ] {
            assert!(head.contains(header), "{path}: {header}\n{head}");
        }
        assert!(!head.contains("access-control-allow"), "{head}");
        // Neither scripts nor styles within pages, and nothing from elsewhere.
        let is_page = head.contains("text/html");
        for word in [
            "style=",
            "onclick=",
            "onload=",
            "http://",
            "https://",
            "javascript:",
        ] {
            assert!(!is_page || !answer.body.contains(word), "{path}: {word}");
        }
    }
}

#[test]
fn a_foreign_host_name_and_foreign_sites_read_nothing() {
    let shown = Shown::start(&["--host=console.example"]);
    shown.page("/db/net");
    let status = |headers: &[(&str, &str)]| {
        let answer = shown
            .console
            .ask("GET", "/db/net/table/Port", headers, "")
            .unwrap();
        assert!(
            answer.status == 200 || !answer.body.contains("Port"),
            "{answer:?}"
        );
        answer.status
    };
    assert_eq!(status(&[LOCAL]), 200);
    assert_eq!(status(&[("Host", "console.example:80")]), 200);
    assert_eq!(status(&[("Host", "evil.example")]), 421);
    assert_eq!(status(&[]), 421);
    assert_eq!(
        status(&[
            LOCAL,
            ("Sec-Fetch-Site", "cross-site"),
            ("Sec-Fetch-Mode", "cors")
        ]),
        403
    );
}

#[test]
fn a_token_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, "correct-horse-battery\n").unwrap();
    let shown = Shown::start(&[&format!("--token-file={}", file.display())]);
    let get = |path: &str, headers: &[(&str, &str)]| {
        let headers: Vec<_> = [LOCAL].iter().chain(headers).copied().collect();
        shown.console.ask("GET", path, &headers, "").unwrap()
    };
    let refused = get("/", &[]);
    assert_eq!(refused.status, 401);
    assert!(!refused.body.contains("net"), "{}", refused.body);
    assert_eq!(get("/", &[("Authorization", "Bearer wrong")]).status, 401);
    assert_eq!(
        get("/", &[("Authorization", "Bearer correct-horse-battery")]).status,
        200
    );
    let login = get("/login", &[]);
    assert_eq!(login.status, 200);
    assert!(!login.body.contains("/db/net"), "{}", login.body);
    let sent = |token: &str| {
        let body = format!("token={token}");
        shown
            .console
            .ask("POST", "/login", &[LOCAL], &body)
            .unwrap()
    };
    assert_eq!(sent("wrong").status, 401);
    let answer = sent("correct-horse-battery");
    assert_eq!(answer.status, 303);
    let cookie = answer
        .head
        .lines()
        .find_map(|line| line.strip_prefix("set-cookie: "));
    let cookie = cookie.expect("a cookie");
    assert!(
        cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"),
        "{cookie}"
    );
    assert!(!cookie.contains("correct"), "the cookie contains the token");
    let cookie = cookie.split(';').next().unwrap();
    assert_eq!(get("/", &[("Cookie", cookie)]).status, 200);
    // A browser is led to the form.
    let led = get(
        "/",
        &[("Sec-Fetch-Mode", "navigate"), ("Sec-Fetch-Site", "none")],
    );
    assert_eq!(led.status, 303);
}

#[test]
fn other_machines_are_not_served_without_tls() {
    for (arguments, said) in [
        (vec!["--listen=0.0.0.0:0"], "add --listen-private-key"),
        (vec!["--listen=[::]:0"], "add --listen-private-key"),
        (vec!["--token-file=/nowhere"], "/nowhere"),
        (vec!["a=b=c", "a=d"], "twice"),
    ] {
        let output = Command::new(binary::bin("corvid-console"))
            .args(&arguments)
            .output();
        let output = output.expect("the program");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            !output.status.success() && text.contains(said),
            "{arguments:?}: {text}"
        );
    }
}

#[test]
fn large_and_slow_requests_end() {
    let shown = Shown::start(&[]);
    shown.page("/db/net");
    let long = "x".repeat(20_000);
    let answer = shown
        .console
        .get(&format!("/db/net/table/Port?where={long}"));
    assert!(answer.is_err() || answer.is_ok_and(|answer| [414, 431].contains(&answer.status)));
    let body = "x".repeat(300_000);
    let answer = shown.console.ask("POST", "/login", &[LOCAL], &body);
    assert!(answer.is_err() || answer.is_ok_and(|answer| answer.status == 413));
    let answer = shown
        .console
        .ask("DELETE", "/db/net", &[LOCAL], "")
        .unwrap();
    assert_eq!(answer.status, 405);
    let mut stream = TcpStream::connect(("127.0.0.1", shown.console.port())).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(30)))
        .unwrap();
    stream.write_all(b"\x01\x02 nonsense\r\n\r\n").unwrap();
    let mut reply = String::new();
    let _ = stream.read_to_string(&mut reply);
    assert!(
        reply.is_empty() || reply.starts_with("HTTP/1.1 400 "),
        "{reply}"
    );
    shown.page("/db/net");
}

#[test]
fn a_query_changes_nothing_unless_it_may() {
    let insert = r#"[{"op":"insert","table":"Switch","row":{"name":"new"}}]"#;
    let select = r#"{"op":"select","table":"Switch","where":[],"columns":["name"]}"#;
    let execute = |shown: &Shown, operations: &str, more: &str, token: Option<&str>| {
        let page = shown.page("/db/net/query");
        let own = between(&page, "name=\"form_token\" value=\"", "\"").to_owned();
        let token = token.unwrap_or(&own);
        let encoded: String = operations
            .bytes()
            .map(|byte| format!("%{byte:02x}"))
            .collect();
        let body = format!("form_token={token}&operations={encoded}{more}");
        shown
            .console
            .ask("POST", "/db/net/query", &[LOCAL], &body)
            .unwrap()
    };
    let mut read_only = Shown::start(&[]);
    read_only.add_switch("sw0", &[]);
    let answer = execute(&read_only, select, "", None);
    assert_eq!(answer.status, 200, "{answer:?}");
    assert!(
        text_of(&answer.body).contains("select Switch: 1 row name sw0"),
        "{answer:?}"
    );
    let answer = execute(&read_only, insert, "", None);
    assert_eq!(answer.status, 400);
    assert!(answer.body.contains("--writable"), "{answer:?}");
    let answer = execute(&read_only, insert, "&dry=1", None);
    assert!(
        text_of(&answer.body).contains("Nothing was changed"),
        "{answer:?}"
    );
    assert!(!text_of(&answer.body).contains("aborted"), "{answer:?}");
    assert_eq!(execute(&read_only, select, "", Some("00")).status, 403);
    let answer = execute(&read_only, "nonsense", "", None);
    assert_eq!(answer.status, 400);
    assert_eq!(names(&mut read_only), ["sw0"]);
    let mut writable = Shown::start(&["--writable"]);
    assert_eq!(execute(&writable, insert, "&dry=1", None).status, 200);
    assert_eq!(names(&mut writable), [""; 0]);
    assert_eq!(execute(&writable, insert, "", Some("00")).status, 403);
    assert_eq!(names(&mut writable), [""; 0]);
    assert_eq!(execute(&writable, insert, "", None).status, 200);
    assert_eq!(names(&mut writable), ["new"]);
}

fn names(shown: &mut Shown) -> Vec<String> {
    let select = json!({"op": "select", "table": "Switch", "where": [], "columns": ["name"]});
    let results = shown.transact(&[select]);
    let rows = results[0]["rows"].as_array().expect("rows").clone();
    rows.iter()
        .map(|row| row["name"].as_str().expect("a name").to_owned())
        .collect()
}

#[test]
fn a_console_that_could_reach_nothing_does_not_start() {
    for (word, said) in [
        (
            "nb=bogus:1",
            "nb=bogus:1: \"bogus:1\" is not a remote: write tcp:HOST:PORT, ssl:HOST:PORT or unix:FILE",
        ),
        ("nb=ptcp:1", "\"ptcp:1\" waits for connections"),
        ("=unix:/a", "expected NAME=REMOTES[/DATABASE]"),
        ("unix:/a", "expected NAME=REMOTES[/DATABASE]"),
        ("nb.status=https://h:1", "is not read from \"https://h:1\""),
        ("nb=unix:/x,", "\"unix:/x,\" has an empty remote"),
        ("nb=,unix:/x", "has an empty remote"),
        (
            "",
            "an empty word: expected NAME=REMOTES[/DATABASE], such as nb=unix:",
        ),
        (
            "--host=console:8640",
            "--host=console:8640: expected the name of a host",
        ),
        ("--listen=:", "--listen=:: expected ADDRESS:PORT"),
    ] {
        let output = Command::new(binary::bin("corvid-console"))
            .args(["--listen=127.0.0.1:0", "other=unix:/a", word])
            .output()
            .expect("the program");
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{word}: {text}");
        assert!(text.starts_with("corvid-console: "), "{text}");
        assert!(text.contains(said), "{word}: {text}");
    }
}

#[test]
fn a_console_with_an_empty_argument_does_not_start() {
    for (option, expected) in [
        ("host", "NAME"),
        ("listen", "ADDRESS"),
        ("token-file", "FILE"),
        ("listen-private-key", "FILE"),
        ("listen-certificate", "FILE"),
        ("viewer-ca-cert", "FILE"),
        ("private-key", "FILE"),
        ("certificate", "FILE"),
        ("ca-cert", "FILE"),
        ("bootstrap-ca-cert", "FILE"),
    ] {
        let output = Command::new(binary::bin("corvid-console"))
            .args([
                "--listen=127.0.0.1:0",
                "other=unix:/a",
                &format!("--{option}="),
            ])
            .output()
            .expect("the program");
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{option}: {text}");
        let said = format!(
            "corvid-console: option '--{option}' has an empty argument: expected {expected}\n"
        );
        assert!(text.ends_with(&said), "{text}");
    }
}

#[test]
fn errors_of_the_system_are_told_in_words() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a socket");
    let listen = format!("--listen={}", taken.local_addr().expect("an address"));
    let tls = ["--listen-private-key=k", "--listen-certificate=c"];
    for (options, said) in [
        (
            &["--token-file=/nonexistent/token"][..],
            "--token-file=/nonexistent/token: No such file or directory\n",
        ),
        (
            &[tls[0], tls[1], "--viewer-ca-cert=/nonexistent/ca"],
            "--viewer-ca-cert=/nonexistent/ca: No such file or directory\n",
        ),
        (&[&listen], ": Address already in use\n"),
    ] {
        let output = Command::new(binary::bin("corvid-console"))
            .args(["--listen=127.0.0.1:0", "other=unix:/a"])
            .args(options)
            .output()
            .expect("the program");
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{options:?}: {text}");
        assert!(text.ends_with(said), "{options:?}: {text}");
    }
    // The server cannot be connected to any more, but the console's session lasts.
    let shown = Shown::start(&["--writable"]);
    let form = shown.page("/db/net/query");
    let token = between(&form, "name=\"form_token\" value=\"", "\"");
    std::fs::remove_file(shown.server.socket()).expect("a socket");
    let body = format!("form_token={token}&do=backup");
    let answer = shown
        .console
        .ask("POST", "/db/net/servers/act", &[LOCAL], &body);
    let answer = answer.expect("an answer");
    assert_eq!(answer.status, 503, "{answer:?}");
    let text = text_of(&answer.body);
    assert!(
        text.contains("db.sock: No such file or directory "),
        "{text}"
    );
}
