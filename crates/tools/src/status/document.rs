//! Reading a status document: members by path, whatever the server left out.
//!
//! A member that is absent or `null` is `None`, so a check that needs it is undecided rather than
//! wrong. The page `docs/reference/status.md` lists the members.

use corvid_json::Value;

/// The member at a path such as `cluster.role`, unless it is `null`.
#[must_use]
pub fn member<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    let found = path
        .split('.')
        .try_fold(value, |value, name| value.get(name))?;
    (!matches!(found, Value::Null)).then_some(found)
}

/// The number at a path.
#[must_use]
pub fn number(value: &Value, path: &str) -> Option<i64> {
    member(value, path)?.as_integer()
}

/// The text at a path.
#[must_use]
pub fn text<'v>(value: &'v Value, path: &str) -> Option<&'v str> {
    member(value, path)?.as_str()
}

/// The truth value at a path.
#[must_use]
pub fn flag(value: &Value, path: &str) -> Option<bool> {
    member(value, path)?.as_bool()
}

/// The elements of the list at a path; `None` if the server does not tell it.
#[must_use]
pub fn list<'v>(value: &'v Value, path: &str) -> Option<&'v [Value]> {
    member(value, path)?.as_array()
}

/// The databases of a status document, without the server's own one.
pub fn databases(document: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let databases = list(document, "databases").unwrap_or_default();
    databases
        .iter()
        .filter_map(|database| Some((text(database, "name")?, database)))
        .filter(|(name, _)| !name.starts_with('_'))
}

/// The database with this name.
#[must_use]
pub fn database<'v>(document: &'v Value, name: &str) -> Option<&'v Value> {
    let mut found = databases(document).filter(|(known, _)| *known == name);
    found.next().map(|(_, database)| database)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absent_and_null_members_are_unknown() {
        let document = br#"{"a":{"b":3,"c":null,"d":"x","e":[1]},"databases":[{"name":"_Server"},{"name":"Lab","model":"relay"}]}"#;
        let document = Value::parse(document).unwrap();
        assert_eq!(number(&document, "a.b"), Some(3));
        assert_eq!(member(&document, "a.c"), None);
        assert_eq!(text(&document, "a.d"), Some("x"));
        assert_eq!(text(&document, "a.b"), None);
        assert_eq!(list(&document, "a.e").map(<[Value]>::len), Some(1));
        assert_eq!(list(&document, "a.x"), None);
        assert_eq!(databases(&document).count(), 1);
        let lab = database(&document, "Lab").unwrap();
        assert_eq!(text(lab, "model"), Some("relay"));
        assert_eq!(database(&document, "_Server"), None);
    }
}
