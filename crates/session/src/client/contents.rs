//! The database's contents: the reply to a monitor request, the updates after it, and changes of
//! conditions.
//!
//! Invariant: `last_id` is that of the last update handed to the user, so a later monitor request
//! continues exactly there.

use corvid_data::Uuid;
use corvid_json::{Kind, Reader};

use super::handshake::monitor_id;
use super::inbound::{begin_array, element, expect_element};
use super::{Client, Purpose, State};
use crate::event::{Event, Update};
use crate::failure::Failure;
use crate::update::Encoding;

impl Client {
    /// Handles the reply to a monitor request.
    pub(super) fn contents(&mut self, version: u8, result: &[u8]) {
        let mut reader = Reader::trusted(result);
        let read = match version {
            3 => read_since_head(&mut reader),
            _ => Ok((false, Uuid::ZERO)),
        };
        let outcome = read.and_then(|(is_found, last_id)| {
            self.read_update(&mut reader, version, last_id, Some(is_found))
        });
        let update = match outcome {
            Ok(update) => update,
            Err(reason) => {
                // Nothing of a malformed reply is kept or continued. The next server sends full
                // contents, which are not held back to wait for `seen`.
                self.last_id = Uuid::ZERO;
                self.seen.0 = Uuid::ZERO;
                return self.retry(Failure::Malformed(reason));
            }
        };
        if let Err(update) = self.hold_back(version, update) {
            let is_found = !update.clear;
            self.hand_over(update);
            self.contents_came(version, is_found);
        }
    }

    /// The contents have been handed to the user.
    pub(super) fn contents_came(&mut self, version: u8, is_found: bool) {
        assert_eq!(
            self.state,
            State::DataMonitor,
            "contents are asked for before they come"
        );
        let resyncs = match is_found {
            true => &mut self.metrics.resyncs_fast,
            false => &mut self.metrics.resyncs_full,
        };
        *resyncs += 1;
        self.version = version;
        self.state = State::Monitoring;
        self.has_contents = true;
        self.last_error = None;
        self.conditions.monitor_replied(version >= 2);
    }

    /// Handles an update of the database; its monitor id has been read.
    pub(super) fn data_update(
        &mut self,
        reader: &mut Reader<'_>,
        version: u8,
    ) -> Result<(), String> {
        let last_id = match version {
            3 => Some(uuid(element(reader)?)?),
            _ => None,
        };
        expect_element(reader)?;
        // Versions 1 and 2 name no transaction, so a later connection cannot continue from this
        // update.
        let after = last_id.unwrap_or(Uuid::ZERO);
        match self.read_update(reader, version, after, None) {
            Ok(update) => {
                if let Err(update) = self.hold_update(update) {
                    self.hand_over(update);
                }
                Ok(())
            }
            Err(reason) => {
                self.last_id = Uuid::ZERO;
                self.seen.0 = Uuid::ZERO;
                Err(reason)
            }
        }
    }

    pub(super) fn hand_over(&mut self, update: Update) {
        assert!(
            matches!(self.state, State::DataMonitor | State::Monitoring),
            "contents come from a server that is accepted"
        );
        assert!(
            update.clear || update.is_reply || self.has_contents,
            "an update continues contents"
        );
        self.last_id = update.last_id;
        self.seen_ms = self.now_ms;
        // With the connection: contents that the same connection sends anew, after a conversion,
        // are never older (`lagging.rs`).
        self.seen = (update.last_id, self.link.seqno());
        self.events.push_back(Event::Update(update));
    }

    /// Reads an update. `last_id`: the last transaction that the contents then include. `is_found`,
    /// for a reply: whether it continues the present contents.
    fn read_update(
        &mut self,
        reader: &mut Reader<'_>,
        version: u8,
        last_id: Uuid,
        is_found: Option<bool>,
    ) -> Result<Update, String> {
        let Some(decoder) = &mut self.decoder else {
            return Err("nothing was asked for".to_owned());
        };
        let encoding = if version == 1 {
            Encoding::Values
        } else {
            Encoding::Differences
        };
        let mut log = Vec::new();
        let read = decoder.read(reader, encoding, &mut log);
        let plan = decoder.plan().clone();
        log.into_iter().for_each(|message| self.log(message));
        let updates = read.map_err(|error| error.to_string())?;
        Ok(Update {
            clear: is_found == Some(false),
            is_reply: is_found.is_some(),
            plan,
            updates,
            last_id,
            bytes: self.message_bytes,
        })
    }

    /// Sends changed conditions, unless a change is in flight.
    pub(super) fn send_conditions(&mut self) {
        if self.version < 2 {
            return;
        }
        if let Some(change) = self.conditions.take_change() {
            let id = monitor_id(&self.options.database);
            let params = [b"[", &id[..], b",", &id, b",", &change, b"]"].concat();
            self.request("monitor_cond_change", &params, Purpose::Conditions);
        }
    }
}

/// Reads the elements that precede the updates in the reply to `monitor_cond_since`.
fn read_since_head(reader: &mut Reader<'_>) -> Result<(bool, Uuid), String> {
    begin_array(reader)?;
    let found = element(reader)?;
    if !matches!(found, b"true" | b"false") {
        return Err("monitor_cond_since reply does not begin with a boolean".to_owned());
    }
    let last_id = uuid(element(reader)?)?;
    expect_element(reader)?;
    Ok((found == b"true", last_id))
}

/// Reads a transaction id, or a server's id.
pub(super) fn uuid(json: &[u8]) -> Result<Uuid, String> {
    let mut reader = Reader::trusted(json);
    let text = match reader.peek() {
        Ok(Kind::String) => reader.string().ok(),
        _ => None,
    };
    text.and_then(|text| Uuid::parse(&text))
        .ok_or_else(|| "transaction id is not a UUID".to_owned())
}
