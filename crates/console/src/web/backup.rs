//! A backup as a file that a browser saves, made by the code of `ovsdb-client backup`.
//!
//! The contents are read and written to a temporary file without a name before the response
//! begins, so a refusal and a full disk are pages. One backup is made at a time, and its contents
//! are limited ([`BYTES_MAX`]), so the memory of the console is. It is free again before the file
//! is sent, in pieces. A viewer that does not read for [`STALLED`] gets no more, and its browser
//! reports that the file is incomplete. The file is gone when nothing is sent any more.

use std::io::{self, BufWriter, Read, Seek, Write};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use corvid_net::{clock, errno};
use corvid_shell::blocking::Connection;
use corvid_tools::backup::Backup;
use corvid_tools::session::Session;
use hyper::StatusCode;
use hyper::body::Frame;
use hyper::header::{CONTENT_DISPOSITION, HeaderValue};
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::database::{Database, Open};
use crate::failure::Failure;
use crate::web::{App, reply};

/// The longest contents, as the server sends them.
const BYTES_MAX: usize = 256 * 1024 * 1024;

/// How long the server may take to send them.
const READ_MS: u64 = 60_000;

/// The size of a piece.
const PIECE_BYTES: usize = 64 * 1024;

/// The number of pieces between the writer and the connection.
const QUEUE: usize = 4;

/// How long a viewer may not read.
const STALLED: Duration = Duration::from_secs(30);

/// The response with the file.
///
/// # Errors
/// Another backup is being made, or the server is not reached or does not tell its contents.
pub(crate) fn stream(app: &App, database: &Database, open: &Open) -> Result<Response, Failure> {
    let turn = app.backups.clone().try_acquire_owned();
    let turn = turn.map_err(|_| "another backup is being made: try again later".to_owned())?;
    let runtime = Handle::try_current().map_err(|error| error.to_string())?;
    open.reach()?;
    let remote = open.client.session().remote;
    let remote = remote.ok_or_else(|| "there are no servers".to_owned())?;
    let deadline_ms = Some(clock::mono_ms() + READ_MS);
    let connection = Connection::open_with(&remote, deadline_ms, Some(&database.credentials))
        .map_err(|error| Failure::Unreached(format!("{remote}: {}", errno::text(&error))))?;
    let mut session = Session::over(connection.limited_to(BYTES_MAX)).until(deadline_ms);
    let name = open.schema.name.as_str();
    let contents =
        Backup::read(&mut session, name, None).map_err(|failure| match session.is_exhausted() {
            true => format!("{name} is too large to be sent from here: use ovsdb-client backup"),
            false => failure.to_string(),
        })?;
    drop(session);
    let mut file = written(&contents).map_err(|error| {
        let folder = std::env::temp_dir();
        let error = errno::text(&error);
        format!(
            "the file cannot be written in {}: {error}",
            folder.display()
        )
    })?;
    drop(contents);
    let (sender, receiver) = mpsc::channel(QUEUE);
    let sending = runtime.clone();
    runtime.spawn_blocking(move || {
        let send = |piece: Piece| {
            let sent = sending.block_on(timeout(STALLED, sender.send(piece)));
            // If not, the viewer has gone, or reads nothing.
            matches!(sent, Ok(Ok(())))
        };
        loop {
            let mut piece = Vec::with_capacity(PIECE_BYTES);
            let bytes_max = PIECE_BYTES as u64;
            // Without the end, the connection breaks and the browser does not keep half a file.
            if (&mut file).take(bytes_max).read_to_end(&mut piece).is_err() {
                break;
            }
            if piece.is_empty() {
                send(Piece::End);
                break;
            }
            if !send(Piece::Bytes(piece.into())) {
                break;
            }
        }
        // The next backup does not begin before this one's file is gone.
        drop(file);
        drop(turn);
    });
    let disposition = format!("attachment; filename=\"{name}.db\"");
    let body = Body::new(File {
        receiver,
        is_whole: false,
    });
    let mut response = reply::of(StatusCode::OK, "application/octet-stream", body);
    if let Ok(value) = HeaderValue::from_str(&disposition) {
        response.headers_mut().insert(CONTENT_DISPOSITION, value);
    }
    Ok(response)
}

/// A temporary file with the backup, at its beginning.
fn written(contents: &Backup) -> io::Result<std::fs::File> {
    let mut file = BufWriter::with_capacity(PIECE_BYTES, tempfile::tempfile()?);
    contents.write("corvid-console", &|| {}, &mut |bytes| file.write_all(bytes))?;
    let mut file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
    file.rewind()?;
    Ok(file)
}

enum Piece {
    Bytes(Bytes),
    /// The file is whole.
    End,
}

/// The body of the response.
struct File {
    receiver: mpsc::Receiver<Piece>,
    is_whole: bool,
}

impl hyper::body::Body for File {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        if self.is_whole {
            return Poll::Ready(None);
        }
        self.receiver.poll_recv(context).map(|piece| match piece {
            Some(Piece::Bytes(bytes)) => Some(Ok(Frame::data(bytes))),
            Some(Piece::End) => {
                self.is_whole = true;
                None
            }
            None => Some(Err(io::ErrorKind::BrokenPipe.into())),
        })
    }
}
