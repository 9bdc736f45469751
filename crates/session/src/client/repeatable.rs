//! Transactions that the session sends again after a lost connection, if the server executes ids
//! once (docs/internals/client.md, "Exactly once").
//!
//! ```text
//! sent ---> answered: the server's reply
//!   |  ---> connection lost ---> contents from a server that executes ids once: sent again
//!   |                       ---> from another server, or no server is tried any more: lost
//!   +-----> lost for the LOSSES_MAX-th time: lost
//! ```
//!
//! Invariants. The request id stays, so the user sees one request and one reply. Transactions are
//! sent again in the order in which they were sent first, before the user can send another. A
//! transaction is sent again only with the last commit that the user had seen when it was sent
//! first: the server judges by it whether the transaction may have been executed.

use std::collections::BTreeMap;

use corvid_data::Uuid;
use corvid_json::Reader;

use super::{Client, Purpose};
use crate::event::{Event, Outcome, RequestId};
use crate::log_message::LogMessage;
use crate::once::{self, TransactionIds};

/// Bytes of transactions kept for sending again. One that does not fit is sent as a plain
/// `transact`, whose outcome is unknown if the connection is lost.
const KEPT_BYTES_MAX: usize = 64 << 20;
/// Connections that may be lost while a transaction is in flight. It may be the reason, through
/// its execution or its reply, and must not break connections forever.
const LOSSES_MAX: u32 = 8;
/// How long an outage may last for a transaction to be executed after it, ms. After a longer one,
/// the user's contents were too old for too long, so the server is only asked for the outcome.
const EXECUTION_MS_MAX: u64 = 60_000;

/// A transaction without a reply.
#[derive(Debug)]
struct Transaction {
    id: Uuid,
    /// The last commit that the user had seen when the transaction was first sent.
    after: Uuid,
    /// The `params` of `transact`.
    params: Vec<u8>,
    /// Connections that were lost while it was in flight.
    losses: u32,
    /// It must not be executed any more: the server is only asked for its outcome.
    is_only_asked: bool,
}

/// The transactions of a session that can be sent again.
#[derive(Debug, Default)]
pub(super) struct Repeatable {
    /// `None`: transactions have no ids, and none is sent again.
    ids: Option<TransactionIds>,
    kept: BTreeMap<u64, Transaction>,
    /// Bytes of their parameters.
    bytes: usize,
    /// When the connection was lost over which all of `kept` were sent, monotonic ms; `None` if
    /// they are in flight.
    lost_ms: Option<u64>,
}

impl Repeatable {
    fn insert(&mut self, request: u64, transaction: Transaction) {
        assert!(
            self.lost_ms.is_none(),
            "earlier transactions are sent again first"
        );
        self.bytes += transaction.params.len();
        let before = self.kept.insert(request, transaction);
        assert!(before.is_none(), "a transaction has one request");
    }

    fn remove(&mut self, request: u64) -> Option<Transaction> {
        let transaction = self.kept.remove(&request)?;
        self.bytes -= transaction.params.len();
        assert!(
            !self.kept.is_empty() || self.bytes == 0,
            "kept bytes are those of the transactions"
        );
        if self.kept.is_empty() {
            self.lost_ms = None;
        }
        Some(transaction)
    }

    /// Whether ids are given, so the session must know whether servers execute them once.
    pub(super) fn has_ids(&self) -> bool {
        self.ids.is_some()
    }
}

/// Transactions with ids.
impl Client {
    /// Gives each transaction an id from now on, if the server executes ids once: after a lost
    /// connection the session then sends the transaction again, and the user gets its first
    /// outcome. `key` is 16 random bytes that no other client has. Set it before the first
    /// connection, and again in a forked process that takes the client over.
    pub fn set_transaction_ids(&mut self, key: u128) {
        self.repeatable.ids = Some(TransactionIds::new(key));
    }

    /// Number of transactions that wait for a server, to be sent again.
    #[must_use]
    pub fn unresolved_count(&self) -> usize {
        match self.repeatable.lost_ms {
            Some(_) => self.repeatable.kept.len(),
            None => 0,
        }
    }

    /// Sends a transaction, with an id if the server executes ids once.
    pub(super) fn send_transaction(&mut self, params: Vec<u8>) -> RequestId {
        let is_once = self.server_id.is_some_and(once::is_announced);
        let has_room = self.repeatable.bytes.saturating_add(params.len()) <= KEPT_BYTES_MAX;
        let ids = self.repeatable.ids.as_mut();
        let Some(ids) = ids.filter(|_| is_once && has_room) else {
            return RequestId(self.request("transact", &params, Purpose::User));
        };
        let transaction = Transaction {
            id: ids.draw(),
            after: self.last_id,
            params,
            losses: 0,
            is_only_asked: false,
        };
        let text = once::params(Some(transaction.id), None, &transaction.params, None);
        let request = self.request("transact_once", &text, Purpose::User);
        self.repeatable.insert(request, transaction);
        RequestId(request)
    }

    /// The outcome that the user gets for the server's reply to a request.
    pub(super) fn outcome(&mut self, request: u64, answer: Result<&[u8], &[u8]>) -> Outcome {
        let transaction = self.repeatable.remove(request);
        match answer {
            Ok(result) => Outcome::Result(result.to_vec()),
            // The server cannot tell either, or was told not to execute the transaction.
            Err(error) if transaction.is_some_and(|of| of.losses > 0) && is_canceled(error) => {
                Outcome::Lost
            }
            Err(error) => Outcome::Error(error.to_vec()),
        }
    }

    /// The user no longer wants this request's outcome.
    pub(super) fn forget_transaction(&mut self, request: u64) {
        self.repeatable.remove(request);
    }

    /// The user wants a request not to be executed. One that waits to be sent again still gets its
    /// outcome, because it may have been executed already.
    pub(super) fn cancel_transaction(&mut self, request: u64) {
        if self.repeatable.lost_ms.is_some()
            && let Some(transaction) = self.repeatable.kept.get_mut(&request)
        {
            transaction.is_only_asked = true;
        }
    }

    /// The connection of this request is lost. Returns whether the request waits for the next one.
    pub(super) fn keeps_lost(&mut self, request: u64, now_ms: u64) -> bool {
        let Some(transaction) = self.repeatable.kept.get_mut(&request) else {
            return false;
        };
        transaction.losses += 1;
        if transaction.losses >= LOSSES_MAX {
            self.repeatable.remove(request);
            return false;
        }
        self.repeatable.lost_ms.get_or_insert(now_ms);
        true
    }

    /// Sends again what was in flight when the connection was lost, once the contents are current.
    /// Its outcome is unknown if the server does not execute ids once, or if there will be no
    /// connection.
    pub(super) fn send_again(&mut self) {
        let Some(lost_ms) = self.repeatable.lost_ms else {
            return;
        };
        if !self.link.is_alive() {
            return self.give_up_lost();
        }
        // Not before the contents: a success must be visible when it is reported.
        if !self.is_monitoring() {
            return;
        }
        if !self.server_id.is_some_and(once::is_announced) {
            return self.give_up_lost();
        }
        let is_late = self.now_ms.saturating_sub(lost_ms) > EXECUTION_MS_MAX;
        let kept = std::mem::take(&mut self.repeatable.kept);
        self.log(LogMessage::SendingAgain {
            database: self.options.database.clone(),
            count: kept.len(),
        });
        for (&request, transaction) in &kept {
            // No server remembers a commit with the id zero, so none executes the transaction.
            let after = match is_late || transaction.is_only_asked {
                true => Uuid::ZERO,
                false => transaction.after,
            };
            let id = Some(transaction.id);
            let text = once::params(id, Some(after), &transaction.params, None);
            self.metrics.transactions_repeated += 1;
            self.send_request_as(request, "transact_once", &text, Purpose::User);
        }
        self.repeatable.kept = kept;
        self.repeatable.lost_ms = None;
    }

    fn give_up_lost(&mut self) {
        self.repeatable.lost_ms = None;
        self.repeatable.bytes = 0;
        for request in std::mem::take(&mut self.repeatable.kept).into_keys() {
            self.events.push_back(Event::Reply {
                id: RequestId(request),
                outcome: Outcome::Lost,
            });
        }
    }
}

/// Whether a server's error is `canceled`. Servers send a bare string; a relay that gives up a
/// request adds details.
fn is_canceled(error: &[u8]) -> bool {
    let Ok(error) = Reader::trusted(error).value() else {
        return false;
    };
    error.get("error").unwrap_or(&error).as_str() == Some("canceled")
}
