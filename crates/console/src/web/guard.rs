//! The rules for every request and every response.
//!
//! - The header `Host` is an IP address, `localhost` or a name of `--host`. Otherwise a foreign
//!   site could let its own name point to this machine and read pages as its own.
//! - With a token file, the viewer knows the token: in `Authorization: Bearer`, or in the cookie
//!   that the form of the page `/login` sets.
//! - A request that changes something is a POST with a token of its own in its form, which only
//!   our pages have.
//! - Responses allow no scripts and styles but our files, no frames and no foreign readers.
//! - Under TLS the cookie is sent by TLS only, and browsers that reach the console by a name of
//!   `--host` keep to TLS for that name.

use std::net::{IpAddr, Ipv6Addr};

use axum::response::Response;
use hyper::header::{
    AUTHORIZATION, CACHE_CONTROL, CONTENT_SECURITY_POLICY, COOKIE, HOST, HeaderName, HeaderValue,
    LOCATION, REFERRER_POLICY, STRICT_TRANSPORT_SECURITY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use hyper::{Method, Request, StatusCode};
use ring::hmac;
use ring::rand::SystemRandom;

use super::reply;
use super::visitors::Visit;

/// The longest address of a request.
const URI_BYTES_MAX: usize = 8192;

/// The cookie of a viewer who has told the token.
const COOKIE_NAME: &str = "corvid-console";

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
                      form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// The rules.
pub(crate) struct Guard {
    hosts: Vec<String>,
    /// Signs cookies and forms; drawn at each start.
    key: hmac::Key,
    /// The signature of the token.
    token: Option<hmac::Tag>,
    /// Whether connections are by TLS.
    is_secure: bool,
}

impl Guard {
    /// # Errors
    /// The operating system provides no random bytes.
    pub(crate) fn new(
        hosts: Vec<String>,
        token: Option<&str>,
        is_secure: bool,
    ) -> Result<Guard, String> {
        let key = hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new());
        let key = key.map_err(|_| "no random bytes are available".to_owned())?;
        Ok(Guard {
            hosts,
            token: token.map(|token| hmac::sign(&key, token.as_bytes())),
            key,
            is_secure,
        })
    }

    /// The refusal of a request that breaks a rule.
    pub(crate) fn refusal<B>(&self, request: &Request<B>, visit: &Visit) -> Option<Response> {
        if request.uri().to_string().len() > URI_BYTES_MAX {
            return Some(reply::text(
                StatusCode::URI_TOO_LONG,
                "the address is too long\n",
            ));
        }
        let hosts: Vec<_> = request.headers().get_all(HOST).iter().collect();
        let is_known = match hosts.as_slice() {
            [host] => host.to_str().is_ok_and(|host| self.is_host(host)),
            _ => false,
        };
        if !is_known {
            return Some(reply::text(
                StatusCode::MISDIRECTED_REQUEST,
                "this host name is not served; --host adds one\n",
            ));
        }
        // A browser tells which site a request comes from. Others must not even read pages.
        let site = request.headers().get("sec-fetch-site");
        let mode = request.headers().get("sec-fetch-mode");
        let is_foreign = site.is_some_and(|site| site == "cross-site" || site == "same-site");
        let is_visit =
            request.method() == Method::GET && mode.is_some_and(|mode| mode == "navigate");
        if is_foreign && !is_visit {
            return Some(reply::text(
                StatusCode::FORBIDDEN,
                "requests of other sites are refused\n",
            ));
        }
        let path = request.uri().path();
        let is_open = path == "/login" || path.starts_with("/static/");
        if is_open {
            return None;
        }
        match self.judge(request, visit) {
            Judgement::Authorized => return None,
            Judgement::TooManyGuesses => return Some(too_many_guesses()),
            Judgement::Unknown => {}
        }
        let is_page = request.method() == Method::GET && mode.is_none_or(|mode| mode == "navigate");
        let mut response = reply::text(StatusCode::UNAUTHORIZED, "a token is needed: see /login\n");
        if is_page && mode.is_some() {
            *response.status_mut() = StatusCode::SEE_OTHER;
            let to = request.uri().path_and_query();
            let login = HeaderValue::from_str(&login_for(to.map_or("/", |to| to.as_str())));
            let login = login.unwrap_or(HeaderValue::from_static("/login"));
            response.headers_mut().insert(LOCATION, login);
        }
        Some(response)
    }

    fn is_host(&self, host: &str) -> bool {
        let name = match host.strip_prefix('[') {
            Some(rest) => {
                return rest
                    .split_once(']')
                    .is_some_and(|(ip, _)| ip.parse::<Ipv6Addr>().is_ok());
            }
            None => host.split(':').next().unwrap_or_default(),
        };
        let name = name.trim_end_matches('.').to_ascii_lowercase();
        name.parse::<IpAddr>().is_ok() || name == "localhost" || self.hosts.contains(&name)
    }

    /// Whether a browser has reached the console by a name of `--host`.
    pub(crate) fn is_named<B>(&self, request: &Request<B>) -> bool {
        let host = request.headers().get(HOST);
        let host = host.and_then(|host| host.to_str().ok()).unwrap_or_default();
        let name = host.split(':').next().unwrap_or_default();
        let name = name.trim_end_matches('.').to_ascii_lowercase();
        self.hosts.contains(&name)
    }

    fn judge<B>(&self, request: &Request<B>, visit: &Visit) -> Judgement {
        if self.token.is_none() {
            return Judgement::Authorized;
        }
        let headers = request.headers();
        let bearer = headers
            .get(AUTHORIZATION)
            .and_then(|value| value.to_str().ok());
        let bearer = bearer.and_then(|value| value.split_once(' '));
        if let Some((_, token)) = bearer.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
        {
            return self.guess(token.trim(), visit);
        }
        let cookies = headers.get_all(COOKIE).iter();
        let cookies = cookies.filter_map(|value| value.to_str().ok());
        let is_known = cookies
            .flat_map(|cookies| cookies.split(';'))
            .filter_map(|cookie| cookie.trim().split_once('='))
            .any(|(name, value)| name == COOKIE_NAME && self.is_signed("viewer", value));
        match is_known {
            true => Judgement::Authorized,
            false => Judgement::Unknown,
        }
    }

    /// Judges what a viewer gives as the token. An address that has guessed too often is refused
    /// even if it is right, because otherwise it could go on.
    pub(crate) fn guess(&self, text: &str, visit: &Visit) -> Judgement {
        if !visit.may_guess() {
            return Judgement::TooManyGuesses;
        }
        match self.is_token(text) {
            true => Judgement::Authorized,
            false => {
                visit.guessed_wrong();
                Judgement::Unknown
            }
        }
    }

    /// Whether this is the token; takes the same time for every text of a length.
    fn is_token(&self, text: &str) -> bool {
        let Some(token) = &self.token else {
            return true;
        };
        hmac::verify(&self.key, text.as_bytes(), token.as_ref()).is_ok()
    }

    /// The header that makes a viewer known who has told the token.
    pub(crate) fn cookie(&self) -> String {
        let value = self.signed("viewer");
        let secure = if self.is_secure { "; Secure" } else { "" };
        format!("{COOKIE_NAME}={value}; Path=/; HttpOnly; SameSite=Strict; Max-Age=604800{secure}")
    }

    /// The token of forms that change something.
    pub(crate) fn form_token(&self) -> String {
        self.signed("form")
    }

    /// Whether a form has the token.
    pub(crate) fn is_form_token(&self, text: &str) -> bool {
        self.is_signed("form", text)
    }

    /// Adds the headers of every response.
    pub(crate) fn with_headers(&self, mut response: Response, is_named: bool) -> Response {
        let headers = response.headers_mut();
        let mut set = |name: HeaderName, value: &'static str| {
            headers.insert(name, HeaderValue::from_static(value));
        };
        set(CONTENT_SECURITY_POLICY, POLICY);
        set(X_CONTENT_TYPE_OPTIONS, "nosniff");
        set(X_FRAME_OPTIONS, "DENY");
        set(REFERRER_POLICY, "no-referrer");
        set(
            HeaderName::from_static("cross-origin-opener-policy"),
            "same-origin",
        );
        set(
            HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin",
        );
        set(
            HeaderName::from_static("permissions-policy"),
            "camera=(), geolocation=(), microphone=()",
        );
        set(CACHE_CONTROL, "no-store");
        // Not for addresses and `localhost`: it would hold for every other port of theirs, too.
        if self.is_secure && is_named {
            set(STRICT_TRANSPORT_SECURITY, "max-age=31536000");
        }
        response
    }

    fn signed(&self, purpose: &str) -> String {
        let tag = hmac::sign(&self.key, purpose.as_bytes());
        tag.as_ref()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }

    fn is_signed(&self, purpose: &str, text: &str) -> bool {
        let digits = text.as_bytes().chunks(2);
        let bytes: Option<Vec<u8>> = digits
            .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
            .collect();
        bytes.is_some_and(|bytes| hmac::verify(&self.key, purpose.as_bytes(), &bytes).is_ok())
    }
}

/// The outcome of a look at a viewer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Judgement {
    Authorized,
    Unknown,
    TooManyGuesses,
}

/// The response to an address that has guessed the token too often.
pub(crate) fn too_many_guesses() -> Response {
    reply::text(
        StatusCode::TOO_MANY_REQUESTS,
        "too many wrong tokens from this address: try again in six seconds\n",
    )
}

/// The address of the page that asks for the token, and then leads to another one.
fn login_for(to: &str) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    let login = match own_address(to) {
        Some("/") | None => String::new(),
        Some(to) => format!("/login?{}", query.append_pair("to", to).finish()),
    };
    match login.len() {
        1..=URI_BYTES_MAX => login,
        _ => "/login".to_owned(),
    }
}

/// An address without host, if it is one: that of a page of this console. Browsers read a backslash
/// as a slash, and leave out some other letters.
pub(crate) fn own_address(text: &str) -> Option<&str> {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && byte != b'\\';
    let is_own = text.starts_with('/') && !text.starts_with("//") && text.bytes().all(is_plain);
    is_own.then_some(text)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::sync::Arc;

    use super::*;
    use crate::web::visitors::Visitors;

    #[test]
    fn a_login_leads_to_pages_of_this_console_only() {
        for own in ["/", "/db/nb/table/T?where=a+%3D%3D+1&page=2"] {
            assert_eq!(own_address(own), Some(own));
        }
        for foreign in [
            "",
            "//evil.example/",
            "/\\evil.example/",
            "/\t/evil.example",
            "https://evil.example/",
            "javascript:alert(1)",
            "/a\r\nSet-Cookie: x",
        ] {
            assert_eq!(own_address(foreign), None, "{foreign:?}");
        }
        assert_eq!(
            login_for("/db/nb?a=b&c"),
            "/login?to=%2Fdb%2Fnb%3Fa%3Db%26c"
        );
        assert_eq!(login_for("/"), "/login");
        assert_eq!(login_for(&"/x".repeat(URI_BYTES_MAX)), "/login");
    }

    fn status(guard: &Guard, headers: &[(&str, &str)]) -> u16 {
        let visitors = Arc::<Visitors>::default();
        let visit = visitors.enter(IpAddr::V4(Ipv4Addr::LOCALHOST)).unwrap();
        let mut request = Request::builder().uri("/db/nb");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let refusal = guard.refusal(&request.body(()).unwrap(), &visit);
        refusal.map_or(200, |response| response.status().as_u16())
    }

    #[test]
    fn foreign_host_names_are_refused() {
        let guard = Guard::new(vec!["console.example".to_owned()], None, false).unwrap();
        for host in [
            "127.0.0.1:8640",
            "localhost",
            "[::1]:8640",
            "Console.Example:1",
            "localhost.",
        ] {
            assert_eq!(status(&guard, &[("host", host)]), 200, "{host}");
        }
        for host in ["evil.example", "127.0.0.1.evil.example", "[evil]", ""] {
            assert_eq!(status(&guard, &[("host", host)]), 421, "{host}");
        }
        assert_eq!(status(&guard, &[]), 421);
        assert_eq!(status(&guard, &[("host", "localhost"), ("host", "x")]), 421);
    }

    #[test]
    fn other_sites_read_nothing() {
        let guard = Guard::new(Vec::new(), None, false).unwrap();
        let from = |site, mode| {
            let headers = [
                ("host", "localhost"),
                ("sec-fetch-site", site),
                ("sec-fetch-mode", mode),
            ];
            status(&guard, &headers)
        };
        assert_eq!(from("same-origin", "cors"), 200);
        assert_eq!(from("cross-site", "navigate"), 200);
        assert_eq!(from("cross-site", "cors"), 403);
        assert_eq!(from("same-site", "no-cors"), 403);
    }

    #[test]
    fn a_token_is_told_by_a_header_or_a_cookie() {
        let guard = Guard::new(Vec::new(), Some("0123456789abcdef"), false).unwrap();
        let with = |name, value: &str| status(&guard, &[("host", "localhost"), (name, value)]);
        assert_eq!(with("accept", "*/*"), 401);
        assert_eq!(with("authorization", "Bearer 0123456789abcdef"), 200);
        assert_eq!(with("authorization", "Bearer 0123456789abcdeg"), 401);
        let cookie = guard.cookie();
        let cookie = cookie.split(';').next().unwrap();
        assert_eq!(with("cookie", &format!("a=b; {cookie}")), 200);
        assert_eq!(
            with("cookie", &cookie.replace(char::is_alphanumeric, "0")),
            401
        );
        let other = Guard::new(Vec::new(), Some("0123456789abcdef"), false).unwrap();
        assert!(
            !other.is_form_token(&guard.form_token()),
            "keys are drawn at each start"
        );
    }
}
