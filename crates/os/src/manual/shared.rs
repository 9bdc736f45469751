//! Chapters that the manuals of several programs share, about what this crate does for all of them.

use super::Chapter;

/// How connections are named that we make.
#[must_use]
pub fn active_methods(title: &'static str) -> Chapter {
    Chapter::list(
        title,
        &[
            ("tcp:HOST:PORT", "PORT at remote HOST"),
            ("ssl:HOST:PORT", "SSL/TLS PORT at remote HOST"),
            ("unix:FILE", "Unix domain socket named FILE"),
        ],
    )
}

/// How connections are named that we wait for.
#[must_use]
pub fn passive_methods(title: &'static str) -> Chapter {
    Chapter::list(
        title,
        &[
            ("ptcp:[PORT][:IP]", "listen to TCP PORT on IP"),
            ("pssl:[PORT][:IP]", "listen for SSL/TLS on PORT on IP"),
            ("punix:FILE", "listen on Unix domain socket FILE"),
        ],
    )
}
