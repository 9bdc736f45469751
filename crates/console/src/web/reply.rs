//! Responses: pages, texts, files.

use askama::Template;
use axum::body::Body;
use axum::response::Response;
use hyper::StatusCode;
use hyper::header::{CONTENT_DISPOSITION, CONTENT_TYPE, HeaderValue};

/// A page.
pub(crate) fn page(template: &impl Template) -> Response {
    match template.render() {
        Ok(html) => of(StatusCode::OK, "text/html; charset=utf-8", html),
        Err(error) => text(StatusCode::INTERNAL_SERVER_ERROR, &format!("{error}\n")),
    }
}

/// A page with another status than 200.
pub(crate) fn page_with(status: StatusCode, template: &impl Template) -> Response {
    let mut response = page(template);
    *response.status_mut() = status;
    response
}

/// A text.
pub(crate) fn text(status: StatusCode, text: &str) -> Response {
    of(status, "text/plain; charset=utf-8", text.to_owned())
}

/// A file that a browser saves.
pub(crate) fn file(name: &str, content_type: &'static str, contents: Vec<u8>) -> Response {
    let mut response = of(StatusCode::OK, content_type, contents);
    if let Ok(value) = HeaderValue::from_str(&format!("attachment; filename=\"{name}\"")) {
        response.headers_mut().insert(CONTENT_DISPOSITION, value);
    }
    response
}

/// A response of any type.
pub(crate) fn of(
    status: StatusCode,
    content_type: &'static str,
    body: impl Into<Body>,
) -> Response {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    let content_type = HeaderValue::from_static(content_type);
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}
