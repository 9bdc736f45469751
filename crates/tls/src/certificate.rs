//! One X.509 certificate: the properties that the rules for peers need, parsed leniently.
//!
//! Version 1 is parsed like version 3 without extensions. An extension that cannot be parsed counts
//! as unknown. `chain` decides what a certificate is good for.

use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use rustls::pki_types::{CertificateDer, SubjectPublicKeyInfoDer, UnixTime};

use crate::Error;
use crate::der::{BadDer, Reader, Value, tag};
use crate::name::Name;

/// The minimum RSA modulus, bits: 112 bits of security.
const RSA_BITS_MIN: usize = 2048;

/// Object identifiers, as DER without tag and length.
mod oid {
    /// rsaEncryption
    pub(super) const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1];

    /// Signatures over MD2, MD5 and SHA-1: with RSA, DSA and ECDSA keys.
    pub(super) const WEAK_SIGNATURES: [&[u8]; 6] = [
        // 1.2.840.113549.1.1.2, .4 and .5
        &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 2],
        &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 4],
        &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 5],
        // 1.3.14.3.2.29
        &[0x2b, 14, 3, 2, 29],
        // 1.2.840.10040.4.3
        &[0x2a, 0x86, 0x48, 0xce, 0x38, 4, 3],
        // 1.2.840.10045.4.1
        &[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 1],
    ];

    /// Extensions: 2.5.29 and the number.
    pub(super) const SUBJECT_KEY_IDENTIFIER: &[u8] = &[0x55, 29, 14];
    pub(super) const KEY_USAGE: &[u8] = &[0x55, 29, 15];
    pub(super) const SUBJECT_ALTERNATIVE_NAME: &[u8] = &[0x55, 29, 17];
    pub(super) const ISSUER_ALTERNATIVE_NAME: &[u8] = &[0x55, 29, 18];
    pub(super) const BASIC_CONSTRAINTS: &[u8] = &[0x55, 29, 19];
    pub(super) const CERTIFICATE_POLICIES: &[u8] = &[0x55, 29, 32];
    pub(super) const AUTHORITY_KEY_IDENTIFIER: &[u8] = &[0x55, 29, 35];
    pub(super) const EXTENDED_KEY_USAGE: &[u8] = &[0x55, 29, 37];

    /// Purposes of extendedKeyUsage: 1.3.6.1.5.5.7.3.1 and .2.
    pub(super) const SERVER_AUTH: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 3, 1];
    pub(super) const CLIENT_AUTH: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 3, 2];
}

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

/// The extendedKeyUsage extension, as far as TLS needs it.
#[derive(Debug, Clone, Copy)]
struct ExtendedUsage {
    is_server: bool,
    is_client: bool,
}

/// The role in which a peer's certificate is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The peer accepted our connection.
    Server,
    /// The peer connected to us.
    Client,
}

/// Bits of the keyUsage extension (RFC 5280 4.2.1.3), the first bit lowest.
mod usage {
    pub(super) const DIGITAL_SIGNATURE: u16 = 1 << 0;
    pub(super) const KEY_ENCIPHERMENT: u16 = 1 << 2;
    pub(super) const KEY_AGREEMENT: u16 = 1 << 4;
    pub(super) const CERTIFICATE_SIGN: u16 = 1 << 5;
}

impl Certificate {
    /// Parses a certificate.
    ///
    /// # Errors
    /// The bytes are not an X.509 certificate: [`Error::BadCertificate`].
    pub fn parse(der: &CertificateDer<'_>) -> Result<Certificate, Error> {
        Certificate::read(der).map_err(|BadDer| Error::BadCertificate)
    }

    /// Certificate ::= SEQUENCE { tbsCertificate, signatureAlgorithm, signatureValue BIT STRING }
    /// (RFC 5280 4.1)
    fn read(der: &CertificateDer<'_>) -> Result<Certificate, BadDer> {
        let mut outer = Reader::new(der);
        let mut certificate = outer.enter(tag::SEQUENCE)?;
        outer.end()?;
        let mut signed = certificate.enter(tag::SEQUENCE)?;
        let signature = algorithm(&mut certificate)?;
        certificate.value()?.bits()?;
        certificate.end()?;
        // The version is counted from 0; if absent, it is the first.
        let version = match signed.optional(tag::explicit(0))? {
            Some(version) => {
                let mut version = Reader::new(version.content);
                let number = version.value()?.small()?;
                version.end()?;
                number
            }
            None => 0,
        };
        // The serial number.
        if signed.expect(tag::INTEGER)?.content.is_empty() {
            return Err(BadDer);
        }
        algorithm(&mut signed)?;
        let issuer = signed.expect(tag::SEQUENCE)?;
        Name::read(Reader::new(issuer.content))?;
        let mut validity = signed.enter(tag::SEQUENCE)?;
        let (not_before_s, not_after_s) =
            (validity.value()?.time_s()?, validity.value()?.time_s()?);
        validity.end()?;
        let subject = signed.expect(tag::SEQUENCE)?;
        let name = Name::read(Reader::new(subject.content))?;
        let key = signed.expect(tag::SEQUENCE)?;
        let is_key_weak = is_weak(key)?;
        // Unique identifiers of issuer and subject.
        signed.optional(tag::implicit(1))?;
        signed.optional(tag::implicit(2))?;
        let mut read = Certificate {
            der: der.clone().into_owned(),
            subject: subject.raw.to_vec(),
            issuer: issuer.raw.to_vec(),
            key: SubjectPublicKeyInfoDer::from(key.raw.to_vec()),
            version: version.saturating_add(1),
            not_before_s,
            not_after_s,
            is_key_weak,
            is_signature_weak: oid::WEAK_SIGNATURES.contains(&signature),
            constraints: None,
            key_usage: None,
            extended_usage: None,
            has_unknown_critical: false,
            common_name: name.common_name,
            subject_line: name.line,
        };
        if let Some(extensions) = signed.optional(tag::explicit(3))? {
            let mut outer = Reader::new(extensions.content);
            let mut extensions = outer.enter(tag::SEQUENCE)?;
            outer.end()?;
            while !extensions.is_empty() {
                read.read_extension(extensions.enter(tag::SEQUENCE)?)?;
            }
        }
        signed.end()?;
        Ok(read)
    }

    /// Extension ::= SEQUENCE { extnID, critical BOOLEAN DEFAULT FALSE, extnValue OCTET STRING },
    /// its sequence entered.
    fn read_extension(&mut self, mut extension: Reader<'_>) -> Result<(), BadDer> {
        let id = extension.oid()?;
        let is_critical = match extension.optional(tag::BOOLEAN)? {
            Some(critical) => critical.boolean()?,
            None => false,
        };
        let value = extension.expect(tag::OCTET_STRING)?.content;
        extension.end()?;
        if self.apply_extension(id, value).is_err() {
            self.has_unknown_critical |= is_critical;
        }
        Ok(())
    }

    /// Returns an error if the extension is unknown or cannot be parsed.
    fn apply_extension(&mut self, id: &[u8], value: &[u8]) -> Result<(), BadDer> {
        let mut reader = Reader::new(value);
        match id {
            oid::BASIC_CONSTRAINTS => self.constraints = Some(constraints(reader)?),
            oid::KEY_USAGE => self.key_usage = Some(key_usage(reader)?),
            oid::EXTENDED_KEY_USAGE => self.extended_usage = Some(extended_usage(reader)?),
            // Names are not compared, so these need no more attention.
            oid::SUBJECT_ALTERNATIVE_NAME
            | oid::ISSUER_ALTERNATIVE_NAME
            | oid::AUTHORITY_KEY_IDENTIFIER
            | oid::CERTIFICATE_POLICIES => {
                reader.expect(tag::SEQUENCE)?;
                reader.end()?;
            }
            oid::SUBJECT_KEY_IDENTIFIER => {
                reader.expect(tag::OCTET_STRING)?;
                reader.end()?;
            }
            // This includes name constraints: only webpki checks those, and it parses the
            // certificate itself.
            _ => return Err(BadDer),
        }
        Ok(())
    }

    /// When the certificate expires, seconds since the Unix epoch.
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

    /// The first commonName of the subject: the peer's identity for role-based access control.
    #[must_use]
    pub fn common_name(&self) -> Option<&str> {
        self.common_name.as_deref()
    }

    /// The subject on one line: `/C=US/O=Open vSwitch/CN=...`.
    #[must_use]
    pub fn subject_line(&self) -> &str {
        &self.subject_line
    }

    /// The SHA-1 of the certificate in the form that people compare: `aa:bb:...`.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        let digest = digest(&SHA1_FOR_LEGACY_USE_ONLY, &self.der);
        let octets = digest.as_ref().iter();
        let octets: Vec<String> = octets.map(|octet| format!("{octet:02x}")).collect();
        octets.join(":")
    }

    /// Whether the certificate names itself as its issuer.
    #[must_use]
    pub fn is_self_issued(&self) -> bool {
        self.subject == self.issuer
    }

    /// Whether the key has less than 112 bits of security.
    #[must_use]
    pub fn is_key_weak(&self) -> bool {
        self.is_key_weak
    }

    /// Whether the certificate is signed with a digest that is no longer secure.
    #[must_use]
    pub fn is_signature_weak(&self) -> bool {
        self.is_signature_weak
    }

    /// Whether webpki accepts it as the certificate of a peer: webpki knows only version 3, and
    /// does not accept an authority as a peer.
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

    /// Whether the certificate may be used by a peer in this role. An absent restriction allows
    /// everything.
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

    /// Whether the certificate may issue others. `below` is the number of certificates between it
    /// and the leaf, not counting self-issued ones.
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

/// Parses AlgorithmIdentifier ::= SEQUENCE { algorithm, parameters ANY OPTIONAL }. Returns the
/// algorithm.
fn algorithm<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8], BadDer> {
    let mut identifier = reader.enter(tag::SEQUENCE)?;
    let algorithm = identifier.oid()?;
    if !identifier.is_empty() {
        identifier.value()?;
    }
    identifier.end()?;
    Ok(algorithm)
}

/// Whether a SubjectPublicKeyInfo holds an RSA key that is too short. Weak keys of other kinds are
/// not supported at all.
fn is_weak(key: Value<'_>) -> Result<bool, BadDer> {
    let mut key = Reader::new(key.content);
    let algorithm = algorithm(&mut key)?;
    let bits = key.value()?;
    bits.bits()?;
    key.end()?;
    if algorithm != oid::RSA {
        return Ok(false);
    }
    // A key that cannot be parsed is not weak: it is rejected when it is used.
    let modulus_bits = bits.bytes_of_bits().and_then(modulus_bits);
    Ok(modulus_bits.is_ok_and(|bits| bits < RSA_BITS_MIN))
}

/// The length of the modulus of RSAPublicKey ::= SEQUENCE { modulus INTEGER, publicExponent INTEGER
/// }, bits; 0 if it is negative.
fn modulus_bits(key: &[u8]) -> Result<usize, BadDer> {
    let mut key = Reader::new(key).enter(tag::SEQUENCE)?;
    let modulus = key.expect(tag::INTEGER)?.content;
    key.expect(tag::INTEGER)?;
    if modulus.first().is_none_or(|first| *first >= 0x80) {
        return Ok(0);
    }
    let zeros = modulus.iter().take_while(|byte| **byte == 0).count();
    let top = modulus.get(zeros).map_or(0, |byte| byte.leading_zeros());
    Ok((modulus.len() - zeros) * 8 - top as usize)
}

/// Parses BasicConstraints ::= SEQUENCE { cA BOOLEAN DEFAULT FALSE, pathLenConstraint INTEGER
/// OPTIONAL }
fn constraints(mut reader: Reader<'_>) -> Result<Constraints, BadDer> {
    let mut found = reader.enter(tag::SEQUENCE)?;
    reader.end()?;
    let is_ca = match found.optional(tag::BOOLEAN)? {
        Some(is_ca) => is_ca.boolean()?,
        None => false,
    };
    let path_length_max = match found.optional(tag::INTEGER)? {
        Some(max) => Some(max.small()?),
        None => None,
    };
    found.end()?;
    Ok(Constraints {
        is_ca,
        path_length_max,
    })
}

/// Parses KeyUsage ::= BIT STRING, whose first bit is the highest in the first byte.
fn key_usage(mut reader: Reader<'_>) -> Result<u16, BadDer> {
    let (_, bytes) = reader.value()?.bits()?;
    reader.end()?;
    let byte = |at: usize| bytes.get(at).map_or(0, |byte| byte.reverse_bits());
    Ok(u16::from_le_bytes([byte(0), byte(1)]))
}

/// Parses ExtKeyUsageSyntax ::= SEQUENCE OF KeyPurposeId
fn extended_usage(mut reader: Reader<'_>) -> Result<ExtendedUsage, BadDer> {
    let mut purposes = reader.enter(tag::SEQUENCE)?;
    reader.end()?;
    let mut usage = ExtendedUsage {
        is_server: false,
        is_client: false,
    };
    while !purposes.is_empty() {
        match purposes.oid()? {
            oid::SERVER_AUTH => usage.is_server = true,
            oid::CLIENT_AUTH => usage.is_client = true,
            _ => {}
        }
    }
    Ok(usage)
}

#[cfg(test)]
mod readings;
