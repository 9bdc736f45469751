//! One X.509 certificate: what the rules for peers ask of it, read leniently.
//!
//! Version 1 is read like version 3: it has no extensions. An extension that cannot be read counts as unknown. Whether the
//! certificate is good for anything is not decided here; see `chain`.

use rustls::pki_types::{CertificateDer, SubjectPublicKeyInfoDer, UnixTime};
use sha1::{Digest, Sha1};
use x509_parser::extensions::ParsedExtension;
use x509_parser::prelude::{FromDer, X509Certificate};
use x509_parser::public_key::PublicKey;
use x509_parser::x509::{X509Name, X509Version};

use crate::Error;

/// The least RSA modulus, bits: 112 bits of security.
const RSA_BITS_MIN: usize = 2048;

/// Signatures over MD2, MD5 and SHA-1: with RSA, DSA and ECDSA keys.
const WEAK_SIGNATURES: [&str; 6] = [
    "1.2.840.113549.1.1.2",
    "1.2.840.113549.1.1.4",
    "1.2.840.113549.1.1.5",
    "1.3.14.3.2.29",
    "1.2.840.10040.4.3",
    "1.2.840.10045.4.1",
];

/// A parsed certificate.
#[derive(Debug, Clone)]
pub struct Certificate {
    der: CertificateDer<'static>,
    subject: Vec<u8>,
    issuer: Vec<u8>,
    key: SubjectPublicKeyInfoDer<'static>,
    version: u32,
    not_before_s: i64,
    not_after_s: i64,
    is_key_weak: bool,
    is_signature_weak: bool,
    constraints: Option<Constraints>,
    key_usage: Option<u16>,
    extended_usage: Option<ExtendedUsage>,
    has_unknown_critical: bool,
    common_name: Option<String>,
    subject_line: String,
}

/// The basicConstraints extension.
#[derive(Debug, Clone, Copy)]
struct Constraints {
    is_ca: bool,
    path_length_max: Option<u32>,
}

/// The extendedKeyUsage extension, as far as TLS asks.
#[derive(Debug, Clone, Copy)]
struct ExtendedUsage {
    is_server: bool,
    is_client: bool,
}

/// What a peer uses its certificate for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// It accepted our connection.
    Server,
    /// It connected to us.
    Client,
}

/// Bits of the keyUsage extension (RFC 5280 4.2.1.3), the first one lowest.
mod usage {
    pub(super) const DIGITAL_SIGNATURE: u16 = 1 << 0;
    pub(super) const KEY_ENCIPHERMENT: u16 = 1 << 2;
    pub(super) const KEY_AGREEMENT: u16 = 1 << 4;
    pub(super) const CERTIFICATE_SIGN: u16 = 1 << 5;
}

impl Certificate {
    /// Reads a certificate.
    ///
    /// # Errors
    /// [`Error::BadCertificate`]
    pub fn parse(der: &CertificateDer<'_>) -> Result<Certificate, Error> {
        let (rest, parsed) = X509Certificate::from_der(der).map_err(|_| Error::BadCertificate)?;
        if !rest.is_empty() {
            return Err(Error::BadCertificate);
        }
        let X509Version(version) = parsed.version();
        let mut certificate = Certificate {
            der: der.clone().into_owned(),
            subject: parsed.subject().as_raw().to_vec(),
            issuer: parsed.issuer().as_raw().to_vec(),
            key: SubjectPublicKeyInfoDer::from(parsed.public_key().raw.to_vec()),
            version: version + 1,
            not_before_s: parsed.validity().not_before.timestamp(),
            not_after_s: parsed.validity().not_after.timestamp(),
            is_key_weak: is_weak(&parsed),
            is_signature_weak: WEAK_SIGNATURES
                .contains(&parsed.signature_algorithm.algorithm.to_id_string().as_str()),
            constraints: None,
            key_usage: None,
            extended_usage: None,
            has_unknown_critical: false,
            common_name: common_name(parsed.subject()),
            subject_line: line(parsed.subject()),
        };
        for extension in parsed.extensions() {
            certificate.note(extension.parsed_extension(), extension.critical);
        }
        Ok(certificate)
    }

    fn note(&mut self, extension: &ParsedExtension<'_>, is_critical: bool) {
        match extension {
            ParsedExtension::BasicConstraints(found) => {
                self.constraints = Some(Constraints {
                    is_ca: found.ca,
                    path_length_max: found.path_len_constraint,
                });
            }
            ParsedExtension::KeyUsage(found) => self.key_usage = Some(found.flags),
            ParsedExtension::ExtendedKeyUsage(found) => {
                self.extended_usage = Some(ExtendedUsage {
                    is_server: found.server_auth,
                    is_client: found.client_auth,
                });
            }
            // Nobody compares names, so those that are not subjects need no more attention.
            ParsedExtension::SubjectAlternativeName(_)
            | ParsedExtension::IssuerAlternativeName(_)
            | ParsedExtension::SubjectKeyIdentifier(_)
            | ParsedExtension::AuthorityKeyIdentifier(_)
            | ParsedExtension::CertificatePolicies(_) => {}
            // Constraints on names among them: only webpki checks those, and it reads the certificate by itself.
            _ => self.has_unknown_critical |= is_critical,
        }
    }

    /// When it ends, seconds since the Unix epoch.
    #[must_use]
    pub fn not_after_s(&self) -> i64 {
        self.not_after_s
    }

    /// The certificate itself.
    #[must_use]
    pub fn der(&self) -> &CertificateDer<'static> {
        &self.der
    }

    /// The DER of the subject's name.
    #[must_use]
    pub fn subject(&self) -> &[u8] {
        &self.subject
    }

    /// The DER of the issuer's name.
    #[must_use]
    pub fn issuer(&self) -> &[u8] {
        &self.issuer
    }

    /// The public key.
    #[must_use]
    pub fn key(&self) -> &SubjectPublicKeyInfoDer<'static> {
        &self.key
    }

    /// The first commonName of the subject: who a peer is for role-based access control.
    #[must_use]
    pub fn common_name(&self) -> Option<&str> {
        self.common_name.as_deref()
    }

    /// The subject on one line: `/C=US/O=Open vSwitch/CN=...`.
    #[must_use]
    pub fn subject_line(&self) -> &str {
        &self.subject_line
    }

    /// The SHA-1 of the certificate as people compare it: `aa:bb:...`.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        let octets = Sha1::digest(&self.der);
        let octets: Vec<String> = octets.iter().map(|octet| format!("{octet:02x}")).collect();
        octets.join(":")
    }

    /// Whether the certificate says that it was issued by itself.
    #[must_use]
    pub fn is_self_issued(&self) -> bool {
        self.subject == self.issuer
    }

    /// Whether its key is below 112 bits of security.
    #[must_use]
    pub fn is_key_weak(&self) -> bool {
        self.is_key_weak
    }

    /// Whether it is signed with a digest that no longer vouches for anything.
    #[must_use]
    pub fn is_signature_weak(&self) -> bool {
        self.is_signature_weak
    }

    /// Whether webpki reads it as the certificate of a peer: it knows version 3 only, and takes authorities for nothing else.
    pub(crate) fn is_ordinary_leaf(&self) -> bool {
        self.version == 3 && !self.constraints.is_some_and(|found| found.is_ca)
    }

    pub(crate) fn is_expired(&self, now: UnixTime) -> bool {
        self.not_after_s < seconds(now)
    }

    pub(crate) fn is_not_yet_valid(&self, now: UnixTime) -> bool {
        self.not_before_s > seconds(now)
    }

    pub(crate) fn has_unknown_critical(&self) -> bool {
        self.has_unknown_critical
    }

    /// Whether it may stand for a peer of this kind. A restriction that is not there allows everything.
    pub(crate) fn may_serve(&self, purpose: Purpose) -> bool {
        let wanted = match purpose {
            Purpose::Server => {
                usage::DIGITAL_SIGNATURE | usage::KEY_ENCIPHERMENT | usage::KEY_AGREEMENT
            }
            Purpose::Client => usage::DIGITAL_SIGNATURE | usage::KEY_AGREEMENT,
        };
        self.key_usage.is_none_or(|bits| bits & wanted != 0) && self.allows_extended(purpose)
    }

    pub(crate) fn allows_extended(&self, purpose: Purpose) -> bool {
        self.extended_usage.is_none_or(|usage| match purpose {
            Purpose::Server => usage.is_server,
            Purpose::Client => usage.is_client,
        })
    }

    /// Whether it may issue others, `below` of which that are no leaves and not issued by themselves stand between it and the
    /// leaf.
    pub(crate) fn may_issue(&self, below: usize) -> bool {
        if self
            .key_usage
            .is_some_and(|bits| bits & usage::CERTIFICATE_SIGN == 0)
        {
            return false;
        }
        match self.constraints {
            Some(constraints) => {
                let is_short = constraints
                    .path_length_max
                    .is_none_or(|max| below <= max as usize);
                constraints.is_ca && is_short
            }
            None if self.version == 1 => self.is_self_issued(),
            None => self.key_usage.is_some(),
        }
    }
}

fn seconds(time: UnixTime) -> i64 {
    i64::try_from(time.as_secs()).unwrap_or(i64::MAX)
}

fn is_weak(parsed: &X509Certificate<'_>) -> bool {
    match parsed.public_key().parsed() {
        Ok(PublicKey::RSA(key)) => key.key_size() < RSA_BITS_MIN,
        // What is weak among the others is not supported anyway.
        _ => false,
    }
}

fn common_name(name: &X509Name<'_>) -> Option<String> {
    let first = name.iter_common_name().next()?;
    Some(readable(first.as_slice()))
}

/// A text of a certificate as JSON can carry it to every parser: bytes that are no UTF-8, and NULs, become U+FFFD. No client so gets the name of
/// another, as it would if its name ended at the NUL.
fn readable(text: &[u8]) -> String {
    String::from_utf8_lossy(text).replace('\0', "\u{fffd}")
}

fn line(name: &X509Name<'_>) -> String {
    let registry = x509_parser::objects::oid_registry();
    let mut line = String::new();
    for attribute in name.iter_attributes() {
        let oid = attribute.attr_type();
        let short = x509_parser::objects::oid2abbrev(oid, registry)
            .map_or_else(|_| oid.to_id_string(), str::to_owned);
        line.push('/');
        line.push_str(&short);
        line.push('=');
        line.push_str(&String::from_utf8_lossy(attribute.as_slice()));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_texts_that_every_parser_takes() {
        assert_eq!(readable(b"client\0.example"), "client\u{fffd}.example");
        assert_eq!(readable(b"\xffclient"), "\u{fffd}client");
        assert_eq!(readable("Zo\u{eb}".as_bytes()), "Zo\u{eb}");
    }
}
