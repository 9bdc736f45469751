//! Changes of rows are undone, or the conflicts are named.

use super::*;

const SCHEMA: &str = r#"{"name":"D","tables":{"T":{"isRoot":true,"columns":{
    "name":{"type":"string"},"n":{"type":"integer"},
    "s":{"type":{"key":"integer","min":0,"max":"unlimited"}},
    "m":{"type":{"key":"string","value":"string","min":0,"max":"unlimited"}},
    "e":{"type":"integer","ephemeral":true}}}}}"#;
const UUID: &str = "5db740cf-3aa7-44b7-a9b5-3a4a3b1c7a11";

fn schema() -> Arc<Schema> {
    let json = Value::parse(SCHEMA.as_bytes()).expect("JSON");
    Arc::new(Schema::from_json(&json).expect("a schema"))
}

/// A row with these columns; the others have their defaults.
fn columns(row: &str) -> Columns {
    let line = format!(r#"{{"table":"T","row":"{UUID}","op":"insert","columns":{row}}}"#);
    match done(&line).kind {
        Kind::Insert(columns) => columns,
        other => panic!("{other:?}"),
    }
}

fn done(line: &str) -> Done {
    let line = Value::parse(line.as_bytes()).expect("JSON");
    Done::parse(&line, &schema()).expect("a change")
}

fn change(op: &str, columns: &str) -> Done {
    done(&format!(
        r#"{{"table":"T","row":"{UUID}","op":"{op}","columns":{columns}}}"#
    ))
}

/// The operations that undo a change, without the guard; `Err`: the conflicts.
fn undone(done: &Done, now: Option<&str>) -> Result<Option<String>, Vec<String>> {
    let now = now.map(columns);
    match done.undo(&schema(), now.as_ref()) {
        Ok(change) => Ok(change.map(|change| operation(&change).to_string())),
        Err(conflicts) => Err(conflicts.iter().map(ToString::to_string).collect()),
    }
}

const WHERE: &str = r#""where":[["_uuid","==",["uuid","5db740cf-3aa7-44b7-a9b5-3a4a3b1c7a11"]]]"#;

#[test]
fn a_row_is_deleted_unless_it_has_changed() {
    let insert = change(
        "insert",
        r#"{"name":{"new":"x"},"s":{"added":["set",[1,2]]}}"#,
    );
    let same = r#"{"name":{"new":"x"},"s":{"added":["set",[1,2]]},"e":{"new":7}}"#;
    let delete = format!(r#"{{"op":"delete","table":"T",{WHERE}}}"#);
    assert_eq!(undone(&insert, Some(same)), Ok(Some(delete)));
    assert_eq!(undone(&insert, None), Ok(None));
    let other = r#"{"name":{"new":"y"},"s":{"added":["set",[1,2,3]]}}"#;
    assert_eq!(
        undone(&insert, Some(other)),
        Err(vec![
            format!("T \"x\" {UUID}: name is y now, and the change set it to x"),
            format!("T \"x\" {UUID}: s is [1, 2, 3] now, and the change set it to [1, 2]"),
        ])
    );
}

#[test]
fn a_deleted_row_comes_back_with_its_uuid() {
    let delete = change(
        "delete",
        r#"{"name":{"old":"x"},"m":{"removed":["map",[["a","b"]]]}}"#,
    );
    let insert = format!(
        r#"{{"op":"insert","row":{{"m":["map",[["a","b"]]],"name":"x"}},"table":"T","uuid":"{UUID}"}}"#
    );
    assert_eq!(undone(&delete, None), Ok(Some(insert)));
    let again = r#"{"name":{"new":"x"},"n":{"new":1}}"#;
    let exists = format!("T \"x\" {UUID}: the row exists again");
    assert_eq!(undone(&delete, Some(again)), Err(vec![exists]));
}

#[test]
fn columns_get_back_their_values_unless_others_have_changed_them() {
    let modify = change("modify", r#"{"n":{"old":1,"new":2}}"#);
    let update = |row: &str| {
        let update = format!(r#"{{"op":"update","row":{row},"table":"T",{WHERE}}}"#);
        Ok(Some(update))
    };
    assert_eq!(
        undone(&modify, Some(r#"{"n":{"new":2},"name":{"new":"x"}}"#)),
        update(r#"{"n":1}"#)
    );
    assert_eq!(undone(&modify, Some(r#"{"n":{"new":1}}"#)), Ok(None));
    let conflict = format!("T \"\" {UUID}: n is 3 now, and the change set it to 2");
    assert_eq!(
        undone(&modify, Some(r#"{"n":{"new":3}}"#)),
        Err(vec![conflict])
    );
    let gone = format!("T {UUID}: the row is deleted");
    assert_eq!(undone(&modify, None), Err(vec![gone]));
}

#[test]
fn elements_are_judged_one_by_one() {
    let modify = change(
        "modify",
        r#"{"s":{"removed":1,"added":["set",[2,3]]},"m":{"removed":["map",[["k","old"]]],"added":["map",[["k","new"]]]}}"#,
    );
    let row = |set: &str, map: &str| {
        format!(r#"{{"s":{{"added":["set",{set}]}},"m":{{"added":["map",{map}]}}}}"#)
    };
    let later = row("[2,3,9]", r#"[["k","new"],["later","x"]]"#);
    let update = format!(
        r#"{{"op":"update","row":{{"m":["map",[["k","old"],["later","x"]]],"s":["set",[1,9]]}},"table":"T",{WHERE}}}"#
    );
    assert_eq!(undone(&modify, Some(&later)), Ok(Some(update)));
    let already = row("[1,9]", r#"[["k","old"]]"#);
    assert_eq!(undone(&modify, Some(&already)), Ok(None));
    for changed in [
        row("[2]", r#"[["k","new"]]"#),
        row("[1,2,3]", r#"[["k","new"]]"#),
        row("[2,3]", r#"[["k","newer"]]"#),
        row("[2,3]", "[]"),
    ] {
        let conflicts = undone(&modify, Some(&changed)).expect_err(&changed);
        assert_eq!(conflicts.len(), 1, "{conflicts:?}");
    }
    let conflicts = undone(&modify, Some(&row("[2]", r#"[["k","new"]]"#)));
    let text = format!("T \"\" {UUID}: s is [2] now, and the change added [2, 3] and removed [1]");
    assert_eq!(conflicts, Err(vec![text]));
}

#[test]
fn the_transaction_fails_if_a_row_has_changed_meanwhile() {
    let modify = change("modify", r#"{"n":{"old":1,"new":2}}"#);
    let now = columns(r#"{"n":{"new":2},"e":{"new":5}}"#);
    let changes: Vec<RowChange> = modify
        .undo(&schema(), Some(&now))
        .expect("no conflict")
        .into_iter()
        .collect();
    let operations = operations(&changes);
    assert_eq!(operations.len(), 2);
    assert_eq!(
        operations[0].to_string(),
        format!(
            r#"{{"columns":["m","n","name","s"],"op":"wait","rows":[{{"m":["map",[]],"n":2,"name":"","s":["set",[]]}}],"table":"T","timeout":0,"until":"==",{WHERE}}}"#
        )
    );
    let delete = change("delete", "{}");
    let change = delete
        .undo(&schema(), None)
        .expect("no conflict")
        .expect("a change");
    assert_eq!(
        guard(&change).to_string(),
        format!(
            r#"{{"columns":["_uuid"],"op":"wait","rows":[],"table":"T","timeout":0,"until":"==",{WHERE}}}"#
        )
    );
}

#[test]
fn changes_of_another_schema_are_refused() {
    for (line, problem) in [
        (
            r#"{"table":"U","row":"x","op":"insert"}"#,
            "there is no table U any more",
        ),
        (
            r#"{"table":"T","row":"x","op":"insert"}"#,
            "x is not a UUID",
        ),
        (r#"{"table":"T","op":"insert"}"#, "a change without \"row\""),
    ] {
        let line = Value::parse(line.as_bytes()).expect("JSON");
        assert_eq!(
            Done::parse(&line, &schema()).err().as_deref(),
            Some(problem)
        );
    }
    for columns in [r#"{"x":{"new":1}}"#, r#"{"n":{"new":"text"}}"#] {
        let line = format!(r#"{{"table":"T","row":"{UUID}","op":"insert","columns":{columns}}}"#);
        let line = Value::parse(line.as_bytes()).expect("JSON");
        assert!(Done::parse(&line, &schema()).is_err());
    }
}

/// Bridges refer to ports, which are deleted without a reference; ports refer weakly to each other.
mod references {
    use super::super::others::{judge, searches, targets};
    use super::*;

    const SCHEMA: &str = r#"{"name":"D","tables":{
        "Bridge":{"isRoot":true,"columns":{
            "ports":{"type":{"key":{"type":"uuid","refTable":"Port"},"min":0,"max":"unlimited"}}}},
        "Queues":{"isRoot":true,"columns":{
            "by_number":{"type":{"key":"integer","value":{"type":"uuid","refTable":"Port"},"min":0,"max":"unlimited"}}}},
        "Port":{"columns":{
            "peer":{"type":{"key":{"type":"uuid","refTable":"Port","refType":"weak"},"min":0,"max":1}}}}}}"#;
    const BRIDGE: &str = "11111111-3aa7-44b7-a9b5-3a4a3b1c7a11";
    const PORT: &str = "22222222-3aa7-44b7-a9b5-3a4a3b1c7a11";

    fn schema() -> Arc<Schema> {
        let json = Value::parse(SCHEMA.as_bytes()).expect("JSON");
        Arc::new(Schema::from_json(&json).expect("a schema"))
    }

    fn uuid(text: &str) -> Uuid {
        Uuid::parse(text.as_bytes()).expect("a UUID")
    }

    /// The change of a row, given the elements of its only column.
    fn change(table: &str, row: &str, old: Option<&[&str]>, new: Option<&[&str]>) -> RowChange {
        let columns = |uuids: &[&str]| {
            let mut datum = Datum::empty();
            for text in uuids {
                datum.insert(corvid_data::Atom::Uuid(uuid(text)), None);
            }
            Arc::from(vec![datum])
        };
        RowChange {
            schema: schema(),
            table: schema().table_id(table).expect("a table"),
            uuid: uuid(row),
            old: old.map(columns),
            new: new.map(columns),
        }
    }

    #[test]
    fn a_row_that_would_lose_its_last_reference_is_a_conflict() {
        let schema = schema();
        let loses = change("Bridge", BRIDGE, Some(&[PORT]), Some(&[]));
        let found = targets(&schema, std::slice::from_ref(&loses)).expect("no conflict yet");
        assert_eq!(found.len(), 1);
        let asked = searches(&schema, found[0]);
        assert_eq!(asked.len(), 2, "a set, and a map");
        assert_eq!(
            asked[0].select().to_string(),
            format!(
                r#"{{"columns":["_uuid"],"op":"select","table":"Bridge","where":[["ports","includes",["uuid","{PORT}"]]]}}"#
            )
        );
        let bridges = schema.table_id("Bridge").expect("a table");
        let changes = [loses.clone()];
        let by = |row: &str| judge(&schema, found[0], &[(bridges, uuid(row))], &changes);
        assert!(
            by(BRIDGE).is_some(),
            "only the row that loses it refers to it"
        );
        assert_eq!(by("33333333-3aa7-44b7-a9b5-3a4a3b1c7a11"), None);
        // A reference in a map is found among all rows.
        let maps = format!(
            r#"[{{"_uuid":["uuid","{BRIDGE}"],"by_number":["map",[[1,["uuid","{PORT}"]]]]}},
            {{"_uuid":["uuid","{PORT}"],"by_number":["map",[[1,["uuid","{BRIDGE}"]]]]}}]"#
        );
        let maps = Value::parse(maps.as_bytes()).expect("JSON");
        let maps = maps.as_array().expect("rows");
        let queues = schema.table_id("Queues").expect("a table");
        let referrers: Vec<_> = asked[1].referrers(maps).collect();
        assert_eq!(referrers, [(queues, uuid(BRIDGE))]);
        assert_eq!(judge(&schema, found[0], &referrers, &changes), None);
        // The port is meant to be deleted, and nobody refers to it weakly.
        let both = [loses, change("Port", PORT, Some(&[]), None)];
        let found = targets(&schema, &both).expect("no conflict");
        assert_eq!(found.len(), 1);
        assert_eq!(judge(&schema, found[0], &[], &both), None);
    }

    #[test]
    fn a_deleted_row_to_which_others_refer_is_a_conflict() {
        let schema = schema();
        let deleted = [change("Port", PORT, Some(&[]), None)];
        let found = targets(&schema, &deleted).expect("no conflict yet");
        let ports = schema.table_id("Port").expect("a table");
        let row = format!(r#"{{"_uuid":["uuid","{BRIDGE}"]}}"#);
        let rows = [Value::parse(row.as_bytes()).expect("JSON")];
        let search = &searches(&schema, found[0])[0];
        let referrers: Vec<_> = search.referrers(&rows).collect();
        assert_eq!(referrers, [(ports, uuid(BRIDGE))]);
        assert!(search.guard(&rows).to_string().contains(r#""until":"==""#));
        let conflict = judge(&schema, found[0], &[(ports, uuid(BRIDGE))], &deleted);
        let text = format!("Port {PORT}: Port {BRIDGE} refers to the row now");
        assert_eq!(conflict.map(|conflict| conflict.to_string()), Some(text));
    }

    #[test]
    fn a_row_that_nothing_would_refer_to_does_not_come_back() {
        let back = change("Port", PORT, None, Some(&[]));
        let conflicts = targets(&schema(), std::slice::from_ref(&back));
        assert_eq!(conflicts.expect_err("a conflict").len(), 1);
        let referring = change("Bridge", BRIDGE, Some(&[]), Some(&[PORT]));
        assert_eq!(targets(&schema(), &[back, referring]), Ok(Vec::new()));
    }
}
