//! The contents of a CA file: the trusted certificates, and the certificates that complete chains.
//!
//! Only self-issued certificates are trusted; the other certificates in the file help to build a
//! path from a peer to a trusted one.

use rustls::pki_types::{CertificateDer, TrustAnchor};

use crate::certificate::Certificate;
use crate::{Error, pem};

/// The certificates of a CA file.
#[derive(Debug, Clone, Default)]
pub struct Authorities {
    certificates: Vec<Certificate>,
    /// The self-issued certificates that may issue others, in the form that webpki needs.
    anchors: Vec<TrustAnchor<'static>>,
}

impl Authorities {
    /// Parses a CA file.
    ///
    /// # Errors
    /// The file has no certificate, or one that cannot be parsed.
    pub fn from_pem(text: &[u8]) -> Result<Authorities, Error> {
        let found = pem::certificates(text)?;
        let certificates = found
            .iter()
            .map(Certificate::parse)
            .collect::<Result<Vec<_>, _>>()?;
        let anchors = certificates
            .iter()
            .filter(|certificate| is_anchor(certificate))
            .filter_map(|certificate| webpki::anchor_from_trusted_cert(certificate.der()).ok())
            .map(|anchor| anchor.to_owned())
            .collect();
        Ok(Authorities {
            certificates,
            anchors,
        })
    }

    /// All certificates, in the order of the file.
    pub fn iter(&self) -> impl Iterator<Item = &Certificate> {
        self.certificates.iter()
    }

    /// The trusted certificates that may issue others.
    pub(crate) fn anchors(&self) -> &[TrustAnchor<'static>] {
        &self.anchors
    }

    /// The certificates that an anchor stands for.
    pub(crate) fn behind<'a>(
        &'a self,
        anchor: &'a TrustAnchor<'_>,
    ) -> impl Iterator<Item = &'a Certificate> {
        // An anchor's parts lack the outer DER tag and length.
        self.iter().filter(|certificate| {
            is_anchor(certificate)
                && certificate.subject().ends_with(&anchor.subject)
                && certificate.key().ends_with(&anchor.subject_public_key_info)
        })
    }

    /// Whether exactly this certificate is in the file.
    pub(crate) fn contains(&self, certificate: &Certificate) -> bool {
        self.iter().any(|known| known.der() == certificate.der())
    }

    /// The issuers of a certificate that are in the file, up to and including a self-issued one.
    /// Peers that bootstrap their trust from the connection need that last one.
    #[must_use]
    pub fn chain_above(&self, certificate: &Certificate) -> Vec<CertificateDer<'static>> {
        let mut chain: Vec<CertificateDer<'static>> = Vec::new();
        let mut current = certificate;
        while !current.is_self_issued() {
            let issuer = self
                .iter()
                .find(|known| known.subject() == current.issuer() && !chain.contains(known.der()));
            let Some(issuer) = issuer else { break };
            chain.push(issuer.der().clone());
            current = issuer;
        }
        chain
    }
}

/// Whether a certificate of a CA file is trusted as an issuer, regardless of its dates.
pub(crate) fn is_anchor(certificate: &Certificate) -> bool {
    certificate.is_self_issued() && certificate.may_issue(0) && !certificate.is_key_weak()
}
