//! A small HTTP server for probes and scrapers: one thread, short answers, and a bounded cost of
//! hostile clients.
//!
//! The program supplies the pages ([`Site`]); this module has the addresses and the limits; `hyper`
//! speaks the protocol. The loop runs on its own thread, so it answers however busy the other
//! threads are. The number of clients, their time and the length of their requests are limited.
//! When there are too many clients, the oldest connection is dropped for the newest, so stalled
//! clients cannot keep others out.

mod address;
mod server;

pub(crate) use address::Address;
pub(crate) use server::{Running, start};

/// A request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Request<'a> {
    /// The path, from the first slash to the query.
    pub(crate) path: &'a str,
    /// The query, without the question mark; may be empty.
    pub(crate) query: &'a str,
    /// The header `Accept`; may be empty.
    pub(crate) accept: &'a str,
}

impl<'a> Request<'a> {
    /// The names in the query, each with its value, which may be empty. Escapes are not decoded.
    pub(crate) fn options(&self) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        self.query
            .split('&')
            .filter(|option| !option.is_empty())
            .map(|option| option.split_once('=').unwrap_or((option, "")))
    }
}

/// A response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Response {
    /// The status, for example 200.
    pub(crate) status: u16,
    /// `Content-Type`
    pub(crate) content_type: &'static str,
    /// The whole body.
    pub(crate) body: String,
}

impl Response {
    /// A plain-text response.
    #[must_use]
    pub(crate) fn text(status: u16, body: impl Into<String>) -> Response {
        Response {
            status,
            content_type: "text/plain; charset=utf-8",
            body: body.into(),
        }
    }
}

/// The pages. Methods are called on the server's thread, so none may take long or wait for a lock
/// that is held for long.
pub(crate) trait Site: Send + Sync + 'static {
    /// Asks other threads for the figures that an answer needs. The answer waits for
    /// [`Site::is_gathered`] for a short time.
    fn gather(&self, request: &Request<'_>);

    /// Whether all figures have arrived.
    fn is_gathered(&self) -> bool;

    /// Answers a GET request with the current figures.
    fn answer(&self, request: &Request<'_>) -> Response;

    /// Called every few seconds ([`TICK_MS`]), with or without requests.
    fn tick(&self);
}

/// The interval of [`Site::tick`], ms.
pub(crate) const TICK_MS: u64 = 5000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_in_the_query_have_values_or_none() {
        let request = Request {
            query: "verbose&exclude=a&exclude=b=c&",
            ..Request::default()
        };
        let options: Vec<_> = request.options().collect();
        let expected = [("verbose", ""), ("exclude", "a"), ("exclude", "b=c")];
        assert_eq!(options, expected);
        assert_eq!(Request::default().options().count(), 0);
    }
}
