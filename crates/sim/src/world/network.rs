//! Three kinds of networks, one for each level of detail.
//!
//! | Network | Carries | Between |
//! |---|---|---|
//! | [`messages`] | whole messages, which it loses, doubles and reorders | members |
//! | [`connections`] | bytes in order, with openings and ends | clients, hosts, a backup's source |
//! | [`wires`] | bytes in pieces, with limited buffers | whole servers, relays and their sources |

pub(crate) mod connections;
pub(crate) mod messages;
pub(crate) mod wires;
