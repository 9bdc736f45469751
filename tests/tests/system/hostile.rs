//! Clients that attack the server, or have faults that look like an attack. Their cost is bounded,
//! and other clients are not affected.
//!
//! During every attack, another client sends requests that must be answered, and the peak memory of
//! the server is measured. Time limits are generous. Memory limits are several times the expected
//! use, but only a small part of what the attack would cost without any protection.

mod connections;
mod messages;
mod readers;
mod scene;
mod sessions;
mod tls;
