//! The configuration of the server: the configuration file, the part of it that has been applied,
//! the configuration that a restarted server reads, and the settings of active-backup replication.
//! Nothing here serves anything; [`crate::server`] does.

pub(crate) mod applied;
pub(crate) mod file;
pub(crate) mod relay;
pub(crate) mod replication;
pub(crate) mod saved_config;
