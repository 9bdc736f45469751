//! Names and addresses of the other servers: how log lines name them, and which connections are
//! wanted.
//!
//! Invariant: connections are requested once for each change of the wanted ones. Every turn
//! compares.

use corvid_log::cluster::Sid;
use corvid_log::cluster::ids::nickname;

use super::Roster;
use crate::member::Output;
use crate::member::context::Context;
use crate::peers::DialTarget;

impl Roster {
    /// The name of a server for log lines.
    pub(crate) fn name_of(&self, sid: Sid) -> String {
        let address = self.address(sid).unwrap_or_default();
        nickname(address, Some(sid))
    }

    /// Requests other connections, if the wanted ones have changed.
    pub(crate) fn update_targets(&mut self, cx: &mut Context) {
        let (own, own_address) = (cx.own(), &cx.settings.address);
        // Every turn compares, so build the list only if it has changed.
        let is_same = self.targets.as_ref().is_some_and(|known| {
            let known = known.iter();
            known
                .map(|target| (target.sid, target.address.as_str()))
                .eq(self.wanted_connections(own, own_address))
        });
        if is_same {
            return;
        }
        let wanted = self.wanted_connections(own, own_address);
        let targets: Vec<DialTarget> = wanted
            .map(|(sid, address)| DialTarget {
                address: address.to_owned(),
                sid,
            })
            .collect();
        self.targets = Some(targets.clone());
        cx.put(Output::Dial(targets));
    }

    /// The connections that this member wants: the server, unless any will do, and the address.
    fn wanted_connections<'a>(
        &'a self,
        own: Sid,
        own_address: &'a str,
    ) -> impl Iterator<Item = (Option<Sid>, &'a str)> {
        let others = self.members().filter(move |(sid, _)| *sid != own);
        let joiners = self.list.joiners.iter();
        let joiners = joiners.map(|(sid, joiner)| (*sid, joiner.address.as_str()));
        let named = others.chain(joiners);
        let remotes = self.remotes();
        let unnamed = remotes.iter().enumerate().filter(move |(at, address)| {
            **address != own_address
                && !self.is_named(own, address)
                && !remotes[..*at].contains(address)
        });
        let named = named.map(|(sid, address)| (Some(sid), address));
        named.chain(unnamed.map(|(_, address)| (None, address.as_str())))
    }

    /// Whether another member, or a joining server, has this address.
    fn is_named(&self, own: Sid, address: &str) -> bool {
        let mut others = self.members().filter(|(sid, _)| *sid != own);
        let mut joiners = self.list.joiners.values();
        others.any(|(_, known)| known == address) || joiners.any(|joiner| joiner.address == address)
    }
}
