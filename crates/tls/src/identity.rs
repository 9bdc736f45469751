//! Our own key and certificate, which must match.

use std::sync::Arc;

use rustls::crypto::ring::sign::any_supported_type;
use rustls::pki_types::PrivateKeyDer;
use rustls::sign::SigningKey;

use crate::certificate::Certificate;
use crate::{Error, pem};

/// Our key and certificate.
#[derive(Debug, Clone)]
pub struct Identity {
    pub(crate) key: Arc<dyn SigningKey>,
    pub(crate) certificate: Certificate,
}

impl Identity {
    /// Combines a key and a certificate.
    ///
    /// # Errors
    /// The key is unsupported, too weak, or does not match the certificate; or the certificate is
    /// signed with a weak digest.
    pub fn new(key: &PrivateKeyDer<'_>, certificate: Certificate) -> Result<Identity, Error> {
        check_strength(&certificate)?;
        let key = any_supported_type(key).map_err(|_| Error::UnsupportedKey)?;
        match key.public_key() {
            Some(public) if public.as_ref() != certificate.key().as_ref() => {
                Err(Error::KeyMismatch)
            }
            _ => Ok(Identity { key, certificate }),
        }
    }

    /// Combines a key and a certificate from the contents of their files. Only the first
    /// certificate counts.
    ///
    /// # Errors
    /// As for [`Identity::new`], or a file lacks the key or the certificate.
    pub fn from_pem(key: &[u8], certificate: &[u8]) -> Result<Identity, Error> {
        let first = own_certificate(certificate)?;
        Identity::new(&pem::private_key(key)?, first)
    }

    /// Our certificate.
    #[must_use]
    pub fn certificate(&self) -> &Certificate {
        &self.certificate
    }
}

/// The certificate in a file for our own use: the first one.
///
/// # Errors
/// There is none, it cannot be parsed, or its key or signature is too weak.
pub fn own_certificate(text: &[u8]) -> Result<Certificate, Error> {
    let found = pem::certificates(text)?;
    let certificate = Certificate::parse(found.first().ok_or(Error::NoCertificate)?)?;
    check_strength(&certificate)?;
    Ok(certificate)
}

/// Peers reject weak keys and signatures, so they are rejected here. The signature of a self-signed
/// certificate does not matter.
fn check_strength(certificate: &Certificate) -> Result<(), Error> {
    if certificate.is_key_weak() {
        return Err(Error::WeakKey);
    }
    if certificate.is_signature_weak() && certificate.subject() != certificate.issuer() {
        return Err(Error::WeakSignature);
    }
    Ok(())
}
