//! A relay before its thread starts, and a running relay as the main thread sees it.

use std::sync::Arc;
use std::thread::JoinHandle;

use corvid_data::HashSeed;
use corvid_net::tls::Credentials;
use corvid_service::message::DatabaseId;

use super::handle::{RelayHandle, ToRelay};
use super::thread::RelayThread;
use crate::config::relay::SourceSettings;
use crate::database::history::Histories;
use crate::liveness::Liveness;
use crate::main_handle::MainHandle;

/// A relay whose thread does not run yet.
pub(crate) struct PreparedRelay {
    /// The number of the relay's database.
    pub(crate) id: DatabaseId,
    /// The name of the relay's database.
    pub(crate) name: String,
    /// The source to connect to.
    pub(crate) source: SourceSettings,
    /// Credentials for `ssl:` sources.
    pub(crate) credentials: Arc<Credentials>,
    /// The hash seed of all databases.
    pub(crate) hash_seed: HashSeed,
    /// Records when the relay's thread is busy.
    pub(crate) liveness: Liveness,
    /// The receiver of the initial contents.
    pub(crate) main: MainHandle,
    /// Where the relay shows its source to readings of history.
    pub(crate) histories: Arc<Histories>,
}

/// A running relay.
pub(crate) struct ServedRelay {
    /// The relay's queue.
    pub(crate) handle: RelayHandle,
    source: SourceSettings,
    thread: JoinHandle<()>,
}

impl PreparedRelay {
    /// Starts the thread.
    ///
    /// # Errors
    /// Threads, descriptors or random bytes are exhausted.
    pub(crate) fn start(self) -> std::io::Result<ServedRelay> {
        let (name, source) = (self.name.clone(), self.source.clone());
        let (thread, handle) = RelayThread::new(self)?;
        let thread = std::thread::Builder::new()
            .name(format!("relay:{name}"))
            .spawn(move || thread.run())?;
        Ok(ServedRelay {
            handle,
            source,
            thread,
        })
    }
}

impl ServedRelay {
    /// The relay's source.
    pub(crate) fn source(&self) -> &SourceSettings {
        &self.source
    }

    /// Changes the relay's source, or options of the connection.
    pub(crate) fn set_source(&mut self, source: SourceSettings) {
        if source != self.source {
            self.source = source.clone();
            self.handle.post([ToRelay::SetSource(Box::new(source))]);
        }
    }

    /// Orders the relay to close its connection and end, and then to end its database. Returns its
    /// thread.
    pub(crate) fn end(self) -> JoinHandle<()> {
        self.handle.post([ToRelay::End]);
        self.thread
    }
}
