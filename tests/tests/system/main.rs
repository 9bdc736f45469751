//! Tests of real processes: our programs, and the reference's beside them.
//!
//! All are one program, which is linked once. A test that needs a mount, a network or a first process of its own starts that as a child.

mod active_backup;
mod audit;
mod backup;
mod check_config;
mod cluster;
mod cluster_changes;
mod cluster_faults;
mod cluster_files;
mod cluster_full_disk;
mod cluster_network;
mod cluster_operations;
mod cluster_partitions;
mod cluster_rehearsals;
mod cluster_swap;
mod commands;
mod config_file;
mod conversions;
mod coverage;
mod crash_report;
mod crashes;
mod dismissed_sessions;
mod endings;
mod failed_swap;
mod full_disk;
mod hangup;
mod history;
mod hostile;
mod interop;
mod logging;
mod metrics;
mod opening;
mod options;
mod own_references;
mod packaging;
mod programs;
mod recording;
mod scripted;
mod service_manager;
mod sessions;
mod settings;
mod slow_disk;
mod tour;
mod upgrade;
mod user;
