//! Monitors of the model. An update is derived only from the database's content before and after it
//! (docs/spec/protocol.md 4.5 to 4.8).

use std::collections::{BTreeMap, BTreeSet};

use corvid_data::Uuid;
use corvid_json::{Object, Value};

use super::condition::{self, Clause};
use super::datum::no_names;
use super::operation::row_json;
use super::schema::{Schema, Table};
use super::{Row, Tables};

/// The event that a row update reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Event {
    /// The row is in the initial contents.
    Initial,
    /// The row came into view.
    Insert,
    /// The row changed and stayed in view.
    Modify,
    /// The row left the view.
    Delete,
}

const EVENTS: [(&str, Event); 4] = [
    ("initial", Event::Initial),
    ("insert", Event::Insert),
    ("modify", Event::Modify),
    ("delete", Event::Delete),
];

/// Row updates of one table, by row UUID.
type RowUpdates = Vec<(Uuid, Value)>;

/// The subscription to one table.
#[derive(Clone, Debug, Default)]
pub struct Subscription {
    /// The monitored columns, each with the events that show it.
    pub columns: BTreeMap<String, BTreeSet<Event>>,
    /// The events that at least one of the requests selects.
    pub events: BTreeSet<Event>,
    /// The condition: a row is in view if at least one clause holds.
    pub clauses: Vec<Clause>,
}

/// A monitor of one session.
#[derive(Clone, Debug)]
pub struct Monitor {
    /// Whether updates have the format of version 1.
    pub is_v1: bool,
    /// The subscriptions by table.
    pub tables: BTreeMap<String, Subscription>,
}

impl Monitor {
    /// Parses monitor requests.
    ///
    /// # Panics
    /// If the requests are not valid.
    #[must_use]
    pub fn read(schema: &Schema, is_v1: bool, requests: &Value) -> Monitor {
        let mut tables = BTreeMap::new();
        for (name, requests) in requests.as_object().expect("an object") {
            let name = name.to_string();
            let table = &schema.tables[&name];
            let mut subscription = Subscription::default();
            let lone = std::slice::from_ref(requests);
            for request in requests.as_array().unwrap_or(lone) {
                subscription.add(&name, table, request);
            }
            tables.insert(name, subscription);
        }
        Monitor { is_v1, tables }
    }

    /// Replaces conditions as `monitor_cond_change` does, from valid requests.
    pub fn change(&mut self, schema: &Schema, requests: &Value) {
        for (name, requests) in requests.as_object().expect("an object") {
            let name = name.to_string();
            let subscription = self.tables.get_mut(&name).expect("a monitored table");
            if let Some(last) = requests
                .as_array()
                .and_then(<[Value]>::last)
                .filter(|_| !self.is_v1)
            {
                subscription.clauses =
                    read_clauses(&name, &schema.tables[&name], last.get("where"));
            }
        }
    }

    /// Returns the content of the first reply.
    #[must_use]
    pub fn initial(&self, schema: &Schema, tables: &Tables) -> Value {
        self.updates(schema, &|name, subscription| {
            let visible = subscription.view(&tables[name]);
            let rows = visible.into_iter();
            rows.filter_map(|(uuid, row)| {
                Some((
                    uuid,
                    subscription.show(
                        self.is_v1,
                        &schema.tables[name],
                        Event::Initial,
                        None,
                        Some(row),
                    )?,
                ))
            })
            .collect()
        })
    }

    /// Returns the update from `before` to `after`. `earlier` is the monitor as it was at `before`;
    /// `self` is the monitor as it is at `after`.
    #[must_use]
    pub fn update(
        &self,
        schema: &Schema,
        before: &Tables,
        after: &Tables,
        earlier: &Monitor,
    ) -> Value {
        self.updates(schema, &|name, subscription| {
            let table = &schema.tables[name];
            let old = earlier.tables[name].view(&before[name]);
            let new = subscription.view(&after[name]);
            let uuids: BTreeSet<_> = old.keys().chain(new.keys()).copied().collect();
            let shown = uuids.into_iter().filter_map(|uuid| {
                let (old, new) = (old.get(&uuid).copied(), new.get(&uuid).copied());
                let event = match (old, new) {
                    (None, _) => Event::Insert,
                    (_, None) => Event::Delete,
                    (Some(_), Some(_)) => Event::Modify,
                };
                Some((uuid, subscription.show(self.is_v1, table, event, old, new)?))
            });
            shown.collect()
        })
    }

    fn updates(
        &self,
        schema: &Schema,
        of_table: &dyn Fn(&str, &Subscription) -> RowUpdates,
    ) -> Value {
        let mut tables = Object::new();
        for name in schema.tables.keys() {
            let Some(subscription) = self.tables.get(name) else {
                continue;
            };
            let rows = of_table(name, subscription);
            if !rows.is_empty() {
                let rows = rows
                    .into_iter()
                    .map(|(uuid, row)| (uuid.to_string().into(), row));
                tables.insert(name.as_str().into(), Value::Object(rows.collect()));
            }
        }
        Value::Object(tables)
    }

    /// Returns whether the updates keep a replica complete, because every column and table selects
    /// all events.
    #[must_use]
    pub fn shows_everything(&self) -> bool {
        self.tables.values().all(|subscription| {
            let all = subscription.columns.values().chain([&subscription.events]);
            all.into_iter().all(|events| events.len() == EVENTS.len())
        })
    }

    /// Returns the content of a complete replica.
    #[must_use]
    pub fn content(&self, tables: &Tables) -> Tables {
        let mut content = Tables::new();
        for (name, subscription) in &self.tables {
            let rows = subscription
                .view(&tables[name])
                .into_iter()
                .map(|(uuid, row)| {
                    let columns = row
                        .iter()
                        .filter(|(column, _)| subscription.columns.contains_key(*column));
                    (
                        uuid,
                        columns
                            .map(|(column, datum)| (column.clone(), datum.clone()))
                            .collect(),
                    )
                });
            content.insert(name.clone(), rows.collect());
        }
        content
    }
}

fn read_clauses(name: &str, table: &Table, json: Option<&Value>) -> Vec<Clause> {
    let clauses = json
        .map(|json| condition::read(name, table, json, &mut no_names).expect("a valid condition"));
    match clauses {
        Some(clauses) if !clauses.is_empty() => clauses,
        _ => vec![Clause::Constant(true)],
    }
}

impl Subscription {
    fn add(&mut self, name: &str, table: &Table, request: &Value) {
        let is_selected = |event: &str| {
            let flag = request.get("select").and_then(|select| select.get(event));
            flag.and_then(Value::as_bool).unwrap_or(true)
        };
        let events: BTreeSet<Event> = EVENTS
            .into_iter()
            .filter(|(event, _)| is_selected(event))
            .map(|(_, event)| event)
            .collect();
        let columns: Vec<String> = match request.get("columns").and_then(Value::as_array) {
            Some(columns) => columns
                .iter()
                .map(|column| column.as_str().expect("a name").to_owned())
                .collect(),
            None => table
                .column_names()
                .into_iter()
                .filter(|column| column != "_uuid")
                .collect(),
        };
        self.columns
            .extend(columns.into_iter().map(|column| (column, events.clone())));
        self.events.extend(events);
        self.clauses
            .extend(read_clauses(name, table, request.get("where")));
    }

    /// Returns the rows that match at least one clause.
    fn view<'r>(&self, rows: &'r BTreeMap<Uuid, Row>) -> BTreeMap<Uuid, &'r Row> {
        let matches = |row: &Row| self.clauses.iter().any(|clause| clause.holds(row));
        rows.iter()
            .filter(|(_, row)| matches(row))
            .map(|(uuid, row)| (*uuid, row))
            .collect()
    }

    /// Returns the update of one row, or `None` if the row has no update.
    fn show(
        &self,
        is_v1: bool,
        table: &Table,
        event: Event,
        old: Option<&Row>,
        new: Option<&Row>,
    ) -> Option<Value> {
        if !self.events.contains(&event) {
            return None;
        }
        let selecting = self
            .columns
            .iter()
            .filter(|(_, events)| events.contains(&event));
        let columns: Vec<String> = selecting.map(|(column, _)| column.clone()).collect();
        let changed: Vec<String> = match (old, new) {
            (Some(old), Some(new)) => columns
                .iter()
                .filter(|column| old[*column] != new[*column])
                .cloned()
                .collect(),
            _ => Vec::new(),
        };
        if event == Event::Modify && changed.is_empty() {
            return None;
        }
        let member = |name: &str, value| (name.into(), value);
        Some(Value::Object(if is_v1 {
            let old = old.map(|old| {
                row_json(
                    table,
                    old,
                    if event == Event::Modify {
                        &changed
                    } else {
                        &columns
                    },
                )
            });
            let new = new.map(|new| row_json(table, new, &columns));
            let old = old.map(|old| member("old", old));
            old.into_iter()
                .chain(new.map(|new| member("new", new)))
                .collect()
        } else {
            let kind = EVENTS
                .iter()
                .find(|(_, known)| *known == event)
                .expect("an event")
                .0;
            let row = match (event, old, new) {
                (Event::Modify, Some(old), Some(new)) => difference_json(table, old, new, &changed),
                (_, _, Some(new)) => {
                    let is_default = |column: &String| {
                        table.ty(column).expect("a column").default() == new[column]
                    };
                    let columns: Vec<_> = columns
                        .into_iter()
                        .filter(|column| !is_default(column))
                        .collect();
                    row_json(table, new, &columns)
                }
                _ => Value::Null,
            };
            [member(kind, row)].into_iter().collect()
        }))
    }
}

fn difference_json(table: &Table, old: &Row, new: &Row, columns: &[String]) -> Value {
    let member = |column: &String| {
        let ty = table.ty(column).expect("a column");
        let difference = old[column].difference(&new[column], &ty);
        (column.as_str().into(), difference.to_json(&ty))
    };
    Value::Object(columns.iter().map(member).collect())
}
