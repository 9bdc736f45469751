//! The command line: options, and a word for each database.
//!
//! [`sources`] has the words. `main` parses it once.

pub(crate) mod sources;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use corvid_net::tls::{self, Authority, Credentials};
use corvid_net::{errno, resolve};
use corvid_shell::args::{self, Arg, Args, Item, OptionEntry, Spec};
use corvid_shell::manual::{Manual, Placeholders, help};
use corvid_shell::program;
use corvid_shell::tls_options::{self, TlsOption};
use corvid_shell::vlog::{self, LogOption};
use corvid_tools::standard_options;

use crate::database::looks::IDLE;
use crate::manual;
use sources::Source;

/// The port if the command line names none.
pub(crate) const PORT: u16 = 8640;

/// The values of the command line.
#[derive(Debug)]
pub(crate) struct Settings {
    /// The address to listen at.
    pub(crate) listen: SocketAddr,
    /// Names under which browsers reach the console, besides addresses and `localhost`.
    pub(crate) hosts: Vec<String>,
    /// The token that viewers must know.
    pub(crate) token: Option<String>,
    /// Whether pages may change databases.
    pub(crate) is_writable: bool,
    /// How long the rows of a table stay after the last look.
    pub(crate) idle: Duration,
    /// Keys and certificates for `ssl:`.
    pub(crate) credentials: Arc<Credentials>,
    /// Those that viewers see, and the authority of their certificates; `None`: no TLS.
    pub(crate) viewers: Option<Arc<Credentials>>,
    /// The databases.
    pub(crate) sources: Vec<Source>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Id {
    Listen,
    Host,
    TokenFile,
    ListenPrivateKey,
    ListenCertificate,
    ViewerCaCert,
    Writable,
    Idle,
    Help,
    Option,
    Version,
    Log(LogOption),
    Tls(TlsOption),
}

const PAGES: &str = "Pages";

fn specs() -> Vec<Spec<Id>> {
    let page = |name, arg, id| Spec::long(name, arg, id).within(PAGES);
    let mut specs = vec![
        standard_options::help(Id::Help),
        page("listen", Arg::Required, Id::Listen)
            .means(
                "ADDRESS",
                "listen at ADDRESS:PORT (default: 127.0.0.1:8640; port 0: any free port)",
            )
            .more(
                "An address that other machines reach needs TLS (`--listen-private-key`, `--listen-certificate`), and `--viewer-ca-cert` or \
                 `--token-file`.",
            ),
        page("host", Arg::Required, Id::Host)
            .means("NAME", "serve pages under the host name NAME too")
            .more(
                "A request whose header `Host` is neither an IP address nor `localhost` nor such a name is refused, so that no foreign site can \
                 read pages through a name of its own. The option may be given several times.",
            ),
        page("token-file", Arg::Required, Id::TokenFile)
            .means("FILE", "ask viewers for the token in FILE"),
        page("listen-private-key", Arg::Required, Id::ListenPrivateKey)
            .means("FILE", "serve pages by TLS (https) with this private key (PEM)")
            .more("The files of TLS are read again when they change."),
        page("listen-certificate", Arg::Required, Id::ListenCertificate)
            .means("FILE", "file with the certificate that browsers see (PEM)")
            .more("All certificates of FILE are sent, the console's own first, then the intermediate ones."),
        page("viewer-ca-cert", Arg::Required, Id::ViewerCaCert)
            .means("FILE", "ask viewers for a certificate that an authority in FILE has signed")
            .more("With `--token-file` as well, viewers need both."),
        page("writable", Arg::None, Id::Writable)
            .means("", "let pages change databases; off by default"),
        page("idle", Arg::Required, Id::Idle)
            .means(
                "SECONDS",
                "keep the rows of a table for SECONDS after the last look at it (default: 120)",
            )
            .more(
                "While a page shows the table, it stays, so that the page is live. Then the server is told to send no more of it, and its rows \
                 leave the memory of the console. A later look asks for all of them again.",
            ),
        standard_options::listing(Id::Option),
        standard_options::version(Id::Version),
    ];
    specs.extend(tls_options::specs(Id::Tls));
    specs.extend(vlog::specs(Id::Log));
    // Most empty arguments would be noticed only when a page is read, or not at all.
    specs.into_iter().map(Spec::not_empty).collect()
}

/// The options for the manual.
pub(crate) fn entries() -> Vec<OptionEntry> {
    Manual::entries(&specs())
}

/// Headings of the options, in order.
pub(crate) const GROUPS: [&str; 3] = [PAGES, tls_options::GROUP, vlog::GROUP];

impl Settings {
    /// Parses a command line, `argv[0]` included. Ends the process on errors, and after `--help`
    /// and similar options.
    pub(crate) fn parse(line: &[String]) -> Settings {
        let specs = specs();
        let mut args = Args::new(&specs, line);
        let mut settings = Settings {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, PORT)),
            hosts: Vec::new(),
            token: None,
            is_writable: false,
            idle: IDLE,
            credentials: Arc::default(),
            viewers: None,
            sources: Vec::new(),
        };
        let mut tls = tls::Settings::default();
        let mut viewers = tls::Settings::default();
        let mut words = Vec::new();
        while let Some(item) = args.or_die() {
            let (id, value) = match item {
                Item::Positional(word) => {
                    words.push(word);
                    continue;
                }
                Item::Option(id, value) => (id, value.unwrap_or_default()),
            };
            match id {
                Id::Listen => settings.listen = or_die(address(&value)),
                Id::Host => settings.hosts.push(or_die(host(&value))),
                Id::TokenFile => settings.token = Some(or_die(token(&value))),
                Id::ListenPrivateKey => viewers.private_key = Some(value),
                Id::ListenCertificate => viewers.certificate = Some(value),
                Id::ViewerCaCert => {
                    viewers.authority = Some(Authority {
                        file: value,
                        is_bootstrapped: false,
                    });
                }
                Id::Writable => settings.is_writable = true,
                Id::Idle => settings.idle = or_die(idle(&value)),
                Id::Help => {
                    program::answer(help::text(&manual::manual(), &Placeholders::of_process()))
                }
                Id::Option => program::answer(args::listing(&specs)),
                Id::Version => program::answer_version(),
                Id::Log(option) => vlog::apply(
                    option,
                    Some(&value)
                        .filter(|value| !value.is_empty())
                        .map(String::as_str),
                ),
                Id::Tls(option) => option.apply(&mut tls, Some(&value)),
            }
        }
        settings.credentials = Credentials::new(&tls);
        settings.sources = or_die(sources::parse(&words, &tls));
        let is_asking = settings.token.is_some() || viewers.authority.is_some();
        settings.viewers = or_die(of_viewers(viewers));
        let is_secure = settings.viewers.is_some() && is_asking;
        if !settings.listen.ip().is_loopback() && !is_secure {
            program::fatal(format_args!(
                "--listen={}: other machines reach this address: add {}",
                settings.listen,
                lacking(settings.viewers.is_some(), is_asking)
            ));
        }
        settings
    }
}

/// The options that an address beyond loopback lacks.
fn lacking(has_tls: bool, is_asking: bool) -> String {
    let tls = "--listen-private-key and --listen-certificate";
    let asking = "--viewer-ca-cert or --token-file";
    match (has_tls, is_asking) {
        (true, _) => asking.to_owned(),
        (false, true) => tls.to_owned(),
        (false, false) => format!("{tls}, and {asking}"),
    }
}

/// The credentials for connections of viewers, which must be usable from the start.
fn of_viewers(given: tls::Settings) -> Result<Option<Arc<Credentials>>, String> {
    match (&given.private_key, &given.certificate, &given.authority) {
        (None, None, None) => return Ok(None),
        (Some(_), Some(_), _) => {}
        _ => {
            return Err(
                "TLS for viewers needs both --listen-private-key and --listen-certificate"
                    .to_owned(),
            );
        }
    }
    if let Some(Authority { file, .. }) = &given.authority {
        // The credentials would take this name for "trust everybody".
        std::fs::metadata(file)
            .map_err(|error| format!("--viewer-ca-cert={file}: {}", errno::text(&error)))?;
    }
    let authority = given.authority.map(|authority| Authority {
        file: match authority.file.as_str() {
            "none" => "./none".to_owned(),
            _ => authority.file,
        },
        ..authority
    });
    let credentials = Credentials::of_web_server(&tls::Settings { authority, ..given });
    let missing: Vec<String> = credentials
        .missing()
        .iter()
        .map(ToString::to_string)
        .collect();
    match (missing.is_empty(), credentials.for_accepting()) {
        (true, Ok(_)) => Ok(Some(credentials)),
        (true, Err(error)) => Err(format!("TLS for viewers: {}", errno::text(&error))),
        (false, _) => Err(format!("TLS for viewers: {}", missing.join(", "))),
    }
}

fn or_die<T>(outcome: Result<T, String>) -> T {
    outcome.unwrap_or_else(|error| program::fatal(error))
}

/// Parses an address to listen at. The port may be absent.
fn address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let bracketed = text
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'));
    if let Ok(ip) = bracketed.unwrap_or(text).parse::<IpAddr>() {
        return Ok(SocketAddr::from((ip, PORT)));
    }
    let (host, port) = text.rsplit_once(':').unwrap_or((text, ""));
    let port = match port {
        "" => PORT,
        port => port
            .parse()
            .map_err(|_| format!("--listen={text}: {port:?} is not a port number"))?,
    };
    let ip = match host {
        "" if text.len() < 2 => return Err(format!("--listen={text}: expected ADDRESS:PORT")),
        "" => Some(IpAddr::V4(Ipv4Addr::LOCALHOST)),
        host => resolve::now(host),
    };
    ip.map(|ip| SocketAddr::from((ip, port)))
        .ok_or_else(|| format!("--listen={text}: cannot resolve {host:?}"))
}

/// A name as it is in the header `Host`, without the port.
fn host(text: &str) -> Result<String, String> {
    let is_part =
        |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.');
    let name = text.trim_end_matches('.');
    match !name.is_empty() && name.chars().all(is_part) {
        true => Ok(name.to_ascii_lowercase()),
        false => Err(format!(
            "--host={text}: expected the name of a host, of letters, digits, \"-\", \"_\" and \".\", without a port"
        )),
    }
}

fn idle(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().map(Duration::from_secs);
    seconds.map_err(|_| format!("--idle={text}: expected a number of seconds"))
}

/// Fewer letters of a token could be guessed.
const TOKEN_LETTERS_MIN: usize = 16;

fn token(file: &str) -> Result<String, String> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| format!("--token-file={file}: {}", errno::text(&error)))?;
    let token = text.trim();
    match token.len() >= TOKEN_LETTERS_MIN {
        true => Ok(token.to_owned()),
        false => Err(format!(
            "--token-file={file}: a token has at least {TOKEN_LETTERS_MIN} characters"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_a_port_or_the_default() {
        let is = |text: &str, wanted: &str| {
            assert_eq!(address(text).unwrap().to_string(), wanted, "{text}");
        };
        is("127.0.0.1", "127.0.0.1:8640");
        is("127.0.0.1:0", "127.0.0.1:0");
        is(":81", "127.0.0.1:81");
        is("[::1]", "[::1]:8640");
        is("[::1]:5", "[::1]:5");
        let local = resolve::now("localhost").map(|ip| SocketAddr::from((ip, 82)).to_string());
        is("localhost:82", &local.unwrap_or_default());
        for wrong in ["127.0.0.1:http", "", ":"] {
            assert!(address(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn names_of_hosts_are_those_that_a_browser_sends() {
        assert_eq!(host("Console.Example.").unwrap(), "console.example");
        for wrong in [
            "",
            ".",
            "a b",
            "console:8640",
            "http://console",
            "[::1]",
            "köln.example",
        ] {
            let error = host(wrong).expect_err(wrong);
            assert!(error.contains("expected the name of a host"), "{error}");
        }
    }
}
