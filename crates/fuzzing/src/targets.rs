//! The table of targets. Their functions are grouped by the layer that they test.

mod client;
mod cluster;
mod data;
mod engine;
mod history;
mod json;
mod log;
mod member;
mod peers;
mod rpc;
mod tls;

pub use client::client;
pub use cluster::cluster_records;
pub use data::{notation, schema};
pub use engine::operations;
pub use history::segments;
pub use json::{frame, read};
pub use log::log_records;
pub use member::member_messages;
pub use peers::peer_messages;
pub use rpc::message;
pub use tls::{certificates, tls_records};

/// A target and its name, which is also the name of its folder of seeds.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// The name.
    pub name: &'static str,
    /// Runs the target on an input. Panics if an invariant is broken.
    pub run: fn(&[u8]),
}

/// All targets, the lowest layer first.
pub const TARGETS: &[Target] = &[
    Target {
        name: "frame",
        run: frame,
    },
    Target {
        name: "read",
        run: read,
    },
    Target {
        name: "message",
        run: message,
    },
    Target {
        name: "notation",
        run: notation,
    },
    Target {
        name: "schema",
        run: schema,
    },
    Target {
        name: "operations",
        run: operations,
    },
    Target {
        name: "tls_records",
        run: tls_records,
    },
    Target {
        name: "certificates",
        run: certificates,
    },
    Target {
        name: "log_records",
        run: log_records,
    },
    Target {
        name: "cluster_records",
        run: cluster_records,
    },
    Target {
        name: "segments",
        run: segments,
    },
    Target {
        name: "peer_messages",
        run: peer_messages,
    },
    Target {
        name: "member_messages",
        run: member_messages,
    },
    Target {
        name: "client",
        run: client,
    },
];
