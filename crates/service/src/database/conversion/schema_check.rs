//! Requests to convert a database: the checks, in the order in which clients see their errors.
//!
//! Nothing here depends on rows: a request that passes can still fail when the rows are converted.

use corvid_data::{Arc, Schema, Tag, WireError};
use corvid_json::Value;

use crate::message::Request;

/// Bytes of the `params` of a `convert` request, at most. The largest schema that is known has
/// 100 kB.
const CONVERT_BYTES_MAX: usize = 16 << 20;

/// Checks a request to convert the database `name`, in order; returns the schema to convert to.
///
/// # Errors
/// The first check that fails, in the reference's words.
pub(in super::super) fn schema_of(
    request: &Request,
    name: &str,
    is_writable: bool,
    is_clustered: bool,
) -> Result<Arc<Schema>, WireError> {
    if !request.info.role.is_empty() {
        let client = request.info.client_id.as_deref().unwrap_or("(null)");
        let role = &request.info.role;
        return Err(WireError::new(
            Tag::PermissionError,
            format!(
                "RBAC rules for client \"{client}\" role \"{role}\" prohibit \"convert\" of database {name} \
                 (only the root role may convert databases)"
            ),
        ));
    }
    if request.info.read_only || !is_writable {
        return Err(conversion_not_allowed(name));
    }
    // The tree below takes ten times the text, and no account counts it.
    let bytes = request.params().len();
    if bytes > CONVERT_BYTES_MAX {
        let details =
            format!("the request has {bytes} bytes, more than {CONVERT_BYTES_MAX} for a schema");
        return Err(WireError::new(Tag::ResourcesExhausted, details));
    }
    let params = Value::parse(request.params())
        .map_err(|error| WireError::new(Tag::InternalError, error.to_string()))?;
    let Some([_, schema]) = params.as_array() else {
        return Err(WireError::syntax(request.params(), "array expected"));
    };
    let schema = Schema::from_json(schema)?;
    if is_clustered {
        check_persistence(&schema)?;
    }
    if *schema.name != *name {
        return Err(WireError::new(
            Tag::InvalidParameters,
            format!(
                "new schema name ({}) does not match database name ({name})",
                schema.name
            ),
        ));
    }
    Ok(Arc::new(schema))
}

/// Checks that no column is ephemeral (docs/spec/protocol.md 3.3).
///
/// # Errors
/// The first one that is.
fn check_persistence(schema: &Schema) -> Result<(), WireError> {
    for (_, table) in schema.iter() {
        for column in table.columns() {
            if !column.persistent {
                let details = format!(
                    "Table {} column {} is ephemeral but clustered databases do not support ephemeral columns.",
                    table.name, column.name
                );
                return Err(WireError::new(Tag::SyntaxError, details));
            }
        }
    }
    Ok(())
}

/// `not allowed`, for conversion of a database that clients may not write.
pub(in super::super) fn conversion_not_allowed(name: &str) -> WireError {
    WireError::new(
        Tag::NotAllowed,
        format!("conversion is not allowed for read-only database {name}"),
    )
}

/// The error of a conversion that is given up (docs/spec/storage.md 11.2).
pub(in super::super) fn canceled_because(reason: &str) -> WireError {
    let details = format!("database conversion canceled because {reason}");
    WireError::new(Tag::Canceled, details)
}
