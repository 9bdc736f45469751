//! Chromium without a screen, driven through chromedriver by the WebDriver protocol.
//!
//! Invariant: dropping the value ends the browser and the driver. The browser keeps its files in a
//! directory that is removed, and starts nothing that would use a network.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

/// The time limit for one command, and for a condition, on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

const BROWSER: &str = "/usr/bin/chromium";
const DRIVER: &str = "/usr/bin/chromedriver";

/// A browser with one window.
#[derive(Debug)]
pub struct Browser {
    driver: Child,
    port: u16,
    session: String,
    /// Removed after the browser has ended.
    _profile: TempDir,
}

impl Browser {
    /// Whether this machine has the browser and its driver.
    #[must_use]
    pub fn is_installed() -> bool {
        [BROWSER, DRIVER]
            .iter()
            .all(|path| Path::new(path).is_file())
    }

    /// Starts a browser.
    ///
    /// # Errors
    /// The driver or the browser does not start.
    pub fn start() -> io::Result<Browser> {
        let profile = tempfile::Builder::new().prefix("browser").tempdir()?;
        let mut driver = Command::new(DRIVER)
            .arg("--port=0")
            .env("HOME", profile.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let output = driver.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
        let mut port = None;
        let mut output = BufReader::new(output);
        let mut line = String::new();
        while port.is_none() && output.read_line(&mut line)? > 0 {
            let said = line.trim_end().trim_end_matches('.');
            // Its first line repeats the 0.
            port = said
                .rsplit_once("on port ")
                .and_then(|(_, port)| port.parse().ok())
                .filter(|port| *port != 0);
            line.clear();
        }
        // The driver must not fail because nobody reads what else it says.
        std::thread::spawn(move || io::copy(&mut output, &mut io::sink()));
        let mut browser = Browser {
            driver,
            port: port.ok_or_else(|| io::Error::other("the driver told no port"))?,
            session: String::new(),
            _profile: profile,
        };
        let arguments = [
            "--headless=new".to_owned(),
            // Tests may run as root, for which the sandbox is not made.
            "--no-sandbox".to_owned(),
            "--disable-gpu".to_owned(),
            "--disable-dev-shm-usage".to_owned(),
            "--disable-background-networking".to_owned(),
            "--disable-component-update".to_owned(),
            "--disable-sync".to_owned(),
            "--no-first-run".to_owned(),
            "--force-color-profile=srgb".to_owned(),
            "--window-size=1280,900".to_owned(),
            format!(
                "--user-data-dir={}",
                browser._profile.path().join("profile").display()
            ),
        ];
        let options = json!({"args": arguments, "binary": BROWSER});
        let wanted = json!({"capabilities": {"alwaysMatch": {
            "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}}});
        let made = browser.send("POST", "/session", Some(&wanted))?;
        browser.session = made["sessionId"]
            .as_str()
            .ok_or_else(|| io::Error::other(made.to_string()))?
            .to_owned();
        Ok(browser)
    }

    /// Opens an address, and waits until the page is there.
    ///
    /// # Errors
    /// The driver reports one.
    pub fn open(&self, address: &str) -> io::Result<()> {
        self.command("/url", &json!({"url": address})).map(drop)
    }

    /// Runs a function's body in the page, and returns its value.
    ///
    /// # Errors
    /// The script fails.
    pub fn run(&self, script: &str) -> io::Result<Value> {
        self.command("/execute/sync", &json!({"script": script, "args": []}))
    }

    /// Runs a script until it returns true.
    ///
    /// # Errors
    /// The script fails, or returns no true value in time.
    pub fn wait_for(&self, script: &str) -> io::Result<Duration> {
        let begin = Instant::now();
        loop {
            let value = self.run(script)?;
            if value == json!(true) {
                return Ok(begin.elapsed());
            }
            if begin.elapsed() > LIMIT {
                let page = self.run("return document.body.innerText")?;
                return Err(io::Error::other(format!("{script}: {value}\n{page}")));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Makes the page as wide and high as a screen of this size.
    ///
    /// # Errors
    /// The driver reports one.
    pub fn resize(&self, width: u32, height: u32) -> io::Result<()> {
        let size =
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        let command = json!({"cmd": "Emulation.setDeviceMetricsOverride", "params": size});
        self.command("/goog/cdp/execute", &command).map(drop)
    }

    /// Shows pages in a colour scheme: `light` or `dark`.
    ///
    /// # Errors
    /// The driver reports one.
    pub fn prefer(&self, scheme: &str) -> io::Result<()> {
        let feature = json!({"name": "prefers-color-scheme", "value": scheme});
        let command =
            json!({"cmd": "Emulation.setEmulatedMedia", "params": {"features": [feature]}});
        self.command("/goog/cdp/execute", &command).map(drop)
    }

    /// Presses keys, one after another.
    ///
    /// # Errors
    /// The driver reports one.
    pub fn press(&self, keys: &[&str]) -> io::Result<()> {
        let actions: Vec<Value> = keys
            .iter()
            .flat_map(|key| {
                [
                    json!({"type": "keyDown", "value": key}),
                    json!({"type": "keyUp", "value": key}),
                ]
            })
            .collect();
        let keyboard = json!({"type": "key", "id": "keyboard", "actions": actions});
        self.command("/actions", &json!({"actions": [keyboard]}))
            .map(drop)
    }

    /// The errors that the page has logged, such as scripts that its policy forbids.
    ///
    /// # Errors
    /// The driver reports one.
    pub fn errors(&self) -> io::Result<Vec<String>> {
        let log = self.command("/se/log", &json!({"type": "browser"}))?;
        let lines = log.as_array().cloned().unwrap_or_default();
        let severe = lines.iter().filter(|line| line["level"] == "SEVERE");
        Ok(severe.map(|line| line["message"].to_string()).collect())
    }

    /// A picture of the window, PNG as base64.
    ///
    /// # Errors
    /// The driver reports one.
    pub fn picture(&self) -> io::Result<String> {
        let path = format!("/session/{}/screenshot", self.session);
        let picture = self.send("GET", &path, None)?;
        Ok(picture.as_str().unwrap_or_default().to_owned())
    }

    fn command(&self, command: &str, body: &Value) -> io::Result<Value> {
        let path = format!("/session/{}{command}", self.session);
        self.send("POST", &path, Some(body))
    }

    fn send(&self, method: &str, path: &str, body: Option<&Value>) -> io::Result<Value> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_read_timeout(Some(LIMIT))?;
        let body = body.map(ToString::to_string).unwrap_or_default();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )?;
        let mut reply = BufReader::new(stream);
        let mut length = 0;
        loop {
            let mut line = String::new();
            if reply.read_line(&mut line)? == 0 || line.trim().is_empty() {
                break;
            }
            let (name, value) = line.split_once(':').unwrap_or_default();
            if name.eq_ignore_ascii_case("content-length") {
                length = value.trim().parse().unwrap_or(0);
            }
        }
        let mut text = vec![0; length];
        reply.read_exact(&mut text)?;
        let mut reply: Value = serde_json::from_slice(&text)?;
        let value = reply["value"].take();
        match value.get("error") {
            Some(_) => Err(io::Error::other(value.to_string())),
            None => Ok(value),
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        if !self.session.is_empty() {
            // The browser ends with its session.
            let _ = self.send("DELETE", &format!("/session/{}", self.session), None);
        }
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}
