//! The page `/status.json`: the last status that the main thread has published.
//!
//! A visit requests a new status. If the main thread does not publish it in time, the page shows
//! the previous one, which says when it was made.

use std::sync::{Mutex, PoisonError};

use corvid_net::clock;

use super::status_request::StatusRequest;
use crate::http::Response;

/// The type of the page.
const JSON: &str = "application/json";

#[derive(Debug, Default)]
pub(super) struct StatusPage {
    request: StatusRequest,
    latest: Mutex<Option<String>>,
}

impl StatusPage {
    /// Requests a new status. Returns false if one has been requested and is not published yet.
    pub(super) fn request_new(&self) -> bool {
        let is_new = !self.request.is_pending();
        self.request.send(clock::mono_ms());
        is_new
    }

    /// The request for the status.
    pub(super) fn request(&self) -> &StatusRequest {
        &self.request
    }

    /// Publishes the status.
    pub(super) fn publish(&self, text: String) {
        *self.latest.lock().unwrap_or_else(PoisonError::into_inner) = Some(text);
        self.request.answer(clock::mono_ms());
    }

    /// The page.
    pub(super) fn page(&self) -> Response {
        let latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        match latest.as_ref() {
            Some(text) => Response {
                status: 200,
                content_type: JSON,
                body: text.clone(),
            },
            None => Response::text(503, "the status is not known yet: ask again\n"),
        }
    }
}
