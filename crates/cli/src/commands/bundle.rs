//! `bundle`: one archive for a bug report.
//!
//! It has what the other commands show, the answers of the control sockets, the metrics, schemas,
//! numbers of rows and ends of logs; rows themselves only if they are asked for. Everything but the
//! schemas goes through [`Remover`]. Parts that cannot be read are listed, not fatal.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use corvid_json::Value;
use corvid_net::tls::Credentials;
use corvid_net::{clock, dirs, errno};
use corvid_shell::{date, output, program};
use zstd::stream::write::Encoder;

use super::doctor as doctor_command;
use super::servers as servers_command;
use super::servers::{missing, refuse_at, remark, report_notes};
use crate::doctor::{self, Extra, Facts, gather};
use crate::failure::Failure;
use crate::fleet::Look;
use crate::grammar::chain::Invocation;
use crate::secrets::Remover;
use crate::server::Server;
use crate::settings::Settings;
use corvid_tools::status::document;
use corvid_tools::status::reference::object;
use corvid_tools::status::source::Control;

/// The end of a log that is taken, bytes.
const LOG_BYTES: u64 = 1 << 20;
/// Limit on an answer with rows, bytes.
const ANSWER_BYTES_MAX: usize = 1 << 30;
/// Limit on the time of the questions about one database, ms.
const DATABASE_MS: u64 = 60_000;
/// Commands of the control socket whose answers are taken; `DB` stands for each database.
const COMMANDS: [&str; 13] = [
    "version",
    "ovsdb-server/list-settings",
    "ovsdb-server/list-remotes",
    "ovsdb-server/list-sessions",
    "ovsdb-server/list-dbs",
    "ovsdb-server/sync-status",
    "ovsdb-server/perf-counters-show",
    "ovsdb-server/get-db-storage-status DB",
    "ovsdb-server/history DB",
    "cluster/status DB",
    "memory/show",
    "coverage/show",
    "vlog/list",
];
/// Members that may quote rows.
const QUOTING: [&str; 1] = ["comment"];

const README: &str = "\
A bundle of `corvid bundle` for a bug report. See docs/operate/servers-at-a-glance.md of Corvid.

servers.json, doctor.json   what `corvid servers` and `corvid doctor` print
server-N/                   one server
  about.json                its address, and its databases as clients see them
  status.json               its status
  control/                  answers of its control socket
  metrics.txt               its page /metrics
  schema-DB.json            schemas
  rows-DB.json              numbers of rows
  contents-DB.json          rows, with --with-contents only
  log.txt                   the end of its log
missing.txt                 what could not be read, and why
";

pub(super) fn bundle(invocation: &Invocation, settings: &Settings) -> Result<(), Failure> {
    refuse_at(invocation, settings)?;
    let name = invocation
        .args
        .first()
        .cloned()
        .unwrap_or_else(default_name);
    let facts = gather::facts(invocation, &[], settings)?;
    report_notes(&facts.fleet);
    if facts
        .fleet
        .looks
        .iter()
        .all(|look| look.failure.is_some() && look.status.is_none())
    {
        let reason = facts
            .fleet
            .looks
            .iter()
            .find_map(|look| look.failure.clone());
        return Err(Failure::connection(reason.unwrap_or_default()));
    }
    let failed = |error: io::Error| Failure::no_match(format!("{name}: {}", errno::text(&error)));
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&name)
        .map_err(failed)?;
    let written = Archive::begin(file, invocation.has("--with-contents"), settings.quiet)
        .and_then(|archive| archive.fill(&facts, invocation));
    let count = match written {
        Ok(count) => count,
        Err(error) => {
            // A part of an archive helps nobody.
            let _ = std::fs::remove_file(&name);
            return Err(failed(error));
        }
    };
    if !settings.quiet {
        let rows = match invocation.has("--with-contents") {
            true => "with the contents of rows",
            false => "without the contents of rows",
        };
        output::line(output::part(&format!(
            "{name}: {rows}; {count} values that look like secrets were left out. Look at it before you send it."
        )));
    }
    if let Some(missing) = missing(&facts.fleet) {
        remark(&missing);
    }
    Ok(())
}

/// A name with the time.
fn default_name() -> String {
    let time = date::utc_text(clock::wall_ms());
    let digits: String = time
        .chars()
        .take("2026-01-01 00:00:00".len())
        .map(|letter| match letter {
            ' ' => '-',
            other => other,
        })
        .filter(|letter| *letter != ':')
        .collect();
    format!("corvid-bundle-{digits}.tar.zst")
}

/// The archive that is being written.
struct Archive {
    tar: tar::Builder<Encoder<'static, File>>,
    remover: Remover,
    has_contents: bool,
    is_quiet: bool,
    /// The parts that could not be read.
    missing: Vec<String>,
    time_s: u64,
}

impl Archive {
    fn begin(file: File, has_contents: bool, is_quiet: bool) -> io::Result<Archive> {
        let also: &[&str] = match has_contents {
            true => &[],
            false => &QUOTING,
        };
        Ok(Archive {
            tar: tar::Builder::new(Encoder::new(file, zstd::DEFAULT_COMPRESSION_LEVEL)?),
            remover: Remover::new(also),
            has_contents,
            is_quiet,
            missing: Vec::new(),
            time_s: u64::try_from(clock::wall_ms() / 1000).unwrap_or(0),
        })
    }

    /// Adds everything, and returns the number of secrets.
    fn fill(mut self, facts: &Facts, invocation: &Invocation) -> io::Result<usize> {
        let version = format!(
            "{README}\nWritten by {} {}.\n",
            program::name(),
            env!("CARGO_PKG_VERSION")
        );
        self.add("README.txt", version.as_bytes())?;
        let servers = objects(
            &servers_command::HEADINGS,
            servers_command::rows(&facts.fleet, None),
        );
        self.add_json("servers.json", &servers)?;
        let all = doctor::diagnose(facts);
        let found = doctor_command::rows(&all, &facts.fleet);
        let found = objects(&doctor_command::HEADINGS, found);
        self.add_json("doctor.json", &found)?;
        let given_log = invocation.value("--log");
        let looks = facts.fleet.looks.iter().zip(&facts.extras);
        for (number, (look, extra)) in looks.enumerate() {
            let folder = format!("server-{}", number + 1);
            let log = given_log.filter(|_| number == 0).map(PathBuf::from);
            self.add_server(&folder, look, extra, log, &facts.fleet.credentials)?;
        }
        let missing = self.missing.join("\n");
        if !missing.is_empty() {
            self.add_text("missing.txt", &format!("{missing}\n"))?;
        }
        let count = self.remover.count;
        let file = self.tar.into_inner()?.finish()?;
        file.sync_all()?;
        Ok(count)
    }

    /// Adds a server.
    fn add_server(
        &mut self,
        folder: &str,
        look: &Look,
        extra: &Extra,
        log: Option<PathBuf>,
        credentials: &Arc<Credentials>,
    ) -> io::Result<()> {
        self.add_json(&format!("{folder}/about.json"), &about(look))?;
        if let Some(status) = &look.status {
            self.add_json(&format!("{folder}/status.json"), &status.document)?;
            if let Some(path) = status.source.control() {
                self.add_control(folder, look, path)?;
            }
        }
        match &extra.metrics {
            Some(text) => self.add_text(&format!("{folder}/metrics.txt"), text)?,
            None => self.miss(folder, "metrics.txt", "no page is known"),
        }
        if look.failure.is_none() {
            for seen in &look.seen {
                self.add_database(folder, look, &seen.name, credentials)?;
            }
        }
        match log.or_else(|| log_of(look)) {
            None => self.miss(folder, "log.txt", "the log is not known: --log=FILE"),
            Some(path) => match end_of(&path) {
                Ok(text) => self.add_text(&format!("{folder}/log.txt"), &text)?,
                Err(error) => {
                    let reason = format!("{}: {}", path.display(), errno::text(&error));
                    self.miss(folder, "log.txt", &reason);
                }
            },
        }
        Ok(())
    }

    /// Adds the answers of a control socket.
    fn add_control(&mut self, folder: &str, look: &Look, path: &Path) -> io::Result<()> {
        for command in COMMANDS {
            let (command, names) = match command.strip_suffix(" DB") {
                None => (command, vec![None]),
                Some(command) => (command, look.names().into_iter().map(Some).collect()),
            };
            for name in names {
                let args: Vec<&str> = name.iter().map(String::as_str).collect();
                let base = command
                    .trim_start_matches("ovsdb-server/")
                    .replace('/', "-");
                let part = match &name {
                    None => format!("control/{base}.txt"),
                    Some(name) => format!("control/{base}-{}.txt", file_name(name)),
                };
                // Each has its own time limit.
                let answer = Control::open(path).and_then(|mut it| it.call(command, &args));
                match answer {
                    Ok(Ok(text)) => self.add_text(&format!("{folder}/{part}"), &text)?,
                    // A database that is in no cluster, a server that lacks the command.
                    Ok(Err(reason)) => self.miss(folder, &part, reason.trim_end()),
                    Err(error) => self.miss(folder, &part, &errno::text(&error)),
                }
            }
        }
        Ok(())
    }

    /// Adds the schema of a database, the numbers of its rows and, if asked for, the rows.
    fn add_database(
        &mut self,
        folder: &str,
        look: &Look,
        name: &str,
        credentials: &Arc<Credentials>,
    ) -> io::Result<()> {
        let file = file_name(name);
        let deadline_ms = clock::mono_ms() + DATABASE_MS;
        let connected = Server::connect_briefly(
            &look.address,
            name,
            credentials,
            ANSWER_BYTES_MAX,
            deadline_ms,
        );
        let schema = connected.and_then(|mut server| {
            let schema = server.schema_json()?;
            Ok((server, schema))
        });
        let (mut server, schema) = match schema {
            Ok(both) => both,
            Err(failure) => {
                self.miss(folder, &format!("schema-{file}.json"), &failure.to_string());
                return Ok(());
            }
        };
        // Names in a schema are not secret.
        let text = pretty(&schema);
        self.add(&format!("{folder}/schema-{file}.json"), &text)?;
        let told = look
            .database(name)
            .and_then(|it| document::list(it, "tables"));
        let mut counts: Vec<(String, Value)> = Vec::new();
        let mut contents: Vec<(String, Value)> = Vec::new();
        let tables = schema.get("tables").and_then(Value::as_object);
        for table in tables.into_iter().flat_map(|tables| tables.keys()) {
            let table = table.to_string();
            let known = told.and_then(|tables| {
                let mut same = tables.iter();
                let same = same.find(|it| document::text(it, "name") == Some(&table))?;
                document::number(same, "rows")
            });
            if let (Some(count), false) = (known, self.has_contents) {
                counts.push((table, Value::Integer(count)));
                continue;
            }
            match rows_of(&mut server, &table, self.has_contents) {
                Ok(rows) => {
                    let count = i64::try_from(rows.len()).unwrap_or(i64::MAX);
                    counts.push((table.clone(), Value::Integer(count)));
                    if self.has_contents {
                        contents.push((table, Value::Array(rows)));
                    }
                }
                Err(failure) => {
                    let reason = failure.to_string();
                    self.miss(folder, &format!("rows-{file}.json: {table}"), &reason);
                }
            }
        }
        let all = |members: &[(String, Value)]| {
            object(members.iter().map(|(name, it)| (name.as_str(), it.clone())))
        };
        // Names of tables are not secret.
        let text = pretty(&all(&counts));
        self.add(&format!("{folder}/rows-{file}.json"), &text)?;
        if self.has_contents {
            for (_, rows) in &mut contents {
                *rows = self.remover.json(rows);
            }
            let text = pretty(&all(&contents));
            self.add(&format!("{folder}/contents-{file}.json"), &text)?;
        }
        Ok(())
    }

    /// Notes what could not be read.
    fn miss(&mut self, folder: &str, part: &str, reason: &str) {
        self.missing.push(format!("{folder}/{part}: {reason}"));
    }

    /// Adds JSON without its secrets.
    fn add_json(&mut self, path: &str, value: &Value) -> io::Result<()> {
        let text = pretty(&self.remover.json(value));
        self.add(path, &text)
    }

    /// Adds a text without its secrets.
    fn add_text(&mut self, path: &str, text: &str) -> io::Result<()> {
        let text = self.remover.text(text);
        self.add(path, text.as_bytes())
    }

    /// Adds bytes, and says so.
    fn add(&mut self, path: &str, bytes: &[u8]) -> io::Result<()> {
        let mut header = tar::Header::new_gnu();
        let size = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        header.set_size(size);
        header.set_mode(0o600);
        header.set_mtime(self.time_s);
        self.tar.append_data(&mut header, path, bytes)?;
        self.tar.get_mut().flush()?;
        if !self.is_quiet {
            let size = doctor::bytes(i64::try_from(size).unwrap_or(i64::MAX));
            output::report(output::part(&format!("{size:>12}  {path}")));
        }
        Ok(())
    }
}

/// A server as clients see it.
fn about(look: &Look) -> Value {
    let text = |text: Option<&String>| text.map_or(Value::Null, Value::string);
    let flag = |flag: Option<bool>| flag.map_or(Value::Null, Value::Bool);
    let databases = look.seen.iter().map(|seen| {
        object([
            ("name", Value::string(&seen.name)),
            ("model", text(seen.model.as_ref())),
            ("connected", flag(seen.connected)),
            ("leader", flag(seen.leader)),
            ("cid", text(seen.cid.as_ref())),
            ("sid", text(seen.sid.as_ref())),
            ("index", seen.index.map_or(Value::Null, Value::Integer)),
        ])
    });
    let source = look.status.as_ref().map(|status| status.source.to_string());
    object([
        ("address", Value::string(&look.address)),
        ("found", Value::string(format!("{:?}", look.origin))),
        ("failure", text(look.failure.as_ref())),
        ("status_from", text(source.as_ref())),
        ("databases", Value::Array(databases.collect())),
    ])
}

/// The rows of a table, or their UUIDs alone.
fn rows_of(server: &mut Server, table: &str, are_whole: bool) -> Result<Vec<Value>, Failure> {
    let mut select = vec![
        ("op", Value::string("select")),
        ("table", Value::string(table)),
        ("where", Value::Array(Vec::new())),
    ];
    if !are_whole {
        let columns = Value::Array(vec![Value::string("_uuid")]);
        select.push(("columns", columns));
    }
    let results = Server::check(server.execute(vec![object(select)])?)?;
    let rows = results
        .first()
        .and_then(|result| document::list(result, "rows"));
    Ok(rows.unwrap_or_default().to_vec())
}

/// Rows as objects, with `null` for what is not known.
fn objects(headings: &[&str], rows: Vec<Vec<Value>>) -> Value {
    let of = |row: Vec<Value>| object(headings.iter().copied().zip(row));
    Value::Array(rows.into_iter().map(of).collect())
}

fn pretty(value: &Value) -> Vec<u8> {
    let mut text = Vec::new();
    value.write_pretty(&mut text);
    text
}

/// A name of a database as a part of a file's name.
fn file_name(name: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "_-".contains(letter);
    let letters = name.chars();
    letters
        .map(|letter| if is_plain(letter) { letter } else { '_' })
        .collect()
}

/// The log of a server on this machine, by the command line of its process.
fn log_of(look: &Look) -> Option<PathBuf> {
    let status = look.status.as_ref()?;
    status.source.control()?;
    let pid = document::number(&status.document, "server.pid")?;
    let words = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let words = String::from_utf8_lossy(&words).into_owned();
    let option = words
        .split('\0')
        .find_map(|word| word.strip_prefix("--log-file"))?;
    let path = match option.strip_prefix('=') {
        Some(path) => dirs::absolute_under(&dirs::log(), path),
        None => dirs::log().join("ovsdb-server.log"),
    };
    Some(path)
}

/// The last whole lines of a log.
fn end_of(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    let from = length.saturating_sub(LOG_BYTES);
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(LOG_BYTES).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    Ok(match from {
        0 => text,
        _ => text
            .split_once('\n')
            .map_or(String::new(), |(_, rest)| rest.to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_databases_are_no_paths() {
        assert_eq!(file_name("OVN_Northbound"), "OVN_Northbound");
        assert_eq!(file_name("../a b/é"), "___a_b__");
        assert!(default_name().starts_with("corvid-bundle-2"));
        assert!(!default_name().contains([':', ' ']));
    }

    #[test]
    fn the_end_of_a_log_begins_with_a_whole_line() {
        let path = std::env::temp_dir().join(format!("corvid-log-{}", std::process::id()));
        std::fs::write(&path, "a\nb\n").unwrap();
        assert_eq!(end_of(&path).unwrap(), "a\nb\n");
        let line = "x".repeat(99) + "\n";
        std::fs::write(&path, line.repeat(20_000)).unwrap();
        let text = end_of(&path).unwrap();
        assert!(text.starts_with(&line) && text.len() > 1_000_000);
        std::fs::remove_file(&path).unwrap();
        assert!(end_of(&path).is_err());
    }
}
