//! The part of a clustered file's first record that tells who it is. The rest of clustered files belongs to consensus.

use corvid_data::{Tag, Uuid, WireError};
use corvid_json::Value;
use corvid_log::{Magic, RecordReader};

use crate::database::DatabaseFile;
use crate::failure::Failure;

/// A member's identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClusterHeader {
    /// Name of the database.
    pub(crate) name: String,
    /// Where the member listens for the others.
    pub(crate) local_address: String,
    /// The member's id.
    pub(crate) server_id: Uuid,
    /// The cluster's id, unknown to a member that was not told and has not joined.
    pub(crate) cluster_id: Option<Uuid>,
}

impl ClusterHeader {
    /// Reads the header of a clustered file.
    ///
    /// # Errors
    /// The record is damaged or lacks a member.
    pub(crate) fn read(file: DatabaseFile) -> Result<ClusterHeader, Failure> {
        let name = file.name().to_owned();
        let mut records = RecordReader::new(file, Magic::Clustered);
        match records.next_object() {
            Ok(Some(json)) => Ok(ClusterHeader::parse(&json)?),
            Ok(None) => Err(Failure::new(format!("{name}: unexpected end of file"))),
            Err(error) => Err(Failure::read(&name, &error)),
        }
    }

    /// From the record as a tree.
    ///
    /// # Errors
    /// A member is missing or of another kind.
    pub(crate) fn parse(json: &Value) -> Result<ClusterHeader, WireError> {
        let text = |member: &str, value: &Value| match value.as_str() {
            Some(text) => Ok(text.to_owned()),
            None => Err(mismatch(json, member)),
        };
        let required = |member: &str| match json.get(member) {
            Some(value) => text(member, value),
            None => Err(parse_error(
                json,
                &format!("Required '{member}' member is missing."),
            )),
        };
        let uuid = |member: &str, text: &str| {
            Uuid::parse(text.as_bytes()).ok_or_else(|| mismatch(json, member))
        };
        let server_id = required("server_id")?;
        let cluster_id = json
            .get("cluster_id")
            .map(|value| text("cluster_id", value))
            .transpose()?;
        Ok(ClusterHeader {
            server_id: uuid("server_id", &server_id)?,
            name: required("name")?,
            local_address: required("local_address")?,
            cluster_id: cluster_id
                .map(|text| uuid("cluster_id", &text))
                .transpose()?,
        })
    }
}

fn mismatch(json: &Value, member: &str) -> WireError {
    parse_error(json, &format!("Type mismatch for member '{member}'."))
}

fn parse_error(json: &Value, problem: &str) -> WireError {
    WireError::new(
        Tag::SyntaxError,
        format!("Parsing raft header failed: {problem}"),
    )
    .with_fragment(&json.to_bytes())
}
