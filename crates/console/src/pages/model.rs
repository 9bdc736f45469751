//! The service model of a database and the role of its server, in words.

use corvid::SessionState;

/// The model and the role of the server: `standalone`, `clustered, leader`, ...
pub(crate) fn words(session: &SessionState) -> String {
    if !session.is_connected {
        return "not connected".to_owned();
    }
    let Some(server) = &session.server else {
        return "unknown: the server has no _Server database".to_owned();
    };
    match (server.model.as_str(), server.is_connected, server.is_leader) {
        ("clustered", true, true) => "clustered, leader".to_owned(),
        ("clustered", true, false) => "clustered, follower".to_owned(),
        ("clustered", false, _) => "clustered, not connected to its cluster".to_owned(),
        ("relay", false, _) => "relay, not connected to its source".to_owned(),
        (model, _, _) => model.to_owned(),
    }
}
