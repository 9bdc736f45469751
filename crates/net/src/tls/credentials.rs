//! The credentials of a process: key, certificate and trusted authorities, kept up to date with
//! their files.
//!
//! Files are checked for changes before each connection and on request ([`Credentials::refresh`]).
//! If a key and a certificate do not match, the old pair stays in use, so that the files may be
//! replaced one after another. Open connections keep their credentials.
//!
//! Shared by everything that opens `ssl:` and `pssl:`. The lock is held while files are read.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use corvid_tls::{
    Authorities, CipherChoice, Clock, Config, Error, Identity, Material, Protocols, ServerConfig,
    Trust, UnixTime, pem,
};

use super::PEER_LIMIT;
use super::bootstrap;
use super::file::{Change, WatchedFile};
use super::missing::MissingPart;
use super::settings::{Authority, Settings};
use crate::logging::{self, Module};
use crate::{clock, errno, os_name};

/// The value of `--ca-cert` that accepts every peer.
const NONE: &str = "none";

/// The names of the parts in the log.
const KEY: &str = "Private key";
const CERTIFICATE: &str = "Certificate";
const AUTHORITY: &str = "CA certificate";

/// Key, certificate, trust and settings for connections of this process.
#[derive(Debug, Default)]
pub struct Credentials(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    settings: Settings,
    /// The credentials are those of [`Credentials::of_web_server`].
    is_of_web_server: bool,
    key: WatchedFile,
    certificate: WatchedFile,
    authority: WatchedFile,
    identity: Option<Identity>,
    /// The part whose file exists but cannot be used: key or certificate.
    unusable: Option<&'static str>,
    /// Why files cannot be used, by part. A part is listed from the failure until its file has been
    /// read.
    failures: BTreeMap<&'static str, String>,
    /// The authorities in the CA file.
    authorities: Option<Arc<Authorities>>,
    extra_chain: Vec<corvid_tls::CertificateDer<'static>>,
    protocols: Protocols,
    ciphers: CipherChoice,
    /// A setting other than a file name was rejected.
    has_refused: bool,
    /// The configuration for new connections; `None` after a change.
    config: Option<Config>,
}

/// The system clock, in the form that sessions need.
#[derive(Debug)]
struct WallClock;

impl Clock for WallClock {
    fn current_time(&self) -> Option<UnixTime> {
        let wall_ms = u64::try_from(clock::wall_ms()).ok()?;
        Some(UnixTime::since_unix_epoch(
            std::time::Duration::from_millis(wall_ms),
        ))
    }
}

impl Credentials {
    /// Credentials with these settings. Unusable settings are logged and ignored; missing ones are
    /// logged when a connection needs them.
    #[must_use]
    pub fn new(settings: &Settings) -> Arc<Credentials> {
        let credentials = Arc::<Credentials>::default();
        credentials.set(settings);
        credentials
    }

    /// Credentials for connections of browsers. Every certificate in the file of the certificate is
    /// sent, because browsers need the intermediate ones, and clients need a certificate only if
    /// the settings have an authority.
    #[must_use]
    pub fn of_web_server(settings: &Settings) -> Arc<Credentials> {
        let credentials = Arc::<Credentials>::default();
        credentials.lock().is_of_web_server = true;
        credentials.set(settings);
        credentials
    }

    /// Replaces the settings; equal settings change nothing. The previous value of a removed
    /// setting stays in use.
    pub fn set(&self, settings: &Settings) {
        let mut state = self.lock();
        state.set(settings);
        state.refresh();
    }

    /// Reads files that have changed.
    pub fn refresh(&self) {
        self.lock().refresh();
    }

    /// When this process's certificate expires, seconds since the Unix epoch; `None` without one.
    #[must_use]
    pub fn certificate_expiry_s(&self) -> Option<i64> {
        let state = self.lock();
        let identity = state.identity.as_ref();
        identity.map(|identity| identity.certificate().not_after_s())
    }

    /// The configuration for a new connection.
    ///
    /// # Errors
    /// `ENOPROTOOPT` (Protocol not available) if something is missing, `EPROTO` if the settings
    /// exclude every protocol or cipher; logged.
    pub(crate) fn config(&self) -> io::Result<Config> {
        let mut state = self.lock();
        state.refresh();
        state.config()
    }

    /// The configuration for the next connection that a web server accepts, in the form that other
    /// users of rustls take. Reads changed files first.
    ///
    /// # Errors
    /// As for a connection: something is missing, or the settings leave nothing to offer; logged.
    pub fn for_accepting(&self) -> io::Result<Arc<ServerConfig>> {
        Ok(self.config()?.for_accepting())
    }

    /// Checks whether connections can be made; missing settings are logged.
    ///
    /// # Errors
    /// `ENOPROTOOPT` or `EPROTO`, as for a connection.
    pub(crate) fn check(&self) -> io::Result<()> {
        self.config().map(drop)
    }

    /// The missing settings that a connection needs: private key, certificate, CA certificate.
    /// Reads changed files first. A file that cannot be read counts as missing, unless it is a CA
    /// file that the first connection writes.
    #[must_use]
    pub fn missing(&self) -> Vec<MissingPart> {
        let mut state = self.lock();
        state.refresh();
        let mut missing = state.missing();
        let has_file = state.authority.path().is_some();
        if has_file && state.authorities.is_none() && !state.is_bootstrapped() {
            missing.push(AUTHORITY);
        }
        let with_reason = missing.into_iter().map(|name| MissingPart {
            name,
            reason: state.failures.get(name).cloned(),
        });
        with_reason.collect()
    }

    /// Whether all settings can be used, including those that connections do not need. Unusable
    /// ones have been logged.
    #[must_use]
    pub fn are_sound(&self) -> bool {
        let is_complete = self.missing().is_empty();
        let mut state = self.lock();
        let can_connect = state.config().is_ok();
        let has_chain = state.settings.peer_authority.is_none() || !state.extra_chain.is_empty();
        is_complete && can_connect && has_chain && !state.has_refused
    }

    /// The server name to request instead of the host name.
    pub(crate) fn server_name(&self) -> Option<String> {
        self.lock().settings.server_name.clone()
    }

    /// Writes the first server's certificate to the CA file.
    pub(crate) fn learn(&self, chain: &[impl AsRef<[u8]>]) {
        let mut state = self.lock();
        if let Some(path) = state.awaited_authority() {
            bootstrap::learn(&path, chain);
            state.refresh();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn set(&mut self, new: &Settings) {
        let old = self.settings.clone();
        if let Some(file) = changed(&new.private_key, &old.private_key) {
            self.key.set(Some(file));
        }
        if let Some(file) = changed(&new.certificate, &old.certificate) {
            self.certificate.set(Some(file));
        }
        if let Some(authority) = changed(&new.authority, &old.authority) {
            self.set_authority(authority);
        }
        if let Some(file) = changed(&new.peer_authority, &old.peer_authority) {
            self.set_extra_chain(file);
        }
        if let Some(text) = changed(&new.protocols, &old.protocols) {
            self.set_protocols(text);
        }
        if let Some(text) = changed(&new.ciphers, &old.ciphers) {
            let outcome = self.ciphers.set_ciphers(text);
            self.ciphers_set("SSL_CTX_set_cipher_list", outcome);
        }
        if let Some(text) = changed(&new.ciphersuites, &old.ciphersuites) {
            let outcome = self.ciphers.set_ciphersuites(text);
            self.ciphers_set("SSL_CTX_set_ciphersuites", outcome);
        }
        self.settings = Settings {
            private_key: new.private_key.clone().or(old.private_key),
            certificate: new.certificate.clone().or(old.certificate),
            authority: new.authority.clone().or(old.authority),
            peer_authority: new.peer_authority.clone().or(old.peer_authority),
            protocols: new.protocols.clone().or(old.protocols),
            ciphers: new.ciphers.clone().or(old.ciphers),
            ciphersuites: new.ciphersuites.clone().or(old.ciphersuites),
            server_name: new.server_name.clone().or(old.server_name),
        };
    }

    fn set_authority(&mut self, authority: &Authority) {
        self.config = None;
        let is_none = authority.file == NONE && !authority.is_bootstrapped;
        if is_none {
            logging::warn(
                Module::StreamSsl,
                format_args!("Peer certificate validation disabled (this is a security risk)"),
            );
        }
        self.authorities = None;
        self.authority = WatchedFile::default();
        self.authority
            .set((!is_none).then_some(authority.file.as_str()));
    }

    fn set_extra_chain(&mut self, file: &str) {
        let text = match std::fs::read(os_name::path(file)) {
            Ok(text) => text,
            Err(error) => {
                let why = errno::text(&error);
                return log_failure(&format!("failed to open {file} for reading"), &why);
            }
        };
        match pem::certificates(&text).map_err(|error| error.to_string()) {
            Ok(chain) => {
                self.extra_chain = chain;
                self.config = None;
            }
            Err(why) => log_load(file, &why),
        }
    }

    fn set_protocols(&mut self, text: &str) {
        match Protocols::parse(text) {
            Ok(protocols) => {
                let range = protocols.describe();
                logging::dbg(
                    Module::StreamSsl,
                    format_args!("Enabled protocol range: {range}"),
                );
                self.protocols = protocols;
                self.config = None;
            }
            Err(error) => {
                self.has_refused = true;
                logging::err(Module::StreamSsl, format_args!("{error}"));
            }
        }
    }

    fn ciphers_set(&mut self, what: &str, outcome: Result<Vec<String>, Error>) {
        match outcome {
            Ok(unknown) => {
                if !unknown.is_empty() {
                    let names = unknown.join(" ");
                    logging::warn(
                        Module::StreamSsl,
                        format_args!("{what}: ignored unsupported values: {names}"),
                    );
                }
                self.config = None;
            }
            Err(error) => {
                self.has_refused = true;
                logging::err(Module::StreamSsl, format_args!("{what}: {error}"));
            }
        }
    }

    fn refresh(&mut self) {
        let looks = [
            (
                CERTIFICATE,
                "SSL_use_certificate_file",
                self.certificate.look(),
            ),
            (KEY, "SSL_use_PrivateKey_file", self.key.look()),
        ];
        let mut has_changed = false;
        for (part, what, look) in looks {
            match look {
                Change::Same => {}
                Change::Changed => {
                    self.failures.remove(part);
                    has_changed = true;
                }
                Change::Failed(error) => {
                    let why = errno::text(&error);
                    log_failure(what, &why);
                    self.note_failure(part, &why);
                }
            }
        }
        if has_changed {
            self.load_identity();
        }
        match self.authority.look() {
            Change::Same => {}
            Change::Changed => self.load_authorities(),
            // The first connection writes the file.
            Change::Failed(error)
                if error.kind() == io::ErrorKind::NotFound && self.is_bootstrapped() => {}
            Change::Failed(error) => self.complain_of_authority(&errno::text(&error)),
        }
    }

    fn load_identity(&mut self) {
        let (Some(key), Some(certificate)) = (self.key.content(), self.certificate.content())
        else {
            return;
        };
        self.unusable = None;
        match Identity::from_pem(key, certificate) {
            Ok(identity) => {
                self.identity = Some(identity);
                self.config = None;
                if self.is_of_web_server {
                    let mut chain = pem::certificates(certificate).unwrap_or_default();
                    self.extra_chain = chain.split_off(chain.len().min(1));
                }
            }
            // The other file has not been replaced yet.
            Err(Error::KeyMismatch) if self.identity.is_some() => logging::info(
                Module::StreamSsl,
                format_args!("private key and certificate do not match yet; keeping the old pair"),
            ),
            Err(error @ Error::KeyMismatch) => {
                self.unusable = Some(KEY);
                self.note_failure(KEY, &error.to_string());
                let what = "Private key does not match certificate public key";
                log_failure(what, &error.to_string());
            }
            Err(error @ (Error::NoKey | Error::UnsupportedKey)) => {
                self.unusable = Some(KEY);
                self.note_failure(KEY, &error.to_string());
                log_failure("SSL_use_PrivateKey_file", &error.to_string());
            }
            Err(error) => {
                self.unusable = Some(CERTIFICATE);
                self.note_failure(CERTIFICATE, &error.to_string());
                log_failure("SSL_use_certificate_file", &error.to_string());
            }
        }
    }

    fn load_authorities(&mut self) {
        let content = self.authority.content().unwrap_or_default();
        match Authorities::from_pem(content) {
            Ok(authorities) => {
                self.authorities = Some(Arc::new(authorities));
                self.failures.remove(AUTHORITY);
                self.config = None;
            }
            Err(error) => self.complain_of_authority(&error.to_string()),
        }
    }

    fn complain_of_authority(&mut self, why: &str) {
        self.note_failure(AUTHORITY, why);
        let file = self.authority.path().map(|path| path.display().to_string());
        log_load(&file.unwrap_or_default(), why);
    }

    /// Records why the file of a part cannot be used, for the errors of connections.
    fn note_failure(&mut self, part: &'static str, why: &str) {
        let file = match part {
            KEY => self.key.path(),
            CERTIFICATE => self.certificate.path(),
            _ => self.authority.path(),
        };
        let file = file.map(|path| path.display().to_string());
        let reason = format!("{}: {why}", file.unwrap_or_default());
        self.failures.insert(part, reason);
    }

    fn is_bootstrapped(&self) -> bool {
        let authority = self.settings.authority.as_ref();
        authority.is_some_and(|authority| authority.is_bootstrapped)
    }

    /// The CA file that the first server's certificate is still to be written to.
    fn awaited_authority(&self) -> Option<PathBuf> {
        let is_awaited = self.is_bootstrapped() && self.authorities.is_none();
        self.authority.path().filter(|_| is_awaited).cloned()
    }

    fn config(&mut self) -> io::Result<Config> {
        if let Some(config) = &self.config {
            return Ok(config.clone());
        }
        for what in self.missing() {
            let line = format_args!("{what} must be configured to use SSL");
            logging::err_limited(&PEER_LIMIT, Module::StreamSsl, line);
        }
        let identity = self.identity.clone().filter(|_| self.has_authority());
        let Some(identity) = identity else {
            return Err(errno::from_code(libc::ENOPROTOOPT));
        };
        let material = Material {
            identity,
            trust: self.trust(),
            extra_chain: self.extra_chain.clone(),
            protocols: self.protocols,
            ciphers: self.ciphers.clone(),
        };
        let clock: Arc<dyn Clock> = Arc::new(WallClock);
        match Config::new(&material, &clock) {
            Ok(config) => {
                self.config = Some(config.clone());
                Ok(config)
            }
            Err(error) => {
                logging::err_limited(&PEER_LIMIT, Module::StreamSsl, format_args!("{error}"));
                Err(errno::from_code(libc::EPROTO))
            }
        }
    }

    /// The settings that a connection needs and that are missing or unusable.
    fn missing(&self) -> Vec<&'static str> {
        let is_unusable = |what| self.identity.is_none() && self.unusable == Some(what);
        let parts = [
            (KEY, self.key.content().is_none() || is_unusable(KEY)),
            (
                CERTIFICATE,
                self.certificate.content().is_none() || is_unusable(CERTIFICATE),
            ),
            (AUTHORITY, !self.has_authority()),
        ];
        let missing = parts.iter().filter(|(_, is_missing)| *is_missing);
        missing.map(|(what, _)| *what).collect()
    }

    /// Whether it is settled which peers are trusted.
    fn has_authority(&self) -> bool {
        self.settings.authority.is_some() || self.is_of_web_server
    }

    fn trust(&self) -> Trust {
        match (&self.authorities, self.authority.path()) {
            (Some(authorities), _) => Trust::Authorities(authorities.clone()),
            (None, None) => Trust::Everybody,
            (None, Some(_)) if self.is_bootstrapped() => Trust::FirstServer,
            // A CA file that cannot be read trusts no peer.
            (None, Some(_)) => Trust::Authorities(Arc::default()),
        }
    }
}

/// A setting, if it was given and differs from the current one.
fn changed<'a, T: PartialEq>(new: &'a Option<T>, old: &Option<T>) -> Option<&'a T> {
    new.as_ref().filter(|_| new != old)
}

fn log_failure(what: &str, why: &str) {
    logging::err(Module::StreamSsl, format_args!("{what}: {why}"));
}

fn log_load(file: &str, why: &str) {
    logging::err(
        Module::StreamSsl,
        format_args!("failed to load client certificates from {file}: {why}"),
    );
}
