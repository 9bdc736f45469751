//! The whole service without threads: sessions on two shards, three databases and a fake disk for
//! each, in one thread and virtual time. [`world`] carries the messages; the other files are plays
//! by topic, and random runs with checkers.

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
mod cluster_requests;
mod cluster_search;
mod conversion;
mod database_removal;
mod databases;
mod deferred_replies;
mod disk;
mod endings;
mod initial_contents;
mod limits;
mod locks;
mod long_requests;
mod member_file;
mod member_pump;
mod monitors;
mod ordering;
mod poison;
mod positions;
mod random;
mod recorded_clients;
mod recording;
mod relay_depth;
mod relay_locks;
mod relay_locks_random;
mod relay_once;
mod relay_plays;
mod relay_random;
mod relay_roles;
mod relays;
mod reply_backpressure;
mod seeds;
mod storage;
mod world;
