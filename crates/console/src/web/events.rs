//! Streams of events (`text/event-stream`): the changes of a table, to each viewer of its page.
//!
//! A stream has a short queue. A viewer that does not read its queue for [`STALLED`], or falls
//! behind by more than [`super::EVENTS_MAX`] events, is disconnected; a browser then connects again
//! and reads its page anew. Nobody else waits for it.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use hyper::StatusCode;
use hyper::body::Frame;
use tokio::sync::{broadcast, mpsc};
use tokio::time::timeout;

use crate::database::Event;
use crate::database::looks::Lease;
use crate::web::reply;

/// The number of events between the stream and its connection.
const QUEUE: usize = 4;

/// A comment in the stream this often tells a dead connection from an idle one.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// How long a viewer may not read.
const STALLED: Duration = Duration::from_secs(10);

/// The response that streams events while `leases` keep tables monitored. `last` is the number of
/// the event before them: a page that shows something older has missed one.
pub(crate) fn stream(
    events: broadcast::Receiver<Event>,
    last: Option<u64>,
    leases: Vec<Lease>,
) -> Response {
    let (sender, receiver) = mpsc::channel(QUEUE);
    // A browser that was disconnected comes back after a second.
    let first = match last {
        Some(last) => format!("retry: 1000\nevent: at\nid: {last}\ndata:\n\n").into(),
        None => Bytes::from_static(b"retry: 1000\n\n"),
    };
    tokio::spawn(forward(events, first, sender));
    let body = Body::new(Stream {
        receiver,
        _leases: leases,
    });
    reply::of(StatusCode::OK, "text/event-stream", body)
}

async fn forward(
    mut events: broadcast::Receiver<Event>,
    first: Bytes,
    sender: mpsc::Sender<Bytes>,
) {
    let mut next = first;
    loop {
        if !matches!(timeout(STALLED, sender.send(next)).await, Ok(Ok(()))) {
            return;
        }
        next = match timeout(HEARTBEAT, events.recv()).await {
            Ok(Ok(event)) => event,
            // The viewer has fallen behind, or the database has a new schema.
            Ok(Err(_)) => return,
            Err(_) => Bytes::from_static(b":\n\n"),
        };
    }
}

/// The body of the response.
struct Stream {
    receiver: mpsc::Receiver<Bytes>,
    /// The tables are monitored until the connection ends.
    _leases: Vec<Lease>,
}

impl hyper::body::Body for Stream {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let next = self.receiver.poll_recv(context);
        next.map(|event| event.map(|event| Ok(Frame::data(event))))
    }
}
