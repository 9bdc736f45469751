//! Sessions as carriers of bytes: faults, ends, limits, names.

use std::io::IoSlice;

use corvid_tls::{CipherChoice, Config, Error, Fault, Identity, Material, Protocols, Session};
use rcgen::DnType;

use super::made::{self, Own, authority_params, params, root};
use super::meeting::Meeting;

fn pair() -> (Material, Material) {
    let authority = root(authority_params("ca"));
    let own = |name| Own::issued(&params(name), &authority).trusting(&authority.pem());
    (own("server"), own("client"))
}

#[test]
fn much_goes_through_within_limits() {
    let (server, client) = pair();
    let mut meeting = Meeting::over("TLSv1.3", &server, &client);
    let text: Vec<u8> = (0..3_000_000u32).map(|i| (i % 251) as u8).collect();
    let (mut given, mut received) = (0, Vec::new());
    let mut waiting = Vec::new();
    let mut buffer = vec![0; 10_000];
    while received.len() < text.len() {
        let count = meeting.server.give(&[IoSlice::new(&text[given..])]);
        assert!(count <= 300_000, "what is not sent is bounded");
        given += count;
        while meeting.server.wants_write() {
            meeting.server.send(&mut waiting).unwrap();
        }
        let fed = meeting.client.feed(&waiting).unwrap();
        assert!(fed <= 100_000, "what is not taken is bounded");
        waiting.drain(..fed);
        let taken = meeting.client.take(&mut buffer);
        received.extend_from_slice(&buffer[..taken]);
    }
    assert_eq!(received, text);
}

#[test]
fn nothing_is_taken_before_the_handshake() {
    let (server, _) = pair();
    let mut session = Session::accept(&Config::new(&server, &made::clock()).unwrap()).unwrap();
    assert_eq!(session.give(&[IoSlice::new(b"[]")]), 0);
    assert!(session.is_handshaking() && !session.wants_write());
}

#[test]
fn json_on_a_tls_channel_is_recognised() {
    let (server, _) = pair();
    let config = Config::new(&server, &made::clock()).unwrap();
    let mut session = Session::accept(&config).unwrap();
    assert_eq!(session.feed(b"{\"id\":0"), Err(Fault::PlainJson));
    let mut session = Session::accept(&config).unwrap();
    assert!(matches!(
        session.feed(b"GET / HTTP/1.0\r\n\r\n"),
        Err(Fault::Tls(_))
    ));
}

#[test]
fn the_end_is_told_to_the_peer() {
    let (server, client) = pair();
    let mut meeting = Meeting::over("TLSv1.2+", &server, &client);
    assert_eq!(meeting.client.give(&[IoSlice::new(b"[1]")]), 3);
    meeting.client.close();
    meeting.run();
    let mut buffer = [0; 8];
    assert_eq!(meeting.server.take(&mut buffer), 3);
    assert!(meeting.server.is_closed() && meeting.server_fault.is_none());
    assert_eq!(meeting.server.take(&mut buffer), 0);
}

#[test]
fn peers_are_named_by_their_first_common_name() {
    let (server, _) = pair();
    let authority = root(authority_params("ca"));
    let mut nameless = params("x");
    nameless.distinguished_name = rcgen::DistinguishedName::new();
    nameless
        .distinguished_name
        .push(DnType::OrganizationName, "only");
    let nameless = Own::issued(&nameless, &authority).parsed();
    assert_eq!(nameless.common_name(), None);
    assert_eq!(nameless.subject_line(), "/O=only");
    let named = Own::issued(&params("br-int id:7"), &authority).parsed();
    assert_eq!(named.common_name(), Some("br-int id:7"));
    let meeting = Meeting::over("TLSv1.3", &server, &pair().0);
    // Rejected: a name without a trusted issuer does not count.
    assert!(meeting.server.is_handshaking());
}

#[test]
fn the_name_asked_for_is_told_to_the_server() {
    let (server, client) = pair();
    let meeting = Meeting::over("TLSv1.3", &server, &client);
    assert_eq!(meeting.server.requested_name(), Some("db.example"));
    let config = |material| Config::new(material, &made::clock()).unwrap();
    for name in [None, Some("127.0.0.1"), Some("no such_name")] {
        let mut meeting = Meeting::new(&server, &client);
        meeting.client = Session::connect(&config(&client), name).unwrap();
        assert!(
            {
                meeting.run();
                meeting.works()
            },
            "{name:?}"
        );
        assert_eq!(meeting.server.requested_name(), None);
    }
}

#[test]
fn without_common_suites_the_alert_is_named() {
    let (mut server, mut client) = pair();
    for (protocols, suites) in [
        ("TLSv1.2", ["ECDHE+AES256", "ECDHE+CHACHA20"]),
        (
            "TLSv1.3",
            ["TLS_AES_256_GCM_SHA384", "TLS_AES_128_GCM_SHA256"],
        ),
    ] {
        for (material, text) in [(&mut server, suites[0]), (&mut client, suites[1])] {
            material.ciphers = CipherChoice::default();
            let chosen = if protocols == "TLSv1.2" {
                material.ciphers.set_ciphers(text)
            } else {
                material.ciphers.set_ciphersuites(text)
            };
            assert_eq!(chosen, Ok(Vec::new()));
        }
        let meeting = Meeting::over(protocols, &server, &client);
        let fault = meeting.client_fault.unwrap().to_string();
        assert!(fault.ends_with("alert handshake failure"), "{fault}");
    }
}

#[test]
fn versions_must_meet() {
    let (mut server, mut client) = pair();
    server.protocols = Protocols::parse("TLSv1.3").unwrap();
    client.protocols = Protocols::parse("TLSv1.2").unwrap();
    let mut meeting = Meeting::new(&server, &client);
    meeting.run();
    let fault = meeting.client_fault.unwrap().to_string();
    assert!(fault.ends_with("alert protocol version"), "{fault}");
}

#[test]
fn settings_that_leave_nothing_are_refused() {
    let (mut server, _) = pair();
    server.protocols = Protocols::parse("TLSv1.3").unwrap();
    server.ciphers.set_ciphersuites("").unwrap();
    assert_eq!(
        Config::new(&server, &made::clock()).unwrap_err(),
        Error::NothingToOffer
    );
}

#[test]
fn key_and_certificate_must_fit() {
    let authority = root(authority_params("ca"));
    let (one, two) = (
        Own::issued(&params("1"), &authority),
        Own::issued(&params("2"), &authority),
    );
    let joined = Identity::from_pem(one.key.as_bytes(), two.certificate.as_bytes());
    assert_eq!(joined.unwrap_err(), Error::KeyMismatch);
    let joined = Identity::from_pem(one.certificate.as_bytes(), one.certificate.as_bytes());
    assert_eq!(joined.unwrap_err(), Error::NoKey);
}
