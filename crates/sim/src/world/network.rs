//! Three kinds of networks, by what a simulation is about.
//!
//! | Network | Carries | Between |
//! |---|---|---|
//! | [`messages`] | whole messages, which it loses, doubles and reorders | members of a cluster |
//! | [`connections`] | bytes in order, with openings and ends | clients and hosts, a backup and its source |
//! | [`wires`] | bytes in pieces, with buffers that fill up | whole servers of a cluster, relays and their sources |

pub(crate) mod connections;
pub(crate) mod messages;
pub(crate) mod wires;
