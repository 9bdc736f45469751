//! A small HTTP server for whoever watches the program: one thread, short answers, and no more harm from a hostile client than from a
//! silent one.
//!
//! What the pages say is the program's matter ([`Site`]); here are addresses, limits and the protocol, which is `hyper`'s. The loop runs on
//! a thread of its own, so it answers however busy the rest is. Clients are limited in number, time and length of what they send; when
//! there are too many, the one that came first is dropped for the newest, so those who stall keep nobody out.

mod address;
mod server;

pub(crate) use address::Address;
pub(crate) use server::start;

/// What a client asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Request<'a> {
    /// From the first slash to the query.
    pub(crate) path: &'a str,
    /// Behind the question mark; empty without one.
    pub(crate) query: &'a str,
    /// The header `Accept`; empty without one.
    pub(crate) accept: &'a str,
}

impl<'a> Request<'a> {
    /// The names in the query, each with its value, empty without one. Escapes are left as they are.
    pub(crate) fn options(&self) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        self.query
            .split('&')
            .filter(|option| !option.is_empty())
            .map(|option| option.split_once('=').unwrap_or((option, "")))
    }
}

/// What it gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Response {
    /// For example 200.
    pub(crate) status: u16,
    /// `Content-Type`
    pub(crate) content_type: &'static str,
    /// All of it.
    pub(crate) body: String,
}

impl Response {
    /// A short text.
    #[must_use]
    pub(crate) fn text(status: u16, body: impl Into<String>) -> Response {
        Response {
            status,
            content_type: "text/plain; charset=utf-8",
            body: body.into(),
        }
    }
}

/// What is served. Called on the server's thread, so nothing here may take long or wait for a lock that others hold for long.
pub(crate) trait Site: Send + Sync + 'static {
    /// Has what an answer needs gathered by other threads. The answer waits a little for [`Site::is_gathered`], not for ever.
    fn gather(&self, request: &Request<'_>);

    /// Whether all that was asked for is there.
    fn is_gathered(&self) -> bool;

    /// Answers a GET with what is there.
    fn answer(&self, request: &Request<'_>) -> Response;

    /// Called every few seconds ([`TICK_MS`]), whether or not somebody asks.
    fn tick(&self);
}

/// Between two calls of [`Site::tick`], ms.
pub(crate) const TICK_MS: u64 = 5000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_stand_in_the_query_with_or_without_values() {
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
