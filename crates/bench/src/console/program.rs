//! The console as a process: requests of pages, and streams of events.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::stream::Address;
use crate::usage::{self, Memory};

/// The time limit for a reply, and for contents.
const TIMEOUT: Duration = Duration::from_secs(120);
/// The pause between attempts.
const TRY_EVERY: Duration = Duration::from_millis(20);

/// A running console, which shows one database as `bench`. Dropping the value ends it.
#[derive(Debug)]
pub(super) struct Console {
    child: Child,
    port: u16,
}

/// An answer, and the time until its last byte.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) body: String,
    pub(super) took: Duration,
}

impl Console {
    pub(super) fn start(program: &Path, server: &Address) -> Result<Console, Error> {
        let mut child = Command::new(program)
            .arg("--listen=127.0.0.1:0")
            .arg(format!("bench={server}"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|source| Error::Start {
                program: program.to_owned(),
                source,
            })?;
        let mut line = String::new();
        if let Some(output) = child.stdout.take() {
            BufReader::new(output).read_line(&mut line)?;
        }
        // The guard is made first, so that a failure ends the process.
        let mut console = Console { child, port: 0 };
        let port = line.trim().trim_end_matches('/').rsplit(':').next();
        console.port = port
            .and_then(|port| port.parse().ok())
            .ok_or_else(|| Error::Client(format!("the console printed no address: {line:?}")))?;
        Ok(console)
    }

    /// Requests a page on a new connection.
    pub(super) fn page(&self, path: &str) -> Result<Page, Error> {
        let began = Instant::now();
        let mut text = Vec::new();
        self.request(path)?.read_to_end(&mut text)?;
        Ok(Page {
            body: String::from_utf8_lossy(&text).into_owned(),
            took: began.elapsed(),
        })
    }

    /// Requests a page until it contains a text.
    pub(super) fn page_with(&self, path: &str, wanted: &str) -> Result<Page, Error> {
        let began = Instant::now();
        loop {
            let page = self.page(path)?;
            if page.body.contains(wanted) {
                return Ok(page);
            }
            if began.elapsed() > TIMEOUT {
                let begin: String = page.body.chars().take(300).collect();
                return Err(Error::Client(format!("{path} lacks {wanted:?}: {begin}")));
            }
            thread::sleep(TRY_EVERY);
        }
    }

    /// Opens a stream of events.
    pub(super) fn viewer(&self, path: &str) -> Result<Viewer, Error> {
        let mut viewer = Viewer(BufReader::with_capacity(4096, self.request(path)?));
        viewer.line("retry:")?;
        Ok(viewer)
    }

    fn request(&self, path: &str) -> Result<TcpStream, Error> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes())?;
        Ok(stream)
    }

    /// Returns the CPU time so far, in microseconds.
    pub(super) fn cpu_us(&self) -> Result<f64, Error> {
        Ok(usage::cpu_us(self.child.id())?)
    }

    pub(super) fn memory(&self) -> Result<Memory, Error> {
        Ok(usage::memory(self.child.id())?)
    }
}

impl Drop for Console {
    fn drop(&mut self) {
        // A failure to end the process is ignored, because nothing else uses it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A viewer's stream of events.
#[derive(Debug)]
pub(super) struct Viewer(BufReader<TcpStream>);

impl Viewer {
    /// Waits for a line that begins so, and returns its rest.
    pub(super) fn line(&mut self, begin: &str) -> Result<String, Error> {
        loop {
            let mut line = String::new();
            if self.0.read_line(&mut line)? == 0 {
                return Err(Error::Closed);
            }
            if let Some(rest) = line.strip_prefix(begin) {
                return Ok(rest.trim().to_owned());
            }
        }
    }

    /// Waits for an event.
    pub(super) fn event(&mut self) -> Result<String, Error> {
        self.line("data: ")
    }
}
