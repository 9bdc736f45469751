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

/// The key of a row that another row has taken, or gives back in the same revert.
#[test]
fn a_value_of_an_index_that_another_row_has_now_is_a_conflict() {
    let json = r#"{"name":"D","tables":{"T":{"isRoot":true,"indexes":[["name","n"]],"columns":{
        "name":{"type":"string"},"n":{"type":"integer"},"other":{"type":"string"}}}}}"#;
    let json = Value::parse(json.as_bytes()).expect("JSON");
    let schema = Arc::new(Schema::from_json(&json).expect("a schema"));
    let table = schema.table_id("T").expect("a table");
    let row = |name: &str, n: i64| -> Columns {
        let line = format!(
            r#"{{"table":"T","row":"{UUID}","op":"insert","columns":{{"name":{{"new":"{name}"}},"n":{{"new":{n}}}}}}}"#
        );
        let line = Value::parse(line.as_bytes()).expect("JSON");
        match Done::parse(&line, &schema).expect("a change").kind {
            Kind::Insert(columns) => columns,
            other => panic!("{other:?}"),
        }
    };
    let other = Uuid([7; 16]);
    let change = |uuid: Uuid, old: Option<Columns>, new: Option<Columns>| RowChange {
        schema: schema.clone(),
        table,
        uuid,
        old,
        new,
    };
    let uuid = Uuid::parse(UUID.as_bytes()).expect("a UUID");
    let found = |uuid: Uuid| {
        vec![object([(
            "_uuid",
            Value::Array(vec![Value::string("uuid"), Value::string(uuid.to_string())]),
        )])]
    };
    let conflict = |changes: &[RowChange]| {
        let keys = keys::keys(changes);
        let key = keys
            .iter()
            .find(|key| key.select().to_string().contains("\"a\""));
        key.expect("a key")
            .judge(&found(other), changes)
            .map(|conflict| conflict.to_string())
    };

    let back = change(uuid, None, Some(row("a", 1)));
    let [key] = &keys::keys(std::slice::from_ref(&back))[..] else {
        panic!("one index");
    };
    assert_eq!(
        key.select().to_string(),
        r#"{"columns":["_uuid"],"op":"select","table":"T","where":[["name","==","a"],["n","==",1]]}"#
    );
    assert_eq!(key.judge(&found(uuid), &[]), None, "the row itself");
    let expected = format!(
        "T \"a\" {UUID}: row {other} has the same value (a, 1) for the index on (name, n) now; change or delete that row first"
    );
    assert_eq!(conflict(std::slice::from_ref(&back)), Some(expected));
    let leaves = change(other, Some(row("a", 1)), Some(row("b", 1)));
    assert_eq!(conflict(&[back.clone(), leaves]), None);
    let goes = change(other, Some(row("a", 1)), None);
    assert_eq!(conflict(&[back.clone(), goes]), None);
    let stays = change(other, Some(row("a", 1)), Some(row("a", 1)));
    assert!(conflict(&[back, stays]).is_some());

    // A row that keeps its key is not asked about.
    let same = change(uuid, Some(row("a", 1)), Some(row("a", 1)));
    assert!(keys::keys(&[same]).is_empty());
}
