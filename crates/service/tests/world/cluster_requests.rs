//! The requests of clients of the fake cluster.

use corvid_data::Uuid;
use corvid_monitor::SessionId;
use corvid_service::message::{DatabaseMethod, Request, ToDatabase};
use corvid_service::once::Once;
use corvid_service::relayed_client::RelayedClient;

use crate::cluster::{Cluster, FIRST};

impl Cluster {
    /// A client sends a request; `params` is the text of its array.
    pub(crate) fn ask(&mut self, id: SessionId, number: u64, method: DatabaseMethod, params: &str) {
        self.send(id, number, method, params, (None, None));
    }

    /// A client sends a transaction that it may send again.
    pub(crate) fn transact_once(
        &mut self,
        id: SessionId,
        number: u64,
        operations: &str,
        once: Once,
    ) {
        let params = format!(r#"["A",{operations}]"#);
        let once = (Some(once), None);
        self.send(id, number, DatabaseMethod::Transact, &params, once);
    }

    /// A relay sends a transaction of the client that `told` describes.
    pub(crate) fn relay(&mut self, id: SessionId, number: u64, operations: &str, told: &str) {
        let params = format!(r#"["A",{operations}]"#);
        let client = RelayedClient::parse(told.as_bytes()).map(Box::new);
        assert!(client.is_some(), "{told}");
        let client = (None, client);
        self.send(id, number, DatabaseMethod::Transact, &params, client);
    }

    /// The last commit that a member has applied, which its clients may have seen.
    pub(crate) fn seen_at(&self, node: usize) -> Uuid {
        let through = usize::try_from(self.nodes[node].applied - FIRST).expect("few");
        let entries = self.log[..through.min(self.log.len())].iter().rev();
        let last = entries.filter_map(|entry| entry.data.as_ref()).next();
        last.map_or(Uuid([7; 16]), |(eid, _)| eid.0)
    }

    fn send(
        &mut self,
        id: SessionId,
        number: u64,
        method: DatabaseMethod,
        params: &str,
        (once, client): (Option<Once>, Option<Box<RelayedClient>>),
    ) {
        let session = &self.sessions[&id];
        let request = Request {
            session: id,
            info: session.info.clone().expect("connected"),
            arrived_ms: self.now_ms,
            stamp: 0,
            id: number.to_string().into_bytes().into(),
            method,
            frame: params.as_bytes().to_vec(),
            params: 0..params.len(),
            seqno: None,
            blocked: false,
            foreign_monitors: Vec::new(),
            once,
            client,
        };
        let node = session.node;
        self.nodes[node]
            .inbox
            .push_back(ToDatabase::Request(Box::new(request)));
    }

    pub(crate) fn transact(&mut self, id: SessionId, number: u64, operations: &str) {
        let params = format!(r#"["A",{operations}]"#);
        self.ask(id, number, DatabaseMethod::Transact, &params);
    }

    pub(crate) fn cancel(&mut self, id: SessionId, number: u64) {
        let node = self.sessions[&id].node;
        let number = number.to_string().into_bytes().into();
        self.nodes[node]
            .inbox
            .push_back(ToDatabase::Cancel(id, number));
    }
}
