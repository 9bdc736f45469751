//! For tests only: a naive model of the engine and of monitors, generators of traffic from one seed, and drivers that compare the real
//! engine with the model and our server with the reference server; and simulations in virtual time, of the server on its disk and of
//! clients beside servers.
//!
//! The model is written from the protocol, not from the engine. It shares with it the JSON tree and the UUID type, nothing else: its
//! values, types, conditions, references and commit are its own, and every step is computed from scratch over the whole database.
//!
//! ```text
//! dice -> generator -> requests -> model          \
//!                              \-> engine, monitors > compare, through normal
//!                              \-> two servers     /
//! ```

pub mod bench;
pub mod clients;
pub mod dice;
pub mod differential;
pub mod generator;
pub mod model;
pub mod normal;
pub mod replica;
pub mod seeds;
pub mod server;
