//! The events that databases, shards and other threads send to the main thread, and its reactions:
//! it answers control commands, changes `_Server`, closes sessions and logs. Part of the main
//! thread.
//!
//! Invariant: the order to close sessions leaves before `_Server` changes, so a session that is
//! being closed gets no update about the change.

use std::sync::atomic::Ordering;

use corvid_net::logging::Level;
use corvid_rpc::remote::ColumnRemote;
use corvid_service::message::{DatabaseId, Event, ToShard};
use corvid_service::server_db;
use corvid_shell::vlog::{self, Module, RateLimit};

use super::pending_replies::Removal;
use super::{Server, answer};
use crate::main_handle::MainMessage;
use crate::shard::ShardMessage;

impl Server {
    /// Handles all events that have arrived, and advances the configuration that is being applied.
    pub(crate) fn run_events(&mut self) {
        while let Ok(report) = self.shared.inbox.try_recv() {
            self.run_message(report);
        }
        self.end_late_statuses();
        let dropped = self.shared.main.lines_dropped.swap(0, Ordering::Relaxed);
        if dropped > 0 {
            vlog::warn(
                Module::Transaction,
                format_args!(
                    "{dropped} log messages dropped: they arrived faster than they could be logged"
                ),
            );
        }
        self.advance();
    }

    pub(super) fn run_message(&mut self, message: MainMessage) {
        match message {
            MainMessage::Event(event) => self.run_event(event),
            MainMessage::Opened(token, outcome) => self.opened(token, *outcome),
            MainMessage::BackedUp(token, outcome) => self.pending.backed_up(token, outcome),
            MainMessage::SessionsListed(token, sessions) => self.sessions_listed(token, sessions),
            MainMessage::SessionClosed(token, is_closed) => {
                let none = || Err("no such session".to_owned());
                let outcome = if is_closed { Ok(String::new()) } else { none() };
                self.pending.reply(token, outcome);
            }
            MainMessage::MemberAnswered(token, outcome) => self.pending.reply(token, outcome),
            MainMessage::MemberStatus(token, status) => self.member_told(token, *status),
            MainMessage::StatusWanted => self.publish_status(),
            MainMessage::MemberRowChanged(id) => self.show_member(id),
            MainMessage::Joined(id, contents) => self.joined(id, *contents),
            MainMessage::MemberLeft(id) => self.member_left(id),
            MainMessage::MemberEnded(id) => self.member_thread_ended(id),
            MainMessage::RelayRowChanged(id, row) => self.show_relay(id, row),
            MainMessage::Barrier(answer) => {
                // The sender may have stopped waiting.
                let _ = answer.send(());
            }
        }
    }

    pub(super) fn run_event(&mut self, event: Event) {
        match event {
            // Sessions are closed before `_Server` changes, here and below: a session that is being
            // closed must get no update about this change.
            Event::Converted(id, schema, epoch) => {
                let name = &schema.name;
                let reason = match self.databases.is_relay(id) {
                    true => format!("database {name} schema changed"),
                    false => format!("committed {name} database schema conversion"),
                };
                self.shared.disconnect_unaware_before(epoch, &reason);
                self.databases
                    .update_server_db(server_db::update_schema(&schema));
            }
            Event::Removed(id) => {
                self.expect_removal(id);
                if let Some(removal) = self.end_removal(id) {
                    self.shared.disconnect_unaware(&removal.reason);
                    self.databases
                        .update_server_db(server_db::delete(&removal.name));
                    answer(removal.replier, Ok(String::new()));
                }
            }
            Event::Answered(token, answer) => self.database_answered(token, answer),
            Event::Replication(notice) => super::roles::log(&notice),
            Event::Compacted(result) => {
                if let Err(error) = result {
                    vlog::warn(
                        Module::OvsdbServer,
                        format_args!("compaction failed: {}", error.to_wire()),
                    );
                }
            }
            Event::ColumnWatched(name, found) => self.column_read(&name, found),
            Event::ColumnLost(error) => {
                vlog::warn(Module::OvsdbServer, format_args!("{error}"));
            }
            Event::OutcomeUnknown(session, reason) => {
                if let Some(shard) = self.shared.shard_of(session) {
                    let message = ToShard::CloseSession(session, reason);
                    shard.post(ShardMessage::Service(message));
                }
            }
            Event::EntryRefused(line) => vlog::err(Module::OvsdbServer, format_args!("{line}")),
            Event::Slow(line) => vlog::info(Module::Transaction, format_args!("{line}")),
            Event::RowLogged(line) => vlog::info(Module::Transaction, format_args!("{line}")),
            Event::NoStatusColumn(table) => {
                static LIMIT: RateLimit = RateLimit::new(1, 1);
                let message = format_args!("No status column present in the {table} table");
                vlog::warn_limited(&LIMIT, Module::OvsdbServer, message);
            }
            Event::NoTarget(table) => {
                static LIMIT: RateLimit = RateLimit::new(1, 1);
                let message =
                    format_args!("Table `{table}' has missing or invalid `target' column");
                vlog::log_limited(&LIMIT, Module::OvsdbServer, Level::Info, message);
            }
            Event::RemotesChanged(name, texts) if self.tls.concerns(&name) => {
                self.tls.set(&name, &texts);
            }
            Event::RemotesChanged(name, rows) => {
                let source = ColumnRemote::parse(&name);
                if source.is_some_and(|source| self.databases.serves(source.database)) {
                    self.remotes.set_rows(&name, rows);
                }
            }
        }
    }

    /// Takes the removal that has ended, if the main thread has ordered it. The database's member
    /// has ended before.
    pub(super) fn end_removal(&mut self, id: DatabaseId) -> Option<Removal> {
        let removal = self.pending.removals.remove(&id)?;
        self.member_ended(&removal.name);
        Some(removal)
    }
}
