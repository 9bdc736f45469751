//! `read_history` and `select_at`, and what clients have missed that come back after a long time
//! ([`past`]): a thread for each reading (`history-read`). It opens the files of a database itself,
//! or asks the source of a relay ([`relayed`]).
//!
//! [`Readings`](corvid_service::read_history::Readings) decides which readings there are; shards
//! and the threads call it under a lock ([`readers`]). No database thread takes part in those. A
//! reading shows a standalone file up to its published end, and a member's file up to the last
//! entry that its database had applied.

mod files;
mod pager;
mod past;
mod queries;
mod readers;
mod relayed;

pub(crate) use files::HistorySource;
pub(crate) use past::PastReader;
pub(crate) use readers::HistoryReaders;
