//! A console under test: the program, its address and requests to it.
//!
//! Invariant: dropping the value ends the process. Requests are written byte by byte here, so a
//! test can send headers that no client library would.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::binary;
use crate::http::Answer;

/// The time limit for a reply and for contents on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

/// A running console.
#[derive(Debug)]
pub struct Console {
    process: Child,
    port: u16,
    address: String,
}

impl Console {
    /// Starts a console at any free port and waits until it prints its address.
    ///
    /// # Errors
    /// The program is missing, or it ends instead.
    pub fn start(arguments: &[String]) -> io::Result<Console> {
        let mut process = Command::new(binary::bin("corvid-console"))
            .arg("--listen=127.0.0.1:0")
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        if let Some(output) = process.stdout.take() {
            BufReader::new(output).read_line(&mut line)?;
        }
        let port = line.trim().trim_end_matches('/').rsplit(':').next();
        let port = port.and_then(|port| port.parse().ok());
        let mut console = Console {
            process,
            port: 0,
            address: line.trim().to_owned(),
        };
        console.port = port.ok_or_else(|| io::Error::other(format!("no address: {line:?}")))?;
        Ok(console)
    }

    /// The port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The address, as the console prints it.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Requests a page.
    ///
    /// # Errors
    /// Those of [`Console::ask`].
    pub fn get(&self, path: &str) -> io::Result<Answer> {
        self.ask("GET", path, &[("Host", "localhost")], "")
    }

    /// Requests a page until `is_wanted` holds for it.
    ///
    /// # Errors
    /// Those of [`Console::ask`], or it does not hold in time.
    pub fn get_until(&self, path: &str, is_wanted: impl Fn(&Answer) -> bool) -> io::Result<Answer> {
        let begin = Instant::now();
        loop {
            let answer = self.get(path)?;
            if is_wanted(&answer) {
                return Ok(answer);
            }
            if begin.elapsed() > LIMIT {
                return Err(io::Error::other(format!("{path}: {answer:?}")));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Sends a request with these headers, and reads the reply to its end.
    ///
    /// # Errors
    /// The operating system reports an error, or the reply is not HTTP.
    pub fn ask(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> io::Result<Answer> {
        let mut stream = self.open(method, path, headers, body)?;
        let mut text = Vec::new();
        stream.read_to_end(&mut text)?;
        let text = String::from_utf8_lossy(&text).into_owned();
        let bad = || io::Error::new(io::ErrorKind::InvalidData, text.clone());
        let (head, body) = text.split_once("\r\n\r\n").ok_or_else(bad)?;
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
        Ok(Answer {
            status: status.ok_or_else(bad)?,
            head: head.to_owned(),
            body: body.to_owned(),
        })
    }

    /// Sends a request, and returns the connection to read the reply from.
    ///
    /// # Errors
    /// The operating system reports an error.
    pub fn open(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> io::Result<TcpStream> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_read_timeout(Some(LIMIT))?;
        let mut request = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        if !body.is_empty() {
            request.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        request.push_str("\r\n");
        request.push_str(body);
        stream.write_all(request.as_bytes())?;
        Ok(stream)
    }
}

impl Drop for Console {
    fn drop(&mut self) {
        // It fails only if the process has ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
