//! Checks a list of remotes before the first attempt. Without the check, a wrong list would show
//! only as attempts that fail forever.

use corvid_net::target::{Active, Passive, Target, TargetError};
use corvid_net::tls::{Credentials, MissingPart};
use corvid_rpc::remote::RemoteList;
use thiserror::Error;

/// An error in a list of remotes.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RemoteError {
    /// The list is empty.
    #[error("no remote is given")]
    Missing,
    /// A remote has an unknown scheme.
    #[error(
        "{remote:?} is not a remote: it must begin with \"tcp:\", \"ssl:\", \"unix:\", \"ptcp:\", \"pssl:\" or \"punix:\""
    )]
    UnknownScheme {
        /// The remote as given.
        remote: String,
    },
    /// The remote's host, port or descriptor is missing or malformed.
    #[error("{remote:?} is not a remote: {reason}")]
    Malformed {
        /// The remote as given.
        remote: String,
        /// The parser's error.
        reason: String,
    },
    /// A remote needs TLS, but the client has no credentials.
    #[error("{remote}: TLS needs a private key, a certificate and a CA certificate")]
    NoCredentials {
        /// The remote as given.
        remote: String,
    },
    /// A remote needs TLS, but some credentials are missing or their files cannot be used.
    #[error("{remote}: TLS lacks: {}", list(.missing))]
    IncompleteCredentials {
        /// The remote as given.
        remote: String,
        /// The missing credentials.
        missing: Vec<MissingPart>,
    },
}

fn list(missing: &[MissingPart]) -> String {
    let parts: Vec<String> = missing.iter().map(ToString::to_string).collect();
    parts.join(", ")
}

/// Checks each remote of a comma-separated list, and the credentials if any of them needs TLS.
pub(crate) fn check(remotes: &str, credentials: Option<&Credentials>) -> Result<(), RemoteError> {
    let list = RemoteList::parse(remotes);
    if list.remotes.is_empty() {
        return Err(RemoteError::Missing);
    }
    let mut is_tls_checked = false;
    for remote in list.remotes {
        let target = Target::parse(&remote).map_err(|error| match error {
            TargetError::UnknownScheme => RemoteError::UnknownScheme {
                remote: remote.clone(),
            },
            error => RemoteError::Malformed {
                remote: remote.clone(),
                reason: error.to_string(),
            },
        })?;
        let needs_tls = matches!(
            target,
            Target::Active(Active::Ssl(_)) | Target::Passive(Passive::Ssl(_))
        );
        if needs_tls && !is_tls_checked {
            check_credentials(remote, credentials)?;
            is_tls_checked = true;
        }
    }
    Ok(())
}

fn check_credentials(remote: String, credentials: Option<&Credentials>) -> Result<(), RemoteError> {
    let Some(credentials) = credentials else {
        return Err(RemoteError::NoCredentials { remote });
    };
    let missing = credentials.missing();
    if missing.is_empty() {
        Ok(())
    } else {
        Err(RemoteError::IncompleteCredentials { remote, missing })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_that_can_be_connected_to_pass() {
        for remotes in [
            "unix:/a",
            "tcp:127.0.0.1:6640,tcp:[::1]:6641",
            "ptcp:6640",
            "punix:/a,cid:6731fef6",
        ] {
            assert_eq!(check(remotes, None), Ok(()), "{remotes}");
        }
    }

    #[test]
    fn each_mistake_has_a_name() {
        for (remotes, words) in [
            ("", "no remote is given"),
            ("cid:6731fef6", "no remote is given"),
            ("localhost", "\"localhost\" is not a remote: it must begin"),
            ("unix:/a,tpc:127.0.0.1:6640", "\"tpc:127.0.0.1:6640\""),
            ("tcp:127.0.0.1:zero", "bad port number \"zero\""),
            ("tcp::6640", "host must be specified"),
            ("ssl:127.0.0.1:6640", "TLS needs a private key"),
            ("pssl:6640", "TLS needs a private key"),
        ] {
            let text = check(remotes, None).unwrap_err().to_string();
            assert!(text.contains(words), "{remotes}: {text}");
        }
    }

    #[cfg(feature = "tls")]
    #[test]
    fn parts_that_are_missing_for_tls_are_listed() {
        let credentials = Credentials::default();
        let error = check("ssl:127.0.0.1:6640", Some(&credentials)).unwrap_err();
        let text = error.to_string();
        let words = "TLS lacks: Private key, Certificate, CA certificate";
        assert!(text.ends_with(words), "{text}");
    }
}
