//! The JSON layer from outside: errors, framing, writers, and another parser as an oracle.

mod errors;
mod frame;
mod oracle;
mod write;
