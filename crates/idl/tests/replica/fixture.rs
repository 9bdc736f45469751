//! Clients connected to one server, and the tests' shared helpers.

use corvid_data::{Arc, Atom, Datum, DatumBuilder, Schema, Str, TableId, Uuid, wire};
use corvid_idl::{Class, Column, Idl, RowId, Status, TxnId};
use corvid_json::Value;
use corvid_monitor::SessionId;
use corvid_rpc::log_event::End;
use corvid_session::{Input, Output};

use crate::server::Server;

/// Tables with every kind of column and reference.
const SCHEMA: &str = r#"{"name":"idltest","version":"1.0.0","tables":{
 "link":{"isRoot":true,"columns":{
   "i":{"type":"integer"},
   "one":{"type":{"key":{"type":"uuid","refTable":"link"},"min":0,"max":1}},
   "many":{"type":{"key":{"type":"uuid","refTable":"link","refType":"weak"},"min":0,"max":"unlimited"}}}},
 "simple":{"isRoot":true,"columns":{
   "i":{"type":"integer"},"s":{"type":"string"},"b":{"type":"boolean"},
   "ia":{"type":{"key":"integer","min":0,"max":"unlimited"}},
   "o":{"type":{"key":"integer","min":0,"max":1}},
   "fixed":{"type":"string","mutable":false},
   "few":{"type":{"key":{"type":"integer","maxInteger":9},"min":0,"max":3}}}},
 "maps":{"isRoot":true,"columns":{
   "name":{"type":"string"},
   "smap":{"type":{"key":"string","value":"string","min":0,"max":"unlimited"}},
   "umap":{"type":{"key":"uuid","value":"integer","min":0,"max":"unlimited"}}}},
 "parent":{"isRoot":true,"columns":{
   "name":{"type":"string"},
   "children":{"type":{"key":{"type":"uuid","refTable":"child"},"min":0,"max":"unlimited"}}}},
 "child":{"columns":{"name":{"type":"string"},
   "n":{"type":{"key":"integer","min":0,"max":"unlimited"}}}},
 "kinds":{"isRoot":true,"columns":{
   "b":{"type":"boolean"},"r":{"type":"real"},"u":{"type":"uuid"},
   "ba":{"type":{"key":"boolean","min":0,"max":1}},
   "ra":{"type":{"key":"real","min":0,"max":"unlimited"}},
   "sa":{"type":{"key":"string","min":0,"max":"unlimited"}},
   "ua":{"type":{"key":"uuid","min":0,"max":"unlimited"}},
   "e":{"type":{"key":{"type":"string","enum":["set",["red","green"]]},"min":0,"max":1}},
   "refs":{"type":{"key":"integer","value":{"type":"uuid","refTable":"link"},"min":0,"max":"unlimited"}},
   "notes":{"type":{"key":"string","value":"string","min":0,"max":"unlimited"}}}},
 "unique":{"isRoot":true,"indexes":[["i"]],"columns":{"i":{"type":"integer"}}},
 "singleton":{"isRoot":true,"maxRows":1,"columns":{"name":{"type":"string"}}}}}"#;

pub(crate) fn schema() -> Schema {
    Schema::from_json(&Value::parse(SCHEMA.as_bytes()).expect("JSON")).expect("a schema")
}

/// [`schema`] without some of its columns and without one table.
pub(crate) fn narrow_schema() -> Schema {
    let mut json = schema().to_json();
    if let Value::Object(members) = &mut json
        && let Some(Value::Object(tables)) = members.get_mut("tables".as_bytes())
    {
        tables.remove("unique".as_bytes());
        for (table, column) in [("simple", "s"), ("maps", "umap"), ("link", "many")] {
            if let Some(Value::Object(table)) = tables.get_mut(table.as_bytes())
                && let Some(Value::Object(columns)) = table.get_mut("columns".as_bytes())
            {
                columns.remove(column.as_bytes());
            }
        }
    }
    Schema::from_json(&json).expect("a schema")
}

pub(crate) struct Peer {
    pub(crate) idl: Idl,
    session: Option<SessionId>,
    /// Messages sent, for tests that inspect them.
    pub(crate) sent: Vec<String>,
    /// The log messages.
    pub(crate) log: Vec<String>,
    /// While true, the server's output stays unread.
    pub(crate) is_deaf: bool,
}

pub(crate) struct Fixture {
    pub(crate) server: Server,
    pub(crate) now_ms: u64,
    pub(crate) peers: Vec<Peer>,
    uuids: u64,
}

impl Fixture {
    pub(crate) fn new(history: bool) -> Fixture {
        Fixture::serving(schema(), history)
    }

    /// A server with any schema of that name.
    pub(crate) fn serving(schema: Schema, history: bool) -> Fixture {
        Fixture {
            server: Server::new(schema, history),
            now_ms: 0,
            peers: Vec::new(),
            uuids: 0,
        }
    }

    /// A server, and a client that monitors everything.
    pub(crate) fn with_client() -> Fixture {
        Fixture::with_class(|_| {})
    }

    /// A server, and a client that monitors everything except as `adjust` changes it.
    pub(crate) fn with_class(adjust: impl FnOnce(&mut Class)) -> Fixture {
        let mut fixture = Fixture::new(false);
        let mut class = Class::everything(Arc::new(schema()));
        adjust(&mut class);
        fixture.add(class);
        fixture
    }

    /// Connects a client.
    pub(crate) fn add(&mut self, class: Class) -> usize {
        self.add_with(class, |_| {})
    }

    /// Connects a client after applying `adjust` to it.
    pub(crate) fn add_with(&mut self, class: Class, adjust: impl FnOnce(&mut Idl)) -> usize {
        let mut idl = Idl::new(class, self.peers.len() as u64);
        adjust(&mut idl);
        idl.session().set_remote(self.now_ms, "unix:server", true);
        self.peers.push(Peer {
            idl,
            session: None,
            sent: Vec::new(),
            log: Vec::new(),
            is_deaf: false,
        });
        self.run();
        self.peers.len() - 1
    }

    /// The only client.
    pub(crate) fn idl(&mut self) -> &mut Idl {
        &mut self.peers[0].idl
    }

    /// Runs until nothing can happen without time passing.
    pub(crate) fn run(&mut self) {
        loop {
            let mut has_run = false;
            for peer in &mut self.peers {
                has_run |= peer.run(self.now_ms, &mut self.server);
            }
            if !has_run {
                return;
            }
        }
    }

    /// Runs, with time passing, until all clients are connected.
    pub(crate) fn run_until_connected(&mut self) {
        self.run();
        while let Some(due) = (self.peers.iter())
            .filter(|peer| !peer.idl.session_state().is_monitoring())
            .filter_map(|peer| peer.idl.poll_timeout(self.now_ms))
            .min()
        {
            self.now_ms = due.max(self.now_ms);
            for peer in &mut self.peers {
                peer.input(self.now_ms, Input::Tick);
            }
            self.run();
        }
    }

    /// Cuts a client's connection.
    pub(crate) fn cut(&mut self, peer: usize) {
        let peer = &mut self.peers[peer];
        if let Some(session) = peer.session.take() {
            self.server.disconnect(session);
            peer.input(self.now_ms, Input::Disconnected(End::Closed));
        }
    }

    /// A UUID that was not used before.
    pub(crate) fn uuid(&mut self) -> Uuid {
        self.uuids += 1;
        Uuid((0x8000_u128 << 64 | u128::from(self.uuids)).to_be_bytes())
    }

    /// Runs a transaction of the only client; returns its id and final status.
    pub(crate) fn transact(&mut self, act: impl FnOnce(&mut Fixture)) -> (TxnId, Status) {
        let txn = self.idl().begin().expect("none is open");
        act(self);
        self.idl().commit().expect("it is open");
        self.run();
        (txn, self.idl().status(txn).expect("remembered"))
    }

    /// Runs a transaction, as [`Fixture::transact`] does, and asserts that it succeeds.
    pub(crate) fn succeed(&mut self, act: impl FnOnce(&mut Fixture)) -> TxnId {
        let (txn, status) = self.transact(act);
        let error = self.idl().txn_error(txn).map(str::to_owned);
        assert_eq!((status, error), (Status::Success, None));
        txn
    }

    /// Inserts a row in the open transaction.
    pub(crate) fn insert(&mut self, table: &str, columns: &[(&str, Datum)]) -> RowId {
        let uuid = self.uuid();
        let table_id = self.table(table);
        let row = self.idl().insert(table_id, uuid, true).expect("new");
        for (name, datum) in columns {
            let column = self.column(table, name);
            self.idl().write(row, column, datum.clone()).expect("fits");
        }
        row
    }

    pub(crate) fn table(&self, name: &str) -> TableId {
        self.peers[0].idl.class().table(name).expect("a table")
    }

    pub(crate) fn column(&self, table: &str, name: &str) -> Column {
        let class = self.peers[0].idl.class();
        class.column(table, name).expect("a column")
    }

    /// A value as JSON.
    pub(crate) fn value(&self, row: RowId, name: &str) -> String {
        let idl = &self.peers[0].idl;
        let table = idl.schema().table(row.table);
        let column = self.column(&table.name, name);
        let datum = idl.read(row, column).expect("a row");
        json(&datum, table.column(column.id).column_type.is_map())
    }

    /// The operations of the last transaction sent.
    pub(crate) fn last_operations(&self) -> String {
        let sent = &self.peers[0].sent;
        let last = sent.iter().rfind(|text| text.contains("\"transact\""));
        let last = last.expect("a transaction");
        let start = last.find("\"idltest\",").expect("a database") + 10;
        last[start..last.len() - 2].to_owned()
    }

    /// Answers the last request of the only client, which is deaf to the server, with a reply that
    /// the server would not send.
    pub(crate) fn answer_last(&mut self, members: &str) {
        let sent = &self.peers[0].sent;
        let last = sent.last().expect("a request");
        let id = last.split([':', ',']).nth(1).expect("an id");
        self.hear(&format!(r#"{{"id":{id},{members}}}"#));
    }

    /// Delivers a message to the only client that the server did not send.
    pub(crate) fn hear(&mut self, message: &str) {
        let now_ms = self.now_ms;
        self.peers[0].input(now_ms, Input::Received(message.as_bytes()));
    }

    /// Delivers all pending output to the only client, which is deaf, once.
    pub(crate) fn hear_waiting(&mut self) {
        let peer = &mut self.peers[0];
        let session = peer.session.expect("connected");
        let waiting = self.server.output.get_mut(&session);
        let bytes = waiting.and_then(Option::as_mut).map(std::mem::take);
        peer.input(self.now_ms, Input::Received(&bytes.expect("open")));
    }

    /// Commits the open transaction of the only client and sends it, without a reply.
    pub(crate) fn commit_unheard(&mut self) -> TxnId {
        let txn = self.idl().open_txn().expect("it is open");
        self.peers[0].is_deaf = true;
        assert_eq!(self.idl().commit(), Ok(Status::Incomplete));
        self.run();
        txn
    }

    /// Clears the record of sent messages.
    pub(crate) fn forget_sent(&mut self) {
        self.peers[0].sent.clear();
    }
}

impl Peer {
    fn input(&mut self, now_ms: u64, input: Input<'_>) {
        self.idl.handle(now_ms, input).expect("none is open");
    }

    fn run(&mut self, now_ms: u64, server: &mut Server) -> bool {
        let mut has_run = false;
        while let Some(output) = self.idl.poll_output() {
            has_run = true;
            match output {
                Output::Connect { .. } => {
                    self.session = Some(server.connect());
                    self.input(now_ms, Input::Connected);
                }
                Output::Disconnect => {
                    if let Some(session) = self.session.take() {
                        server.disconnect(session);
                    }
                }
                Output::Send(bytes) => {
                    self.sent
                        .push(String::from_utf8(bytes.clone()).expect("UTF-8"));
                    if let Some(session) = self.session {
                        server.receive(session, &bytes);
                    }
                }
            }
        }
        while let Some(message) = self.idl.poll_log() {
            self.log.push(message.to_string());
        }
        if self.is_deaf || self.idl.open_txn().is_some() {
            return has_run;
        }
        if let Some(session) = self.session {
            match server.output.get_mut(&session) {
                Some(Some(bytes)) if !bytes.is_empty() => {
                    let bytes = std::mem::take(bytes);
                    self.input(now_ms, Input::Received(&bytes));
                    has_run = true;
                }
                Some(Some(_)) => {}
                _ => {
                    self.session = None;
                    self.input(now_ms, Input::Disconnected(End::Closed));
                    has_run = true;
                }
            }
        }
        let state = self.idl.session_state();
        if state.is_connected() && self.idl.poll_timeout(now_ms) == Some(now_ms) {
            self.input(now_ms, Input::Tick);
            has_run = true;
        } else if now_ms == 0 && self.session.is_none() {
            self.input(now_ms, Input::Tick);
        }
        has_run
    }
}

pub(crate) fn json(datum: &Datum, is_map: bool) -> String {
    let mut out = Vec::new();
    wire::write_datum(&mut out, datum, is_map);
    String::from_utf8(out).expect("UTF-8")
}

pub(crate) fn string(text: &str) -> Datum {
    Datum::one(text_atom(text))
}

pub(crate) fn text_atom(text: &str) -> Atom {
    Atom::String(Str::new(text))
}

pub(crate) fn integer(value: i64) -> Datum {
    Datum::one(Atom::Integer(value))
}

pub(crate) fn integers(values: &[i64]) -> Datum {
    set(values.iter().map(|&value| Atom::Integer(value)))
}

pub(crate) fn references(rows: &[RowId]) -> Datum {
    set(rows.iter().map(|row| Atom::Uuid(row.uuid)))
}

fn set(atoms: impl Iterator<Item = Atom>) -> Datum {
    let mut builder = DatumBuilder::new();
    atoms.for_each(|atom| builder.push(atom, None));
    builder.finish().expect("distinct")
}

pub(crate) fn strings(pairs: &[(&str, &str)]) -> Datum {
    let mut builder = DatumBuilder::new();
    for (key, value) in pairs {
        builder.push(text_atom(key), Some(text_atom(value)));
    }
    builder.finish().expect("distinct")
}
