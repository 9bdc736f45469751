//! Certificates, PEM files and records with randomly changed bytes are rejected with an error,
//! never with a panic.

use corvid_tls::{Authorities, Certificate, Config, Identity, Session, pem};

use super::made::{self, Own, authority_params, params, root};

/// A small generator of random numbers, so that a seed determines everything.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }

    /// The same bytes with a few of them changed, omitted or doubled.
    fn mutate(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut mutated = bytes.to_vec();
        for _ in 0..=self.below(4) {
            let at = self.below(mutated.len());
            match self.below(4) {
                0 => mutated[at] = self.below(256) as u8,
                1 => mutated[at] ^= 1 << self.below(8),
                2 => drop(mutated.remove(at)),
                _ => mutated.insert(at, mutated[at]),
            }
            if mutated.is_empty() {
                return bytes.to_vec();
            }
        }
        mutated
    }
}

fn seed() -> Random {
    let seed = std::env::var("SEED")
        .ok()
        .and_then(|text| text.parse().ok());
    let seed = seed.unwrap_or(0x5eed_0000_0000_0001);
    println!("SEED={seed}");
    Random(seed)
}

#[test]
fn mutated_certificates_and_files_cause_no_panic() {
    let mut random = seed();
    let authority = root(authority_params("ca"));
    let own = Own::issued(&params("leaf"), &authority);
    let der = own.parsed().der().clone();
    for _ in 0..20_000 {
        let mutated = random.mutate(&der).into();
        if let Ok(parsed) = Certificate::parse(&mutated) {
            let _ = (
                parsed.common_name(),
                parsed.subject_line(),
                parsed.fingerprint(),
            );
        }
    }
    for _ in 0..3_000 {
        let text = random.mutate(authority.pem().as_bytes());
        if let Ok(authorities) = Authorities::from_pem(&text) {
            let _ = authorities.chain_above(&own.parsed());
        }
        let key = random.mutate(own.key.as_bytes());
        let _ = pem::private_key(&key);
        let _ = Identity::from_pem(&key, &random.mutate(own.certificate.as_bytes()));
    }
}

#[test]
fn mutated_handshakes_end_sessions_and_nothing_else() {
    let mut random = seed();
    let authority = root(authority_params("ca"));
    let own = |name| Own::issued(&params(name), &authority).trusting(&authority.pem());
    let config = |name| Config::new(&own(name), &made::clock()).unwrap();
    let (server, client) = (config("server"), config("client"));
    let mut ended = 0;
    for _ in 0..200 {
        let mut ends = [
            Session::connect(&client, Some("db.example")).unwrap(),
            Session::accept(&server).unwrap(),
        ];
        let spoilt = random.below(6);
        for turn in 0..8 {
            let [from, to] = &mut ends;
            let mut bytes = Vec::new();
            while from.wants_write() {
                from.send(&mut bytes).unwrap();
            }
            if turn == spoilt && !bytes.is_empty() {
                bytes = random.mutate(&bytes);
            }
            if to.feed(&bytes).is_err() {
                ended += 1;
                break;
            }
            to.take(&mut [0; 100]);
            ends.reverse();
        }
    }
    assert!(ended > 50, "{ended}");
}
