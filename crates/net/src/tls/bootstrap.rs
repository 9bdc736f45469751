//! Trust on first use (docs/spec/cli.md 5.6): the last certificate in the first server's chain
//! becomes the CA file.
//!
//! The caller closes that first connection, because its certificate was not verified.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use corvid_tls::{Certificate, pem};

use super::PEER_LIMIT;
use crate::errno;
use crate::logging::{self, Module};

/// The mode of the CA file: readable by all users, writable by none.
const MODE: u32 = 0o444;

/// Writes the CA file. A failure is logged; the next connection tries again.
pub(super) fn learn(path: &Path, chain: &[impl AsRef<[u8]>]) {
    let shown = path.display();
    let Some(last) = chain.last() else {
        return;
    };
    let last = last.as_ref().into();
    let Ok(certificate) = Certificate::parse(&last) else {
        return;
    };
    if !certificate.is_self_issued() {
        complain(
            "could not bootstrap CA cert: obtained certificate is not self-signed (subject issuer mismatch)",
        );
        if chain.len() == 1 {
            complain(
                "only one certificate was received, so probably the peer is not configured to send its CA certificate",
            );
        }
        return;
    }
    match write(path, &pem::encode(&last)) {
        Ok(()) => {
            let line = format_args!("successfully bootstrapped CA cert to {shown}");
            logging::info(Module::StreamSsl, line);
            log_trust(path, &certificate);
            logging::info(
                Module::StreamSsl,
                format_args!("killing successful connection to retry using CA cert"),
            );
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => logging::info(
            Module::StreamSsl,
            format_args!("reading CA cert {shown} created by another process"),
        ),
        Err(error) => {
            let text = errno::text(&error);
            logging::err(
                Module::StreamSsl,
                format_args!("could not bootstrap CA cert: creating {shown} failed: {text}"),
            );
        }
    }
}

fn complain(line: &str) {
    logging::err_limited(&PEER_LIMIT, Module::StreamSsl, format_args!("{line}"));
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(MODE)
        .open(path)?;
    file.write_all(text.as_bytes()).inspect_err(|_| {
        // A partial certificate would make the next attempt fail.
        let _ = std::fs::remove_file(path);
    })
}

fn log_trust(path: &Path, certificate: &Certificate) {
    let (path, subject) = (path.display(), certificate.subject_line());
    let fingerprint = certificate.fingerprint();
    logging::info(
        Module::StreamSsl,
        format_args!("Trusting CA cert from {path} ({subject}) (fingerprint {fingerprint})"),
    );
}
