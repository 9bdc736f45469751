//! Locks of the source that the relay claims for its sessions ([`crate::locks`]).
//!
//! ```text
//! claim:        Idle ---- lock, steal ----> Asked ---> Owned <--- locked, stolen ---> InLine
//! another one:  any ----- unlock ----> Idle                 a thief that loses it ---> Out
//! ```
//!
//! A claim ends with the connection. The relay makes it again when it has the contents of a source, behind everything that waited to be sent:
//! the transactions among that which assert a lock fail there.

use std::collections::BTreeMap;

use bytes::Bytes;
use corvid_json::Value;
use corvid_session::{Client, Outcome, RequestId};

use crate::upstream::{LockClaim, LockNews};

/// News of a claim: the lock, the claim's number, the news.
pub(super) type News = (String, u64, LockNews);

/// See the module.
#[derive(Debug, Default)]
pub(super) struct SourceLocks {
    locks: BTreeMap<String, SourceLock>,
    /// Requests without replies.
    asked: BTreeMap<RequestId, String>,
    /// Claims can be made over the present connection, now or soon.
    has_source: bool,
}

#[derive(Debug, Default)]
struct SourceLock {
    claim: Option<LockClaim>,
    at_source: AtSource,
    /// The claim that the source knows.
    known: Option<LockClaim>,
}

/// The state of a lock at the source, as far as the relay knows.
#[derive(Debug, Default, PartialEq, Eq)]
enum AtSource {
    /// Nothing was asked, or the lock was given back.
    #[default]
    Idle,
    Asked(RequestId),
    InLine,
    Owned,
    /// The relay stole it, and somebody else has stolen it then. It must be given back before it is asked for again.
    Out,
}

impl SourceLocks {
    /// The database has another claim. Returns the news of it, if no source can be asked now.
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

    /// The relay has the contents of a source. Returns the locks to be claimed.
    pub(super) fn connected(&mut self) -> Vec<String> {
        if std::mem::replace(&mut self.has_source, true) {
            return Vec::new();
        }
        self.locks.keys().cloned().collect()
    }

    /// The connection has ended, and the source gives the locks to others.
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

    /// Whether the source knows a claim that is over.
    pub(super) fn must_give_back(&self, name: &str) -> bool {
        let lock = self.locks.get(name);
        lock.is_some_and(|lock| lock.at_source != AtSource::Idle && lock.known != lock.claim)
    }

    /// Makes the present claim of a lock. False if the session takes no requests now.
    pub(super) fn send(&mut self, client: &mut Client, name: &str) -> bool {
        let Some(lock) = self.locks.get_mut(name) else {
            return true;
        };
        if lock.at_source != AtSource::Idle && lock.known == lock.claim {
            return true;
        }
        let params = params(name);
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
        lock.known = lock.claim;
        true
    }

    /// Whether a request is one of these.
    pub(super) fn is_request(&self, request: RequestId) -> bool {
        self.asked.contains_key(&request)
    }

    /// A request has ended.
    pub(super) fn replied(&mut self, request: RequestId, outcome: Outcome) -> Option<News> {
        let name = self.asked.remove(&request)?;
        let lock = self.locks.get_mut(&name)?;
        let claim = lock.known?;
        let (at_source, news) = match outcome {
            Outcome::Result(result) if is_locked(&result) => (AtSource::Owned, LockNews::Granted),
            Outcome::Result(_) => (AtSource::InLine, LockNews::Waiting),
            Outcome::Error(error) => (AtSource::Idle, LockNews::Refused(Bytes::from(error))),
            // The end of the connection is reported before.
            Outcome::Lost => return None,
        };
        lock.at_source = at_source;
        Some((name, claim.number, news))
    }

    /// The source has told of a change: the lock is the relay's now, or not any more.
    pub(super) fn notified(&mut self, name: &str, is_locked: bool) -> Option<News> {
        let lock = self.locks.get_mut(name)?;
        let claim = lock.known?;
        let (at_source, news) = match (&lock.at_source, is_locked) {
            (AtSource::InLine, true) => (AtSource::Owned, LockNews::Granted),
            (AtSource::Owned, false) if claim.steals => (AtSource::Out, LockNews::Lost),
            (AtSource::Owned, false) => (AtSource::InLine, LockNews::Lost),
            // Of a claim before, or told again.
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
