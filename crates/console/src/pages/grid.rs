//! JSON of a status or a result as tables: one of objects has a column for each member, a single
//! object a line for each. Figures are in units for people; the exact ones are shown on hover.

use std::collections::BTreeSet;

use askama::Template;
use corvid::json::Value;
use corvid_shell::date::utc_text;

/// The number of rows that a table of a result shows.
const ROWS_MAX: usize = 500;

/// The number of characters of a value.
const LETTERS_MAX: usize = 300;

/// A table.
#[derive(Template)]
#[template(path = "grid.html")]
pub(crate) struct Grid {
    heads: Vec<String>,
    rows: Vec<Vec<Figure>>,
    more: usize,
}

/// A value.
#[derive(Clone, Default)]
pub(crate) struct Figure {
    text: String,
    title: String,
    is_number: bool,
}

impl Grid {
    /// The table of a part of a status, a list of objects. Members of objects within them are
    /// columns too. `None` if there are none.
    pub(crate) fn of_list(list: &[Value]) -> Option<Grid> {
        Grid::new(list, spaced, figure)
    }

    /// The table of rows of a database: names and values as they are.
    pub(crate) fn of_rows(list: &[Value]) -> Option<Grid> {
        Grid::new(list, str::to_owned, |_, value| exact(value))
    }

    fn new(
        list: &[Value],
        head: fn(&str) -> String,
        figure: fn(&str, &Value) -> Figure,
    ) -> Option<Grid> {
        let rows: Vec<Vec<(String, &Value)>> = list
            .iter()
            .take(ROWS_MAX)
            .map(|object| {
                let mut members = Vec::new();
                flatten("", object, &mut members);
                members
            })
            .collect();
        let names: BTreeSet<&String> = rows.iter().flatten().map(|(name, _)| name).collect();
        // The members that identify a row come first.
        let mut heads: Vec<&String> = names.into_iter().collect();
        heads.sort_by_key(|name| {
            let first = [
                "_uuid",
                "id",
                "name",
                "address",
                "program",
                "peer",
                "client",
                "role",
                "age_ms",
                "cost.cpu_us",
                "cost.requests",
                "cost.updates",
                "cost.sent_bytes",
                "cost.received_bytes",
                "cost.queued_bytes",
                "cost.last_request",
                "cost.last_request_age_ms",
            ];
            first
                .iter()
                .position(|known| known == name)
                .unwrap_or(usize::MAX)
        });
        let cells = rows.iter().map(|row| {
            let cell = |head: &&String| {
                let found = row.iter().find(|(name, _)| name == *head);
                found
                    .map(|(name, value)| figure(name, value))
                    .unwrap_or_default()
            };
            heads.iter().map(cell).collect()
        });
        let cells: Vec<Vec<Figure>> = cells.collect();
        (!list.is_empty()).then(|| Grid {
            rows: cells,
            heads: heads.into_iter().map(|name| head(name)).collect(),
            more: list.len().saturating_sub(ROWS_MAX),
        })
    }

    /// The lines of an object's members, without those that `is_left_out`.
    pub(crate) fn of_object(object: &Value, is_left_out: impl Fn(&str) -> bool) -> Grid {
        let mut members = Vec::new();
        flatten("", object, &mut members);
        let rows = members
            .into_iter()
            .filter(|(name, _)| !is_left_out(name))
            .map(|(name, value)| {
                let head = Figure {
                    text: spaced(&name),
                    ..Figure::default()
                };
                vec![head, figure(&name, value)]
            });
        Grid {
            heads: Vec::new(),
            rows: rows.collect(),
            more: 0,
        }
    }

    pub(crate) fn html(&self) -> String {
        self.render().unwrap_or_default()
    }
}

/// The members of an object, those of inner objects as `outer.inner`.
fn flatten<'v>(prefix: &str, value: &'v Value, members: &mut Vec<(String, &'v Value)>) {
    match value {
        Value::Object(object) => {
            for (name, value) in object {
                let separator = if prefix.is_empty() { "" } else { "." };
                flatten(&format!("{prefix}{separator}{name}"), value, members);
            }
        }
        value => members.push((prefix.to_owned(), value)),
    }
}

/// A name of the status for people. The unit stands with the figure.
fn spaced(name: &str) -> String {
    if name.starts_with('_') {
        return name.to_owned();
    }
    let name = ["_bytes", "_ms", "_us"]
        .iter()
        .find_map(|unit| name.strip_suffix(unit))
        .unwrap_or(name);
    let name = name.strip_prefix("cost.").unwrap_or(name);
    name.replace(['_', '.'], " ")
}

fn figure(name: &str, value: &Value) -> Figure {
    let number = value.as_integer();
    let text = match number {
        Some(number) if name.ends_with("bytes") => bytes(number),
        Some(number) if name.ends_with("time_ms") || name.ends_with("started_ms") => {
            utc_text(number)
        }
        Some(number) if name.ends_with("_ms") => duration(number.saturating_mul(1000)),
        Some(number) if name.ends_with("_us") => duration(number),
        _ => plain(value),
    };
    let exact = plain(value);
    Figure {
        title: if text == exact { String::new() } else { exact },
        text,
        is_number: number.is_some(),
    }
}

/// A value as it is.
fn exact(value: &Value) -> Figure {
    Figure {
        text: plain(value),
        title: String::new(),
        is_number: value.as_integer().is_some(),
    }
}

/// A value of the protocol as text.
pub(crate) fn shown(value: &Value) -> String {
    let tagged = |tag: &str| match value.as_array() {
        Some([first, Value::Array(elements)]) if first.as_str() == Some(tag) => Some(elements),
        _ => None,
    };
    let text = if let Some(pairs) = tagged("map") {
        let pairs = pairs.iter().filter_map(|pair| match pair.as_array()? {
            [key, value] => Some(format!("{}={}", shown(key), shown(value))),
            _ => None,
        });
        format!("{{{}}}", pairs.collect::<Vec<_>>().join(", "))
    } else if let Some(elements) = tagged("set") {
        format!(
            "[{}]",
            elements.iter().map(shown).collect::<Vec<_>>().join(", ")
        )
    } else {
        match value.as_array() {
            Some([tag, Value::String(uuid)]) if tag.as_str() == Some("uuid") => uuid.to_string(),
            _ => value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned),
        }
    };
    crate::database::cell::cut(&text, LETTERS_MAX)
}

/// A figure as text: nothing is a dash, lists have commas.
fn plain(value: &Value) -> String {
    let text = shown(value);
    match text.as_str() {
        "null" | "[]" | "{}" => "–".to_owned(),
        _ => text,
    }
}

/// A number of bytes for people.
pub(crate) fn bytes(bytes: i64) -> String {
    let mut amount = bytes;
    let mut tenths = 0;
    let mut unit = "B";
    for larger in ["KiB", "MiB", "GiB", "TiB"] {
        if amount < 1024 {
            break;
        }
        tenths = (amount % 1024) * 10 / 1024;
        amount /= 1024;
        unit = larger;
    }
    match unit {
        "B" => format!("{amount} B"),
        unit => format!("{amount}.{tenths} {unit}"),
    }
}

/// A duration in microseconds for people.
pub(crate) fn duration(micros: i64) -> String {
    let seconds = micros / 1_000_000;
    match micros {
        ..1000 => format!("{micros} µs"),
        1000..1_000_000 => format!("{}.{} ms", micros / 1000, micros % 1000 / 100),
        1_000_000..60_000_000 => format!("{seconds}.{} s", micros % 1_000_000 / 100_000),
        60_000_000..3_600_000_000 => format!("{} min {} s", seconds / 60, seconds % 60),
        3_600_000_000..86_400_000_000 => {
            format!("{} h {} min", seconds / 3600, seconds % 3600 / 60)
        }
        86_400_000_000.. => format!("{} d {} h", seconds / 86_400, seconds % 86_400 / 3600),
    }
}

/// A number with a word: `1 row`, `2 rows`.
pub(crate) fn counted(count: usize, word: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{count} {word}{ending}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_units_for_people() {
        assert_eq!(bytes(900), "900 B");
        assert_eq!(bytes(1536), "1.5 KiB");
        assert_eq!(duration(7), "7 µs");
        assert_eq!(duration(1500), "1.5 ms");
        assert_eq!(duration(61_000_000), "1 min 1 s");
        assert_eq!(duration(90_000_000_000), "1 d 1 h");
    }

    #[test]
    fn members_of_all_rows_are_columns() {
        let list =
            Value::parse(br#"[{"id":"1","cost":{"cpu_us":5}},{"id":"2","sent_bytes":2048}]"#);
        let grid = Grid::of_list(list.unwrap().as_array().unwrap()).unwrap();
        assert_eq!(grid.heads, ["id", "cpu", "sent"]);
        let texts: Vec<&str> = grid.rows[1]
            .iter()
            .map(|figure| figure.text.as_str())
            .collect();
        assert_eq!(texts, ["2", "", "2.0 KiB"]);
        // A column of a database may have such a name, and keeps it.
        let rows = Value::parse(br#"[{"_uuid":["uuid","u"],"rx_bytes":2048,"up_ms":5}]"#).unwrap();
        let grid = Grid::of_rows(rows.as_array().unwrap()).unwrap();
        assert_eq!(grid.heads, ["_uuid", "rx_bytes", "up_ms"]);
        let texts: Vec<&str> = grid.rows[0]
            .iter()
            .map(|figure| figure.text.as_str())
            .collect();
        assert_eq!(texts, ["u", "2048", "5"]);
    }
}
