//! One served database: its thread, the shards' handle to it, its file, and the threads for its
//! long jobs. [`corvid_service::Pump`] decides what the database does; this module carries it out.

pub(crate) mod backup;
pub(crate) mod driver;
pub(crate) mod file_name;
pub(crate) mod handle;
pub(crate) mod history;
pub(crate) mod jobs;
pub(crate) mod open;
pub(crate) mod reaper;
pub(crate) mod recorder;
pub(crate) mod shown_index;
pub(crate) mod storage;
pub(crate) mod thread;
pub(crate) mod upstream;
