//! TLS settings of the process, for programs that read them from the command line once and make replicas later.
//!
//! All typed replicas share one set of credentials until [`super::idl::corvid_idl_set_tls`] gives a replica its own.

use std::ffi::c_char;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use corvid::{Authority, Credentials, Settings};

use crate::error::{Failure, Outcome, corvid_error, guard};
use crate::pointer;

/// The settings as they were given, and what connections use.
static SHARED: LazyLock<(Mutex<Settings>, Arc<Credentials>)> = LazyLock::new(|| {
    let settings = Settings::default();
    let credentials = Credentials::new(&settings);
    (Mutex::new(settings), credentials)
});

/// The credentials of replicas that have none of their own.
pub(crate) fn shared() -> Arc<Credentials> {
    SHARED.1.clone()
}

/// Changes the settings of the process, from the next connection on.
fn set(name: &'static str, change: impl FnOnce(&mut Settings) -> Outcome) -> corvid_error {
    guard(name, || {
        let (settings, credentials) = &*SHARED;
        let mut settings = settings.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut settings)?;
        credentials.set(&settings);
        Ok(())
    })
}

fn owned(text: *const c_char, name: &'static str) -> Result<Option<String>, Failure> {
    Ok(pointer::optional_text(text, name)?.map(str::to_owned))
}

/// Sets the file of the private key for `ssl:` remotes of all replicas without files of their own; null for none.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_tls_set_private_key_file(file: *const c_char) -> corvid_error {
    set("corvid_tls_set_private_key_file", |settings| {
        settings.private_key = owned(file, "file")?;
        Ok(())
    })
}

/// Sets the file of the certificate, as corvid_tls_set_private_key_file.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_tls_set_certificate_file(file: *const c_char) -> corvid_error {
    set("corvid_tls_set_certificate_file", |settings| {
        settings.certificate = owned(file, "file")?;
        Ok(())
    })
}

/// Sets the file of the certificate of the CA, as corvid_tls_set_private_key_file. With `bootstrap` a file that is missing is written with the certificate that the first server shows.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_tls_set_ca_certificate_file(
    file: *const c_char,
    bootstrap: bool,
) -> corvid_error {
    set("corvid_tls_set_ca_certificate_file", |settings| {
        let file = owned(file, "file")?;
        settings.authority = file.map(|file| Authority {
            file,
            is_bootstrapped: bootstrap,
        });
        Ok(())
    })
}

/// Sets the protocols that connections may use, such as "TLSv1.3", as the option `--ssl-protocols` of servers; null for the default.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_tls_set_protocols(protocols: *const c_char) -> corvid_error {
    set("corvid_tls_set_protocols", |settings| {
        settings.protocols = owned(protocols, "protocols")?;
        Ok(())
    })
}

/// Sets the ciphers that connections may use, as the option `--ssl-ciphers` of servers; null for the default.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_tls_set_ciphers(ciphers: *const c_char) -> corvid_error {
    set("corvid_tls_set_ciphers", |settings| {
        settings.ciphers = owned(ciphers, "ciphers")?;
        Ok(())
    })
}
