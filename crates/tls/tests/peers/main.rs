//! Peers that meet in memory: which certificates are accepted and which are not, in both directions
//! and both versions of TLS.

#![allow(clippy::unwrap_used)]

mod made;
mod meeting;

mod mutated;
mod rules;
mod sessions;
mod with_openssl;
