//! Certificates generated at test time.

use std::sync::Arc;

use corvid_tls::{
    Authorities, Certificate, CipherChoice, Clock, Identity, Material, Protocols, Trust, UnixTime,
};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose, date_time_ymd,
};

/// A moment in 2036 at which all certificates are valid, including those that `openssl` dates from
/// today.
pub(crate) const NOW_S: u64 = 2_100_000_000;

#[derive(Debug)]
struct Fixed(u64);

impl Clock for Fixed {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(std::time::Duration::from_secs(
            self.0,
        )))
    }
}

pub(crate) fn clock() -> Arc<dyn Clock> {
    Arc::new(Fixed(NOW_S))
}

/// Parameters of a certificate for this name, with neither usages nor constraints.
pub(crate) fn params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params
        .distinguished_name
        .push(DnType::OrganizationName, "Corvid");
    params.distinguished_name.push(DnType::CommonName, name);
    params.not_before = date_time_ymd(2020, 1, 1);
    params.not_after = date_time_ymd(2040, 1, 1);
    params
}

/// Parameters of an authority.
pub(crate) fn authority_params(name: &str) -> CertificateParams {
    let mut params = params(name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params
}

/// A certificate that issues others, with its key.
pub(crate) type Issuer = CertifiedIssuer<'static, KeyPair>;

pub(crate) fn root(params: CertificateParams) -> Issuer {
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

pub(crate) fn intermediate(params: CertificateParams, above: &Issuer) -> Issuer {
    CertifiedIssuer::signed_by(params, KeyPair::generate().unwrap(), above).unwrap()
}

/// A key and a certificate, as PEM.
#[derive(Clone)]
pub(crate) struct Own {
    pub(crate) key: String,
    pub(crate) certificate: String,
}

impl Own {
    pub(crate) fn issued(params: &CertificateParams, issuer: &Issuer) -> Own {
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, issuer).unwrap();
        Own {
            key: key.serialize_pem(),
            certificate: certificate.pem(),
        }
    }

    pub(crate) fn self_signed(params: &CertificateParams) -> Own {
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        Own {
            key: key.serialize_pem(),
            certificate: certificate.pem(),
        }
    }

    pub(crate) fn identity(&self) -> Identity {
        Identity::from_pem(self.key.as_bytes(), self.certificate.as_bytes()).unwrap()
    }

    pub(crate) fn parsed(&self) -> Certificate {
        self.identity().certificate().clone()
    }

    /// Everything that a side needs, with trust in this CA file.
    pub(crate) fn trusting(&self, authorities: &str) -> Material {
        let authorities = Authorities::from_pem(authorities.as_bytes()).unwrap();
        self.material(Trust::Authorities(Arc::new(authorities)))
    }

    pub(crate) fn material(&self, trust: Trust) -> Material {
        Material {
            identity: self.identity(),
            trust,
            extra_chain: Vec::new(),
            protocols: Protocols::default(),
            ciphers: CipherChoice::default(),
        }
    }
}

pub(crate) fn with_usages(
    mut params: CertificateParams,
    usages: &[KeyUsagePurpose],
) -> CertificateParams {
    params.key_usages = usages.to_vec();
    params
}

pub(crate) fn with_purposes(
    mut params: CertificateParams,
    purposes: &[ExtendedKeyUsagePurpose],
) -> CertificateParams {
    params.extended_key_usages = purposes.to_vec();
    params
}
