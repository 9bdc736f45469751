//! The parameters of `read_history` and `select_at`.
//!
//! Moments are kept as the client spelled them: they are located in the files.

use corvid_data::members::{self};
use corvid_data::{Tag, WireError};
use corvid_history::{Filter, HistoryError, RowPrefix};
use corvid_json::{Reader, Value};

use super::ReadingId;

/// The longest parameters, bytes: a shard parses them.
const REQUEST_BYTES_MAX: usize = 256 << 10;

/// A request about the history of a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HistoryRequest {
    /// Begin a reading.
    Begin(Query),
    /// The next page of a reading.
    Next(ReadingId),
    /// The end of a reading.
    Stop(ReadingId),
}

/// The subject of a reading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Query {
    /// The files.
    Files,
    /// Changes.
    Log {
        /// Which changes.
        filter: Filter,
        /// After this moment.
        since: Option<String>,
        /// Up to this moment.
        until: Option<String>,
        /// Only so many of the last ones.
        newest: Option<usize>,
    },
    /// The difference between two moments.
    Diff {
        /// Which changes.
        filter: Filter,
        /// The moment before.
        from: String,
        /// The moment after.
        to: String,
    },
    /// The schema at a moment.
    Schema {
        /// The moment.
        at: String,
    },
    /// The results of selections at a moment.
    Select {
        /// The moment.
        at: String,
        /// The parameters of `transact`.
        params: Vec<u8>,
    },
}

/// Parses the parameters of `read_history`.
///
/// # Errors
/// They have another form.
pub fn read_history(params: &[u8]) -> Result<HistoryRequest, WireError> {
    let wrong = |details: &str| WireError::syntax(params, format!("read_history: {details}"));
    check_length("read_history", params)?;
    let json = Value::parse(params).map_err(|error| wrong(&error.to_string()))?;
    let object = match json.as_array() {
        Some([_, object]) => object.as_object(),
        _ => None,
    };
    let object = object.ok_or_else(|| wrong("[<db-name>, <object>] expected"))?;
    let mut fields = Fields {
        names: Vec::new(),
        object,
    };
    let request = fields.request().map_err(|details| wrong(&details))?;
    for name in object.keys() {
        let name = String::from_utf8_lossy(name);
        if !fields.names.contains(&&*name) {
            return Err(wrong(&format!("unexpected member \"{name}\"")));
        }
    }
    Ok(request)
}

fn check_length(method: &str, params: &[u8]) -> Result<(), WireError> {
    if params.len() <= REQUEST_BYTES_MAX {
        return Ok(());
    }
    let details = format!("{method}: the request is longer than {REQUEST_BYTES_MAX} bytes");
    Err(WireError::new(Tag::ResourcesExhausted, details))
}

/// The members of a request that were asked for.
struct Fields<'o> {
    names: Vec<&'static str>,
    object: &'o corvid_json::Object,
}

impl<'o> Fields<'o> {
    fn member(&mut self, name: &'static str) -> Option<&'o Value> {
        self.names.push(name);
        let mut members = self.object.iter();
        let found = members.find(|(member, _)| {
            let member: &[u8] = member;
            member == name.as_bytes()
        });
        found.map(|(_, value)| value)
    }

    fn text(&mut self, name: &'static str) -> Result<Option<String>, String> {
        match self.member(name) {
            None => Ok(None),
            Some(value) => match value.as_str() {
                Some(text) => Ok(Some(text.to_owned())),
                None => Err(format!("\"{name}\" must be a string")),
            },
        }
    }

    fn required(&mut self, name: &'static str) -> Result<String, String> {
        self.text(name)?
            .ok_or_else(|| format!("\"{name}\" is missing"))
    }

    /// A number that counts something.
    fn count(&mut self, name: &'static str) -> Result<Option<u64>, String> {
        match self.member(name) {
            None => Ok(None),
            Some(value) => match value.as_integer().map(u64::try_from) {
                Some(Ok(count)) if count > 0 => Ok(Some(count)),
                _ => Err(format!("\"{name}\" must be a positive integer")),
            },
        }
    }

    fn filter(&mut self) -> Result<Filter, String> {
        let row = self.text("row")?;
        let row = row.map(|row| RowPrefix::parse(&row)).transpose();
        Ok(Filter {
            table: self.text("table")?,
            row: row.map_err(|error: HistoryError| error.to_string())?,
            column: self.text("column")?,
            client: None,
        })
    }

    fn request(&mut self) -> Result<HistoryRequest, String> {
        if let Some(reading) = self.count("next")? {
            return Ok(HistoryRequest::Next(ReadingId(reading)));
        }
        if let Some(reading) = self.count("stop")? {
            return Ok(HistoryRequest::Stop(ReadingId(reading)));
        }
        let query = match self.required("read")?.as_str() {
            "files" => Query::Files,
            "log" => Query::Log {
                filter: Filter {
                    client: self.text("client")?,
                    ..self.filter()?
                },
                since: self.text("since")?,
                until: self.text("until")?,
                newest: self
                    .count("newest")?
                    .map(|count| usize::try_from(count).unwrap_or(usize::MAX)),
            },
            "diff" => Query::Diff {
                filter: self.filter()?,
                from: self.required("from")?,
                to: self.required("to")?,
            },
            "schema" => Query::Schema {
                at: self.required("at")?,
            },
            other => {
                return Err(format!(
                    "\"{other}\": files, log, diff or schema expected as \"read\""
                ));
            }
        };
        Ok(HistoryRequest::Begin(query))
    }
}

/// Parses the parameters of `select_at`.
///
/// # Errors
/// They have another form, or an operation is not a selection.
pub fn select_at(params: &[u8]) -> Result<HistoryRequest, WireError> {
    let wrong = |details: &str| WireError::syntax(params, format!("select_at: {details}"));
    let form = || wrong("[<db-name>, <moment>, <operation>, ...] expected");
    check_length("select_at", params)?;
    let mut elements = Vec::new();
    let mut reader = Reader::new(params);
    reader.begin_array().map_err(|_| form())?;
    while reader.next_element().map_err(|_| form())? {
        elements.push(reader.skip().map_err(|_| form())?);
    }
    let [name, at, operations @ ..] = elements.as_slice() else {
        return Err(form());
    };
    let at = members::text(at).ok_or_else(form)?.into_owned();
    let mut transact = [b"[", *name].concat();
    for operation in operations {
        let op = op_of(operation).ok_or_else(form)?;
        if !matches!(op.as_slice(), b"select" | b"comment") {
            let op = String::from_utf8_lossy(&op);
            let details = format!("select_at: only select and comment are possible, not \"{op}\"");
            return Err(WireError::new(Tag::NotAllowed, details).with_fragment(operation));
        }
        transact.push(b',');
        transact.extend_from_slice(operation);
    }
    transact.push(b']');
    Ok(HistoryRequest::Begin(Query::Select {
        at,
        params: transact,
    }))
}

/// The name of an operation. A member that occurs twice counts as the last one, as it does when the
/// operation is executed.
fn op_of(operation: &[u8]) -> Option<Vec<u8>> {
    let mut reader = Reader::new(operation);
    reader.begin_object().ok()?;
    let mut op = None;
    while let Some(name) = reader.next_member().ok()? {
        let value = reader.skip().ok()?;
        if &*name == b"op" {
            op = members::string(value).map(std::borrow::Cow::into_owned);
        }
    }
    op
}

#[cfg(test)]
mod tests {
    use super::*;

    fn details(error: &WireError) -> &str {
        &error.details
    }

    #[test]
    fn requests_are_understood() {
        let parsed = |text: &str| read_history(text.as_bytes()).unwrap();
        assert_eq!(
            parsed(r#"["D",{"read":"files"}]"#),
            HistoryRequest::Begin(Query::Files)
        );
        assert_eq!(
            parsed(r#"["D",{"next":7}]"#),
            HistoryRequest::Next(ReadingId(7))
        );
        assert_eq!(
            parsed(r#"["D",{"stop":7}]"#),
            HistoryRequest::Stop(ReadingId(7))
        );
        let log = parsed(
            r#"["D",{"read":"log","table":"T","row":"5DB7","client":"vsctl","since":"-2h","newest":3}]"#,
        );
        let filter = Filter {
            table: Some("T".to_owned()),
            row: Some(RowPrefix::parse("5db7").unwrap()),
            column: None,
            client: Some("vsctl".to_owned()),
        };
        let wanted = Query::Log {
            filter,
            since: Some("-2h".to_owned()),
            until: None,
            newest: Some(3),
        };
        assert_eq!(log, HistoryRequest::Begin(wanted));
    }

    #[test]
    fn other_requests_are_refused_with_the_reason() {
        for (text, reason) in [
            ("{}", "[<db-name>, <object>] expected"),
            (r#"["D"]"#, "[<db-name>, <object>] expected"),
            (r#"["D",{}]"#, "\"read\" is missing"),
            (r#"["D",{"read":"all"}]"#, "files, log, diff or schema"),
            (r#"["D",{"read":"files","table":"T"}]"#, "\"table\""),
            (r#"["D",{"read":"log","newest":0}]"#, "positive integer"),
            (r#"["D",{"read":"log","table":3}]"#, "must be a string"),
            (r#"["D",{"read":"log","row":"xyz"}]"#, "not a row's UUID"),
            (
                r#"["D",{"read":"diff","from":"HEAD"}]"#,
                "\"to\" is missing",
            ),
            (r#"["D",{"read":"schema"}]"#, "\"at\" is missing"),
            (r#"["D",{"next":-1}]"#, "positive integer"),
            (r#"["D",{"next":1,"stop":1}]"#, "\"stop\""),
        ] {
            let error = read_history(text.as_bytes()).unwrap_err();
            assert!(details(&error).contains(reason), "{text}: {error:?}");
        }
        let long = format!(
            r#"["D",{{"read":"log","client":"{}"}}]"#,
            "x".repeat(REQUEST_BYTES_MAX)
        );
        assert!(details(&read_history(long.as_bytes()).unwrap_err()).contains("longer than"));
    }

    #[test]
    fn select_at_becomes_a_transaction_of_selections() {
        let text = r#"["D", "HEAD~3", {"op":"select","table":"T","where":[]}, {"op":"comment","comment":"x"}]"#;
        let HistoryRequest::Begin(Query::Select { at, params }) =
            select_at(text.as_bytes()).unwrap()
        else {
            panic!("{text}")
        };
        assert_eq!(at, "HEAD~3");
        assert_eq!(
            String::from_utf8(params).unwrap(),
            r#"["D",{"op":"select","table":"T","where":[]},{"op":"comment","comment":"x"}]"#
        );
        for text in [
            r#"["D"]"#,
            r#"["D",3]"#,
            r#"["D","HEAD",3]"#,
            r#"["D","HEAD",{}]"#,
            r#"["D","HEAD",{"op":"insert","table":"T","row":{}}]"#,
            r#"["D","HEAD",{"op":"select","op":"delete","table":"T","where":[]}]"#,
        ] {
            assert!(select_at(text.as_bytes()).is_err(), "{text}");
        }
    }
}
