//! A message as one JSON object on one line, for collectors that would otherwise parse text.
//!
//! A pure function of the [`Context`]; `vlog` decides which destinations use it. Operators rely on
//! the members, which `docs/operate/logs.md` lists: members may be added, but not removed or
//! changed in meaning.

use corvid_json::writer::ObjectWriter;
use corvid_json::{shown, write};

use super::pattern::{self, Context, Zone};

/// Appends the object, without a newline. `thread` is the name of the calling thread.
pub(super) fn format(context: &Context<'_>, thread: &str, out: &mut String) {
    let time = pattern::date("%Y-%m-%dT%H:%M:%S.###Z", context.wall_ms, Zone::Utc);
    let mut line = Vec::with_capacity(context.message.exact().len() + 192);
    let mut object = ObjectWriter::new(&mut line).string("time", time.as_bytes());
    write::integer(object.member("seq"), i64::from(context.counter));
    object = object
        .string("level", context.level.name().as_bytes())
        .string("module", context.module.name().as_bytes())
        .string("program", context.program.as_bytes());
    write::integer(object.member("pid"), i64::from(std::process::id()));
    object = object.string("thread", thread.as_bytes());
    if !context.subprogram.is_empty() {
        object = object.string("subprogram", context.subprogram.as_bytes());
    }
    object
        .string("message", context.message.exact().as_bytes())
        .end();
    // Control characters that JSON does not escape occur only in strings, and escaping them does
    // not change the strings' values.
    out.push_str(&shown::line(&String::from_utf8_lossy(&line)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vlog::message::Message;
    use crate::vlog::{Level, Module};

    #[test]
    fn a_message_is_one_object_on_one_line() {
        let mut context = Context {
            program: "ovsdb-server",
            subprogram: "",
            host: "node1",
            module: Module::Jsonrpc,
            level: Level::Warn,
            facility: 16,
            counter: 7,
            wall_ms: 1_795_225_454_777,
            since_start_ms: 42,
            message: Message::Line("tcp:\"a\"\tb\nc\\\u{1}\u{2028}é\n\n"),
        };
        let mut line = String::new();
        format(&context, "db:D", &mut line);
        let pid = std::process::id();
        let head = r#"{"time":"2026-11-21T01:44:14.777Z","seq":7,"level":"WARN","module":"jsonrpc","program":"ovsdb-server","#;
        let tail = "\"message\":\"tcp:\\\"a\\\"\\tb\\nc\\\\\\u0001\\u2028é\"}";
        assert_eq!(
            line,
            format!("{head}\"pid\":{pid},\"thread\":\"db:D\",{tail}")
        );
        context.subprogram = "monitor";
        line.clear();
        format(&context, "main", &mut line);
        assert!(line.contains(r#""thread":"main","subprogram":"monitor","message":"#));
    }
}
