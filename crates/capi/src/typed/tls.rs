//! TLS settings of the process, for programs that read them from the command line once and make
//! replicas later.
//!
//! All typed replicas share one set of credentials until [`super::idl::corvid_idl_set_tls`] gives a
//! replica its own. A setting that was given stays until another one takes its place.

use std::ffi::c_char;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

use corvid::{Authority, Credentials, Settings};

use crate::error::{Failure, corvid_error, guard};
use crate::pointer;

/// Whether the program has named a file.
static IS_CONFIGURED: AtomicBool = AtomicBool::new(false);

static SHARED: LazyLock<Arc<Credentials>> =
    LazyLock::new(|| Credentials::new(&Settings::default()));

/// The credentials of replicas that have none of their own.
pub(crate) fn shared() -> Arc<Credentials> {
    SHARED.clone()
}

/// Changes the settings that are there.
fn set(name: &'static str, settings: impl FnOnce() -> Result<Settings, Failure>) -> corvid_error {
    guard(name, || {
        let settings = settings()?;
        let names_file = settings.private_key.is_some()
            || settings.certificate.is_some()
            || settings.authority.is_some();
        IS_CONFIGURED.fetch_or(names_file, Ordering::Relaxed);
        SHARED.set(&settings);
        Ok(())
    })
}

/// Sets the file of the private key for `ssl:` remotes of all replicas without files of their own,
/// from the next connection on. Null changes nothing.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_tls_set_private_key_file(file: *const c_char) -> corvid_error {
    set("corvid_tls_set_private_key_file", || {
        Ok(Settings {
            private_key: pointer::owned_text(file, "file")?,
            ..Settings::default()
        })
    })
}

/// Sets the file of the certificate, as corvid_tls_set_private_key_file.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_tls_set_certificate_file(file: *const c_char) -> corvid_error {
    set("corvid_tls_set_certificate_file", || {
        Ok(Settings {
            certificate: pointer::owned_text(file, "file")?,
            ..Settings::default()
        })
    })
}

/// Sets the file of the certificate of the CA, as corvid_tls_set_private_key_file. With `bootstrap`
/// a file that is missing is written with the certificate that the first server shows.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_tls_set_ca_certificate_file(
    file: *const c_char,
    bootstrap: bool,
) -> corvid_error {
    set("corvid_tls_set_ca_certificate_file", || {
        let file = pointer::owned_text(file, "file")?;
        let authority = file.map(|file| Authority {
            file,
            is_bootstrapped: bootstrap,
        });
        Ok(Settings {
            authority,
            ..Settings::default()
        })
    })
}

/// Sets the protocols that connections may use, such as "TLSv1.3", as the option `--ssl-protocols`
/// of servers, for all replicas without files of their own. Null changes nothing.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_tls_set_protocols(protocols: *const c_char) -> corvid_error {
    set("corvid_tls_set_protocols", || {
        Ok(Settings {
            protocols: pointer::owned_text(protocols, "protocols")?,
            ..Settings::default()
        })
    })
}

/// Sets the ciphers of TLS 1.2 that connections may use, as the option `--ssl-ciphers` of servers,
/// for all replicas without files of their own. Null changes nothing.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_tls_set_ciphers(ciphers: *const c_char) -> corvid_error {
    set("corvid_tls_set_ciphers", || {
        Ok(Settings {
            ciphers: pointer::owned_text(ciphers, "ciphers")?,
            ..Settings::default()
        })
    })
}

/// Sets the file of the certificates that are sent to peers after the own one, as the option
/// `--peer-ca-cert` of servers, for all replicas without files of their own. Null changes nothing.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_tls_set_peer_ca_certificate_file(file: *const c_char) -> corvid_error {
    set("corvid_tls_set_peer_ca_certificate_file", || {
        Ok(Settings {
            peer_authority: pointer::owned_text(file, "file")?,
            ..Settings::default()
        })
    })
}

/// Sets the ciphersuites of TLS 1.3 that connections may use, as the option `--ssl-ciphersuites` of
/// servers, for all replicas without files of their own. Null changes nothing.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_tls_set_ciphersuites(ciphersuites: *const c_char) -> corvid_error {
    set("corvid_tls_set_ciphersuites", || {
        Ok(Settings {
            ciphersuites: pointer::owned_text(ciphersuites, "ciphersuites")?,
            ..Settings::default()
        })
    })
}

/// Sets the name that connections ask servers for (SNI), as the option `--ssl-server-name` of
/// servers, for all replicas without files of their own. Null changes nothing.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_tls_set_server_name(name: *const c_char) -> corvid_error {
    set("corvid_tls_set_server_name", || {
        Ok(Settings {
            server_name: pointer::owned_text(name, "name")?,
            ..Settings::default()
        })
    })
}

/// Whether the process has a file of a private key, of a certificate or of the certificate of a CA.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_tls_is_configured() -> bool {
    IS_CONFIGURED.load(Ordering::Relaxed)
}
