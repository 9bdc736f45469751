//! Clients that attack the server, or are broken in ways that look like an attack: their cost is bounded, and other clients are not affected.
//!
//! Every attack runs beside a bystander whose requests must be answered all the while, and beside a look at the most memory that the
//! server used. Limits of time are generous; limits of memory are several times what is expected, and a small part of what the attack
//! would cost if nothing stood against it.

mod connections;
mod messages;
mod readers;
mod scene;
mod sessions;
mod tls;
