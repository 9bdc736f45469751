//! A scratch directory for each test, and `ovsdb-tool` run inside it.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::Dir;

/// Our tool.
pub(crate) const OURS: &str = env!("CARGO_BIN_EXE_ovsdb-tool");

/// A scratch directory.
pub(crate) struct Sandbox(Dir);

/// The outcome of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) status: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Sandbox {
    pub(crate) fn new() -> Sandbox {
        Sandbox(Dir::new())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.file(name)
    }

    pub(crate) fn write(&self, name: &str, contents: &[u8]) {
        std::fs::write(self.path(name), contents).expect("a writable directory");
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).expect("a readable file")
    }

    /// Names of all files, sorted.
    pub(crate) fn list(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.0.path()).expect("a directory");
        let mut names: Vec<String> = entries
            .map(|entry| {
                entry
                    .expect("an entry")
                    .file_name()
                    .to_string_lossy()
                    .into_owned()
            })
            .collect();
        names.sort();
        names
    }

    /// Runs our tool.
    pub(crate) fn run(&self, args: &[&str]) -> Run {
        self.run_tool(Path::new(OURS), args, None)
    }

    /// Runs a tool with `input` on its standard input, through a pipe.
    pub(crate) fn run_tool(&self, tool: &Path, args: &[&str], input: Option<&[u8]>) -> Run {
        let mut child = Command::new(tool)
            // Messages about options begin with the name by which the program was called.
            .arg0("ovsdb-tool")
            .args(args)
            .current_dir(self.0.path())
            .env("OVS_DBDIR", "/nonexistent/dbdir")
            .env("OVS_PKGDATADIR", "/nonexistent/pkgdatadir")
            .stdin(if input.is_some() {
                Stdio::piped()
            } else {
                Stdio::null()
            })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("a program");
        if let (Some(bytes), Some(mut stdin)) = (input, child.stdin.take()) {
            std::io::Write::write_all(&mut stdin, bytes).expect("a reading child");
        }
        let output = child.wait_with_output().expect("an end");
        Run {
            status: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Runs our tool, which must print nothing on standard error and exit with status 0. Returns
    /// its output.
    pub(crate) fn ok(&self, args: &[&str]) -> String {
        let run = self.run(args);
        assert_eq!((run.status, run.stderr.as_str()), (Some(0), ""), "{args:?}");
        run.stdout
    }

    /// Runs our tool, which must print nothing on standard output and exit with status 1. Returns
    /// its message.
    pub(crate) fn fails(&self, args: &[&str]) -> String {
        let run = self.run(args);
        assert_eq!((run.status, run.stdout.as_str()), (Some(1), ""), "{args:?}");
        let message = run
            .stderr
            .strip_prefix("ovsdb-tool: ")
            .expect("the program's name");
        message.trim_end_matches('\n').to_owned()
    }
}

/// A record of a standalone file.
pub(crate) fn record(body: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let mut record = corvid_log::Record::begin(&mut out, corvid_log::Magic::Standalone);
    record.body().extend_from_slice(body.as_bytes());
    record.finish();
    out
}

/// A schema with a column of every kind.
pub(crate) const SCHEMA: &str = r#"{"name":"Demo","version":"1.2.3","cksum":"111 222","tables":{
    "T":{"columns":{
        "name":{"type":"string"},"n":{"type":"integer"},"r":{"type":"real"},"b":{"type":"boolean"},
        "u":{"type":{"key":"uuid","min":0,"max":"unlimited"}},
        "set":{"type":{"key":"string","min":0,"max":"unlimited"}},
        "two":{"type":{"key":"integer","max":2}},
        "m":{"type":{"key":"string","value":"string","min":0,"max":"unlimited"}},
        "om":{"type":{"key":"string","value":"string","min":0,"max":1}},
        "os":{"type":{"key":"string","min":0}},
        "eph":{"type":"integer","ephemeral":true}}},
    "U":{"columns":{"x":{"type":"integer"}},"indexes":[["x"]]}}}"#;

/// A sandbox with `demo.schema` and the database `a.db` made from it.
pub(crate) fn with_database() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("demo.schema", SCHEMA.as_bytes());
    assert_eq!(sandbox.ok(&["create", "a.db", "demo.schema"]), "");
    sandbox
}

/// A record of a clustered file.
pub(crate) fn cluster_record(body: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let mut record = corvid_log::Record::begin(&mut out, corvid_log::Magic::Clustered);
    record.body().extend_from_slice(body.as_bytes());
    record.finish();
    out
}
