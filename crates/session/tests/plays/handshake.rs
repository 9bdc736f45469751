//! From a connection to contents, with servers of all versions.

use corvid_data::Str;
use corvid_session::{Failure, Interest, Options, TableInterest};
use expect_test::expect;

use crate::play::{Play, SCHEMA, id, server_row};

fn standalone() -> String {
    server_row("standalone", r#""connected":true,"leader":true"#)
}

#[test]
fn a_present_day_server_is_asked_for_what_changed_since() {
    let mut play = Play::new();
    play.client.set_remote(0, "tcp:a:1", true);
    play.connect();
    play.go_to_contents(&standalone());
    play.reply(&format!(
        r#"[false,"{}",{{"T":{{"{}":{{"initial":{{"n":1}}}}}}}}]"#,
        id(0),
        id(1)
    ));
    play.reply("{}");
    expect![[r#"
        * connected
        connect tcp:a:1
        -> {"id":1,"method":"get_schema","params":["_Server"]}
        -> {"id":2,"method":"monitor_cond","params":["_Server",["monid","_Server"],{"Database":[{"columns":["cid","connected","index","leader","model","name","schema"]}]}]}
        -> {"id":3,"method":"monitor_cond_since","params":["D",["monid","D"],{"T":[{"columns":["n","s"]}]},"00000000-0000-0000-0000-000000000000"]}
        -> {"id":4,"method":"set_db_change_aware","params":[true]}
        * contents insert T[1] n=1
    "#]].assert_eq(&play.take());
    assert!(play.client.is_monitoring());
}

#[test]
fn a_server_without_server_database_is_asked_for_its_schema() {
    let mut play = Play::new();
    play.client.set_remote(0, "tcp:a:1", true);
    play.connect();
    play.refuse(r#"{"error":"unknown database","details":"x","syntax":"y"}"#);
    play.reply(SCHEMA);
    play.refuse(r#""unknown method""#);
    play.reply(&format!(r#"{{"T":{{"{}":{{"new":{{"n":1}}}}}}}}"#, id(1)));
    play.notify(
        "update",
        &format!(
            r#"[["monid","D"],{{"T":{{"{}":{{"old":{{"n":1}},"new":{{"n":2}}}}}}}}]"#,
            id(1)
        ),
    );
    expect![[r#"
        * connected
        connect tcp:a:1
        -> {"id":1,"method":"get_schema","params":["_Server"]}
        -> {"id":2,"method":"get_schema","params":["D"]}
        -> {"id":3,"method":"monitor_cond","params":["D",["monid","D"],{"T":[{"columns":["n","s"]}]}]}
        -> {"id":4,"method":"monitor","params":["D",["monid","D"],{"T":[{"columns":["n","s"]}]}]}
        * contents insert T[1] n=1
        * update replace T[1] n=2
    "#]].assert_eq(&play.take());
    assert!(play.client.is_monitoring() && !play.client.conditions_supported());
}

#[test]
fn each_kind_of_monitor_gives_way_to_the_next() {
    let mut play = Play::new();
    play.client.set_remote(0, "tcp:a:1", true);
    play.connect();
    play.go_to_contents(&standalone());
    play.take();
    play.refuse(r#"{"error":"unknown method"}"#);
    play.reply("{}");
    play.refuse(r#""unknown method""#);
    expect![[r#"
        -> {"id":5,"method":"monitor_cond","params":["D",["monid","D"],{"T":[{"columns":["n","s"]}]}]}
        -> {"id":6,"method":"monitor","params":["D",["monid","D"],{"T":[{"columns":["n","s"]}]}]}
    "#]].assert_eq(&play.take());
}

#[test]
fn a_refused_argument_does_not_lead_to_an_older_method() {
    let mut play = Play::new();
    play.client.set_remote(0, "tcp:a:1", true);
    play.connect();
    play.go_to_contents(&standalone());
    let error = r#"{"error":"syntax error","details":"no","syntax":"[]"}"#;
    play.refuse(error);
    play.reply("{}");
    play.reply(SCHEMA);
    play.refuse(error);
    let trace = play.take();
    assert!(!trace.contains(r#""method":"monitor""#), "{trace}");
    assert_eq!(trace.matches("monitor_cond_since").count(), 2, "{trace}");
    let failure = Failure::Refused {
        method: "monitor_cond_since",
        error: error.to_owned(),
    };
    assert_eq!(play.client.last_failure(), Some(&failure));
}

#[test]
fn a_server_that_shows_a_schema_it_does_not_have_is_asked_for_its_own() {
    let mut play = Play::new();
    play.client.set_remote(0, "tcp:a:1", true);
    for is_right in [true, false] {
        play.connect();
        play.go_to_contents(&standalone());
        play.take();
        play.refuse("1");
        play.reply("{}");
        let schema = SCHEMA.replace("\"n\":", "\"m\":");
        play.reply(if is_right { &schema } else { SCHEMA });
        let sent = play.take();
        assert!(sent.contains(r#""method":"get_schema","params":["D"]"#));
        assert_eq!(sent.contains(r#""columns":["m","s"]"#), is_right);
        if is_right {
            play.reply(&format!(r#"[false,"{}",{{}}]"#, id(0)));
            assert!(play.client.is_monitoring());
            play.client.force_reconnect(0);
            play.take();
        }
    }
    // The schema is requested only once: a server that refuses its own schema is left.
    play.refuse("1");
    assert!(play.take().ends_with("* disconnected\ndisconnect\n"));
}

#[test]
fn what_the_server_lacks_is_not_asked_for() {
    let mut options = Options::new("D", 1);
    options.is_change_aware = false;
    options.version_max = 2;
    let table = |name: &str, columns: &[&str]| TableInterest {
        name: Str::new(name),
        columns: columns.iter().map(|name| Str::new(name)).collect(),
    };
    options.interest = Interest::Tables(vec![table("T", &["n", "z"]), table("U", &["a"])]);
    let mut play = Play::with(options);
    play.client.set_remote(0, "tcp:a:1", true);
    play.connect();
    play.shows_log = true;
    play.take();
    play.go_to_contents(&standalone());
    expect![[r#"
        -> {"id":2,"method":"monitor_cond","params":["_Server",["monid","_Server"],{"Database":[{"columns":["cid","connected","index","leader","model","name","schema"]}]}]}
        * log: T table in D database lacks z column (database needs upgrade?)
        * log: D database lacks U table (database needs upgrade?)
        -> {"id":3,"method":"monitor_cond","params":["D",["monid","D"],{"T":[{"columns":["n"]}]}]}
    "#]].assert_eq(&play.take());
}

#[test]
fn a_canceled_monitor_begins_at_the_top_of_the_same_connection() {
    let mut play = Play::monitoring(Interest::All, "{}");
    play.reply("{}");
    play.client
        .set_condition(0, "T", corvid_session::Condition::none())
        .expect("accepted");
    play.reply("{}");
    let transaction = play.client.transact(b"{}").unwrap();
    play.take();
    play.notify("monitor_canceled", r#"[["monid","D"]]"#);
    // These belong to the old monitor: the server sent them before it saw the cancellation. The
    // transaction is still in flight.
    play.notify("update2", r#"[["monid","_Server"],{"Database":{}}]"#);
    play.notify("update3", &format!(r#"[["monid","D"],"{}",{{}}]"#, id(7)));
    expect![[r#"
        * monitor ended
        -> {"id":7,"method":"monitor_cancel","params":[["monid","_Server"]]}
        -> {"id":8,"method":"get_schema","params":["_Server"]}
    "#]]
    .assert_eq(&play.take());
    play.bytes(&format!(r#"{{"id":{},"error":"canceled"}}"#, transaction.0));
    play.reply("[]"); // Answers the transaction again: that request is no longer in flight.
    play.reply("{}");
    play.go_to_contents(&standalone());
    // The row may still show the schema from before the conversion, so the session asks the
    // database.
    play.reply(&SCHEMA.replace("1.0.0", "2.0.0"));
    play.reply(&format!(r#"[false,"{}",{{}}]"#, id(0)));
    expect![[r#"
        * reply to 6: error "canceled"
        -> {"id":9,"method":"monitor_cond","params":["_Server",["monid","_Server"],{"Database":[{"columns":["cid","connected","index","leader","model","name","schema"]}]}]}
        -> {"id":10,"method":"get_schema","params":["D"]}
        -> {"id":11,"method":"monitor_cond_since","params":["D",["monid","D"],{"T":[{"columns":["n","s"],"where":[false]}]},"00000000-0000-0000-0000-000000000000"]}
        -> {"id":12,"method":"set_db_change_aware","params":[true]}
        * contents
    "#]].assert_eq(&play.take());
}

#[test]
fn the_clients_own_schema_stands_in_for_one_that_cannot_be_read() {
    use corvid_json::Value;
    let own = corvid_data::Schema::from_json(&Value::parse(SCHEMA.as_bytes()).unwrap()).unwrap();
    for has_own in [true, false] {
        let mut options = Options::new("D", 1);
        options.schema = has_own.then(|| corvid_data::Arc::new(own.clone()));
        let mut play = Play::with(options);
        play.client.set_remote(0, "tcp:a:1", true);
        play.connect();
        play.go_to_contents(&standalone().replace("version", "verſion"));
        assert_eq!(play.take().contains("monitor_cond_since"), has_own);
        assert_eq!(play.client.last_failure().is_none(), has_own);
    }
}
