//! The conditions of all tables on their way to the server, and the number that tells a client when
//! they are in force (docs/spec/idl.md 1.13).
//!
//! A condition moves through three slots: `new` (set here, unsent), `requested` (in flight),
//! `acked` (in force at the server). At most one change is in flight. A number is promised when a
//! condition is set; numbers are compared only with `>=`:
//!
//! ```text
//! set A   -> promise 1      new=A
//! sent                      requested=A      in flight, lands at 1
//! set B   -> promise 2      new=B            after the change in flight
//! reply                     acked=A          seqno 1; B is sent, lands at 2
//! connection lost           the next monitor request carries everything; its reply sets seqno to
//!                           the last promise, 2
//! ```
//!
//! A change that the server refuses is undone: the conditions in force before it become `new`
//! again. They are sent once more, because the server may have applied the refused change to some
//! of its tables (docs/spec/protocol.md 4.8).
//!
//! Invariant: every promise is reached: once a monitor reply or an acknowledgement puts the
//! promised conditions in force, or once the server has refused them. The state machine calls this
//! file, which sends nothing.

use std::collections::BTreeMap;

use corvid_data::Schema;
use corvid_json::{ArrayWriter, ObjectWriter};

use crate::condition::Condition;
use crate::plan::Plan;
use crate::refused_clause::RefusedClause;

/// The schemas by which a condition is judged.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Known<'a> {
    /// The client's own schema.
    pub(crate) own: Option<&'a Schema>,
    /// The monitored part of the server's schema.
    pub(crate) plan: Option<&'a Plan>,
}

/// The slots of one table. `acked` of an untouched table is `True`.
#[derive(Debug, Clone, Default)]
struct Slots {
    /// The condition as set, before dropping clauses that the server cannot apply.
    wanted: Condition,
    acked: Condition,
    requested: Option<Condition>,
    new: Option<Condition>,
    /// `new` restores the conditions before a refused change.
    is_restored: bool,
}

impl Slots {
    fn newest(&self) -> &Condition {
        self.new
            .as_ref()
            .or(self.requested.as_ref())
            .unwrap_or(&self.acked)
    }

    fn accept_newest(&mut self) {
        if let Some(newest) = self.new.take().or(self.requested.take()) {
            self.acked = newest;
        }
        self.requested = None;
        self.is_restored = false;
    }

    fn set_new(&mut self, condition: Condition) {
        self.new = Some(condition);
        self.is_restored = false;
    }
}

/// The conditions of a database's tables. Tables without one are not listed.
#[derive(Debug, Default)]
pub(crate) struct Conditions {
    tables: BTreeMap<String, Slots>,
    /// All conditions up to this promise are in force.
    seqno: u64,
    /// The highest promise so far.
    promised: u64,
    /// The value that `seqno` takes when the change in flight is acknowledged.
    lands_at: Option<u64>,
    /// The change in flight only restores the conditions before a refused one.
    is_restoring: bool,
    /// The promise of the last change that the server refused, and the server's error as JSON.
    last_refusal: Option<(u64, String)>,
}

impl Conditions {
    pub(crate) fn seqno(&self) -> u64 {
        self.seqno
    }

    /// Sets the condition of a table. Returns the `seqno` at which it is in force. A table that is
    /// not monitored has no rows to select, so its condition is only kept for later servers.
    ///
    /// # Errors
    /// The server would refuse the condition. Nothing has changed.
    pub(crate) fn set(
        &mut self,
        table: &str,
        wanted: Condition,
        known: Known<'_>,
        is_sendable: bool,
    ) -> Result<u64, RefusedClause> {
        let own = known.own.and_then(|schema| {
            let id = schema.table_id(table)?;
            Some(schema.table(id))
        });
        let server = known.plan.and_then(|plan| plan.table(table));
        let in_force = wanted.judged(own, server)?;
        if known.plan.is_some() && server.is_none() {
            self.tables.entry(table.to_owned()).or_default().wanted = wanted;
            return Ok(self.seqno);
        }
        let base = self.lands_at.unwrap_or(self.seqno);
        let slots = self.tables.entry(table.to_owned()).or_default();
        slots.wanted = wanted;
        if in_force != *slots.newest() {
            slots.set_new(in_force);
        }
        // In this order: an unsent condition lands after the change in flight, one in flight lands
        // with it, and any other is in force already.
        let promise = if slots.new.is_some() {
            base + 1
        } else if slots.requested.is_some() {
            base
        } else {
            self.seqno
        };
        self.promised = self.promised.max(promise);
        if !is_sendable {
            // A server without conditional monitoring shows all rows.
            self.accept_all();
        }
        Ok(promise)
    }

    /// The third parameter of a `monitor_cond_change` with every new condition; `None` if there are
    /// none, or a change is in flight.
    pub(crate) fn take_change(&mut self) -> Option<Vec<u8>> {
        if self.lands_at.is_some() || self.tables.values().all(|slots| slots.new.is_none()) {
            return None;
        }
        let mut out = Vec::new();
        let mut object = ObjectWriter::new(&mut out);
        self.is_restoring = true;
        for (table, slots) in &mut self.tables {
            if let Some(new) = slots.new.take() {
                // A change that also sets new conditions may be refused because of those, so it can
                // be undone once more.
                self.is_restoring &= std::mem::take(&mut slots.is_restored);
                let mut requests = ArrayWriter::new(object.member(table));
                ObjectWriter::new(requests.element())
                    .raw("where", &new.to_json())
                    .end();
                requests.end();
                assert!(slots.requested.is_none(), "one change is in flight");
                slots.requested = Some(new);
            }
        }
        object.end();
        self.lands_at = Some(self.seqno + 1);
        Some(out)
    }

    /// The server has acknowledged the change in flight.
    pub(crate) fn acknowledged(&mut self) {
        assert!(
            self.lands_at.is_some_and(|lands_at| self.seqno < lands_at),
            "a change in flight takes the number further"
        );
        for slots in self.tables.values_mut() {
            if let Some(requested) = slots.requested.take() {
                slots.acked = requested;
            }
        }
        if let Some(lands_at) = self.lands_at.take() {
            self.seqno = self.seqno.max(lands_at);
        }
    }

    /// The server has refused the change in flight: the conditions before it must be in force
    /// again. Returns false if the change itself was to restore conditions: then it is unknown what
    /// the server shows.
    #[must_use]
    pub(crate) fn refused(&mut self, error: &str) -> bool {
        assert!(self.lands_at.is_some(), "a change in flight is refused");
        if self.is_restoring {
            return false;
        }
        for slots in self.tables.values_mut() {
            // Only a table without a newer condition goes back; a newer one replaces the refused
            // one anyway.
            let is_last = slots.requested.take().is_some() && slots.new.is_none();
            if is_last {
                slots.wanted = slots.acked.clone();
                slots.new = Some(slots.acked.clone());
                slots.is_restored = true;
            }
        }
        if let Some(lands_at) = self.lands_at.take() {
            // The promise is reached so that no client waits for it; `refusal` reports that it was
            // broken.
            self.seqno = self.seqno.max(lands_at);
            self.last_refusal = Some((lands_at, error.to_owned()));
        }
        true
    }

    /// The server's error, if it refused the change of this promise and no later one.
    pub(crate) fn refusal(&self, promise: u64) -> Option<&str> {
        let (refused, error) = self.last_refusal.as_ref()?;
        (*refused == promise).then_some(error)
    }

    /// The connection has ended. `requested` is kept, for [`Conditions::has_lost_change`].
    pub(crate) fn disconnected(&mut self) {
        self.lands_at = None;
    }

    /// Whether a change was in flight when the connection ended: the contents may follow the old or
    /// the new conditions.
    pub(crate) fn has_lost_change(&self) -> bool {
        self.tables.values().any(|slots| slots.requested.is_some())
    }

    /// Restricts the conditions to what a server has, before a monitor request. Returns false if a
    /// table with a condition is gone, so that the contents cannot be carried over.
    pub(crate) fn restrict(&mut self, plan: &Plan) -> bool {
        let mut is_kept = true;
        for (table, slots) in &mut self.tables {
            let Some(table) = plan.table(table) else {
                is_kept &= slots.acked.is_true() && slots.new.is_none();
                (slots.acked, slots.requested, slots.new) = (Condition::True, None, None);
                continue;
            };
            let in_force = slots.wanted.restricted(table);
            if in_force != *slots.newest() {
                slots.set_new(in_force);
            }
        }
        is_kept
    }

    /// The next monitor request carries the newest conditions of all tables, for a client that
    /// holds nothing.
    pub(crate) fn carry_all(&mut self) {
        for slots in self.tables.values_mut() {
            slots.accept_newest();
        }
        // The request carries the newest conditions, so its reply keeps every promise made so far.
        self.lands_at = Some(self.promised.max(self.seqno));
    }

    /// The reply to a monitor request has arrived.
    pub(crate) fn monitor_replied(&mut self, is_conditional: bool) {
        if let Some(lands_at) = self.lands_at.take() {
            self.seqno = self.seqno.max(lands_at);
        }
        if !is_conditional {
            self.accept_all();
        }
    }

    fn accept_all(&mut self) {
        for slots in self.tables.values_mut() {
            slots.accept_newest();
        }
        self.seqno = self.seqno.max(self.promised);
    }

    /// The condition in force at the server, or carried by the next monitor request; `None` if it
    /// selects all rows.
    pub(crate) fn acked(&self, table: &str) -> Option<&Condition> {
        self.tables
            .get(table)
            .map(|slots| &slots.acked)
            .filter(|condition| !condition.is_true())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Interest;
    use corvid_data::{Arc, Schema};
    use corvid_json::Value;

    fn condition(text: &str) -> Condition {
        Condition::from_json(&Value::parse(text.as_bytes()).unwrap()).unwrap()
    }

    fn set(conditions: &mut Conditions, table: &str, text: &str) -> u64 {
        let promise = conditions.set(table, condition(text), Known::default(), true);
        promise.expect("accepted")
    }

    fn schema(text: &[u8]) -> Schema {
        Schema::from_json(&Value::parse(text).unwrap()).unwrap()
    }

    fn plan() -> Plan {
        let text = br#"{"name":"D","version":"1.0.0","tables":{"T":{"columns":{"a":{"type":"integer"}}}}}"#;
        Plan::new(&Interest::All, Arc::new(schema(text)), &mut Vec::new())
    }

    #[test]
    fn promises_are_kept_by_acknowledgements() {
        let mut conditions = Conditions::default();
        conditions.carry_all();
        conditions.monitor_replied(true);
        assert_eq!(set(&mut conditions, "T", "[true]"), 0);
        assert_eq!(set(&mut conditions, "T", r#"[["a","==",1]]"#), 1);
        assert_eq!(set(&mut conditions, "T", r#"[["a","==",1]]"#), 1);
        assert_eq!(set(&mut conditions, "U", "[]"), 1);
        let change = conditions.take_change().unwrap();
        assert_eq!(
            change,
            br#"{"T":[{"where":[["a","==",1]]}],"U":[{"where":[false]}]}"#
        );
        assert_eq!(set(&mut conditions, "T", r#"[["a","==",1]]"#), 1);
        assert_eq!(set(&mut conditions, "T", r#"[["a","==",2]]"#), 2);
        assert_eq!(conditions.take_change(), None, "one is in flight");
        conditions.acknowledged();
        assert_eq!(conditions.seqno(), 1);
        assert!(conditions.take_change().is_some());
        conditions.acknowledged();
        assert_eq!(conditions.seqno(), 2);
    }

    #[test]
    fn promises_are_kept_by_monitor_replies() {
        let mut conditions = Conditions::default();
        assert_eq!(set(&mut conditions, "T", "[]"), 1);
        conditions.carry_all();
        assert_eq!(conditions.acked("T"), Some(&Condition::none()));
        assert_eq!(set(&mut conditions, "T", r#"[["a","==",1]]"#), 2);
        conditions.monitor_replied(true);
        assert_eq!(conditions.seqno(), 1);
        assert!(conditions.take_change().is_some());
        assert_eq!(set(&mut conditions, "U", "[]"), 3);
        conditions.disconnected();
        assert!(conditions.has_lost_change());
        conditions.carry_all();
        conditions.monitor_replied(true);
        assert_eq!(conditions.seqno(), 3);
        assert_eq!(conditions.take_change(), None);
    }

    #[test]
    fn without_conditional_monitoring_everything_is_in_force_at_once() {
        let mut conditions = Conditions::default();
        set(&mut conditions, "T", "[]");
        conditions.carry_all();
        conditions.monitor_replied(false);
        assert_eq!(conditions.seqno(), 1);
        let promise = conditions.set("T", condition("[true]"), Known::default(), false);
        assert_eq!(promise, Ok(2));
        assert_eq!((conditions.seqno(), conditions.take_change()), (2, None));
    }

    #[test]
    fn what_the_server_lacks_is_left_out_and_remembered() {
        let mut conditions = Conditions::default();
        let plan = plan();
        let own = schema(
            br#"{"name":"D","version":"1.0.0","tables":{"T":{"columns":{"b":{"type":"integer"}}}}}"#,
        );
        let known = Known {
            own: Some(&own),
            plan: Some(&plan),
        };
        set(&mut conditions, "T", r#"[["a","==",1],["b","==",1]]"#);
        set(&mut conditions, "Gone", r#"[["a","==",1]]"#);
        assert!(!conditions.restrict(&plan));
        conditions.carry_all();
        assert_eq!(conditions.acked("T"), Some(&condition(r#"[["a","==",1]]"#)));
        assert_eq!(conditions.acked("Gone"), None);
        conditions.monitor_replied(true);
        let only_missing = condition(r#"[["b","==",1]]"#);
        assert_eq!(conditions.set("T", only_missing, known, true), Ok(2));
        assert_eq!(
            conditions.take_change().unwrap(),
            br#"{"T":[{"where":[false]}]}"#
        );
        assert_eq!(
            conditions.set("Gone", Condition::none(), known, true),
            Ok(conditions.seqno())
        );
        assert!(conditions.restrict(&plan), "it was given up before");
    }

    #[test]
    fn a_refused_change_leaves_the_conditions_before_it() {
        let mut conditions = Conditions::default();
        conditions.carry_all();
        conditions.monitor_replied(true);
        set(&mut conditions, "T", r#"[["a","==",1]]"#);
        assert!(conditions.take_change().is_some());
        conditions.acknowledged();
        let promise = set(&mut conditions, "T", r#"[["a","==",2]]"#);
        assert!(conditions.take_change().is_some());
        assert!(conditions.refused("no"));
        assert!(conditions.seqno() >= promise, "nobody waits for it");
        assert_eq!(conditions.refusal(promise), Some("no"));
        assert_eq!(conditions.acked("T"), Some(&condition(r#"[["a","==",1]]"#)));
        let restoring = br#"{"T":[{"where":[["a","==",1]]}]}"#;
        assert_eq!(conditions.take_change().unwrap(), restoring);
        // A condition set meanwhile comes after the restored one.
        let promise = set(&mut conditions, "T", r#"[["a","==",3]]"#);
        conditions.acknowledged();
        assert!(conditions.take_change().is_some() && conditions.seqno() < promise);
        conditions.acknowledged();
        assert_eq!(conditions.seqno(), promise);
        assert_eq!(conditions.refusal(promise), None);
    }

    #[test]
    fn a_restoring_change_that_is_refused_ends_the_connection() {
        let mut conditions = Conditions::default();
        set(&mut conditions, "T", "[]");
        assert!(conditions.take_change().is_some());
        assert!(conditions.refused("no"));
        assert!(conditions.take_change().is_some());
        assert!(!conditions.refused("no again"));
    }
}
