//! One client, and a server that the play scripts. Each output and event of the client becomes a
//! line of the trace: `connect`, `disconnect` and `->` for the driver's actions, `*` for events.

use corvid_data::wire;
use corvid_rpc::log_event::End;
use corvid_session::{Client, Event, Input, Interest, Options, Outcome, Output, RowChange, Update};

/// The schema of the database `D`.
pub(crate) const SCHEMA: &str = r#"{"name":"D","tables":{"T":{"columns":{"n":{"type":"integer"},"s":{"type":{"key":"string","max":"unlimited","min":0}}}}},"version":"1.0.0"}"#;

/// The schema of `_Server`.
pub(crate) const SERVER_SCHEMA: &str = r#"{"name":"_Server","version":"1.2.0","tables":{"Database":{"columns":{"cid":{"type":{"key":"uuid","min":0}},"connected":{"type":"boolean"},"index":{"type":{"key":"integer","min":0}},"leader":{"type":"boolean"},"model":{"type":"string"},"name":{"type":"string"},"schema":{"type":{"key":"string","min":0}},"sid":{"type":{"key":"uuid","min":0}}}}}}"#;

/// The row of `D` in `_Server`.
pub(crate) const SERVER_ROW: &str = "00000000-0000-0000-0000-0000000000aa";

pub(crate) struct Play {
    pub(crate) client: Client,
    pub(crate) now_ms: u64,
    trace: String,
    /// Whether `*` lines include log messages.
    pub(crate) shows_log: bool,
    /// Ids of the requests that were not answered, in order.
    ids: Vec<String>,
}

impl Play {
    pub(crate) fn new() -> Play {
        Play::with(Options::new("D", 1))
    }

    pub(crate) fn with(options: Options) -> Play {
        Play {
            client: Client::new(options),
            now_ms: 0,
            trace: String::new(),
            shows_log: false,
            ids: Vec::new(),
        }
    }

    /// A client that monitors `D` with these rows, through a server of a standalone database.
    pub(crate) fn monitoring(interest: Interest, rows: &str) -> Play {
        let mut play = Play::waiting(interest);
        play.reply(&format!("[false,\"{}\",{rows}]", id(0)));
        play.take();
        play
    }

    /// The same client before its request for contents is answered.
    pub(crate) fn waiting(interest: Interest) -> Play {
        let mut options = Options::new("D", 1);
        options.interest = interest;
        let mut play = Play::with(options);
        play.client.set_remote(0, "tcp:a:1", true);
        play.connect();
        play.go_to_contents(&server_row(
            "standalone",
            r#""leader":true,"connected":true"#,
        ));
        play.take();
        play
    }

    /// The connection is established.
    pub(crate) fn connect(&mut self) {
        self.input(Input::Connected);
    }

    /// Plays from a new connection up to the request for contents, with this row of `_Server`.
    pub(crate) fn go_to_contents(&mut self, server_row: &str) {
        self.reply(SERVER_SCHEMA);
        self.reply(&format!(
            r#"{{"Database":{{"{SERVER_ROW}":{{"initial":{server_row}}}}}}}"#
        ));
    }

    /// The server closes the connection.
    pub(crate) fn lose(&mut self) {
        self.collect();
        self.ids.clear();
        self.input(Input::Disconnected(End::Closed));
    }

    pub(crate) fn input(&mut self, input: Input<'_>) {
        self.client.handle(self.now_ms, input);
        self.collect();
    }

    /// The server sends bytes.
    pub(crate) fn bytes(&mut self, bytes: &str) {
        self.input(Input::Received(bytes.as_bytes()));
    }

    pub(crate) fn notify(&mut self, method: &str, params: &str) {
        self.bytes(&format!(
            r#"{{"id":null,"method":"{method}","params":{params}}}"#
        ));
    }

    /// Answers the oldest request in flight.
    pub(crate) fn reply(&mut self, result: &str) {
        let reply = self.reply_text(result);
        self.bytes(&reply);
    }

    /// The reply to the oldest request in flight.
    pub(crate) fn reply_text(&mut self, result: &str) -> String {
        let id = self.oldest();
        format!(r#"{{"id":{id},"result":{result},"error":null}}"#)
    }

    /// Answers the oldest request in flight with an error.
    pub(crate) fn refuse(&mut self, error: &str) {
        let id = self.oldest();
        self.bytes(&format!(r#"{{"id":{id},"error":{error}}}"#));
    }

    /// The id of the oldest request in flight.
    fn oldest(&mut self) -> String {
        self.collect();
        assert!(!self.ids.is_empty(), "nothing was asked:\n{}", self.trace);
        self.ids.remove(0)
    }

    /// Lets time pass. At each of the client's timeouts, a read finds nothing.
    pub(crate) fn wait(&mut self, ms: u64) {
        let end_ms = self.now_ms + ms;
        while let Some(at_ms) = self.client.poll_timeout(self.now_ms) {
            if at_ms > end_ms {
                break;
            }
            self.now_ms = at_ms.max(self.now_ms);
            if self.client.is_connected() {
                self.input(Input::Received(b""));
            } else {
                self.input(Input::Tick);
            }
            if self.client.poll_timeout(self.now_ms) == Some(self.now_ms) {
                self.now_ms += 1;
            }
        }
        self.now_ms = end_ms;
    }

    /// Lets time pass until the client tries to connect; returns how long that took, ms.
    pub(crate) fn wait_for_connect(&mut self) -> u64 {
        let begin_ms = self.now_ms;
        while !self.trace.contains("connect ") {
            self.now_ms += 1;
            self.input(Input::Tick);
            assert!(self.now_ms < begin_ms + 100_000, "it never connects");
        }
        self.now_ms - begin_ms
    }

    /// Records the client's outputs and events.
    pub(crate) fn collect(&mut self) {
        loop {
            if let Some(event) = self.client.poll_event() {
                if self.shows_log || !matches!(event, Event::Log(_)) {
                    self.trace += &format!("* {}\n", event_text(&event));
                }
                continue;
            }
            match self.client.poll_output() {
                Some(Output::Connect { remote }) => self.trace += &format!("connect {remote}\n"),
                Some(Output::Disconnect) => {
                    self.ids.clear();
                    self.trace += "disconnect\n";
                }
                Some(Output::Send(bytes)) => {
                    let text = String::from_utf8(bytes).expect("UTF-8");
                    let id = text.split([':', ',']).nth(1).expect("an id").to_owned();
                    let is_request = text.contains("\"method\"");
                    if is_request && id != "\"echo\"" {
                        self.ids.push(id);
                    }
                    self.trace += &format!("-> {text}\n");
                }
                None => break,
            }
        }
    }

    /// The trace since the last call.
    pub(crate) fn take(&mut self) -> String {
        self.collect();
        std::mem::take(&mut self.trace)
    }
}

/// A transaction id.
pub(crate) fn id(number: u32) -> String {
    format!("00000000-0000-0000-0000-{number:012}")
}

/// A row of `D` in `_Server` that shows its schema.
pub(crate) fn server_row(model: &str, members: &str) -> String {
    let schema = SCHEMA.replace('"', "\\\"");
    format!(r#"{{"name":"D","model":"{model}","schema":"{schema}",{members}}}"#)
}

fn event_text(event: &Event) -> String {
    match event {
        Event::Connected => "connected".to_owned(),
        Event::Disconnected => "disconnected".to_owned(),
        Event::MonitorEnded => "monitor ended".to_owned(),
        Event::Locked => "locked".to_owned(),
        Event::LockNotification { name, is_locked } => format!("lock {name}: {is_locked}"),
        Event::Log(message) => format!("log: {message}"),
        Event::Reply { id, outcome } => {
            let text = match outcome {
                Outcome::Result(json) => format!("result {}", String::from_utf8_lossy(json)),
                Outcome::Error(json) => format!("error {}", String::from_utf8_lossy(json)),
                Outcome::Lost => "lost".to_owned(),
            };
            format!("reply to {}: {text}", id.0)
        }
        Event::Update(update) => update_text(update),
    }
}

fn update_text(update: &Update) -> String {
    let mut text = match (update.clear, update.is_reply) {
        (true, _) => "contents".to_owned(),
        (false, true) => "more contents".to_owned(),
        (false, false) => "update".to_owned(),
    };
    for table in &update.updates.tables {
        let types = update.plan.schema().table(table.table);
        for row in &table.rows {
            let (kind, columns) = match &row.change {
                RowChange::Insert(columns) => ("insert", &columns[..]),
                RowChange::Replace(columns) => ("replace", &columns[..]),
                RowChange::Diff(columns) => ("diff", &columns[..]),
                RowChange::Delete => ("delete", &[][..]),
            };
            let uuid = row.uuid.to_string();
            let uuid = uuid.trim_start_matches(['0', '-']);
            text += &format!(" {kind} {}[{uuid}]", types.name);
            for (column, datum) in columns {
                let mut json = Vec::new();
                let column = types.column(*column);
                wire::write_datum(&mut json, datum, column.column_type.is_map());
                text += &format!(" {}={}", column.name, String::from_utf8_lossy(&json));
            }
        }
    }
    text
}
