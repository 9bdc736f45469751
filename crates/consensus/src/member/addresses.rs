//! Names and addresses of the other servers: how log lines call them, and which connections are wanted.

use corvid_log::cluster::ids::nickname;
use corvid_log::cluster::{Servers, Sid};

use super::Member;

impl Member {
    /// The name of a server in log lines.
    pub(super) fn name_of(&self, sid: Sid) -> String {
        let address = self.membership.address(sid).unwrap_or_default();
        nickname(address, Some(sid))
    }

    /// The connections that this member wants: servers, unless any will do, and addresses.
    pub(super) fn wanted_connections(&self) -> impl Iterator<Item = (Option<Sid>, &str)> {
        let own = self.settings.sid;
        let servers = self
            .membership
            .servers()
            .into_iter()
            .flat_map(Servers::iter);
        let others = servers.filter(move |(sid, _)| *sid != own);
        let joiners = self.membership.joiners.iter();
        let joiners = joiners.map(|(sid, joiner)| (*sid, joiner.address.as_str()));
        let named = others.chain(joiners);
        let remotes = self.joining.as_ref().map(|joining| &joining.remotes[..]);
        let remotes = remotes.unwrap_or_default();
        let unnamed = remotes.iter().enumerate().filter(|(at, address)| {
            let is_own = **address == self.settings.address;
            !is_own && !self.is_named(address) && !remotes[..*at].contains(address)
        });
        let named = named.map(|(sid, address)| (Some(sid), address));
        named.chain(unnamed.map(|(_, address)| (None, address.as_str())))
    }

    /// Whether a member besides this one, or a server that is joining, has this address.
    fn is_named(&self, address: &str) -> bool {
        let servers = self
            .membership
            .servers()
            .into_iter()
            .flat_map(Servers::iter);
        let mut others = servers.filter(|(sid, _)| *sid != self.settings.sid);
        let mut joiners = self.membership.joiners.values();
        others.any(|(_, known)| known == address) || joiners.any(|joiner| joiner.address == address)
    }
}
