//! The words of the command line. `NAME=REMOTES[/DATABASE]` names a database, `NAME.status=ADDRESS`
//! the place of its server's status.

use std::collections::BTreeMap;
use std::os::unix::fs::FileTypeExt;

use corvid::rpc::remote::{RemoteList, Scheme};
use corvid_net::dirs;
use corvid_net::target::{Active, Target, TargetError};
use corvid_net::tls::Settings;

/// The number of databases that one console shows.
const DATABASES_MAX: usize = 64;

/// A word that is right, for errors.
const EXAMPLE: &str = "nb=unix:/run/ovn/ovnnb_db.sock";

/// Remotes of servers, for errors.
const FORMS: &str = "tcp:HOST:PORT, ssl:HOST:PORT or unix:FILE";

/// A database to show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Source {
    /// The name in addresses of pages.
    pub(crate) name: String,
    /// The servers, separated by commas.
    pub(crate) remotes: String,
    /// The database; `None`: the only one of the server.
    pub(crate) database: Option<String>,
    /// Where the server's status is: `http:` or a control socket.
    pub(crate) status: Option<String>,
}

/// The databases that the words name. A remote that no client could reach is an error here: a page
/// would tell it only when somebody reads it.
///
/// # Errors
/// A word is malformed, or names no server or status; the text is for people.
pub(super) fn parse(words: &[String], tls: &Settings) -> Result<Vec<Source>, String> {
    let mut sources: Vec<Source> = Vec::new();
    let mut given = Vec::new();
    let mut places = BTreeMap::new();
    for word in words {
        if word.trim().is_empty() {
            return Err(format!(
                "an empty word: expected NAME=REMOTES[/DATABASE], such as {EXAMPLE}"
            ));
        }
        let (name, value) = word
            .split_once('=')
            .filter(|(_, value)| !value.is_empty())
            .ok_or_else(|| {
                format!("{word}: expected NAME=REMOTES[/DATABASE], such as {EXAMPLE}")
            })?;
        let (name, part) = name.split_once('.').unwrap_or((name, ""));
        let is_name = |name: &str| {
            let mut letters = name.chars();
            letters.all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_'))
        };
        if name.is_empty() || !is_name(name) {
            return Err(format!(
                "{word}: expected NAME=REMOTES[/DATABASE], such as {EXAMPLE}: NAME consists of letters, digits, \"-\" and \"_\""
            ));
        }
        match part {
            "" if sources.iter().any(|source| source.name == name) => {
                return Err(format!("{word}: {name} is given twice"));
            }
            "" => {
                sources.push(source(name, value));
                given.push(word);
            }
            "status" | "database" => {
                if part == "database" && value.trim().is_empty() {
                    return Err(format!("{word}: it names no database"));
                }
                if part == "status" {
                    let mut addresses = value.split(',');
                    let checked = addresses.try_for_each(check_status);
                    checked.map_err(|error| format!("{word}: {error}"))?;
                }
                if places.insert((name, part), value).is_some() {
                    return Err(format!("{word}: {name}.{part} is given twice"));
                }
            }
            part => {
                return Err(format!(
                    "{word}: unknown part {part:?}: there are {name}.database and {name}.status"
                ));
            }
        }
    }
    for (source, word) in sources.iter().zip(given) {
        check_remotes(&source.remotes, tls).map_err(|error| format!("{word}: {error}"))?;
    }
    for ((name, part), value) in places {
        let source = sources.iter_mut().find(|source| source.name == name);
        let source = source
            .ok_or_else(|| format!("{name}.{part}: there is no {name}: add {name}=REMOTES"))?;
        match part {
            "status" => source.status = Some(value.to_owned()),
            _ => source.database = Some(value.to_owned()),
        }
    }
    if sources.is_empty() {
        let socket = dirs::run().join("db.sock");
        sources.push(source("ovsdb", &format!("unix:{}", socket.display())));
    }
    match sources.len() <= DATABASES_MAX {
        true => Ok(sources),
        false => Err(format!("more than {DATABASES_MAX} databases")),
    }
}

/// Checks that a client could connect to each remote.
fn check_remotes(remotes: &str, tls: &Settings) -> Result<(), String> {
    let list = RemoteList::parse(remotes);
    if list.has_empty_remote() {
        return Err(format!(
            "{remotes:?} has an empty remote: write {FORMS} between commas"
        ));
    }
    if list.remotes.is_empty() {
        return Err(format!("no remote is given: add {FORMS}"));
    }
    for remote in list.remotes {
        match Target::parse(&remote) {
            Ok(Target::Active(Active::Ssl(_))) => {
                let missing = missing(tls);
                if !missing.is_empty() {
                    return Err(format!(
                        "{remote:?} needs TLS: add {}",
                        missing.join(" and ")
                    ));
                }
            }
            // The name of a socket does not end like that of a folder.
            Ok(Target::Active(Active::Unix(_)))
                if remote.ends_with('/') || remote.trim_end() == "unix:" =>
            {
                return Err(format!("{remote:?} names no socket: write unix:FILE"));
            }
            Ok(Target::Active(_)) => {}
            Ok(Target::Passive(_)) => {
                return Err(format!(
                    "{remote:?} waits for connections: name the address of the server, {FORMS}"
                ));
            }
            Err(TargetError::UnknownScheme) => {
                return Err(format!("{remote:?} is not a remote: write {FORMS}"));
            }
            Err(error) => {
                return Err(format!(
                    "{remote:?} is not a remote: {error}: write {FORMS}"
                ));
            }
        }
    }
    Ok(())
}

/// The options that `ssl:` needs and that are not given.
fn missing(tls: &Settings) -> Vec<&'static str> {
    let options = [
        (tls.private_key.is_none(), "--private-key"),
        (tls.certificate.is_none(), "--certificate"),
        (tls.authority.is_none(), "--ca-cert"),
    ];
    let missing = options.into_iter().filter(|(is_missing, _)| *is_missing);
    missing.map(|(_, option)| option).collect()
}

/// Checks the place of a status: the address of a page, or the path of a control socket.
fn check_status(address: &str) -> Result<(), String> {
    let forms = "write http://HOST:PORT/status.json or the path of a control socket";
    if let Some(page) = address.strip_prefix("http://") {
        let authority = page.split('/').next().unwrap_or_default();
        let port = authority
            .rsplit_once(':')
            .filter(|(host, _)| !host.is_empty());
        let port = port.and_then(|(_, port)| port.parse::<u16>().ok());
        return match port {
            Some(1..) => Ok(()),
            _ => Err(format!("{address:?} has no host or no port: {forms}")),
        };
    }
    let path = address.strip_prefix("unix:").unwrap_or(address);
    if path.trim().is_empty() {
        return Err(format!("{address:?} names no status: {forms}"));
    }
    // The name of a socket may have a colon, but not begin like an address.
    let is_address = path.split_once(':').is_some_and(|(scheme, rest)| {
        let mut letters = scheme.bytes();
        let is_scheme = letters.all(|letter| letter.is_ascii_alphabetic());
        let is_port = rest
            .split('/')
            .next()
            .is_some_and(|rest| rest.parse::<u16>().is_ok());
        is_scheme || (is_port && !scheme.contains('/'))
    });
    match is_address {
        true => Err(format!("a status is not read from {address:?}: {forms}")),
        false => Ok(()),
    }
}

/// Splits a database off the remotes. The path of a socket has slashes too, so the last part is a
/// database only if what precedes it is a socket.
fn source(name: &str, value: &str) -> Source {
    let is_id = |text: &str| {
        !text.is_empty()
            && text
                .chars()
                .all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
    };
    let is_socket =
        |path: &str| std::fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_socket());
    let split = value.rsplit_once('/').filter(|(remotes, database)| {
        let list = RemoteList::parse(remotes).remotes;
        let is_whole = match list.last().and_then(|last| Scheme::split(last)) {
            Some((Scheme::Tcp | Scheme::Ssl, _)) => true,
            Some((Scheme::Unix, path)) => is_socket(path),
            _ => false,
        };
        is_id(database) && is_whole
    });
    let (remotes, database) = match split {
        Some((remotes, database)) => (remotes, Some(database.to_owned())),
        None => (value, None),
    };
    Source {
        name: name.to_owned(),
        remotes: remotes.to_owned(),
        database,
        status: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_name_databases_with_their_parts() {
        let words = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
            parse(&words, &Settings::default())
        };
        let found = words(&[
            "nb.status=http://127.0.0.1:9641/status.json",
            "nb=tcp:10.0.0.1:6641,tcp:10.0.0.2:6641/OVN_Northbound",
            "ovs=unix:/nowhere/db.sock",
            "ovs.database=Open_vSwitch",
        ])
        .unwrap();
        assert_eq!(found[0].remotes, "tcp:10.0.0.1:6641,tcp:10.0.0.2:6641");
        assert_eq!(found[0].database.as_deref(), Some("OVN_Northbound"));
        assert!(found[0].status.is_some());
        assert_eq!(found[1].remotes, "unix:/nowhere/db.sock");
        assert_eq!(found[1].database.as_deref(), Some("Open_vSwitch"));
        for wrong in [
            &["nb"][..],
            &["n b=tcp:127.0.0.1:1"],
            &["a=tcp:127.0.0.1:1", "a=tcp:127.0.0.1:2"],
            &["a.status=http://x"],
            &["a=tcp:127.0.0.1:1", "a.colour=red"],
        ] {
            assert!(words(wrong).is_err(), "{wrong:?}");
        }
        // A comma within the path of a socket separates nothing.
        let comma = words(&["a=unix:/run/a,b/c"]).unwrap();
        assert_eq!(comma[0].remotes, "unix:/run/a,b/c");
        assert_eq!(words(&[]).unwrap()[0].name, "ovsdb");
    }

    #[test]
    fn what_could_never_be_reached_is_refused() {
        let long = "write tcp:HOST:PORT, ssl:HOST:PORT or unix:FILE";
        for (word, said) in [
            (
                "nb",
                "nb: expected NAME=REMOTES[/DATABASE], such as nb=unix:",
            ),
            ("nb=", "nb=: expected NAME=REMOTES[/DATABASE]"),
            ("=unix:/a", "=unix:/a: expected NAME=REMOTES[/DATABASE]"),
            ("unix:/a=b", "NAME consists of letters"),
            (
                "nb=bogus:1",
                "nb=bogus:1: \"bogus:1\" is not a remote: write tcp:",
            ),
            ("nb=/run/db.sock", long),
            (
                "nb=ptcp:1",
                "\"ptcp:1\" waits for connections: name the address of the server",
            ),
            ("nb=pfd:5", "waits for connections"),
            (
                "nb=unix:/a,tcp:h:x",
                "\"tcp:h:x\" is not a remote: h:x: bad port number \"x\": write",
            ),
            ("nb=unix:/a,punix:/b", "\"punix:/b\" waits for connections"),
            ("nb=tcp::6641", "host must be specified"),
            ("nb=unix:", "names no socket"),
            ("nb=unix: ", "names no socket"),
            ("nb=unix:/a/", "names no socket"),
            (
                "nb=unix:/a,",
                "\"unix:/a,\" has an empty remote: write tcp:",
            ),
            ("nb=unix:/a, ", "has an empty remote"),
            ("nb=,unix:/a", "\",unix:/a\" has an empty remote"),
            ("nb=unix:/a,,unix:/b", "has an empty remote"),
            ("nb=tcp:h:1,/OVN_Northbound", "has an empty remote"),
            ("nb=,", "\",\" has an empty remote"),
            ("nb= ", "has an empty remote"),
            ("nb.database=", "expected NAME=REMOTES[/DATABASE]"),
            ("nb.database= ", "names no database"),
            ("nb.status= ", "names no status"),
            ("nb.status=unix:/run/a.ctl,,/b", "names no status"),
            ("nb=cid:6731fef6", "no remote is given"),
            (
                "nb=ssl:h:1",
                "needs TLS: add --private-key and --certificate and --ca-cert",
            ),
            (
                "nb.status=https://h:1/status.json",
                "https://h:1/status.json\": write http://HOST:PORT",
            ),
            ("nb.status=tcp:h:1", "is not read from \"tcp:h:1\""),
            (
                "nb.status=192.0.2.1:9641/status.json",
                "write http://HOST:PORT/status.json",
            ),
            ("nb.status=http://h/status.json", "has no host or no port"),
            ("nb.status=http://:1", "has no host or no port"),
            ("nb.status=/run/a.ctl,", "names no status"),
            ("nb.status=unix:", "names no status"),
            (
                "nb.colour=red",
                "unknown part \"colour\": there are nb.database and nb.status",
            ),
        ] {
            let words = ["nb=unix:/a".to_owned(), word.to_owned()];
            // Alone, a remote would not count as given twice.
            let is_remote = word.starts_with("nb=");
            let error = parse(&words[usize::from(is_remote)..], &Settings::default());
            let error = error.expect_err(word);
            assert!(error.contains(said), "{word}: {error}");
            assert!(error.contains(word), "{error}");
        }
        for word in [
            "http://h:1",
            "http://[::1]:9641/a/status.json",
            "/run/a:1.ctl",
            "a.1.ctl",
            "unix:/a,/b",
        ] {
            let words = ["nb=unix:/a".to_owned(), format!("nb.status={word}")];
            assert!(parse(&words, &Settings::default()).is_ok(), "{word}");
        }
        let tls = Settings {
            private_key: Some("k".to_owned()),
            certificate: Some("c".to_owned()),
            authority: None,
            ..Settings::default()
        };
        let error = parse(&["nb=ssl:h:1".to_owned()], &tls).expect_err("no authority");
        assert!(error.ends_with("needs TLS: add --ca-cert"), "{error}");
    }
}
