//! `monitor_cond_change`. Executing the request finds the rows that enter the view and leave it.
//! The monitor moves to its new group once the commits before the request are stored.
//!
//! Invariant: between these two steps, no other request about the session's monitors is executed.
//! Called by `service`.

use std::sync::Arc as StdArc;

use corvid_data::WireError;
use corvid_engine::Database;

use super::{Monitors, RequestContext, SessionId};
use crate::change_request::ChangeRequest;
use crate::frame::{Guard, SharedBody};
use crate::group::{Encoding, MemberState, MonitorKey};
use crate::session::Monitor;
use crate::subscription::Subscription;
use crate::{Frame, effect, params};

/// A valid change of a monitor's conditions that has not taken effect yet.
#[derive(Debug)]
pub struct ConditionChange {
    old_id: StdArc<[u8]>,
    new_id: StdArc<[u8]>,
    /// The monitor's new subscription if it differs, and the guard of its memory.
    subscription: Option<(Subscription, Guard)>,
    /// The update with the rows that enter and leave the view, if any.
    effect: Option<Vec<u8>>,
}

/// A change that has taken effect: send `frames` in order, then the reply `{}`.
#[derive(Debug)]
pub struct ConditionChanged {
    /// Everything pending for the session, this monitor's part under its old id, then the effect of
    /// the condition under the new id.
    pub frames: Vec<Frame>,
    /// The monitor's previous id as canonical JSON.
    pub old_id: StdArc<[u8]>,
    /// The monitor's new id as canonical JSON.
    pub new_id: StdArc<[u8]>,
}

impl ConditionChange {
    /// Length of the update with the rows that enter and leave the view, in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.effect.as_ref().map_or(0, Vec::len)
    }

    /// Whether no rows enter or leave the view.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.effect.is_none()
    }
}

impl Monitors {
    /// Executes a `monitor_cond_change`, atomically. Flush the session before replying with an
    /// error. Until [`Monitors::apply`], no other request about this session's monitors may be
    /// executed. [`RequestContext::admit`] decides about the memory of the new subscription.
    ///
    /// # Errors
    /// Those of docs/spec/protocol.md 4.8 and of [`RequestContext::admit`].
    pub fn change_condition(
        &self,
        database: &mut Database,
        session: SessionId,
        params: &[u8],
        context: RequestContext<'_>,
    ) -> Result<ConditionChange, WireError> {
        let request = ChangeRequest::parse(params)?;
        let (old_id, new_id) = (request.old_id.clone(), request.new_id.clone());
        let Some(key) = self.find(session, &old_id) else {
            return Err(WireError::syntax(&old_id, "unknown monitor session"));
        };
        if new_id != old_id
            && (self.find(session, &new_id).is_some() || (context.id_in_use)(&new_id))
        {
            return Err(params::duplicate_id(&new_id));
        }
        let Monitor { version, group, .. } = self.monitors[key.0];
        let old = self.groups.get(group).subscription();
        let conditions = request.conditions(&self.schema, self.seed, version, old)?;
        let new = old.with_conditions(&conditions);
        let mut change = ConditionChange {
            old_id,
            new_id,
            subscription: None,
            effect: None,
        };
        if new != **old {
            // Admitted first: the effect may take long, and a refused change must leave no trace.
            let guard = (context.admit)(new.bytes())?;
            let effect = effect::encode(&self.schema, database, old, &new);
            change.effect = Some(effect).filter(|effect| effect != b"{}");
            change.subscription = Some((new, guard));
        }
        Ok(change)
    }

    /// Applies a change once all commits executed before it are stored. `None` if the monitor no
    /// longer exists.
    pub fn apply(
        &mut self,
        session: SessionId,
        change: ConditionChange,
    ) -> Option<ConditionChanged> {
        let ConditionChange {
            old_id,
            new_id,
            subscription,
            effect,
        } = change;
        let key = self.find(session, &old_id)?;
        let mut frames = Vec::new();
        // The effect was computed at the last commit executed before the request. Those commits are
        // stored now, so the flush brings the client to exactly that state under the old conditions
        // and id. Then the effect leads from the old view of that state to the new view. Commits
        // after it go to the new group. Example: commit 7 inserts a row that only the new condition
        // matches. The flush does not show it, the effect does.
        self.flush(session, &mut frames);
        self.rename(key, &new_id);
        if let Some((subscription, guard)) = subscription {
            self.move_to(key, subscription, guard);
        }
        if let Some(effect) = effect {
            let version = self.monitors[key.0].version;
            self.notification_counts[version.index()] += 1;
            let last_txn = self.history.last_txn();
            let body = SharedBody::Whole(effect.into());
            frames.push(Frame::update(version, &new_id, last_txn, body));
        }
        Some(ConditionChanged {
            frames,
            old_id,
            new_id,
        })
    }

    fn rename(&mut self, key: MonitorKey, id: &StdArc<[u8]>) {
        let monitor = &mut self.monitors[key.0];
        if let Some(session) = self.sessions.get_mut(&monitor.session) {
            let renamed = session.monitors.remove(&monitor.id);
            assert_eq!(renamed, Some(key), "a session finds its monitor");
            let before = session.monitors.insert(id.clone(), key);
            assert!(before.is_none(), "an id names one monitor");
        }
        monitor.id = id.clone();
    }

    /// Moves a clean monitor to another group.
    fn move_to(&mut self, key: MonitorKey, subscription: Subscription, guard: Guard) {
        let Monitor {
            version,
            group,
            state,
            ..
        } = self.monitors[key.0];
        // Earlier changes belong to the old conditions, so they must have been sent.
        assert!(
            matches!(state, MemberState::Clean(_)),
            "pending updates are sent before conditions change"
        );
        self.leave(key, group, state);
        let encoding = Encoding::from(version);
        let group = self
            .groups
            .find_or_add(&self.schema, encoding, subscription, guard);
        let state = self.groups.get_mut(group).join(key);
        let monitor = &mut self.monitors[key.0];
        monitor.group = group;
        monitor.state = state;
    }
}
