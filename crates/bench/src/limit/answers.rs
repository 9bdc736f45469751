//! The limit of answering: a minimal program that reads requests and writes a prepared reply to
//! each.
//!
//! It runs on its own thread, waits for input, and answers all complete requests of a read with one
//! write, as a server does. With one request in flight, this measures two wake-ups and four system
//! calls of the machine.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixListener;
use std::thread;
use std::time::Instant;

use mio::net::UnixStream;
use mio::{Events, Interest, Poll, Token};

use super::RUNS;
use crate::connection::Connection;
use crate::driver::Driver;
use crate::error::{Error, joined};
use crate::requests::Requests;
use crate::stream::Address;

/// A server's reply to an insertion.
const ANSWER: &[u8] =
    br#"{"id":0,"result":[{"uuid":["uuid","00000000-0000-4000-8000-000000000000"]}],"error":null}"#;

/// Returns the wall time of each request in us, with `in_flight` requests in flight.
pub(crate) fn answers(requests: &Requests, in_flight: usize) -> Result<f64, Error> {
    let mut best = once(requests, in_flight)?;
    for _ in 1..RUNS {
        best = best.min(once(requests, in_flight)?);
    }
    Ok(best)
}

fn once(requests: &Requests, in_flight: usize) -> Result<f64, Error> {
    let directory = tempfile::Builder::new().prefix("corvid-bench-").tempdir()?;
    let path = directory.path().join("limit");
    let listener = UnixListener::bind(&path)?;
    let mut driver = Driver::new()?;
    let stream = driver.connect(&Address::Unix(path))?;
    driver.add(Connection::writer(stream, requests.clone(), in_flight));
    let accepted = listener.accept()?.0;
    thread::scope(|scope| {
        let server = scope.spawn(move || serve(accepted, requests));
        let began = Instant::now();
        let outcome = driver.run(|_| true, |_, _, _| {}, |_| {});
        let elapsed = began.elapsed();
        // The client is closed now, so a server that is still reading ends.
        drop(driver);
        joined(server)?;
        outcome?;
        Ok(elapsed.as_secs_f64() * 1e6 / requests.len() as f64)
    })
}

/// Answers until all requests are answered or the client is closed. Returns the socket, because
/// closing it would be an error for a client that is still reading.
fn serve(
    accepted: std::os::unix::net::UnixStream,
    requests: &Requests,
) -> Result<UnixStream, Error> {
    accepted.set_nonblocking(true)?;
    let mut stream = UnixStream::from_std(accepted);
    let mut poll = Poll::new()?;
    let mut events = Events::with_capacity(16);
    poll.registry()
        .register(&mut stream, Token(0), Interest::READABLE)?;
    let mut room = vec![0; 64 * 1024];
    let mut answers = Vec::new();
    let (mut received, mut answered) = (0, 0);
    while answered < requests.len() {
        let count = match stream.read(&mut room) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                poll.poll(&mut events, None)?;
                continue;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error.into()),
        };
        received += count;
        answers.clear();
        while answered < requests.len() && requests.end(answered) <= received {
            answers.extend_from_slice(ANSWER);
            answered += 1;
        }
        // This does not block: a few replies always fit into the buffer, because the client has
        // read all earlier ones.
        stream.write_all(&answers)?;
        if count < room.len() {
            poll.poll(&mut events, None)?;
        }
    }
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_request_is_answered() {
        let mut requests = Requests::default();
        for _ in 0..100 {
            requests.push(r#"{"id":0,"method":"echo","params":[]}"#);
        }
        // If a reply were missing, the call would never return.
        for in_flight in [1, 16] {
            assert!(answers(&requests, in_flight).unwrap() > 0.0);
        }
    }
}
