//! Everything that new connections need, for both sides, made from keys, certificates and settings.
//!
//! A new value is made whenever one of them changes; established connections keep the old one.

use std::sync::Arc;

use rustls::client::Resumption;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::CertificateDer;
use rustls::server::NoServerSessionStorage;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{ClientConfig, ServerConfig};

use crate::authorities::Authorities;
use crate::verify::Verifier;
use crate::{CipherChoice, Clock, Error, Identity, Protocols};

/// Which peers are trusted.
#[derive(Debug, Clone)]
pub enum Trust {
    /// Peers whose chain leads to the CA file.
    Authorities(Arc<Authorities>),
    /// All peers; clients need no certificate.
    Everybody,
    /// No authority yet: the first server that we connect to provides the one to trust from then
    /// on, and clients are rejected.
    FirstServer,
}

/// The parts of a [`Config`].
#[derive(Debug, Clone)]
pub struct Material {
    /// Key and certificate.
    pub identity: Identity,
    /// Which peers are trusted.
    pub trust: Trust,
    /// Certificates to send after our own. If there are none, our issuers are sent, as far as the
    /// CA file has them.
    pub extra_chain: Vec<CertificateDer<'static>>,
    /// Versions of TLS.
    pub protocols: Protocols,
    /// Cipher suites.
    pub ciphers: CipherChoice,
}

/// The configuration of new connections; cheap to clone.
#[derive(Debug, Clone)]
pub struct Config {
    pub(crate) server: Arc<ServerConfig>,
    pub(crate) client: Arc<ClientConfig>,
    is_bootstrapping: bool,
}

impl Config {
    /// A configuration; `clock` gives the time that certificate dates are compared with.
    ///
    /// # Errors
    /// The settings leave nothing to offer: [`Error::NothingToOffer`].
    pub fn new(material: &Material, clock: &Arc<dyn Clock>) -> Result<Config, Error> {
        let provider = Arc::new(CryptoProvider {
            cipher_suites: material.ciphers.suites(),
            ..ring::default_provider()
        });
        let algorithms = provider.signature_verification_algorithms;
        let own = Arc::new(CertifiedKey::new(
            chain(material),
            material.identity.key.clone(),
        ));
        let (of_clients, of_servers) = match &material.trust {
            Trust::Authorities(known) => (Some(known.clone()), Some(known.clone())),
            Trust::Everybody => (None, None),
            // No authority exists that could have issued a client's certificate.
            Trust::FirstServer => (Some(Arc::default()), None),
        };
        let versions = material.protocols.versions();
        let mut server = ServerConfig::builder_with_details(provider.clone(), clock.clone())
            .with_protocol_versions(&versions)
            .map_err(|_| Error::NothingToOffer)?
            .with_client_cert_verifier(Arc::new(Verifier::new(of_clients, algorithms)))
            .with_cert_resolver(Arc::new(SingleCertAndKey::from(own.clone())));
        server.session_storage = Arc::new(NoServerSessionStorage {});
        server.send_tls13_tickets = 0;
        let mut client = ClientConfig::builder_with_details(provider, clock.clone())
            .with_protocol_versions(&versions)
            .map_err(|_| Error::NothingToOffer)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Verifier::new(of_servers, algorithms)))
            .with_client_cert_resolver(Arc::new(SingleCertAndKey::from(own)));
        client.resumption = Resumption::disabled();
        Ok(Config {
            server: Arc::new(server),
            client: Arc::new(client),
            is_bootstrapping: matches!(material.trust, Trust::FirstServer),
        })
    }

    /// The accepting side, for a program that runs rustls over sockets of its own.
    #[must_use]
    pub fn for_accepting(&self) -> Arc<ServerConfig> {
        self.server.clone()
    }

    /// Whether the next server that we connect to provides the authority to trust.
    #[must_use]
    pub fn is_bootstrapping(&self) -> bool {
        self.is_bootstrapping
    }
}

/// The chain that we send.
fn chain(material: &Material) -> Vec<CertificateDer<'static>> {
    let own = &material.identity.certificate;
    let mut chain = vec![own.der().clone()];
    match &material.trust {
        _ if !material.extra_chain.is_empty() => chain.extend(material.extra_chain.iter().cloned()),
        Trust::Authorities(known) => chain.extend(known.chain_above(own)),
        Trust::Everybody | Trust::FirstServer => {}
    }
    chain
}
