//! Certificates that only the `openssl` program makes: version 1, short keys, RSA keys in old
//! wrappings. Passes with a message if the program is missing.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use corvid_tls::{Authorities, Error, Identity};

use super::made::{Own, authority_params, params, root};
use super::meeting::outcome;

/// A directory for one test, removed at the end.
struct Bench(PathBuf);

impl Bench {
    fn new() -> Option<Bench> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        if Command::new("openssl")
            .arg("version")
            .stdout(Stdio::null())
            .status()
            .is_err()
        {
            let _ = writeln!(
                std::io::stderr(),
                "\nskipped: the openssl program is not installed"
            );
            return None;
        }
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("corvid-tls-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Some(Bench(path))
    }

    fn openssl(&self, line: &str) {
        let output = Command::new("openssl")
            .args(line.split(' '))
            .current_dir(&self.0)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{line}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.0.join(name)).unwrap()
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.0.join(name), text).unwrap();
    }

    fn own(&self, name: &str) -> Own {
        Own {
            key: self.read(&format!("{name}.key")),
            certificate: self.read(&format!("{name}.pem")),
        }
    }

    /// Makes a self-signed certificate of version 1.
    fn v1_root(&self, name: &str) {
        self.request(name, "rsa:2048");
        self.openssl(&format!(
            "x509 -req -in {name}.csr -signkey {name}.key -sha256 -days 9000 -out {name}.pem"
        ));
    }

    /// Makes a certificate of version 1, issued by another.
    fn v1_leaf(&self, name: &str, key: &str, issuer: &str) {
        self.request(name, key);
        self.openssl(&format!(
            "x509 -req -in {name}.csr -CA {issuer}.pem -CAkey {issuer}.key -set_serial 7 -sha256 -days 9000 -out {name}.pem"
        ));
    }

    fn request(&self, name: &str, key: &str) {
        self.openssl(&format!("req -new -newkey {key} -nodes -keyout {name}.key -subj /O=Corvid/CN={name} -out {name}.csr"));
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn version_1_serves_as_leaf_and_root() {
    let Some(bench) = Bench::new() else { return };
    bench.v1_root("root");
    bench.v1_leaf("leaf", "rsa:2048", "root");
    let (own, trusted) = (
        bench.own("leaf").trusting(&bench.read("root.pem")),
        bench.read("root.pem"),
    );
    assert_eq!(outcome(&own, &own), Ok(()));
    // Issued by an ordinary root, and presented to a peer that trusts a root which has not signed
    // it.
    bench.openssl(
        "req -x509 -newkey rsa:2048 -nodes -keyout v3.key -subj /CN=v3 -days 9000 -out v3.pem",
    );
    bench.v1_leaf("below", "ec -pkeyopt ec_paramgen_curve:P-256", "v3");
    let below = bench.own("below").trusting(&bench.read("v3.pem"));
    assert_eq!(outcome(&below, &below), Ok(()));
    let other = bench.own("below").trusting(&trusted);
    let why = outcome(&below, &other).unwrap_err();
    assert!(why.contains("unable to get issuer certificate"), "{why}");
    // A self-signed root works as a peer too.
    let alone = bench.own("root").trusting(&trusted);
    assert_eq!(outcome(&alone, &alone), Ok(()));
}

#[test]
fn version_1_in_the_middle_is_no_issuer() {
    let Some(bench) = Bench::new() else { return };
    bench.v1_root("root");
    bench.v1_leaf("middle", "rsa:2048", "root");
    bench.v1_leaf("leaf", "rsa:2048", "middle");
    let own = bench
        .own("leaf")
        .trusting(&(bench.read("middle.pem") + &bench.read("root.pem")));
    assert!(outcome(&own, &own).is_err());
}

#[test]
fn a_forged_signature_of_version_1_is_noticed() {
    let Some(bench) = Bench::new() else { return };
    bench.v1_root("root");
    bench.v1_leaf("leaf", "rsa:2048", "root");
    let genuine = bench.read("root.pem");
    // The same name with another key.
    bench.v1_root("root");
    let (signed, forged) = (bench.own("leaf"), bench.read("root.pem"));
    assert!(outcome(&signed.trusting(&genuine), &signed.trusting(&forged)).is_err());
}

#[test]
fn weak_digests_vouch_for_ourselves_alone() {
    let Some(bench) = Bench::new() else { return };
    bench.openssl("req -x509 -sha1 -newkey rsa:2048 -nodes -keyout root.key -subj /CN=root -days 9000 -out root.pem");
    bench.openssl("req -newkey rsa:2048 -nodes -keyout leaf.key -subj /CN=leaf -out leaf.csr");
    bench.openssl("x509 -req -sha1 -in leaf.csr -CA root.pem -CAkey root.key -CAcreateserial -days 9000 -out leaf.pem");
    let own = |name: &str| {
        let (key, certificate) = (format!("{name}.key"), format!("{name}.pem"));
        Identity::from_pem(
            bench.read(&key).as_bytes(),
            bench.read(&certificate).as_bytes(),
        )
    };
    assert!(own("root").is_ok());
    assert_eq!(own("leaf").unwrap_err(), Error::WeakSignature);
}

#[test]
fn short_keys_are_refused_everywhere() {
    let Some(bench) = Bench::new() else { return };
    bench.openssl("req -x509 -newkey rsa:1024 -nodes -keyout short.key -subj /CN=short -days 9000 -out short.pem");
    let (key, certificate) = (bench.read("short.key"), bench.read("short.pem"));
    let own = Identity::from_pem(key.as_bytes(), certificate.as_bytes());
    assert_eq!(own.unwrap_err(), Error::WeakKey);
    // The short key is not an anchor, either.
    bench.v1_leaf("leaf", "rsa:2048", "short");
    let own = bench.own("leaf").trusting(&certificate);
    assert!(outcome(&own, &own).is_err());
}

#[test]
fn keys_in_every_wrapping_are_read() {
    let Some(bench) = Bench::new() else { return };
    bench.openssl(
        "req -x509 -newkey rsa:2048 -nodes -keyout rsa.key -subj /CN=rsa -days 9000 -out rsa.pem",
    );
    bench.openssl("rsa -in rsa.key -traditional -out pkcs1.key");
    bench.openssl("req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-384 -nodes -keyout ec.key -subj /CN=ec -days 9000 -out ec.pem");
    bench.openssl("ec -in ec.key -out sec1.key");
    bench.openssl("x509 -in rsa.pem -text -out dumped.pem");
    for (key, certificate) in [
        ("rsa.key", "rsa.pem"),
        ("pkcs1.key", "dumped.pem"),
        ("ec.key", "ec.pem"),
        ("sec1.key", "ec.pem"),
    ] {
        let read = Identity::from_pem(
            bench.read(key).as_bytes(),
            bench.read(certificate).as_bytes(),
        );
        assert!(read.is_ok(), "{key}: {:?}", read.err());
    }
    assert!(bench.read("pkcs1.key").contains("BEGIN RSA PRIVATE KEY"));
    assert!(bench.read("sec1.key").contains("BEGIN EC PRIVATE KEY"));
}

/// [`Identity`] rejects a weak signature on our own certificate. The weak signature is therefore on
/// the certificate above it, which only the peer judges.
#[test]
fn signatures_by_sha_1_are_refused() {
    let Some(bench) = Bench::new() else { return };
    bench.v1_root("root");
    bench.request("middle", "rsa:2048");
    bench.write("authority", "basicConstraints = critical, CA:TRUE\n");
    let authorities_by = |digest: &str| {
        bench.openssl(&format!(
            "x509 -req -in middle.csr -extfile authority -CA root.pem -CAkey root.key -set_serial 7 -{digest} -days 9000 -out middle.pem"
        ));
        bench.v1_leaf("leaf", "rsa:2048", "middle");
        bench.read("middle.pem") + &bench.read("root.pem")
    };
    let own = |authorities: &str| bench.own("leaf").trusting(authorities);
    let good = own(&authorities_by("sha256"));
    assert_eq!(outcome(&good, &good), Ok(()));
    let weak = own(&authorities_by("sha1"));
    assert!(outcome(&weak, &weak).is_err());
}

#[test]
fn authorities_of_openssl_are_read() {
    let Some(bench) = Bench::new() else { return };
    bench.v1_root("one");
    let file = format!(
        "Certificate:\n  Data\n{}\n{}",
        bench.read("one.pem"),
        root(authority_params("two")).pem()
    );
    let authorities = Authorities::from_pem(file.as_bytes()).unwrap();
    assert_eq!(authorities.iter().count(), 2);
    let leaf = Own::self_signed(&params("x")).parsed();
    assert!(authorities.chain_above(&leaf).is_empty());
}
