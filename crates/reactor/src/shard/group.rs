//! A group of shards: their threads, the remotes on which they listen, and the distribution of
//! connections over the shards.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use super::accept::Acceptor;
use super::inbox::Envelope;
use super::limits::{Accounts, Limits, Refusals};
use super::run::Shard;
use super::{Handler, ListenerId, ListenerStatus, ShardHandle};
use corvid_net::clock;
use corvid_net::target::Passive;
use corvid_net::tls::Credentials;

/// The token under which a shard's own waker reports.
pub(super) const WAKER: mio::Token = mio::Token(usize::MAX);

/// Shards that serve the same remotes. They are made in two steps, because handlers need the
/// handles of threads (including their own shards') that do not run yet.
#[derive(Debug)]
pub struct Shards<M> {
    handles: Vec<ShardHandle<M>>,
    /// The polls of shards that are not started yet.
    polls: Vec<mio::Poll>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// The credentials for remotes over TLS.
    credentials: Option<Arc<Credentials>>,
    accounts: Arc<Accounts>,
}

/// A listener, for its owner. Dropping the handle does not close the listener; see
/// [`Shards::unlisten`].
#[derive(Debug)]
pub struct ListenerHandle {
    id: ListenerId,
    status: Arc<ListenerStatus>,
}

impl ListenerHandle {
    /// The id given to the listener.
    #[must_use]
    pub fn id(&self) -> ListenerId {
        self.id
    }

    /// The listener's current state.
    #[must_use]
    pub fn status(&self) -> &ListenerStatus {
        &self.status
    }
}

impl<M: Send + 'static> Shards<M> {
    /// `count` shards (at least one) that accept messages but do not run yet.
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn prepare(count: usize) -> io::Result<Shards<M>> {
        let (mut handles, mut polls) = (Vec::new(), Vec::new());
        for _ in 0..count.max(1) {
            let poll = mio::Poll::new()?;
            handles.push(ShardHandle::new(mio::Waker::new(poll.registry(), WAKER)?));
            polls.push(poll);
        }
        Ok(Shards {
            handles,
            polls,
            threads: Mutex::new(Vec::new()),
            credentials: None,
            accounts: Arc::default(),
        })
    }

    /// Sets the limits on clients. Call before [`Shards::start`].
    pub fn set_limits(&mut self, limits: Limits) {
        self.accounts = Arc::new(Accounts::new(limits));
    }

    /// Changes the limits while the shards run. Open connections stay open, even beyond the new
    /// limit.
    pub fn change_limits(&self, limits: &Limits) {
        self.accounts.change(limits);
    }

    /// The counts of refused connections. Call after [`Shards::set_limits`].
    #[must_use]
    pub fn refusals(&self) -> Refusals {
        Refusals::new(&self.accounts)
    }

    /// Enables remotes over TLS. Call before [`Shards::start`].
    pub fn set_credentials(&mut self, credentials: Arc<Credentials>) {
        self.credentials = Some(credentials);
    }

    /// A sender to each shard.
    #[must_use]
    pub fn handles(&self) -> &[ShardHandle<M>] {
        &self.handles
    }

    /// Starts the threads; `make` builds the handler of each shard, by number. Call once.
    ///
    /// # Errors
    /// A thread cannot be created.
    pub fn start<H: Handler<Message = M>>(
        &mut self,
        mut make: impl FnMut(usize) -> H,
    ) -> io::Result<()> {
        let mut threads = Vec::new();
        for (index, poll) in std::mem::take(&mut self.polls).into_iter().enumerate() {
            let shard = Shard::new(
                index,
                poll,
                self.handles.clone(),
                self.credentials.clone(),
                Arc::clone(&self.accounts),
                make(index),
            )?;
            threads.push(
                thread::Builder::new()
                    .name(format!("shard{index}"))
                    .spawn(move || shard.run())?,
            );
        }
        self.threads
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .extend(threads);
        Ok(())
    }

    /// Listens on a remote, which is logged as `name`. The first attempt is made before this
    /// returns; if it fails (logged), more attempts follow until [`Shards::unlisten`].
    pub fn listen(&self, id: ListenerId, name: &str, target: Passive, dscp: u8) -> ListenerHandle {
        let mut acceptor = Acceptor::new(id, name, target, dscp, self.credentials.clone());
        acceptor.limit(&self.accounts);
        acceptor.open(clock::mono_ms());
        let status = Arc::clone(&acceptor.status);
        self.handles[0].extend([Envelope::Listen(Box::new(acceptor))]);
        ListenerHandle { id, status }
    }

    /// Stops listening. When this returns, the address is free again, unless a later attempt bound
    /// it; the accepted connections are closed soon after.
    pub fn unlisten(&self, handle: &ListenerHandle) {
        handle.status.close();
        self.handles[0].extend([Envelope::Unlisten(handle.id)]);
    }

    /// Ends all shards and waits for their threads. Connections are closed without sending queued
    /// output.
    pub fn shutdown(&self) {
        for handle in &self.handles {
            handle.extend([Envelope::Shutdown]);
        }
        let threads =
            std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            // A shard that panicked has logged it.
            let _ = thread.join();
        }
    }
}
