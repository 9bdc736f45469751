//! Viewers on other machines: TLS, certificates, the token, and the rights of the console itself.
//!
//! The client is `openssl s_client`, so that another program than ours judges the handshake.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use corvid_tests::console::Console;
use corvid_tests::{database_file, one_file, peer};
use serde_json::json;
use tempfile::TempDir;

use super::{Shown, between, schema, text_of};
use crate::cluster_network::{make_identity, tls_options};

const TOKEN: &str = "correct-horse-battery";
const BEARER: &str = "Authorization: Bearer correct-horse-battery";

/// A folder with a key and a certificate of each name, each signed by an authority of its own.
fn identities(names: &[&str]) -> Option<TempDir> {
    let folder = tempfile::tempdir().expect("a folder");
    if names.iter().all(|name| make_identity(folder.path(), name)) {
        return Some(folder);
    }
    peer::say_skipped("openssl, which makes certificates, is not installed");
    None
}

/// The options of a console that serves other machines with the certificate of this name.
fn options(folder: &Path, name: &str, more: &[String]) -> Vec<String> {
    let at = |file: String| folder.join(file).display().to_string();
    let mut options = vec![
        "--listen=0.0.0.0:0".to_owned(),
        format!("--listen-private-key={}", at(format!("{name}-key.pem"))),
        format!("--listen-certificate={}", at(format!("{name}-cert.pem"))),
    ];
    options.extend_from_slice(more);
    options
}

fn token_option(folder: &Path) -> String {
    let file = folder.join("token");
    fs::write(&file, format!("{TOKEN}\n")).expect("written");
    format!("--token-file={}", file.display())
}

fn shown(options: &[String]) -> Shown {
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    Shown::start(&options)
}

/// Sends a request by TLS. Returns what the client printed: the reply, or nothing if there was no
/// connection; and its messages.
fn ask(console: &Console, client: &[String], request: &str) -> (String, String) {
    let mut process = Command::new("openssl")
        .args(["s_client", "-ign_eof", "-showcerts", "-connect"])
        .arg(format!("127.0.0.1:{}", console.port()))
        .args(client)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("openssl");
    // It fails if the connection ends before.
    let _ = process
        .stdin
        .take()
        .expect("an input")
        .write_all(request.as_bytes());
    let output = process.wait_with_output().expect("openssl ends");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

fn get(path: &str, host: &str, header: &str) -> String {
    let header = match header {
        "" => String::new(),
        header => format!("{header}\r\n"),
    };
    format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{header}\r\n")
}

/// The options by which the client trusts the console with this name.
fn trust(folder: &Path, name: &str) -> Vec<String> {
    let file = folder.join(format!("{name}-ca.pem"));
    vec![
        "-verify_return_error".to_owned(),
        "-CAfile".to_owned(),
        file.display().to_string(),
    ]
}

fn status(reply: &str) -> Option<&str> {
    let (_, rest) = reply.split_once("HTTP/1.1 ")?;
    rest.split(' ').next()
}

#[test]
fn a_console_that_is_not_safe_for_other_machines_does_not_start() {
    let Some(folder) = identities(&["web"]) else {
        return;
    };
    let folder = folder.path();
    let token = token_option(folder);
    let at = |file: &str| folder.join(file).display().to_string();
    let key = format!("--listen-private-key={}", at("web-key.pem"));
    let certificate = format!("--listen-certificate={}", at("web-cert.pem"));
    let authority = format!("--viewer-ca-cert={}", at("web-ca.pem"));
    let other_key = format!("--listen-private-key={}", at("web-ca-key.pem"));
    let every = "--listen=0.0.0.0:0".to_owned();
    let tls = "add --listen-private-key and --listen-certificate";
    for (options, said) in [
        (vec![&every], "and --viewer-ca-cert or --token-file"),
        (vec![&every, &token], tls),
        (
            vec![&every, &key, &certificate],
            "add --viewer-ca-cert or --token-file",
        ),
        (
            vec![&every, &key, &token],
            "both --listen-private-key and --listen-certificate",
        ),
        (
            vec![&every, &authority],
            "both --listen-private-key and --listen-certificate",
        ),
        (
            vec![&other_key, &certificate],
            "TLS for viewers: Private key",
        ),
        (
            vec![&key, &certificate, &"--viewer-ca-cert=none".to_owned()],
            "--viewer-ca-cert=none: No such file",
        ),
        (
            vec![
                &key,
                &certificate,
                &format!("--viewer-ca-cert={}", at("web-key.pem")),
            ],
            "TLS for viewers: CA certificate",
        ),
    ] {
        let output = Command::new(corvid_tests::binary::bin("corvid-console"))
            .args(&options)
            .output()
            .expect("the program");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            !output.status.success() && text.contains(said),
            "{options:?}: {text}"
        );
    }
}

#[test]
fn other_machines_are_served_by_tls_with_a_token() {
    let Some(folder) = identities(&["web"]) else {
        return;
    };
    let folder = folder.path();
    // A file with the certificate and what is above it, as browsers need it.
    let mut chain = fs::read_to_string(folder.join("web-cert.pem")).expect("made");
    chain += &fs::read_to_string(folder.join("web-ca.pem")).expect("made");
    fs::write(folder.join("web-cert.pem"), chain).expect("written");
    let more = [token_option(folder), "--host=console.example".to_owned()];
    let shown = shown(&options(folder, "web", &more));
    assert!(
        shown.console.address().starts_with("https://0.0.0.0:"),
        "{}",
        shown.console.address()
    );
    let client = trust(folder, "web");
    let ask = |request: &str| ask(&shown.console, &client, request).0;
    let refused = ask(&get("/", "localhost", ""));
    assert_eq!(status(&refused), Some("401"), "{refused}");
    assert_eq!(
        refused.matches("BEGIN CERTIFICATE").count(),
        2,
        "the whole chain\n{refused}"
    );
    let answer = ask(&get("/", "localhost", BEARER));
    assert_eq!(status(&answer), Some("200"), "{answer}");
    let strict = "strict-transport-security: max-age=";
    assert!(!answer.contains(strict), "{answer}");
    let named = ask(&get("/", "console.example", BEARER));
    assert!(named.contains(strict), "{named}");
    let body = format!("token={TOKEN}");
    let login = ask(&format!(
        "POST /login HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    ));
    let cookie = between(&login, "set-cookie: ", "\r\n");
    assert!(cookie.ends_with("; Secure"), "{cookie}");
    // Without TLS the connection ends.
    let plain = shown.console.get("/");
    assert!(plain.is_err(), "{plain:?}");
    let again = ask(&get("/db/net", "localhost", BEARER));
    assert_eq!(status(&again), Some("200"), "{again}");
}

#[test]
fn a_viewer_needs_a_certificate_of_the_authority() {
    let Some(folder) = identities(&["web", "viewer", "stranger"]) else {
        return;
    };
    let folder = folder.path();
    let authority = format!(
        "--viewer-ca-cert={}",
        folder.join("viewer-ca.pem").display()
    );
    let own = |name: &str| -> Vec<String> {
        let at = |file: String| folder.join(file).display().to_string();
        let mut client = trust(folder, "web");
        client.extend(["-key".to_owned(), at(format!("{name}-key.pem"))]);
        client.extend(["-cert".to_owned(), at(format!("{name}-cert.pem"))]);
        client
    };
    let with_certificate = shown(&options(folder, "web", std::slice::from_ref(&authority)));
    let console = &with_certificate.console;
    let request = get("/", "127.0.0.1", "");
    let (answer, said) = ask(console, &own("viewer"), &request);
    assert_eq!(status(&answer), Some("200"), "{answer}\n{said}");
    let (answer, said) = ask(console, &own("stranger"), &request);
    assert_eq!(status(&answer), None, "{answer}");
    assert!(said.contains("alert"), "{said}");
    let (answer, said) = ask(console, &trust(folder, "web"), &request);
    assert_eq!(status(&answer), None, "{answer}");
    assert!(said.contains("alert"), "{said}");
    drop(with_certificate);
    // Both are needed if both are asked for; and loopback has TLS, too.
    let mut both = options(folder, "web", &[authority, token_option(folder)]);
    both[0] = "--listen=127.0.0.1:0".to_owned();
    let both = shown(&both);
    let console = &both.console;
    let (answer, _) = ask(console, &own("viewer"), &request);
    assert_eq!(status(&answer), Some("401"), "{answer}");
    let (answer, _) = ask(console, &own("viewer"), &get("/", "127.0.0.1", BEARER));
    assert_eq!(status(&answer), Some("200"), "{answer}");
    let client = trust(folder, "web");
    let (answer, _) = ask(console, &client, &get("/", "127.0.0.1", BEARER));
    assert_eq!(status(&answer), None, "{answer}");
}

#[test]
fn a_replaced_certificate_is_shown_without_a_restart() {
    let Some(folder) = identities(&["web", "later"]) else {
        return;
    };
    let folder = folder.path();
    let shown = shown(&options(folder, "web", &[token_option(folder)]));
    let request = get("/", "localhost", BEARER);
    let (answer, said) = ask(&shown.console, &trust(folder, "web"), &request);
    assert_eq!(status(&answer), Some("200"), "{answer}\n{said}");
    for file in ["key.pem", "cert.pem"] {
        let new = folder.join(format!("later-{file}"));
        fs::rename(new, folder.join(format!("web-{file}"))).expect("replaced");
        // One file at a time: the pairs in between do not match, and the old one is used.
        let (answer, _) = ask(&shown.console, &[], &request);
        assert_eq!(status(&answer), Some("200"), "{answer}");
    }
    let (answer, said) = ask(&shown.console, &trust(folder, "later"), &request);
    assert_eq!(status(&answer), Some("200"), "{answer}\n{said}");
    let (answer, _) = ask(&shown.console, &trust(folder, "web"), &request);
    assert_eq!(status(&answer), None, "{answer}");
}

#[test]
fn a_slow_handshake_ends_and_delays_nobody() {
    let Some(folder) = identities(&["web"]) else {
        return;
    };
    let folder = folder.path();
    let shown = shown(&options(folder, "web", &[token_option(folder)]));
    let begin = Instant::now();
    let mut slow = TcpStream::connect(("127.0.0.1", shown.console.port())).expect("a connection");
    slow.set_read_timeout(Some(Duration::from_secs(60)))
        .expect("a limit");
    slow.write_all(&[0x16, 0x03, 0x01]).expect("sent");
    let request = get("/", "localhost", BEARER);
    let (answer, said) = ask(&shown.console, &trust(folder, "web"), &request);
    assert_eq!(status(&answer), Some("200"), "{answer}\n{said}");
    assert!(begin.elapsed() < Duration::from_secs(9), "it waited");
    let mut rest = Vec::new();
    let ended = slow.read_to_end(&mut rest);
    assert!(
        ended.is_ok() || ended.is_err_and(|error| error.kind() != std::io::ErrorKind::WouldBlock),
        "it is still open"
    );
}

#[test]
fn guesses_of_the_token_are_limited() {
    let folder = tempfile::tempdir().expect("a folder");
    let shown = shown(&[token_option(folder.path())]);
    let with = |header: (&str, &str)| {
        let headers = [("Host", "localhost"), header];
        shown
            .console
            .ask("GET", "/", &headers, "")
            .expect("a reply")
    };
    let body = format!("token={TOKEN}");
    let login = |body: &str| {
        let headers = [("Host", "localhost")];
        let answer = shown.console.ask("POST", "/login", &headers, body);
        answer.expect("a reply")
    };
    let head = login(&body).head;
    let cookie = between(&head, "set-cookie: ", ";").to_owned();
    let mut refused = 0;
    for guess in 0..30 {
        let answer = with(("Authorization", &format!("Bearer guess-{guess}")));
        assert!([401, 429].contains(&answer.status), "{answer:?}");
        refused += usize::from(answer.status == 429);
    }
    assert!(refused >= 15, "{refused}");
    // Otherwise a guesser could go on. Viewers who are known are still served.
    assert_eq!(
        with(("Authorization", "Bearer correct-horse-battery")).status,
        429
    );
    assert_eq!(login(&body).status, 429);
    assert_eq!(with(("Cookie", &cookie)).status, 200);
}

#[test]
fn nothing_secret_is_logged() {
    let Some(folder) = identities(&["web"]) else {
        return;
    };
    let folder = folder.path();
    let log = folder.join("log");
    let more = [
        token_option(folder),
        format!("--log-file={}", log.display()),
        "-vfile:dbg".to_owned(),
    ];
    let shown = shown(&options(folder, "web", &more));
    let client = trust(folder, "web");
    let ask = |request: &str| ask(&shown.console, &client, request).0;
    let wrong = "Authorization: Bearer a-wrong-but-secret-guess";
    ask(&get("/", "localhost", wrong));
    let body = format!("token={TOKEN}");
    let login = ask(&format!(
        "POST /login HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    ));
    let cookie = between(&login, "set-cookie: corvid-console=", ";").to_owned();
    let header = format!("Cookie: corvid-console={cookie}");
    let mut page = ask(&get("/db/net/query", "localhost", &header));
    let begin = Instant::now();
    while !page.contains("form_token") && begin.elapsed() < Duration::from_secs(60) {
        page = ask(&get("/db/net/query", "localhost", &header));
    }
    let form = between(&page, "name=\"form_token\" value=\"", "\"").to_owned();
    assert!(cookie.len() >= 32 && form.len() >= 32);
    // A connection that fails is logged, so the log is in use.
    assert!(shown.console.get("/").is_err());
    let begin = Instant::now();
    let logged = loop {
        let logged = fs::read_to_string(&log).unwrap_or_default();
        if logged.contains("handshake of a viewer") {
            break logged;
        }
        assert!(begin.elapsed() < Duration::from_secs(60), "{logged}");
        std::thread::sleep(Duration::from_millis(20));
    };
    assert!(logged.contains("|DBG|"), "{logged}");
    for secret in [
        TOKEN,
        "a-wrong-but-secret-guess",
        &cookie,
        &form,
        "PRIVATE KEY",
    ] {
        assert!(!logged.contains(secret), "{secret}\n{logged}");
    }
}

#[test]
fn a_role_limits_a_console_that_may_write() {
    let Some(folder) = identities(&["console"]) else {
        return;
    };
    let folder = folder.path();
    let mut rules = schema();
    rules["tables"]["RBAC_Role"] = json!({"isRoot": true, "columns": {"name": {"type": "string"},
        "permissions": {"type": {"key": "string", "value": {"type": "uuid", "refTable": "RBAC_Permission"},
            "min": 0, "max": "unlimited"}}}});
    rules["tables"]["RBAC_Permission"] = json!({"isRoot": true, "columns": {
        "authorization": {"type": {"key": "string", "min": 0, "max": "unlimited"}},
        "insert_delete": {"type": "boolean"},
        "update": {"type": {"key": "string", "min": 0, "max": "unlimited"}}}});
    let conf = folder.join("conf.db");
    let remotes = json!({"name": "Conf", "tables": {
        "Top": {"isRoot": true, "columns": {
            "remotes": {"type": {"key": {"type": "uuid", "refTable": "Remote"}, "min": 0, "max": "unlimited"}}}},
        "Remote": {"columns": {"target": {"type": "string"}, "role": {"type": "string"}}}}});
    database_file::create(&conf, &remotes).expect("a file");
    let tls: Vec<String> = tls_options(folder, "console", "console")
        .into_iter()
        .map(|option| option.into_string().expect("text"))
        .collect();
    let conf = conf.display().to_string();
    let mut arguments: Vec<&str> = tls.iter().map(String::as_str).collect();
    arguments.extend([conf.as_str(), "--remote=db:Conf,Top,remotes"]);
    let (server, _, _home) = one_file::start(&rules, &arguments).expect("a server");
    let mut client = server.connect().expect("a connection");
    let role = json!(["Net",
        {"op": "insert", "table": "RBAC_Permission", "uuid-name": "p",
            "row": {"authorization": "", "insert_delete": true, "update": "labels"}},
        {"op": "insert", "table": "RBAC_Role",
            "row": {"name": "viewer", "permissions": ["map", [["Unused", ["named-uuid", "p"]]]]}}]);
    let remote = json!(["Conf",
        {"op": "insert", "table": "Remote", "uuid-name": "r", "row": {"target": "pssl:0:127.0.0.1", "role": "viewer"}},
        {"op": "insert", "table": "Top", "row": {"remotes": ["named-uuid", "r"]}}]);
    for params in [role, remote] {
        let reply = client.call("transact", &params).expect("a reply");
        assert!(reply["error"].is_null(), "{reply}");
    }
    let begin = Instant::now();
    while server.port().is_none() {
        assert!(begin.elapsed() < Duration::from_secs(60), "no port");
        std::thread::sleep(Duration::from_millis(20));
    }
    let mut arguments = tls;
    let port = server.port().expect("a port");
    arguments.push(format!("net=ssl:127.0.0.1:{port}/Net"));
    arguments.push("--writable".to_owned());
    let console = Console::start(&arguments).expect("a console");
    let page = console.get_until("/db/net/query", |answer| {
        answer.status == 200 && !answer.body.contains("Not current: ")
    });
    let page = page.expect("the page").body;
    let form = between(&page, "name=\"form_token\" value=\"", "\"").to_owned();
    let execute = |table: &str| {
        let body = format!(
            "form_token={form}&operations=%5B%7B%22op%22:%22insert%22,%22table%22:%22{table}%22,%22row%22:%7B%22name%22:%22new%22%7D%7D%5D"
        );
        let headers = [("Host", "localhost")];
        let answer = console.ask("POST", "/db/net/query", &headers, &body);
        text_of(&answer.expect("a reply").body)
    };
    let refused = execute("Switch");
    assert!(refused.contains("permission error"), "{refused}");
    let allowed = execute("Unused");
    assert!(!allowed.contains("permission error"), "{allowed}");
    let select = json!(["Net", {"op": "select", "table": "Switch", "where": []},
        {"op": "select", "table": "Unused", "where": [], "columns": ["name"]}]);
    let reply = client.call("transact", &select).expect("a reply");
    assert_eq!(reply["result"][0]["rows"], json!([]), "{reply}");
    assert_eq!(
        reply["result"][1]["rows"],
        json!([{"name": "new"}]),
        "{reply}"
    );
}
