//! The parameters of `monitor_cond_change` (docs/spec/protocol.md 4.8).
//!
//! Invariant: everything is checked before anything is applied. Parsing has two steps. The caller
//! checks the ids between them, because that needs the session.

use std::sync::Arc as StdArc;

use corvid_data::{
    HashSeed, Kinds, Members, Schema, Subject, TableId, TableSchema, Tag, WireError,
};
use corvid_engine::Condition;

use crate::Version;
use crate::condition::TableCondition;
use crate::params;
use crate::request::find_table;
use crate::subscription::Subscription;

/// The ids, and the conditions as raw text.
#[derive(Debug)]
pub(crate) struct ChangeRequest<'a> {
    /// Canonical JSON.
    pub(crate) old_id: StdArc<[u8]>,
    /// Canonical JSON.
    pub(crate) new_id: StdArc<[u8]>,
    requests: &'a [u8],
}

/// New conditions by table. Tables whose conditions do not change are absent.
pub(crate) type Conditions = Vec<(TableId, StdArc<TableCondition>)>;

impl<'a> ChangeRequest<'a> {
    /// Splits the `params`.
    ///
    /// # Errors
    /// `params` does not have three elements.
    pub(crate) fn parse(raw: &'a [u8]) -> Result<ChangeRequest<'a>, WireError> {
        match *params::elements(raw)? {
            [old_id, new_id, requests] => Ok(ChangeRequest {
                old_id: params::canonical_id(old_id)?,
                new_id: params::canonical_id(new_id)?,
                requests,
            }),
            _ => Err(params::invalid(raw)),
        }
    }

    /// Parses the conditions for a monitor of `version` and `subscription`. A [`Version::V1`]
    /// monitor ignores them.
    ///
    /// # Errors
    /// Those of docs/spec/protocol.md 4.8 from the third parameter on.
    pub(crate) fn conditions(
        &self,
        schema: &Schema,
        seed: HashSeed,
        version: Version,
        subscription: &Subscription,
    ) -> Result<Conditions, WireError> {
        let Some(by_table) = params::members(self.requests) else {
            let details = "monitor-cond-change-requests must be object";
            return Err(WireError::new(Tag::SyntaxError, details));
        };
        let mut conditions = Vec::new();
        for (name, raw) in by_table {
            let Some(id) = find_table(schema, &name) else {
                return Err(params::no_table(&name));
            };
            let table = schema.table(id);
            if subscription.table(id).is_none() {
                let details = format!("no table named {} in monitor session", table.name);
                return Err(WireError::new(Tag::SyntaxError, details));
            }
            if !params::is_array(raw) {
                let details = format!("table {} no monitor-cond-change JSON array", table.name);
                return Err(WireError::new(Tag::SyntaxError, details));
            }
            // Every element is checked, but only the last one counts. An empty array changes
            // nothing.
            let mut last = None;
            for element in params::elements(raw)? {
                last = Some(parse_element(table, seed, version, element)?);
            }
            if let Some(condition) = last
                && version != Version::V1
            {
                let condition = TableCondition::of_requests(vec![condition]);
                conditions.push((id, StdArc::new(condition)));
            }
        }
        Ok(conditions)
    }
}

/// Parses one element. An absent `where` means true.
fn parse_element(
    table: &TableSchema,
    seed: HashSeed,
    version: Version,
    raw: &[u8],
) -> Result<Option<Condition>, WireError> {
    let mut members = Members::parse(Subject::Table(&table.name), raw)?;
    let columns = members.optional("columns", Kinds::ARRAY)?;
    let condition = members.optional("where", Kinds::ARRAY)?;
    members.finish()?;
    if columns.is_some() {
        return Err(WireError::syntax(raw, "changing columns is unsupported"));
    }
    match condition {
        Some(raw) if version != Version::V1 => Condition::parse(table, raw, None, seed).map(Some),
        _ => Ok(None),
    }
}
