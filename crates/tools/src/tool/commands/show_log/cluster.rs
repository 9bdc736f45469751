//! The records of a cluster member's file, listed with one property per line.

use std::io::{self, Write};

use corvid_data::{Schema, Tag, Uuid, WireError};
use corvid_json::Value;
use corvid_log::cluster::{
    ClusterReader, Data, Eid, Header, Kind, Membership, Payload, Record, Servers, ids,
};

use corvid_shell::output;

use super::Listing;
use crate::failure::Failure;
use crate::tool::database::DatabaseFile;

impl<W: Write> Listing<W> {
    /// Lists a member's file up to its first damaged record. For a record of an unknown kind, the
    /// error is listed.
    pub(super) fn clustered(&mut self, file: DatabaseFile) -> Result<(), Failure> {
        let name = file.name().to_owned();
        let damage = |error| Failure::read(&name, &error);
        let mut records = ClusterReader::new(file);
        if let Some(header) = records.header().map_err(damage)? {
            self.number(&records)?;
            match header {
                Ok(header) => self.header(&header)?,
                Err(error) => self.fault(&error)?,
            }
        }
        while let Some(record) = records.next().map_err(damage)? {
            self.number(&records)?;
            match record {
                Ok(record) => self.record(&record)?,
                Err(error) => self.fault(&error)?,
            }
        }
        Ok(())
    }

    fn number(&mut self, records: &ClusterReader<DatabaseFile>) -> Result<(), Failure> {
        writeln!(self.out, "record {}:", records.number()).map_err(Failure::output)
    }

    fn fault(&mut self, error: &WireError) -> Result<(), Failure> {
        let error = error.to_string();
        writeln!(self.out, "{}\n", output::part(&error)).map_err(Failure::output)
    }

    fn header(&mut self, header: &Header) -> Result<(), Failure> {
        self.identity(header).map_err(Failure::output)?;
        match header.snapshot() {
            Some(snapshot) => self.data(&snapshot.data, "prev_schema"),
            None => self.end(),
        }
    }

    fn identity(&mut self, header: &Header) -> io::Result<()> {
        let out = &mut self.out;
        // The reference prints these unbalanced quotes, and scripts may compare this line.
        writeln!(out, " name: \"{}'", output::part(&header.name))?;
        let address = output::part(&header.local_address);
        writeln!(out, " local address: \"{address}\"")?;
        writeln!(out, " server_id: {}", header.server_id)?;
        if let Some(cluster_id) = header.cluster_id {
            writeln!(out, " cluster_id: {}", ids::short(cluster_id.uuid()))?;
        }
        match &header.membership {
            Membership::Joining { remote_addresses } => {
                let addresses = remote_addresses.join(" ");
                writeln!(out, " remote_addresses: {}", output::part(&addresses))
            }
            Membership::Joined {
                servers,
                snapshot: Some(snapshot),
            } => {
                writeln!(out, " prev_index: {}", snapshot.index)?;
                writeln!(out, " prev_term: {}", snapshot.term)?;
                self.servers("prev_servers", servers)?;
                self.eid("prev_eid", snapshot.eid)
            }
            Membership::Joined { snapshot: None, .. } => Ok(()),
        }
    }

    fn record(&mut self, record: &Record) -> Result<(), Failure> {
        self.facts(record).map_err(Failure::output)?;
        match &record.kind {
            Kind::Entry(entry) => match &entry.payload {
                Some(payload) => self.data(&payload.data, "schema"),
                None => self.end(),
            },
            _ => self.end(),
        }
    }

    fn facts(&mut self, record: &Record) -> io::Result<()> {
        if let Some(comment) = &record.comment {
            writeln!(self.out, " comment: \"{}\"", output::part(comment))?;
        }
        if let Some(term) = record.term().filter(|term| term.0 != 0) {
            writeln!(self.out, " term: {term}")?;
        }
        let out = &mut self.out;
        match &record.kind {
            Kind::Entry(entry) => {
                writeln!(out, " index: {}", entry.index)?;
                if let Some(servers) = &entry.servers {
                    self.servers("servers", servers)?;
                }
                match &entry.payload {
                    Some(Payload { eid, .. }) => self.eid("eid", *eid),
                    None => Ok(()),
                }
            }
            Kind::Term(_) => Ok(()),
            Kind::Vote { vote, .. } => writeln!(out, " vote: {vote}"),
            Kind::Leader { leader, .. } => writeln!(out, " leader: {leader}"),
            Kind::CommitIndex(index) => writeln!(out, " commit_index: {index}"),
            Kind::Note(note) => writeln!(out, " note: \"{}\"", output::part(note)),
        }
    }

    /// Lists `[SCHEMA, TRANSACTION]`, either of which may be null, and then the blank line that
    /// ends a record.
    fn data(&mut self, data: &Data, what: &str) -> Result<(), Failure> {
        let Some(parts) = data.parts() else {
            return writeln!(self.out, " ***invalid data***\n").map_err(Failure::output);
        };
        if let Some(schema) = parts.schema()? {
            let Schema {
                name,
                version,
                cksum,
                ..
            } = &schema;
            writeln!(
                self.out,
                " {what}: \"{name}\", version=\"{version}\", cksum=\"{cksum}\""
            )
            .map_err(Failure::output)?;
            self.schema = Some(schema);
        }
        let transaction = match parts.transaction {
            Some(raw) => Value::parse(raw)
                .map_err(|error| WireError::new(Tag::SyntaxError, error.to_string()))?,
            None => Value::Null,
        };
        match &transaction {
            Value::Object(members) => self.transaction(members).map_err(Failure::output),
            _ => self.end(),
        }
    }

    fn end(&mut self) -> Result<(), Failure> {
        self.out.write_all(b"\n").map_err(Failure::output)
    }

    fn eid(&mut self, what: &str, eid: Eid) -> io::Result<()> {
        if eid.0 == Uuid::ZERO {
            return Ok(());
        }
        writeln!(self.out, " {what}: {}", ids::short(eid.0))
    }

    fn servers(&mut self, what: &str, servers: &Servers) -> io::Result<()> {
        let shown: Vec<String> = servers
            .iter()
            .map(|(sid, address)| format!("{sid}(\"{}\")", output::part(address)))
            .collect();
        writeln!(self.out, " {what}: {}", shown.join(", "))
    }
}
