//! The verifier that rustls calls with a peer's certificate, in both directions.
//!
//! `chain` judges the chain; the name is ignored. Handshake signatures are checked with the key
//! itself, so that certificates which webpki cannot parse work too.

use std::collections::BTreeSet;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, PeerMisbehaved,
    SignatureScheme,
};

use crate::authorities::Authorities;
use crate::certificate::{Certificate, Purpose};
use crate::chain::Judge;

/// Judges peers by a CA file, or accepts every chain.
#[derive(Debug)]
pub struct Verifier {
    /// `None` accepts every chain: verification is off, or the first connection is to provide the
    /// authority.
    authorities: Option<Arc<Authorities>>,
    /// The subjects in the CA file, from which clients choose their certificate.
    subjects: Vec<DistinguishedName>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Verifier {
    /// A verifier; `None` accepts every chain (handshake signatures are still checked).
    #[must_use]
    pub fn new(
        authorities: Option<Arc<Authorities>>,
        algorithms: WebPkiSupportedAlgorithms,
    ) -> Verifier {
        let known = authorities
            .iter()
            .flat_map(|authorities| authorities.iter());
        let subjects: BTreeSet<&[u8]> = known.map(Certificate::subject).collect();
        let subjects = subjects
            .into_iter()
            .map(|subject| DistinguishedName::from(subject.to_vec()))
            .collect();
        Verifier {
            authorities,
            subjects,
            algorithms,
        }
    }

    fn judge(
        &self,
        leaf: &CertificateDer<'_>,
        sent: &[CertificateDer<'_>],
        purpose: Purpose,
        now: UnixTime,
    ) -> Result<(), Error> {
        let Some(authorities) = &self.authorities else {
            return Ok(());
        };
        let judge = Judge {
            authorities,
            algorithms: &self.algorithms,
            purpose,
            now,
        };
        judge.judge(leaf, sent).map_err(Error::InvalidCertificate)
    }

    fn verify_tls12(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let parsed = parse(certificate)?;
        let key = webpki::RawPublicKeyEntity::try_from(parsed.key())
            .map_err(|_| Error::InvalidCertificate(CertificateError::BadEncoding))?;
        let mapping = self.algorithms.mapping.iter();
        let (_, algorithms) = mapping
            .into_iter()
            .find(|(scheme, _)| *scheme == signed.scheme)
            .ok_or(PeerMisbehaved::SignedHandshakeWithUnadvertisedSigScheme)?;
        // A TLS 1.2 scheme does not determine the curve, so several algorithms match it.
        let is_valid = algorithms.iter().any(|algorithm| {
            key.verify_signature(*algorithm, message, signed.signature())
                .is_ok()
        });
        if is_valid {
            Ok(HandshakeSignatureValid::assertion())
        } else {
            Err(Error::InvalidCertificate(CertificateError::BadSignature))
        }
    }

    fn verify_tls13(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let parsed = parse(certificate)?;
        verify_tls13_signature_with_raw_key(message, parsed.key(), signed, &self.algorithms)
    }
}

fn parse(certificate: &CertificateDer<'_>) -> Result<Certificate, Error> {
    Certificate::parse(certificate)
        .map_err(|_| Error::InvalidCertificate(CertificateError::BadEncoding))
}

/// The methods that both traits of the library require: handshake signatures are checked the same
/// way in both directions.
macro_rules! handshake_signatures {
    () => {
        fn verify_tls12_signature(
            &self,
            message: &[u8],
            cert: &CertificateDer<'_>,
            dss: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            self.verify_tls12(message, cert, dss)
        }

        fn verify_tls13_signature(
            &self,
            message: &[u8],
            cert: &CertificateDer<'_>,
            dss: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            self.verify_tls13(message, cert, dss)
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            self.algorithms.supported_schemes()
        }
    };
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.judge(end_entity, intermediates, Purpose::Server, now)
            .map(|()| ServerCertVerified::assertion())
    }

    handshake_signatures!();
}

impl ClientCertVerifier for Verifier {
    /// Without verification, clients are not asked for a certificate.
    fn offer_client_auth(&self) -> bool {
        self.authorities.is_some()
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &self.subjects
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.judge(end_entity, intermediates, Purpose::Client, now)
            .map(|()| ClientCertVerified::assertion())
    }

    handshake_signatures!();
}
