//! TLS: records from unauthenticated peers, and files with keys and certificates.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use corvid_tls::{
    Authorities, Certificate, CertificateDer, CipherChoice, Clock, Config, Fault, Identity,
    Material, Protocols, Session, Trust, UnixTime, pem,
};

/// Passes bytes from an unauthenticated peer to a server and to a client. A session continues or
/// ends with an error message. It returns no plaintext before its peer is authenticated, and does
/// not depend on how the stream is cut.
///
/// # Panics
/// If one of these invariants is broken.
pub fn tls_records(bytes: &[u8]) {
    let config = config();
    let begin: [fn(&Config) -> Session; 2] = [
        |config| Session::accept(config).expect("there is something to offer"),
        |config| Session::connect(config, Some("db.example")).expect("there is something to offer"),
    ];
    for begin in begin {
        let whole = receive(begin(config), bytes, bytes.len().max(1));
        let cut = receive(begin(config), bytes, 1 + bytes.len() % 13);
        assert_eq!(whole, cut, "the cut makes a difference");
    }
}

/// Whether a session is open after all pieces. A peer that does not react to our messages cannot
/// complete a handshake.
fn receive(mut session: Session, bytes: &[u8], piece: usize) -> bool {
    for mut piece in bytes.chunks(piece) {
        while !piece.is_empty() {
            match session.feed(piece) {
                Ok(0) => return false,
                Ok(taken) => piece = &piece[taken..],
                Err(fault) => {
                    assert!(!words(&fault).is_empty(), "a fault without words");
                    return false;
                }
            }
            assert!(session.is_handshaking(), "a recording is not a handshake");
            assert_eq!(session.take(&mut [0; 64]), 0, "plaintext from a stranger");
            while session.wants_write() {
                session
                    .send(&mut std::io::sink())
                    .expect("a sink takes everything");
            }
        }
    }
    !session.is_closed()
}

fn words(fault: &Fault) -> String {
    fault.to_string()
}

/// Reads a certificate, a CA file or a key file. Each reader returns an error message, or a value
/// that can be inspected and is the same when it is read again.
///
/// # Panics
/// If one of these invariants is broken.
pub fn certificates(bytes: &[u8]) {
    let der = CertificateDer::from(bytes.to_vec());
    if let Ok(certificate) = Certificate::parse(&der) {
        inspect(&certificate);
    }
    if let Ok(authorities) = Authorities::from_pem(bytes)
        && let Ok(identity) = Identity::from_pem(bytes, bytes)
    {
        // A chain ends even if certificates have issued each other.
        let chain = authorities.chain_above(identity.certificate());
        assert!(chain.len() <= bytes.len());
        inspect(identity.certificate());
    }
    let _ = pem::private_key(bytes);
}

fn inspect(certificate: &Certificate) {
    let again = Certificate::parse(certificate.der()).expect("it was read before");
    assert_eq!(again.common_name(), certificate.common_name());
    assert_eq!(again.subject_line(), certificate.subject_line());
    assert_eq!(again.fingerprint(), certificate.fingerprint());
    assert_eq!(again.is_self_issued(), certificate.is_self_issued());
    assert_eq!(again.is_key_weak(), certificate.is_key_weak());
}

#[derive(Debug)]
struct Fixed;

impl Clock for Fixed {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(Duration::from_secs(
            1_800_000_000,
        )))
    }
}

/// A configuration that trusts only itself. Each process makes a new key, so inputs cannot depend
/// on the key.
fn config() -> &'static Config {
    static CONFIG: OnceLock<Config> = OnceLock::new();
    CONFIG.get_or_init(|| {
        let own = rcgen::generate_simple_self_signed(vec!["db.example".to_owned()])
            .expect("a certificate of our own");
        let (key, certificate) = (own.signing_key.serialize_pem(), own.cert.pem());
        let authorities = Authorities::from_pem(certificate.as_bytes()).expect("it is one");
        let material = Material {
            identity: Identity::from_pem(key.as_bytes(), certificate.as_bytes()).expect("they fit"),
            trust: Trust::Authorities(Arc::new(authorities)),
            extra_chain: Vec::new(),
            protocols: Protocols::default(),
            ciphers: CipherChoice::default(),
        };
        let clock: Arc<dyn Clock> = Arc::new(Fixed);
        Config::new(&material, &clock).expect("there is something to offer")
    })
}
