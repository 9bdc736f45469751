//! The conditions of all tables on their way to the server, and the number by which a client learns that they are in force
//! (docs/spec/idl.md 1.13).
//!
//! A condition moves through three slots: `new` (set here, unsent), `requested` (in flight), `acked` (in force at the server). At most
//! one change is in flight. Numbers are promised when a condition is set and only compared with `>=`:
//!
//! ```text
//! set A   -> promise 1      new=A
//! sent                      requested=A      in flight, lands at 1
//! set B   -> promise 2      new=B            after what is in flight
//! reply                     acked=A          seqno 1; B is sent, lands at 2
//! connection lost           all of it travels in the next monitor request, whose reply sets seqno to the last promise, 2
//! ```
//!
//! Invariant: every promise is reached once a monitor reply or an acknowledgement says that the promised conditions are in force. The
//! state machine calls this; it sends nothing itself.

use std::collections::BTreeMap;

use corvid_json::{ArrayWriter, ObjectWriter};

use crate::condition::Condition;
use crate::plan::Plan;

/// The slots of one table. `acked` of an untouched table is true.
#[derive(Debug, Clone, Default)]
struct Slots {
    /// As it was set, before clauses on columns that the server lacks were dropped.
    wanted: Condition,
    acked: Condition,
    requested: Option<Condition>,
    new: Option<Condition>,
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
    }
}

/// The conditions of a database's tables. Tables that never had one are not listed.
#[derive(Debug, Default)]
pub(crate) struct Conditions {
    tables: BTreeMap<String, Slots>,
    /// Everything up to this promise is in force.
    seqno: u64,
    /// The highest number promised.
    promised: u64,
    /// The acknowledgement of the change in flight sets `seqno` to this.
    lands_at: Option<u64>,
}

impl Conditions {
    pub(crate) fn seqno(&self) -> u64 {
        self.seqno
    }

    /// Sets the condition of a table. Returns the `seqno` from which on it is in force. `plan` is what is monitored of the server; a table
    /// that is not has no rows to choose from, so the condition is only kept for later servers.
    pub(crate) fn set(
        &mut self,
        table: &str,
        wanted: Condition,
        plan: Option<&Plan>,
        is_sendable: bool,
    ) -> u64 {
        let in_force = match plan {
            None => wanted.clone(),
            Some(plan) => match plan.table(table) {
                Some(table) => wanted.restricted(table),
                None => {
                    self.tables.entry(table.to_owned()).or_default().wanted = wanted;
                    return self.seqno;
                }
            },
        };
        let base = self.lands_at.unwrap_or(self.seqno);
        let slots = self.tables.entry(table.to_owned()).or_default();
        slots.wanted = wanted;
        if in_force != *slots.newest() {
            slots.new = Some(in_force);
        }
        let promise = if slots.new.is_some() {
            base + 1
        } else if slots.requested.is_some() {
            base
        } else {
            self.seqno
        };
        self.promised = self.promised.max(promise);
        if !is_sendable {
            // A server without conditions shows all rows.
            self.accept_all();
        }
        promise
    }

    /// The third parameter of a `monitor_cond_change` with all that is new, if anything is and nothing is in flight.
    pub(crate) fn take_change(&mut self) -> Option<Vec<u8>> {
        if self.lands_at.is_some() || self.tables.values().all(|slots| slots.new.is_none()) {
            return None;
        }
        let mut out = Vec::new();
        let mut object = ObjectWriter::new(&mut out);
        for (table, slots) in &mut self.tables {
            if let Some(new) = slots.new.take() {
                let mut requests = ArrayWriter::new(object.member(table));
                ObjectWriter::new(requests.element())
                    .raw("where", &new.to_json())
                    .end();
                requests.end();
                slots.requested = Some(new);
            }
        }
        object.end();
        self.lands_at = Some(self.seqno + 1);
        Some(out)
    }

    /// The server acknowledged the change in flight.
    pub(crate) fn acknowledged(&mut self) {
        for slots in self.tables.values_mut() {
            if let Some(requested) = slots.requested.take() {
                slots.acked = requested;
            }
        }
        if let Some(lands_at) = self.lands_at.take() {
            self.seqno = self.seqno.max(lands_at);
        }
    }

    /// The connection ended. The slot `requested` is kept, for [`Conditions::has_lost_change`].
    pub(crate) fn disconnected(&mut self) {
        self.lands_at = None;
    }

    /// Whether a change was in flight when the connection ended: the contents may follow the old or the new conditions.
    pub(crate) fn has_lost_change(&self) -> bool {
        self.tables.values().any(|slots| slots.requested.is_some())
    }

    /// Looks at what a server has before a monitor request. False when a table that had a condition is gone, so that the contents
    /// cannot be carried over.
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
                slots.new = Some(in_force);
            }
        }
        is_kept
    }

    /// A monitor request is about to carry the newest conditions of all tables, for a client that holds nothing.
    pub(crate) fn carry_all(&mut self) {
        for slots in self.tables.values_mut() {
            slots.accept_newest();
        }
        self.lands_at = Some(self.promised.max(self.seqno));
    }

    /// The reply to a monitor request arrived.
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

    /// The condition in force at the server, or with the next monitor request.
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
        conditions.set(table, condition(text), None, true)
    }

    fn plan() -> Plan {
        let text = br#"{"name":"D","version":"1.0.0","tables":{"T":{"columns":{"a":{"type":"integer"}}}}}"#;
        let schema = Schema::from_json(&Value::parse(text).unwrap()).unwrap();
        Plan::new(&Interest::All, Arc::new(schema), &mut Vec::new())
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
        assert_eq!(conditions.set("T", condition("[true]"), None, false), 2);
        assert_eq!((conditions.seqno(), conditions.take_change()), (2, None));
    }

    #[test]
    fn what_the_server_lacks_is_left_out_and_remembered() {
        let mut conditions = Conditions::default();
        let plan = plan();
        set(&mut conditions, "T", r#"[["a","==",1],["b","==",1]]"#);
        set(&mut conditions, "Gone", r#"[["a","==",1]]"#);
        assert!(!conditions.restrict(&plan));
        conditions.carry_all();
        assert_eq!(conditions.acked("T"), Some(&condition(r#"[["a","==",1]]"#)));
        assert_eq!(conditions.acked("Gone"), None);
        conditions.monitor_replied(true);
        let only_missing = condition(r#"[["b","==",1]]"#);
        assert_eq!(conditions.set("T", only_missing, Some(&plan), true), 2);
        assert_eq!(
            conditions.take_change().unwrap(),
            br#"{"T":[{"where":[false]}]}"#
        );
        assert_eq!(
            conditions.set("Gone", Condition::none(), Some(&plan), true),
            conditions.seqno()
        );
        assert!(conditions.restrict(&plan), "it was given up before");
    }
}
