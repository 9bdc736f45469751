//! The rules for a peer's chain (docs/spec/cli.md 5.4): it leads to a self-issued certificate in
//! the CA file, every certificate is within its dates and purpose, and no key has less than 112
//! bits of security. Names are ignored.
//!
//! webpki builds the path for ordinary certificates; `path` does so for those that webpki rejects
//! and OpenSSL accepts: version 1, and authorities that act as peers themselves. The rules of this
//! file apply to both.

use std::cell::RefCell;

use rustls::CertificateError;
use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls::pki_types::{CertificateDer, UnixTime};
use webpki::{EndEntityCert, KeyUsage, VerifiedPath};

use crate::authorities::Authorities;
use crate::certificate::{Certificate, Purpose};
use crate::path;

/// The rules and the trust by which chains are verified.
pub(crate) struct Judge<'a> {
    pub(crate) authorities: &'a Authorities,
    pub(crate) algorithms: &'a WebPkiSupportedAlgorithms,
    pub(crate) purpose: Purpose,
    pub(crate) now: UnixTime,
}

impl Judge<'_> {
    /// Accepts or rejects a peer by its certificate and the certificates that it sent along.
    pub(crate) fn judge(
        &self,
        leaf: &CertificateDer<'_>,
        sent: &[CertificateDer<'_>],
    ) -> Result<(), CertificateError> {
        let parsed = Certificate::parse(leaf).map_err(|_| CertificateError::BadEncoding)?;
        self.check_leaf(&parsed)?;
        if parsed.is_self_issued() && self.authorities.contains(&parsed) {
            return Ok(());
        }
        if parsed.is_ordinary_leaf() {
            self.build_path(leaf, sent)
        } else {
            path::find(self, &parsed, sent)
        }
    }

    fn check_leaf(&self, leaf: &Certificate) -> Result<(), CertificateError> {
        self.check_common(leaf)?;
        if leaf.may_serve(self.purpose) {
            Ok(())
        } else {
            Err(CertificateError::InvalidPurpose)
        }
    }

    /// The rules for every certificate of a chain.
    pub(crate) fn check_common(&self, certificate: &Certificate) -> Result<(), CertificateError> {
        if certificate.is_not_yet_valid(self.now) {
            Err(CertificateError::NotValidYet)
        } else if certificate.is_expired(self.now) {
            Err(CertificateError::Expired)
        } else if certificate.is_key_weak() {
            Err(weak_key())
        } else {
            Ok(())
        }
    }

    /// Checks whether a certificate may issue others in a chain, with `below` more between it and
    /// the leaf.
    pub(crate) fn check_issuer(
        &self,
        issuer: &Certificate,
        below: usize,
    ) -> Result<(), CertificateError> {
        self.check_common(issuer)?;
        if issuer.may_issue(below) && issuer.allows_extended(self.purpose) {
            Ok(())
        } else {
            Err(CertificateError::InvalidPurpose)
        }
    }

    fn build_path(
        &self,
        leaf: &CertificateDer<'_>,
        sent: &[CertificateDer<'_>],
    ) -> Result<(), CertificateError> {
        let certificate = EndEntityCert::try_from(leaf).map_err(|error| refusal(&error))?;
        let sent = sent.iter().map(AsRef::as_ref);
        let known = self.authorities.iter().map(|known| known.der().as_ref());
        let others: Vec<CertificateDer<'_>> = sent.chain(known).map(CertificateDer::from).collect();
        let usage = match self.purpose {
            Purpose::Server => KeyUsage::server_auth(),
            Purpose::Client => KeyUsage::client_auth(),
        };
        let refused = RefCell::new(None);
        let check = |path: &VerifiedPath<'_>| {
            self.check_path(path).map_err(|error| {
                refused.replace(Some(error));
                // Another path may succeed.
                webpki::Error::UnknownIssuer
            })
        };
        let outcome = certificate.verify_for_usage(
            self.algorithms.all,
            self.authorities.anchors(),
            &others,
            self.now,
            usage,
            None,
            Some(&check),
        );
        match outcome {
            Ok(_) => Ok(()),
            Err(error) => Err(refused.take().unwrap_or_else(|| refusal(&error))),
        }
    }

    /// Checks the rules that webpki does not have.
    fn check_path(&self, path: &VerifiedPath<'_>) -> Result<(), CertificateError> {
        let mut below = 0;
        for certificate in path.intermediate_certificates() {
            let parsed = Certificate::parse(&certificate.der())
                .map_err(|_| CertificateError::BadEncoding)?;
            self.check_issuer(&parsed, below)?;
            below += usize::from(!parsed.is_self_issued());
        }
        let mut outcome = Err(CertificateError::UnknownIssuer);
        for anchor in self.authorities.behind(path.anchor()) {
            outcome = self.check_issuer(anchor, below);
            if outcome.is_ok() {
                break;
            }
        }
        outcome
    }
}

/// No alert describes weak keys; this error becomes "access denied".
fn weak_key() -> CertificateError {
    CertificateError::ApplicationVerificationFailure
}

fn refusal(error: &webpki::Error) -> CertificateError {
    use webpki::Error;
    match error {
        Error::BadDer | Error::BadDerTime | Error::TrailingData(_) => CertificateError::BadEncoding,
        Error::CertExpired { .. } => CertificateError::Expired,
        Error::CertNotValidYet { .. } => CertificateError::NotValidYet,
        Error::UnsupportedCriticalExtension => CertificateError::UnhandledCriticalExtension,
        Error::InvalidSignatureForPublicKey => CertificateError::BadSignature,
        Error::EndEntityUsedAsCa
        | Error::PathLenConstraintViolated
        | Error::RequiredEkuNotFoundContext(_) => CertificateError::InvalidPurpose,
        _ => CertificateError::UnknownIssuer,
    }
}
