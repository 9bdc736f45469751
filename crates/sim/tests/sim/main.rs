//! The simulator's runs: engine, monitors, log and backups compared with models, servers on failing
//! disks, and clients on failing networks.

mod clients;
mod clusters;
mod crashes;
mod differential;
mod flooding;
mod hash_seeds;
mod kept_files;
mod log_writer;
mod member_files;
mod member_reference;
mod model;
mod monitors;
mod relay_tree;
mod relays;
mod replication;
mod whole_clusters;
