//! Requests about the history of a database, which threads outside of shards and databases answer
//! ([`crate::read_history`]).
//!
//! A session has one of them in flight, and its later requests wait, except `echo`: a reading takes
//! seconds, and a client whose probes go unanswered would disconnect.

use corvid_data::WireError;
use corvid_monitor::SessionId;
use corvid_rpc::message;

use super::inbound_frame::{HistoryMethod, ParsedRequest};
use super::outputs::ToHistory;
use super::{Frontend, Step, first_string, object};
use crate::applied_index::AppliedIndex;
use crate::read_history::{HistoryRequest, Order, request};

impl Frontend {
    /// Passes on a request once the session's earlier requests are complete, so that a client finds
    /// its own commits in the history.
    pub(super) fn for_history(
        &mut self,
        now_ms: u64,
        id: SessionId,
        method: HistoryMethod,
        request: ParsedRequest,
    ) -> Step {
        if self.has_requests_in_flight(id) {
            return Step::Wait(request.into());
        }
        let order = match self.order(id, method, request.params()) {
            Ok(order) => order,
            Err(error) => {
                if self.fence(id) {
                    return Step::Wait(request.into());
                }
                self.send_error(id, &request.envelope.id, &object(&error));
                return Step::Done;
            }
        };
        let Some(session) = self.sessions.get_mut(&id) else {
            return Step::Done;
        };
        session.last_request = Some((method.name(), now_ms));
        session.in_flight.begin(request.frame.len());
        // No database has the request, so requests of every database wait.
        session.target = None;
        session.has_readings = true;
        session.history_request = Some(request.envelope.id);
        let order = ToHistory::Request(Box::new(order));
        self.outputs.to_history.push(order);
        Step::Done
    }

    fn order(
        &self,
        session: SessionId,
        method: HistoryMethod,
        params: &[u8],
    ) -> Result<Order, WireError> {
        let database = self.database_by_name(method.name(), params)?;
        let request: HistoryRequest = match method {
            HistoryMethod::ReadHistory => request::read_history(params)?,
            HistoryMethod::SelectAt => request::select_at(params)?,
        };
        let name = first_string(&mut corvid_json::Reader::trusted(params));
        Ok(Order {
            session,
            database,
            name: String::from_utf8_lossy(&name.unwrap_or_default()).into_owned(),
            applied: self
                .served
                .applied_index(database)
                .map(AppliedIndex::current),
            request,
            params: params.to_vec(),
        })
    }

    /// A reading has answered the session's request.
    pub(super) fn history_answered(
        &mut self,
        now_ms: u64,
        id: SessionId,
        answer: Result<Vec<u8>, WireError>,
    ) {
        let session = self.sessions.get_mut(&id);
        let Some(session) = session.filter(|session| !session.is_dismissed) else {
            return;
        };
        let Some(request_id) = session.history_request.take() else {
            return;
        };
        let mut text = Vec::new();
        match answer {
            Ok(result) => message::write_reply(&mut text, &request_id, &result),
            Err(error) => message::write_error_reply(&mut text, &request_id, &object(&error)),
        }
        if let Some(text) = self.admit_reply(id, &request_id, text) {
            self.reply_behind_updates(id, text);
        }
        if let Some(session) = self.sessions.get_mut(&id) {
            session.in_flight.end();
        }
        self.resume_if_room(now_ms, id);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use corvid_data::{Tag, Uuid};

    use super::*;
    use crate::frontend::Close;
    use crate::locks::Locks;
    use crate::message::{DatabaseId, Piece, SessionInfo, ToDatabase, ToShard};
    use crate::schema_epoch::SchemaEpochs;
    use crate::served_databases::ServedDatabases;

    const CLIENT: SessionId = SessionId(7);
    const READ: &str = r#"{"id":1,"method":"read_history","params":["D",{"read":"files"}]}"#;
    const ECHO: &str = r#"{"id":"echo","method":"echo","params":[]}"#;

    fn frontend() -> Frontend {
        let locks = Arc::new(Mutex::new(Locks::new()));
        let mut served = ServedDatabases::default();
        served.insert("D", DatabaseId(3));
        served.insert_absent("J", corvid_consensus::member::Absence::Joining);
        let epochs = SchemaEpochs::default();
        let mut frontend = Frontend::new(0, Arc::new(served), locks, epochs, Uuid::ZERO);
        frontend.read_history();
        frontend.opened(CLIENT, SessionInfo::new(true, String::new(), None));
        frontend
    }

    fn send(frontend: &mut Frontend, text: &str) -> Vec<String> {
        frontend.frame(0, CLIENT, text.as_bytes().to_vec());
        sent(frontend)
    }

    fn sent(frontend: &mut Frontend) -> Vec<String> {
        let texts = frontend.outputs.send.drain(..);
        let text = |(_, piece)| match piece {
            Piece::Message(text) => String::from_utf8(text).unwrap(),
            other => panic!("{other:?}"),
        };
        texts.map(text).collect()
    }

    fn answer(frontend: &mut Frontend, answer: Result<Vec<u8>, WireError>) -> Vec<String> {
        frontend.message(0, ToShard::History(CLIENT, answer));
        sent(frontend)
    }

    #[test]
    fn later_requests_wait_for_the_answer_and_probes_do_not() {
        let mut frontend = frontend();
        assert!(send(&mut frontend, READ).is_empty());
        assert!(matches!(
            frontend.outputs.to_history.as_slice(),
            [ToHistory::Request(order)] if order.name == "D" && order.database == DatabaseId(3)
        ));
        assert_eq!(send(&mut frontend, ECHO).len(), 1);
        let dbs = r#"{"id":2,"method":"list_dbs","params":[]}"#;
        assert!(send(&mut frontend, dbs).is_empty());
        let texts = answer(&mut frontend, Ok(b"{}".to_vec()));
        assert!(
            texts.len() == 2 && texts[0].contains(r#""id":1"#),
            "{texts:?}"
        );
        assert!(answer(&mut frontend, Ok(b"{}".to_vec())).is_empty(), "once");
    }

    #[test]
    fn a_request_waits_for_transactions_of_its_session() {
        let mut frontend = frontend();
        send(
            &mut frontend,
            r#"{"id":0,"method":"transact","params":["D"]}"#,
        );
        assert!(send(&mut frontend, READ).is_empty() && frontend.outputs.to_history.is_empty());
    }

    #[test]
    fn readings_end_with_their_session_and_requests_are_canceled() {
        let mut frontend = frontend();
        send(&mut frontend, READ);
        frontend.outputs.to_history.clear();
        let cancel = |id| format!(r#"{{"id":null,"method":"cancel","params":[{id}]}}"#);
        send(&mut frontend, &cancel(2));
        assert!(frontend.outputs.to_history.is_empty());
        send(&mut frontend, &cancel(1));
        assert_eq!(frontend.outputs.to_history, [ToHistory::Cancel(CLIENT)]);
        frontend.outputs.to_history.clear();
        let error = WireError::new(Tag::Canceled, "");
        assert!(answer(&mut frontend, Err(error))[0].contains("canceled"));
        frontend.closed(CLIENT);
        assert_eq!(frontend.outputs.to_history, [ToHistory::Closed(CLIENT)]);
    }

    #[test]
    fn the_client_that_closes_its_sending_side_gets_the_answer() {
        let mut frontend = frontend();
        send(&mut frontend, READ);
        assert!(!frontend.end_of_input(CLIENT));
        assert_eq!(answer(&mut frontend, Ok(b"{}".to_vec())).len(), 1);
        assert_eq!(frontend.outputs.close, [(CLIENT, Close::EndOfInput)]);
    }

    #[test]
    fn an_answer_comes_behind_the_updates_of_its_session() {
        let mut frontend = frontend();
        let session = frontend.sessions.get_mut(&CLIENT).expect("opened");
        session.monitors.insert(Arc::from(&b"1"[..]), DatabaseId(3));
        send(&mut frontend, READ);
        frontend.outputs.to_databases.clear();
        assert!(answer(&mut frontend, Ok(b"{}".to_vec())).is_empty());
        let [(DatabaseId(3), ToDatabase::Fence(CLIENT, _))] = &*frontend.outputs.to_databases
        else {
            panic!("{:?}", frontend.outputs.to_databases)
        };
        assert!(frontend.fence_passed(CLIENT, DatabaseId(3)));
        assert_eq!(sent(&mut frontend).len(), 1);
    }

    #[test]
    fn requests_for_nothing_that_has_a_history_are_refused() {
        for (params, error) in [
            (r#"["E",{"read":"files"}]"#, "unknown database"),
            (r#"["J",{"read":"files"}]"#, "database not available"),
            (r#"["D",{"read":"all"}]"#, "syntax error"),
            ("[]", "syntax error"),
        ] {
            let mut frontend = frontend();
            let text = format!(r#"{{"id":1,"method":"read_history","params":{params}}}"#);
            let texts = send(&mut frontend, &text);
            assert!(texts.len() == 1 && texts[0].contains(error), "{texts:?}");
            assert!(frontend.outputs.to_history.is_empty());
        }
        let mut frontend = frontend();
        frontend.reads_history = false;
        assert!(send(&mut frontend, READ)[0].contains("unknown method"));
    }
}
