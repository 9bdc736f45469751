//! What the server is asked to serve, and how that is kept: the configuration file, what has been applied of it, the state that a restarted
//! server reads, and the settings of active-backup replication. Nothing here serves anything; [`crate::server`] does.

pub(crate) mod applied;
pub(crate) mod file;
pub(crate) mod replication;
pub(crate) mod saved_config;
