//! The records of a cluster member's file, one fact per line. Only listed, not understood: what they mean is the business of
//! consensus.

use std::io::{self, Write};

use corvid_data::Schema;
use corvid_json::Value;

use super::Listing;
use crate::cluster_header::ClusterHeader;

impl<W: Write> Listing<W> {
    /// Lists a record behind its `record N:`.
    pub(super) fn cluster_record(&mut self, number: u64, record: &Value) -> io::Result<()> {
        self.out.write_all(b"\n")?;
        if number > 0 {
            return self.entry(record);
        }
        match ClusterHeader::parse(record) {
            Ok(header) => self.header(&header, record),
            Err(error) => writeln!(self.out, "{error}\n"),
        }
    }

    fn header(&mut self, header: &ClusterHeader, record: &Value) -> io::Result<()> {
        // The quotes do not match in the reference either, and scripts may look for this line.
        writeln!(self.out, " name: \"{}'", header.name)?;
        writeln!(self.out, " local address: \"{}\"", header.local_address)?;
        writeln!(
            self.out,
            " server_id: {}",
            short(&header.server_id.to_string())
        )?;
        if let Some(cluster_id) = header.cluster_id {
            writeln!(self.out, " cluster_id: {}", short(&cluster_id.to_string()))?;
        }
        if let Some(Value::Array(addresses)) = record.get("remote_addresses") {
            let addresses: Vec<&str> = addresses.iter().filter_map(Value::as_str).collect();
            writeln!(self.out, " remote_addresses: {}", addresses.join(" "))?;
        }
        self.integer(record, "prev_index")?;
        self.integer(record, "prev_term")?;
        self.servers(record, "prev_servers")?;
        self.id(record, "prev_eid")?;
        self.data(record.get("prev_data"), "prev_schema")
    }

    fn entry(&mut self, record: &Value) -> io::Result<()> {
        self.text(record, "comment")?;
        self.integer(record, "term")?;
        self.integer(record, "index")?;
        self.servers(record, "servers")?;
        self.id(record, "eid")?;
        self.id(record, "vote")?;
        self.text(record, "note")?;
        self.integer(record, "commit_index")?;
        self.id(record, "leader")?;
        self.data(record.get("data"), "schema")
    }

    /// `[SCHEMA, TRANSACTION]`, either of which may be null; then the blank line that ends a record.
    fn data(&mut self, data: Option<&Value>, what: &str) -> io::Result<()> {
        let (schema, transaction) = match data {
            None => return self.out.write_all(b"\n"),
            Some(Value::Array(parts)) if parts.len() == 2 => (&parts[0], &parts[1]),
            Some(_) => return self.out.write_all(b" ***invalid data***\n\n"),
        };
        if *schema != Value::Null {
            match Schema::from_json(schema) {
                Ok(schema) => {
                    let Schema {
                        name,
                        version,
                        cksum,
                        ..
                    } = &schema;
                    writeln!(
                        self.out,
                        " {what}: \"{name}\", version=\"{version}\", cksum=\"{cksum}\""
                    )?;
                    self.schema = Some(schema);
                }
                Err(error) => writeln!(self.out, "{error}")?,
            }
        }
        match transaction {
            Value::Object(members) => self.transaction(members),
            _ => self.out.write_all(b"\n"),
        }
    }

    fn integer(&mut self, record: &Value, member: &str) -> io::Result<()> {
        match record.get(member).and_then(Value::as_integer) {
            Some(integer) => writeln!(self.out, " {member}: {integer}"),
            None => Ok(()),
        }
    }

    fn text(&mut self, record: &Value, member: &str) -> io::Result<()> {
        match record.get(member).and_then(Value::as_str) {
            Some(text) => writeln!(self.out, " {member}: \"{text}\""),
            None => Ok(()),
        }
    }

    fn id(&mut self, record: &Value, member: &str) -> io::Result<()> {
        match record.get(member).and_then(Value::as_str) {
            Some(id) => writeln!(self.out, " {member}: {}", short(id)),
            None => Ok(()),
        }
    }

    /// Members of an object are sorted by name, here by server id.
    fn servers(&mut self, record: &Value, member: &str) -> io::Result<()> {
        let Some(servers) = record.get(member).and_then(Value::as_object) else {
            return Ok(());
        };
        let shown: Vec<String> = servers
            .iter()
            .map(|(id, address)| {
                let address = address.as_str().unwrap_or_default();
                format!("{}(\"{address}\")", short(&String::from_utf8_lossy(id)))
            })
            .collect();
        writeln!(self.out, " {member}: {}", shown.join(", "))
    }
}

/// The first four digits of an id, enough to tell the members of a cluster apart.
fn short(id: &str) -> &str {
    id.get(..4).unwrap_or(id)
}
