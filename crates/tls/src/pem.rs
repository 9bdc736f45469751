//! Reads keys and certificates from PEM files.
//!
//! Text around the marks is skipped: `ovs-pki` writes a dump of the certificate above it. The
//! result is DER, which [`Certificate`](crate::Certificate) and [`Identity`](crate::Identity)
//! interpret.

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem};

use crate::Error;

/// All certificates in a file, in its order.
///
/// # Errors
/// The file has no certificate, or one that is not base64.
pub fn certificates(text: &[u8]) -> Result<Vec<CertificateDer<'static>>, Error> {
    let found = CertificateDer::pem_slice_iter(text)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|_| Error::BadPem)?;
    if found.is_empty() {
        return Err(Error::NoCertificate);
    }
    Ok(found)
}

/// The first private key in a file: PKCS#8, PKCS#1 or SEC1.
///
/// # Errors
/// The file has no unencrypted private key, or it is not base64.
pub fn private_key(text: &[u8]) -> Result<PrivateKeyDer<'static>, Error> {
    PrivateKeyDer::from_pem_slice(text).map_err(|error| match error {
        pem::Error::NoItemsFound => Error::NoKey,
        _ => Error::BadPem,
    })
}

/// The certificate in PEM form, as written to a file.
#[must_use]
pub fn encode(certificate: &CertificateDer<'_>) -> String {
    let mut text = String::from("-----BEGIN CERTIFICATE-----\n");
    for line in base64(certificate).as_bytes().chunks(64) {
        text.push_str(&String::from_utf8_lossy(line));
        text.push('\n');
    }
    text + "-----END CERTIFICATE-----\n"
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let octet = |at: usize| u32::from(group.get(at).copied().unwrap_or(0));
        let bits = octet(0) << 16 | octet(1) << 8 | octet(2);
        for digit in 0..4 {
            let is_padding = digit > group.len();
            let index = (bits >> (18 - 6 * digit)) as usize & 63;
            text.push(if is_padding {
                '='
            } else {
                char::from(DIGITS[index])
            });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_around_the_marks_is_skipped() {
        for length in 1..200 {
            let bytes: Vec<u8> = (0..length).map(|i| (i * 37 % 256) as u8).collect();
            let one = encode(&CertificateDer::from(bytes.clone()));
            let text = format!("Certificate:\n    Data: a = b\n{one}trailing\n{one}");
            let found = certificates(text.as_bytes()).unwrap();
            assert_eq!(found.len(), 2);
            assert!(found.iter().all(|found| found.as_ref() == bytes));
        }
    }

    #[test]
    fn what_is_missing_is_named() {
        assert_eq!(certificates(b"hello"), Err(Error::NoCertificate));
        assert_eq!(private_key(b"").unwrap_err(), Error::NoKey);
        let encrypted =
            "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
        assert_eq!(private_key(encrypted.as_bytes()).unwrap_err(), Error::NoKey);
        let broken = "-----BEGIN CERTIFICATE-----\n!!!!\n-----END CERTIFICATE-----\n";
        assert_eq!(certificates(broken.as_bytes()), Err(Error::BadPem));
    }
}
