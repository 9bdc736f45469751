//! The commands of the control socket (`ovs-appctl`), and the texts of their replies. The commands
//! call [`crate::server`], which carries them out.

pub(crate) mod c_number;
pub(crate) mod cluster_commands;
pub(crate) mod commands;
pub(crate) mod replication_commands;
pub(crate) mod reports;
pub(crate) mod sessions;
