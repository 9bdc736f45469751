//! Servers that are outside their cluster and cannot learn it, because every server that they know
//! has left too. Both cluster simulations can produce them.

use corvid_consensus::member::Status;

/// Whether a server knows the address of any member other than itself.
pub(crate) fn knows_one(status: &Status, is_member: impl Fn(&str) -> bool) -> bool {
    let others = status.servers.iter().filter(|peer| peer.sid != status.sid);
    let mut addresses = others
        .map(|peer| &peer.address)
        .chain(&status.remote_addresses);
    addresses.any(|address| is_member(address))
}
