//! Paths for certificates that webpki does not accept: version 1, and authorities that act as peers
//! themselves.
//!
//! Depth-first search over all possible issuers. The number of signatures checked is limited,
//! because the peer's certificates determine how many are tried. Name constraints are not
//! understood here: an issuer that has them is skipped.

use rustls::CertificateError;
use rustls::pki_types::CertificateDer;

use crate::authorities::is_anchor;
use crate::certificate::Certificate;
use crate::chain::Judge;
use crate::der::{Reader, tag};

/// The maximum number of certificates between a leaf and its anchor.
const DEPTH_MAX: usize = 6;
/// The maximum number of signatures checked for one peer.
const SIGNATURES_MAX: usize = 64;

/// Searches for a path from a leaf that has already been checked to an anchor.
pub(crate) fn find(
    judge: &Judge<'_>,
    leaf: &Certificate,
    sent: &[CertificateDer<'_>],
) -> Result<(), CertificateError> {
    if leaf.has_unknown_critical() {
        return Err(CertificateError::UnhandledCriticalExtension);
    }
    let sent: Vec<Certificate> = sent
        .iter()
        .filter_map(|der| Certificate::parse(der).ok())
        .collect();
    let mut search = Search {
        judge,
        sent: &sent,
        signatures_left: SIGNATURES_MAX,
        refusal: CertificateError::UnknownIssuer,
    };
    if search.climb(leaf, 0, 0) {
        Ok(())
    } else {
        Err(search.refusal)
    }
}

struct Search<'a> {
    judge: &'a Judge<'a>,
    sent: &'a [Certificate],
    signatures_left: usize,
    /// Why the last candidate that had signed was rejected.
    refusal: CertificateError,
}

impl<'a> Search<'a> {
    /// Whether a path leads from this certificate to an anchor. `below` is the argument of
    /// [`Certificate::may_issue`].
    fn climb(&mut self, certificate: &Certificate, depth: usize, below: usize) -> bool {
        let judge = self.judge;
        let candidates = judge.authorities.iter().chain(self.sent);
        for issuer in candidates.filter(|issuer| issuer.subject() == certificate.issuer()) {
            let is_trusted = is_anchor(issuer) && judge.authorities.contains(issuer);
            let is_dead_end = !is_trusted && (depth == DEPTH_MAX || issuer.is_self_issued());
            if is_dead_end || issuer.has_unknown_critical() || !self.has_signed(issuer, certificate)
            {
                continue;
            }
            if let Err(refusal) = judge.check_issuer(issuer, below) {
                self.refusal = refusal;
            } else if is_trusted || self.climb(issuer, depth + 1, below + 1) {
                return true;
            }
        }
        false
    }

    fn has_signed(&mut self, issuer: &Certificate, certificate: &Certificate) -> bool {
        if self.signatures_left == 0 {
            return false;
        }
        self.signatures_left -= 1;
        is_signed(self.judge, issuer, certificate).unwrap_or(false)
    }
}

/// Whether the certificate carries a signature by the issuer's key, with an acceptable algorithm.
/// `None` if it is not a certificate.
fn is_signed(judge: &Judge<'_>, issuer: &Certificate, certificate: &Certificate) -> Option<bool> {
    // Certificate ::= SEQUENCE { tbsCertificate, signatureAlgorithm, signatureValue BIT STRING }
    // (RFC 5280 4.1)
    let mut outer = Reader::new(certificate.der()).enter(tag::SEQUENCE).ok()?;
    let signed = outer.value().ok()?.raw;
    let algorithm = outer.value().ok()?.content;
    let signature = outer.value().ok()?.bytes_of_bits().ok()?;
    let key = webpki::RawPublicKeyEntity::try_from(issuer.key()).ok()?;
    let mut fitting = judge
        .algorithms
        .all
        .iter()
        .filter(|known| known.signature_alg_id().as_ref() == algorithm);
    Some(fitting.any(|known| key.verify_signature(*known, signed, signature).is_ok()))
}
