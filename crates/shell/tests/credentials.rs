//! Keys, certificates and CA files that appear, change and disappear while connections are made,
//! over loopback.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

use corvid_net::clock;
use corvid_net::tls::{Authority, Credentials, Settings};
use corvid_shell::blocking::Connection;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};

/// A directory for the files of one test.
struct Files(PathBuf);

impl Files {
    fn new() -> Files {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!(
            "corvid-shell-tls-{}-{}",
            std::process::id(),
            COUNT.fetch_add(1, Ordering::Relaxed)
        );
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Files(path)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    /// Writes a file with a unique modification time, so that any change is noticed.
    fn write(&self, name: &str, text: &str) {
        static SECOND: AtomicU32 = AtomicU32::new(1);
        let path = self.0.join(name);
        fs::write(&path, text).unwrap();
        let time = SystemTime::UNIX_EPOCH
            + Duration::from_secs(SECOND.fetch_add(1, Ordering::Relaxed).into());
        fs::File::options()
            .append(true)
            .open(path)
            .unwrap()
            .set_modified(time)
            .unwrap();
    }

    /// Settings with a key, a certificate, and trust in a CA file.
    fn settings(&self, name: &str, authority: &str) -> Settings {
        Settings {
            private_key: Some(self.path(&format!("{name}.key"))),
            certificate: Some(self.path(&format!("{name}.pem"))),
            authority: Some(Authority {
                file: self.path(authority),
                is_bootstrapped: false,
            }),
            ..Settings::default()
        }
    }

    fn issue(&self, name: &str, common_name: &str, issuer: &Issuer) {
        let (key, certificate) = issued(common_name, issuer);
        self.write(&format!("{name}.key"), &key);
        self.write(&format!("{name}.pem"), &certificate);
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

type Issuer = CertifiedIssuer<'static, KeyPair>;

fn named(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params
}

fn authority(name: &str) -> Issuer {
    let mut params = named(name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    Issuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

fn issued(name: &str, issuer: &Issuer) -> (String, String) {
    let key = KeyPair::generate().unwrap();
    let certificate = named(name).signed_by(&key, issuer).unwrap();
    (key.serialize_pem(), certificate.pem())
}

/// Connects both sides, and sends a text there and back. Returns the identities that both saw, or
/// the client's error number.
fn meet(
    server: &Arc<Credentials>,
    client: &Arc<Credentials>,
) -> Result<(Option<String>, Option<String>), i32> {
    let deadline = Some(clock::mono_ms() + 20_000);
    let port = free_port();
    let (passive, active) = (
        format!("pssl:{port}:127.0.0.1"),
        format!("ssl:127.0.0.1:{port}"),
    );
    let server = server.clone();
    let thread = std::thread::spawn(move || -> std::io::Result<Option<String>> {
        let mut connection = Connection::open_with(&passive, deadline, Some(&server))?;
        let text = connection.receive(deadline)?.unwrap_or_default();
        connection.send(&text, deadline)?;
        assert_eq!(connection.receive(deadline)?, None);
        Ok(connection.peer_identity())
    });
    let found = loop {
        match Connection::open_with(&active, deadline, Some(client)) {
            // The listener is not open yet.
            Err(error) if error.raw_os_error() == Some(111) => std::thread::yield_now(),
            Err(error) => break Err(error),
            Ok(mut connection) => {
                let text = format!("[\"{}\"]", "x".repeat(300_000));
                break connection
                    .send(text.as_bytes(), deadline)
                    .and_then(|()| connection.receive(deadline))
                    .map(|answer| {
                        assert_eq!(answer.as_deref(), Some(text.as_bytes()));
                        connection.peer_identity()
                    });
            }
        }
    };
    let seen = thread.join().unwrap();
    match (found, seen) {
        (Ok(found), Ok(seen)) => Ok((found, seen)),
        (Err(error), _) => Err(error.raw_os_error().unwrap_or(0)),
        (Ok(_), Err(error)) => panic!("only the server failed: {error}"),
    }
}

/// A port without a listener.
fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

fn both(server: &str, client: &str) -> Result<(Option<String>, Option<String>), i32> {
    Ok((Some(server.to_owned()), Some(client.to_owned())))
}

const EPROTO: i32 = 71;
const ENOPROTOOPT: i32 = 92;

#[test]
fn new_connections_use_changed_files() {
    let files = Files::new();
    let (first, second) = (authority("first"), authority("second"));
    files.write("ca.pem", &first.pem());
    files.issue("server", "one", &first);
    files.issue("client", "client", &first);
    let server = Credentials::new(&files.settings("server", "ca.pem"));
    let client = Credentials::new(&files.settings("client", "ca.pem"));
    assert_eq!(meet(&server, &client), both("one", "client"));
    // The key is replaced first: until its certificate is written, the old pair is used.
    let (key, certificate) = issued("two", &first);
    files.write("server.key", &key);
    assert_eq!(meet(&server, &client), both("one", "client"));
    files.write("server.pem", &certificate);
    assert_eq!(meet(&server, &client), both("two", "client"));
    // The certificate is replaced first.
    let (key, certificate) = issued("three", &first);
    files.write("server.pem", &certificate);
    assert_eq!(meet(&server, &client), both("two", "client"));
    files.write("server.key", &key);
    assert_eq!(meet(&server, &client), both("three", "client"));
    // An unusable certificate for the same key.
    files.write("server.pem", "garbage");
    assert_eq!(meet(&server, &client), both("three", "client"));
    fs::remove_file(files.path("server.pem")).unwrap();
    assert_eq!(meet(&server, &client), both("three", "client"));
    // Both sides use the CA file.
    files.write("ca.pem", &second.pem());
    assert!(meet(&server, &client).is_err());
    files.write("ca.pem", &(first.pem() + &second.pem()));
    assert_eq!(meet(&server, &client), both("three", "client"));
}

#[test]
fn missing_files_are_read_when_they_appear() {
    let files = Files::new();
    let ca = authority("ca");
    let (server, client) = (
        Credentials::new(&files.settings("server", "ca.pem")),
        Credentials::new(&files.settings("client", "ca.pem")),
    );
    files.issue("server", "server", &ca);
    // Reported before the peer is contacted.
    for incomplete in [&Credentials::new(&Settings::default()), &client] {
        let error = Connection::open_with("ssl:127.0.0.1:1", None, Some(incomplete)).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(ENOPROTOOPT));
    }
    files.issue("client", "client", &ca);
    // No certificate is trusted.
    assert_eq!(meet(&server, &client), Err(EPROTO));
    files.write("ca.pem", &ca.pem());
    assert_eq!(meet(&server, &client), both("server", "client"));
}

#[test]
fn the_ca_file_is_written_from_the_first_server_s_certificate() {
    let files = Files::new();
    let ca = authority("ca");
    files.write("ca.pem", &ca.pem());
    files.issue("server", "server", &ca);
    files.issue("client", "client", &ca);
    let server = Credentials::new(&files.settings("server", "ca.pem"));
    let mut settings = files.settings("client", "learnt.pem");
    settings.authority.as_mut().unwrap().is_bootstrapped = true;
    let client = Credentials::new(&settings);
    assert_eq!(meet(&server, &client), Err(EPROTO));
    let learnt = Path::new(&files.path("learnt.pem")).to_owned();
    let normal = |text: &str| text.replace(['\r', '\n'], "");
    assert_eq!(
        normal(&fs::read_to_string(&learnt).unwrap()),
        normal(&ca.pem())
    );
    assert!(fs::metadata(&learnt).unwrap().permissions().readonly());
    assert_eq!(meet(&server, &client), both("server", "client"));
    // From now on a server of another authority is rejected.
    let other = authority("other");
    files.write("other-ca.pem", &(other.pem() + &ca.pem()));
    files.issue("stranger", "stranger", &other);
    let stranger = Credentials::new(&files.settings("stranger", "other-ca.pem"));
    assert_eq!(meet(&stranger, &client), Err(EPROTO));
}

#[test]
fn a_server_that_sends_no_root_writes_no_ca_file() {
    let files = Files::new();
    let (ca, clients) = (authority("ca"), authority("clients"));
    files.write("clients.pem", &clients.pem());
    files.issue("server", "server", &ca);
    files.issue("client", "client", &clients);
    let server = Credentials::new(&files.settings("server", "clients.pem"));
    let mut settings = files.settings("client", "learnt.pem");
    settings.authority.as_mut().unwrap().is_bootstrapped = true;
    let client = Credentials::new(&settings);
    assert_eq!(meet(&server, &client), Err(EPROTO));
    assert!(!Path::new(&files.path("learnt.pem")).exists());
    // With the root after its own certificate, the server makes the client write the file.
    files.write("ca.pem", &ca.pem());
    let mut settings = files.settings("server", "clients.pem");
    settings.peer_authority = Some(files.path("ca.pem"));
    let server = Credentials::new(&settings);
    assert_eq!(meet(&server, &client), Err(EPROTO));
    assert_eq!(meet(&server, &client), both("server", "client"));
}

#[test]
fn verification_can_be_switched_off() {
    let files = Files::new();
    let (one, two) = (authority("one"), authority("two"));
    files.issue("server", "server", &one);
    files.issue("client", "client", &two);
    let trusting = |name: &str| {
        let mut settings = files.settings(name, "unused");
        settings.authority.as_mut().unwrap().file = "none".to_owned();
        Credentials::new(&settings)
    };
    let found = meet(&trusting("server"), &trusting("client"));
    assert_eq!(found, Ok((Some("server".to_owned()), None)));
}
