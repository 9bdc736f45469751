//! Streams of events (`text/event-stream`): the changes of a table, to each viewer of its page.
//!
//! A stream has a short queue. A viewer that does not read its queue for [`STALLED`], or falls
//! behind by more than [`super::EVENTS_MAX`] events, is disconnected; a browser then connects again
//! and reads its page anew. Nobody else waits for it.
//!
//! A stream begins with the state of the database's connection (`event: state`: why the contents
//! are not current, or an empty text), and tells it when it changes. It ends when the contents are
//! current again, and when the schema has changed: pages connect again and read themselves anew.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use corvid::json::write;
use hyper::StatusCode;
use hyper::body::Frame;
use tokio::sync::{broadcast, mpsc, watch};
use tokio::time::timeout;

use crate::database::looks::Lease;
use crate::database::{Event, Open, Standing};
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
    open: &Open,
    events: broadcast::Receiver<Event>,
    last: Option<u64>,
    leases: Vec<Lease>,
) -> Response {
    let (sender, receiver) = mpsc::channel(QUEUE);
    // A browser that was disconnected comes back after a second.
    let mut first = b"retry: 1000\n".to_vec();
    let mut standing = open.standing();
    first.extend_from_slice(&state(&standing.borrow_and_update().trouble));
    if let Some(last) = last {
        first.extend_from_slice(format!("event: at\nid: {last}\ndata:\n\n").as_bytes());
    }
    tokio::spawn(forward(events, standing, first.into(), sender));
    let body = Body::new(Stream {
        receiver,
        _leases: leases,
    });
    reply::of(StatusCode::OK, "text/event-stream", body)
}

/// The event that tells why the contents are not current; an empty text if they are.
fn state(trouble: &str) -> Vec<u8> {
    let mut event = b"event: state\ndata:".to_vec();
    write::string(&mut event, trouble.as_bytes());
    event.extend_from_slice(b"\n\n");
    event
}

/// The reasons for which a stream wakes.
enum Woken {
    Event(Option<Event>),
    Standing,
}

async fn forward(
    mut events: broadcast::Receiver<Event>,
    mut standing: watch::Receiver<Standing>,
    first: Bytes,
    sender: mpsc::Sender<Bytes>,
) {
    let mut next = first;
    loop {
        if !matches!(timeout(STALLED, sender.send(next)).await, Ok(Ok(()))) {
            return;
        }
        if standing.borrow().is_ended {
            return;
        }
        let woken = {
            let mut event = pin!(events.recv());
            let mut changed = pin!(standing.changed());
            let woken = poll_fn(|context| match event.as_mut().poll(context) {
                Poll::Ready(event) => Poll::Ready(Woken::Event(event.ok())),
                // The leases of this stream keep the sender, so this cannot fail.
                Poll::Pending => changed.as_mut().poll(context).map(|_| Woken::Standing),
            });
            timeout(HEARTBEAT, woken).await
        };
        next = match woken {
            Ok(Woken::Event(Some(event))) => event,
            // The viewer has missed events, so it must read the page anew.
            Ok(Woken::Event(None)) => return,
            Ok(Woken::Standing) => {
                let now = standing.borrow_and_update().clone();
                if now.is_ended {
                    return;
                }
                let told = state(&now.trouble).into();
                if now.trouble.is_empty() {
                    let _ = timeout(STALLED, sender.send(told)).await;
                    return;
                }
                told
            }
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
