//! The JSON layer from outside: errors, framing, writers, and another reader as an oracle.

mod errors;
mod frame;
mod oracle;
mod write;
