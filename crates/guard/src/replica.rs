//! A replica and a simulated server, for the paths of the client. The server's messages are
//! prepared texts, so that only the work of the client is counted.

use corvid_data::Schema;
use corvid_idl::{Class, Idl};
use corvid_json::Value;
use corvid_session::{Input, Output};

use crate::northbound;

/// Returns a client of the northbound database that has received the given contents, which are
/// members of a table update (`"TABLE":{"UUID":{"initial":ROW}}`). `adjust` changes the class of
/// the client.
pub(crate) fn holding<T>(contents: &str, adjust: impl FnOnce(&mut Class) -> T) -> (Idl, T) {
    let schema = northbound::schema();
    let mut class = Class::everything(schema.clone());
    let adjusted = adjust(&mut class);
    let mut idl = Idl::new(class, 1);
    idl.session().set_remote(0, "unix:server", true);
    handle(&mut idl, Input::Tick);
    while let Some(output) = idl.poll_output() {
        match output {
            Output::Connect { .. } => handle(&mut idl, Input::Connected),
            Output::Send(request) => {
                let reply = answer(&request, &schema, contents);
                handle(&mut idl, Input::Received(reply.as_bytes()));
            }
            Output::Disconnect => panic!("the server said something wrong"),
        }
    }
    assert!(idl.has_ever_connected(), "it has contents");
    (idl, adjusted)
}

/// Passes an input, such as received bytes, to the client.
pub(crate) fn handle(idl: &mut Idl, input: Input<'_>) {
    idl.handle(0, input).expect("no transaction is open");
}

/// Returns the replies of a server without `_Server`, which supports the second version of monitor
/// requests.
fn answer(request: &[u8], schema: &Schema, contents: &str) -> String {
    let request = Value::parse(request).expect("the client sends JSON");
    let member = |name: &str| request.get(name).map(Value::to_bytes).unwrap_or_default();
    let (id, method, params) = (member("id"), member("method"), member("params"));
    let id = String::from_utf8_lossy(&id);
    match method.as_slice() {
        br#""get_schema""# if params != br#"["_Server"]"# => {
            let schema = schema.to_json().to_bytes();
            let schema = String::from_utf8_lossy(&schema);
            format!(r#"{{"id":{id},"result":{schema},"error":null}}"#)
        }
        br#""monitor_cond""# => format!(r#"{{"id":{id},"result":{{{contents}}},"error":null}}"#),
        _ => format!(r#"{{"id":{id},"result":null,"error":"unknown"}}"#),
    }
}
