//! The limit of delivery: a minimal program that writes prepared bytes to many sockets. The
//! delivery of a server is compared with it.
//!
//! It runs on its own thread and only writes, one message to each socket in turn. Its clients are
//! the same [`ClientPool`] that reads from a server, so reading costs the same in both cases. The
//! limit of answering requests is in [`answers`].

use std::io::{self, Write};
use std::os::unix;
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use mio::net::UnixStream;
use mio::{Events, Interest, Poll, Token};

use crate::client_pool::{Action, ClientPool, Kind};
use crate::error::{Error, joined};
use crate::stream::Address;
use crate::usage;

mod answers;

pub(crate) use answers::answers;

/// The number of runs. Other load on the machine only makes the program slower, so the best run is
/// the limit.
const RUNS: usize = 3;

/// The result of the program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limit {
    /// The rate at which the clients received, in MB/s (10^6 bytes).
    pub(crate) rate: f64,
    /// The CPU time of writing, in us for each MB.
    pub(crate) cpu_us: f64,
}

/// Sends `message`, a JSON-RPC message, `rounds` times to each of `clients` clients.
pub(crate) fn broadcast(
    clients: usize,
    message: &Arc<[u8]>,
    rounds: usize,
) -> Result<Limit, Error> {
    let mut best = once(clients, message, rounds)?;
    for _ in 1..RUNS {
        let other = once(clients, message, rounds)?;
        best.rate = best.rate.max(other.rate);
        best.cpu_us = best.cpu_us.min(other.cpu_us);
    }
    Ok(best)
}

fn once(clients: usize, message: &Arc<[u8]>, rounds: usize) -> Result<Limit, Error> {
    let directory = tempfile::Builder::new().prefix("corvid-bench-").tempdir()?;
    let path = directory.path().join("limit");
    let listener = UnixListener::bind(&path)?;
    let address = Address::Unix(path);
    let mut pool = ClientPool::new()?;
    let mut sockets = Vec::with_capacity(clients);
    for _ in 0..clients {
        pool.connect(&address)?;
        sockets.push(listener.accept()?.0);
    }
    let (go, waits) = mpsc::channel();
    thread::scope(|scope| {
        let writer = scope.spawn(move || {
            // A closed channel means that the reader has failed.
            waits
                .recv()
                .map_or(Ok((Vec::new(), 0.0)), |()| write(sockets, message, rounds))
        });
        let outcome = read(pool, clients * rounds, || {
            // A failed writer returns its error when it is joined.
            let _ = go.send(());
        });
        // The clients are closed now, so a writer that is still writing fails.
        drop(go);
        // The writer returns the sockets, because closing one would be an error for a client that
        // is still reading.
        let (_, cpu_us) = joined(writer)?;
        let megabytes = (clients * message.len() * rounds) as f64 / 1e6;
        Ok(Limit {
            rate: outcome?,
            cpu_us: cpu_us / megabytes,
        })
    })
}

/// Reads until `messages` messages have arrived. Returns the rate in MB/s, measured from the call
/// of `begin`.
fn read(mut pool: ClientPool, messages: usize, begin: impl FnOnce()) -> Result<f64, Error> {
    let mut left = messages;
    let began = Instant::now();
    begin();
    pool.run(|arrival| {
        left -= usize::from(arrival.kind != Kind::Marker);
        if left == 0 {
            Action::Stop
        } else {
            Action::Wait
        }
    })?;
    let seconds = began.elapsed().as_secs_f64();
    Ok(pool.received_bytes() as f64 / 1e6 / seconds)
}

/// A socket to which messages are written.
struct Reader {
    stream: UnixStream,
    messages: usize,
    written: usize,
}

/// Writes to each socket that is writable. Returns the open sockets and the CPU time of this thread
/// in us.
fn write(
    sockets: Vec<unix::net::UnixStream>,
    message: &[u8],
    rounds: usize,
) -> Result<(Vec<Reader>, f64), Error> {
    let mut poll = Poll::new()?;
    let mut events = Events::with_capacity(1024);
    let mut readers = Vec::with_capacity(sockets.len());
    for (number, stream) in sockets.into_iter().enumerate() {
        stream.set_nonblocking(true)?;
        let mut stream = UnixStream::from_std(stream);
        poll.registry()
            .register(&mut stream, Token(number), Interest::WRITABLE)?;
        readers.push(Reader {
            stream,
            messages: rounds,
            written: 0,
        });
    }
    let mut left = readers.len();
    for round in 0..rounds {
        for reader in &mut readers {
            // Only writes to sockets without a backlog. The others continue when they are writable.
            if reader.messages == rounds - round {
                left -= usize::from(one(reader, message)?);
            }
        }
    }
    while left > 0 {
        poll.poll(&mut events, None)?;
        for event in &events {
            let reader = &mut readers[event.token().0];
            while reader.messages > 0 {
                let before = reader.messages;
                left -= usize::from(one(reader, message)?);
                if reader.messages == before {
                    break;
                }
            }
        }
    }
    Ok((readers, usage::thread_cpu_us()))
}

/// Writes the rest of the current message and the next ones, until the socket's buffer is full.
/// Returns true if the last message is complete.
fn one(reader: &mut Reader, message: &[u8]) -> Result<bool, Error> {
    loop {
        match reader.stream.write(&message[reader.written..]) {
            Ok(count) => reader.written += count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error.into()),
        }
        if reader.written == message.len() {
            reader.written = 0;
            reader.messages -= 1;
            return Ok(reader.messages == 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_client_receives_every_message() {
        let body = "x".repeat(300_000);
        let message = format!(r#"{{"id":null,"method":"update","params":["m",{{"t":"{body}"}}]}}"#);
        // If a message were missing, the call would never return.
        assert!(broadcast(7, &message.into_bytes().into(), 5).unwrap().rate > 0.0);
    }
}
