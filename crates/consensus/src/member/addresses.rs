//! Names and addresses of the other servers: how log lines call them, and which connections are wanted.

use corvid_log::cluster::ids::nickname;
use corvid_log::cluster::{Servers, Sid};

use super::Member;
use crate::peers::DialTarget;

impl Member {
    /// The name of a server in log lines.
    pub(super) fn name_of(&self, sid: Sid) -> String {
        let address = self.membership.address(sid).unwrap_or_default();
        nickname(address, Some(sid))
    }

    /// The connections that this member wants.
    pub(super) fn dial_targets(&self) -> Vec<DialTarget> {
        let own = self.settings.sid;
        let servers = self
            .membership
            .servers()
            .into_iter()
            .flat_map(Servers::iter);
        let mut targets: Vec<DialTarget> = servers
            .filter(|(sid, _)| *sid != own)
            .map(|(sid, address)| DialTarget {
                address: address.to_owned(),
                sid: Some(sid),
            })
            .collect();
        for (sid, joiner) in &self.membership.joiners {
            targets.push(DialTarget {
                address: joiner.address.clone(),
                sid: Some(*sid),
            });
        }
        let remotes = self.joining.iter().flat_map(|joining| &joining.remotes);
        for address in remotes {
            let is_known = targets.iter().any(|target| target.address == *address);
            if !is_known && *address != self.settings.address {
                targets.push(DialTarget {
                    address: address.clone(),
                    sid: None,
                });
            }
        }
        targets
    }
}
