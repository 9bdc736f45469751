//! Tests of the bytes of the first frame. Recordings of earlier builds must stay readable.

use super::*;
use corvid_log::storage::FileSize;

const SCHEMA: &[u8] =
    br#"{"name":"D","tables":{"T":{"columns":{"n":{"type":"integer"}}}},"version":"1.0.0"}"#;

#[test]
fn the_first_frame_has_the_bytes_of_the_format_and_is_read_back() {
    let json = Value::parse(SCHEMA).expect("JSON");
    let schema = Arc::new(Schema::from_json(&json).expect("a schema"));
    let schema_text = schema.to_json().to_bytes();
    let database = Database::new(schema, HashSeed::FIXED);
    let size = FileSize { base: 4, end: 200 };
    let options = Options {
        id: DatabaseId(2),
        model: Model::standalone(),
        file: Some(FileState { records: 3, size }),
        column_diff: true,
        history: false,
        recorded: Default::default(),
    };
    let limits = Limits {
        batch_max: 5,
        long_steps: 300,
        inline_sessions_max: 7,
    };
    let now = Now {
        mono_ms: 129,
        wall_ms: -1,
    };
    let mut written = Vec::new();
    write(&mut Writer(&mut written), now, &options, &limits, &database);
    let mut expected = vec![0x81, 1, 1, 2, 0, 1, 3, 4, 0xc8, 1, 1, 0, 5, 0xac, 2, 7];
    expected.push(u8::try_from(schema_text.len()).expect("a short schema"));
    expected.extend_from_slice(&schema_text);
    // The only table has neither rows nor free slots.
    expected.extend_from_slice(&[0, 0]);
    assert_eq!(written, expected);
    let head = read(&written).unwrap_or_else(|damage| panic!("{}", damage.0));
    let mut again = Vec::new();
    let out = &mut Writer(&mut again);
    write(out, head.now, &head.options, &head.limits, &head.database);
    assert_eq!(again, written);
}

#[test]
fn the_commits_that_a_file_names_are_recorded() {
    let json = Value::parse(SCHEMA).expect("JSON");
    let schema = Arc::new(Schema::from_json(&json).expect("a schema"));
    let database = Database::new(schema, HashSeed::FIXED);
    let comment = "corvid: the last commits before this file was written\ncorvid: txn=07070707-0707-0707-0707-070707070707 results=-";
    let options = Options {
        id: DatabaseId(2),
        model: Model::standalone(),
        file: None,
        column_diff: true,
        history: false,
        recorded: RecordedCommits::of_comment(comment),
    };
    let limits = Limits::default();
    let mut written = Vec::new();
    write(
        &mut Writer(&mut written),
        Now::default(),
        &options,
        &limits,
        &database,
    );
    let head = read(&written).unwrap_or_else(|damage| panic!("{}", damage.0));
    let read_back = head.options.recorded.to_comment();
    assert_eq!(read_back.as_deref(), Some(comment));
}
