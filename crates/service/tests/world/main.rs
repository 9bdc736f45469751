//! The whole service without threads: sessions on two shards, three databases, a fake disk for each, in one thread and virtual
//! time. [`world`] carries the messages; the other files are plays by topic and a random run with checkers.

mod audit;
mod backups;
mod batches;
mod blocked_transactions;
mod body_scheduler;
mod client;
mod closed_sessions;
mod cluster;
mod cluster_contents;
mod cluster_plays;
mod cluster_random;
mod cluster_search;
mod conversion;
mod database_removal;
mod databases;
mod deferred_replies;
mod disk;
mod endings;
mod initial_contents;
mod locks;
mod long_requests;
mod member_file;
mod member_pump;
mod monitors;
mod ordering;
mod positions;
mod random;
mod recording;
mod relay_once;
mod relay_plays;
mod relay_random;
mod relays;
mod reply_backpressure;
mod storage;
mod world;
