//! The history of the database, and its contents at a moment, from the server: `read_history` and
//! `select_at` (docs/reference/wire-extensions.md). Written once for all fronts, like `calls`.

use std::ops::ControlFlow;

use corvid_net::logging::Shown;
use corvid_session::history::{Page, Question, select_params};
use corvid_session::{Outcome, once};

use crate::calls::Front;
use crate::error::Error;
use crate::logging;

/// Reads what `question` asks for, page by page. `line` gets each line, a JSON text; a break ends
/// the reading.
pub(crate) async fn read(
    front: &mut impl Front,
    question: &Question,
    mut line: impl FnMut(&[u8]) -> ControlFlow<()>,
) -> Result<(), Error> {
    let name = front.look(|client| client.schema().name.clone());
    let mut next = question.params(&name);
    loop {
        let reply = ask(front, "read_history", &next).await?;
        let malformed = || Error::HistoryRefused("\"the reply is malformed\"".to_owned());
        let page = Page::parse(&reply).ok_or_else(malformed)?;
        for warning in &page.warnings {
            log::warn!(target: logging::TARGET, "history of {name}: {}", Shown(warning));
        }
        let flow = page.lines.iter().try_for_each(|text| line(text));
        match (page.next, flow) {
            (None, _) => return Ok(()),
            (Some(reading), ControlFlow::Continue(())) => {
                next = Question::next(reading).params(&name);
            }
            (Some(reading), ControlFlow::Break(())) => {
                // The program has what it wanted, and a reading that nobody asks for ends by
                // itself.
                let stop = Question::stop(reading).params(&name);
                return match ask(front, "read_history", &stop).await {
                    Ok(_) | Err(Error::HistoryLost | Error::HistoryRefused(_)) => Ok(()),
                    Err(error) => Err(error),
                };
            }
        }
    }
}

/// Executes `select` operations on the contents at a moment. Returns their results, JSON.
pub(crate) async fn select_at(
    front: &mut impl Front,
    moment: &str,
    operations: &[u8],
) -> Result<Vec<u8>, Error> {
    let name = front.look(|client| client.schema().name.clone());
    // The server would end the session because of a malformed message.
    let params = select_params(&name, moment, operations).ok_or(Error::NotOperations)?;
    ask(front, "select_at", &params).await
}

/// Sends a request once the server is known to read history. Returns its result.
async fn ask(front: &mut impl Front, method: &str, params: &[u8]) -> Result<Vec<u8>, Error> {
    let request = loop {
        // The id of the server arrives before its contents.
        let is_current = |client: &crate::polled::Client| client.session_state().is_monitoring();
        front
            .wait(|client| is_current(client).then_some(()))
            .await?;
        let is_offered = |client: &crate::polled::Client| {
            let id = client.session_state().server_id();
            id.is_some_and(once::reads_history)
        };
        if !front.look(is_offered) {
            return Err(Error::HistoryUnsupported);
        }
        // The connection may have been lost in between.
        if let Some(request) = front.change(|client| client.idl_mut().ask(method, params)) {
            break request;
        }
    };
    front
        .wait(|client| client.is_answered(request).then_some(()))
        .await?;
    match front.change(|client| client.idl_mut().take_answer(request)) {
        Outcome::Result(result) => Ok(result),
        Outcome::Error(error) => {
            let error = String::from_utf8_lossy(&error).into_owned();
            Err(Error::HistoryRefused(error))
        }
        Outcome::Lost => Err(Error::HistoryLost),
    }
}
