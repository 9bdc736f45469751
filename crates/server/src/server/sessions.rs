//! Lists sessions and closes one, by command. The shards answer between two pieces of work. Part of
//! the main thread.

use std::sync::PoisonError;

use corvid_monitor::SessionId;
use corvid_service::frontend::shard_of;
use corvid_shell::unixctl::Replier;

use super::Server;
use crate::control::sessions::{self, SessionList};
use crate::shard::ShardMessage;

impl Server {
    /// Lists all sessions; `replier` is answered when all shards have listed theirs.
    pub(crate) fn list_sessions(&mut self, replier: Replier) {
        self.gather_sessions(|server, all| {
            let locks = server.locks.lock().unwrap_or_else(PoisonError::into_inner);
            replier.reply_in_format(
                || sessions::lines(&all.sessions, &locks),
                || sessions::json(&all.sessions, &locks),
            );
        });
    }

    /// Asks all shards for their sessions; `finish` gets them, sorted, when all have answered.
    pub(super) fn gather_sessions(
        &mut self,
        finish: impl FnOnce(&mut Server, SessionList) + 'static,
    ) {
        let shards = self.shards.handles();
        let token = self.pending.list(shards.len(), finish);
        for shard in shards {
            shard.post(ShardMessage::ListSessions(token, self.main.clone()));
        }
    }

    pub(super) fn sessions_listed(&mut self, token: u64, sessions: SessionList) {
        if let Some((all, finish)) = self.pending.listed(token, sessions) {
            finish(self, all);
        }
    }

    /// Closes the session with this hexadecimal number, as shown in the list.
    pub(crate) fn close_session(&mut self, id: &str, replier: Replier) {
        let number = u64::from_str_radix(id, 16).ok().map(SessionId);
        let shard = |id| self.shards.handles().get(usize::from(shard_of(id)));
        match number.and_then(|id| Some((id, shard(id)?.clone()))) {
            None => replier.reply(Err("no such session".to_owned())),
            Some((id, shard)) => {
                let token = self.pending.await_reply(None, replier);
                shard.post(ShardMessage::CloseSession(id, token, self.main.clone()));
            }
        }
    }
}
