//! Locks at the source that the relay claims for its sessions ([`crate::locks`]).
//!
//! ```text
//! claim:        Idle ---- lock, steal ----> Asked ---> Owned <--- locked, stolen ---> InLine
//! another one:  any ----- unlock ----> Idle                 a thief that loses it ---> Out
//! ```
//!
//! A claim ends with the connection. The relay repeats it once it has the contents of a source,
//! after everything that was queued. So queued transactions that assert a lock fail at the source.

use std::collections::BTreeMap;

use bytes::Bytes;
use corvid_json::Value;
use corvid_session::{Client, Outcome, RequestId};

use crate::message::{LockClaim, LockNews};

/// News of a claim: the lock, the claim's number and the news.
pub(super) type News = (String, u64, LockNews);

/// The claims of the relay, and what the source knows of them.
#[derive(Debug, Default)]
pub(super) struct SourceLocks {
    locks: BTreeMap<String, SourceLock>,
    /// Lock requests in flight.
    asked: BTreeMap<RequestId, String>,
    /// Claims can be made over the current connection, now or soon.
    has_source: bool,
}

#[derive(Debug, Default)]
struct SourceLock {
    claim: Option<LockClaim>,
    at_source: AtSource,
    /// The claim that was last sent to the source.
    known: Option<LockClaim>,
}

/// The state of a lock at the source, as far as the relay knows.
#[derive(Debug, Default, PartialEq, Eq)]
enum AtSource {
    /// Never requested, or released.
    #[default]
    Idle,
    Asked(RequestId),
    InLine,
    Owned,
    /// The relay stole the lock and lost it to another thief. It must unlock before it requests the
    /// lock again.
    Out,
}

impl SourceLocks {
    /// The database has changed its claim. Returns news of the claim if there is no source to ask.
    pub(super) fn claim(&mut self, name: &str, claim: Option<LockClaim>) -> Option<News> {
        let lock = self.locks.entry(name.to_owned()).or_default();
        lock.claim = claim;
        if self.has_source {
            return None;
        }
        if claim.is_none() {
            self.locks.remove(name);
        }
        let claim = claim?;
        Some((name.to_owned(), claim.number, LockNews::Lost))
    }

    /// The relay has the contents of a source. Returns the locks to claim there.
    pub(super) fn connected(&mut self) -> Vec<String> {
        if std::mem::replace(&mut self.has_source, true) {
            return Vec::new();
        }
        self.locks.keys().cloned().collect()
    }

    /// The connection has ended, and the source has released the relay's locks. Returns the losses.
    pub(super) fn disconnected(&mut self) -> Vec<News> {
        self.has_source = false;
        self.asked.clear();
        let mut news = Vec::new();
        self.locks.retain(|name, lock| {
            lock.at_source = AtSource::Idle;
            lock.known = None;
            let Some(claim) = lock.claim else {
                return false;
            };
            news.push((name.clone(), claim.number, LockNews::Lost));
            true
        });
        news
    }

    /// Whether the source still has an earlier claim, which must be released.
    pub(super) fn must_give_back(&self, name: &str) -> bool {
        let lock = self.locks.get(name);
        lock.is_some_and(|lock| lock.at_source != AtSource::Idle && lock.known != lock.claim)
    }

    /// Sends the current claim of a lock. Returns false if the session accepts no requests now.
    pub(super) fn send(&mut self, client: &mut Client, name: &str) -> bool {
        let Some(lock) = self.locks.get_mut(name) else {
            return true;
        };
        if lock.at_source != AtSource::Idle && lock.known == lock.claim {
            return true;
        }
        let params = params(name);
        // Unlock first, even if the next claim is for the same lock: the relay then queues after
        // other clients of the source. The reply does not matter.
        if lock.at_source != AtSource::Idle {
            let Some(request) = client.send_request("unlock", &params) else {
                return false;
            };
            client.forget_request(request);
            if let AtSource::Asked(request) = lock.at_source {
                self.asked.remove(&request);
            }
            lock.at_source = AtSource::Idle;
            lock.known = None;
        }
        let Some(claim) = lock.claim else {
            self.locks.remove(name);
            return true;
        };
        let method = if claim.steals { "steal" } else { "lock" };
        let Some(request) = client.send_request(method, &params) else {
            return false;
        };
        self.asked.insert(request, name.to_owned());
        lock.at_source = AtSource::Asked(request);
        // News from the source is for this claim from here on, even if the database changes its
        // claim before the reply.
        lock.known = lock.claim;
        true
    }

    /// Whether this is a lock request in flight.
    pub(super) fn is_request(&self, request: RequestId) -> bool {
        self.asked.contains_key(&request)
    }

    /// A lock request has ended. Returns news of its claim.
    pub(super) fn replied(&mut self, request: RequestId, outcome: Outcome) -> Option<News> {
        let name = self.asked.remove(&request)?;
        let lock = self.locks.get_mut(&name)?;
        let claim = lock.known?;
        let (at_source, news) = match outcome {
            Outcome::Result(result) if is_locked(&result) => (AtSource::Owned, LockNews::Granted),
            Outcome::Result(_) => (AtSource::InLine, LockNews::Waiting),
            Outcome::Error(error) => (AtSource::Idle, LockNews::Refused(Bytes::from(error))),
            // The end of the connection was reported earlier.
            Outcome::Lost => return None,
        };
        lock.at_source = at_source;
        Some((name, claim.number, news))
    }

    /// The source has notified the relay that it owns a lock (`is_locked`), or has lost it. Returns
    /// news of the claim.
    pub(super) fn notified(&mut self, name: &str, is_locked: bool) -> Option<News> {
        let lock = self.locks.get_mut(name)?;
        let claim = lock.known?;
        let (at_source, news) = match (&lock.at_source, is_locked) {
            (AtSource::InLine, true) => (AtSource::Owned, LockNews::Granted),
            (AtSource::Owned, false) if claim.steals => (AtSource::Out, LockNews::Lost),
            (AtSource::Owned, false) => (AtSource::InLine, LockNews::Lost),
            // Of an earlier claim, or repeated.
            _ => return None,
        };
        lock.at_source = at_source;
        Some((name.to_owned(), claim.number, news))
    }
}

fn params(name: &str) -> Vec<u8> {
    Value::Array(vec![Value::string(name)]).to_bytes()
}

fn is_locked(result: &[u8]) -> bool {
    let result = Value::parse(result).ok();
    result.and_then(|result| result.get("locked")?.as_bool()) == Some(true)
}
