//! A cluster of server processes on one machine. Each has its own folder, and they are connected by
//! Unix sockets or over TCP.
//!
//! Invariant: all processes end when the [`Cluster`] is dropped. The files of members are made with
//! our `ovsdb-tool`, or written with a header that names all members, as the compacted files of a
//! cluster have.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use sha1::{Digest, Sha1};

use crate::binary;
use crate::client::Client;
use crate::network::Network;
use crate::peer;
use crate::process::Process;
use crate::server::Implementation;

/// The election timer after [`Cluster::slow_elections`].
pub const LONG_TIMER: Duration = Duration::from_secs(16);

/// The time limit for any event in a cluster on a busy machine.
pub const LIMIT: Duration = Duration::from_secs(60);

/// The members, running or not.
#[derive(Debug)]
pub struct Cluster {
    members: Vec<Process>,
    name: String,
    program: PathBuf,
    tool: PathBuf,
    /// The words before the command of each member, by its number.
    prefixes: Vec<Vec<String>>,
    /// A member and the folder of its file. The log and the sockets of the member are not in this
    /// folder.
    disk: Option<(usize, PathBuf)>,
    /// Further options of all members.
    options: Vec<OsString>,
    /// Removed after the processes, which are dropped first.
    folder: tempfile::TempDir,
}

impl Cluster {
    /// Makes a cluster of one member with `ovsdb-tool create-cluster`. The member is not started.
    ///
    /// # Errors
    ///
    /// An error of the operating system or of the tool.
    pub fn created(schema: &Value) -> io::Result<Cluster> {
        Cluster::created_by(Implementation::Corvid, schema)
    }

    /// Makes a cluster of `count` members, which have joined one after another. All of them are
    /// running.
    ///
    /// # Errors
    ///
    /// If a program is missing, the operating system or a tool reports an error, or a member does
    /// not join in time.
    pub fn joined(
        implementation: Implementation,
        count: usize,
        schema: &Value,
    ) -> io::Result<Cluster> {
        let mut cluster = Cluster::created_by(implementation, schema)?;
        for number in 0..count {
            if number > 0 {
                cluster.add_joining()?;
            }
            cluster.members[number].start()?;
            let is_member = |status: String| {
                status.contains("Status: cluster member") && !status.contains("Leader: unknown")
            };
            cluster.wait_until("a member joins", || {
                cluster.status(number).is_ok_and(is_member)
            })?;
        }
        Ok(cluster)
    }

    fn created_by(implementation: Implementation, schema: &Value) -> io::Result<Cluster> {
        let mut cluster = Cluster::empty_of(implementation, schema)?;
        let schema_file = cluster.folder.path().join("schema");
        fs::write(&schema_file, schema.to_string())?;
        let file = cluster.add_folder(0)?;
        let mut command = Command::new(&cluster.tool);
        command
            .arg("create-cluster")
            .args([&file, &schema_file])
            .arg(cluster.address(0));
        peer::run(&mut command)?;
        cluster.add(&file);
        Ok(cluster)
    }

    /// Makes a cluster of `count` members whose files name all of them. The members are not
    /// started.
    ///
    /// # Errors
    ///
    /// An error of the operating system.
    pub fn of(count: usize, schema: &Value) -> io::Result<Cluster> {
        let cluster = Cluster::empty(schema)?;
        let addresses: Vec<String> = (0..count).map(|number| cluster.address(number)).collect();
        cluster.with_members(&addresses, schema)
    }

    /// Like [`Cluster::of`], but the members are connected over TCP.
    ///
    /// # Errors
    ///
    /// An error of the operating system.
    pub fn over_tcp(count: usize, schema: &Value) -> io::Result<Cluster> {
        Cluster::over("tcp", "127.0.0.1", count, &[], schema)
    }

    /// Like [`Cluster::of`], but the members are connected over `tcp` or `ssl`, at an address of
    /// this machine. All members have the given further options.
    ///
    /// # Errors
    ///
    /// An error of the operating system.
    pub fn over(
        scheme: &str,
        host: &str,
        count: usize,
        options: &[OsString],
        schema: &Value,
    ) -> io::Result<Cluster> {
        // All ports are held until the last one is known, so that they differ.
        let ports = (0..count).map(|_| TcpListener::bind(format!("{host}:0")));
        let ports: Vec<TcpListener> = ports.collect::<io::Result<_>>()?;
        let addresses = ports
            .iter()
            .map(|port| Ok(format!("{scheme}:{}", port.local_addr()?)));
        let addresses: Vec<String> = addresses.collect::<io::Result<_>>()?;
        drop(ports);
        let mut cluster = Cluster::empty(schema)?;
        cluster.options = options.to_vec();
        cluster.with_members(&addresses, schema)
    }

    /// Like [`Cluster::of`], but each member is on its own host of `network`.
    ///
    /// # Errors
    ///
    /// An error of the operating system.
    pub fn in_network(network: &Network, schema: &Value) -> io::Result<Cluster> {
        let mut cluster = Cluster::empty(schema)?;
        let hosts = 0..network.size();
        let prefix = |host| network.prefix(host).map(str::to_owned).to_vec();
        cluster.prefixes = hosts.clone().map(prefix).collect();
        let addresses = hosts.map(|host| format!("tcp:{}:6643", network.address(host)));
        let addresses: Vec<String> = addresses.collect();
        cluster.with_members(&addresses, schema)
    }

    /// Like [`Cluster::of`], but the file of member `number` is in `folder`.
    ///
    /// # Errors
    ///
    /// An error of the operating system.
    pub fn with_disk(
        count: usize,
        number: usize,
        folder: &Path,
        schema: &Value,
    ) -> io::Result<Cluster> {
        let mut cluster = Cluster::empty(schema)?;
        cluster.disk = Some((number, folder.to_owned()));
        let addresses: Vec<String> = (0..count).map(|number| cluster.address(number)).collect();
        cluster.with_members(&addresses, schema)
    }

    fn with_members(self, addresses: &[String], schema: &Value) -> io::Result<Cluster> {
        let mut cluster = self;
        let schema = without_ephemeral(schema);
        let servers: Map<String, Value> = addresses
            .iter()
            .enumerate()
            .map(|(number, address)| (sid(number), address.clone().into()))
            .collect();
        for (number, address) in addresses.iter().enumerate() {
            let file = cluster.add_folder(number)?;
            let header = json!({
                "server_id": sid(number),
                "cluster_id": "5a0c1e2d-0000-4000-8000-00000000c1d0",
                "name": cluster.name,
                "local_address": address,
                "prev_servers": servers,
                "prev_index": 1,
                "prev_term": 1,
                "prev_eid": "5a0c1e2d-0000-4000-8000-00000000e1d0",
                "prev_data": [schema, {}],
            });
            let body = format!("{header}\n");
            let hash: String = Sha1::digest(body.as_bytes())
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect();
            fs::write(
                &file,
                format!("OVSDB CLUSTER {} {hash}\n{body}", body.len()),
            )?;
            cluster.add(&file);
        }
        Ok(cluster)
    }

    /// Adds a server that will join through the first member. Its file is made by
    /// `ovsdb-tool join-cluster`, and the server is not started. Returns its number.
    ///
    /// # Errors
    ///
    /// An error of the operating system or of the tool.
    pub fn add_joining(&mut self) -> io::Result<usize> {
        let tool = self.tool.clone();
        self.add_joining_by(&tool)
    }

    /// Like [`Cluster::add_joining`], but with the given implementation: its tool makes the file,
    /// and its server will serve the file.
    ///
    /// # Errors
    ///
    /// The errors of [`Cluster::add_joining`], and if a program is missing.
    pub fn add_joining_of(&mut self, implementation: Implementation) -> io::Result<usize> {
        let (program, tool) = programs(implementation)?;
        let number = self.add_joining_by(&tool)?;
        self.members[number].replace_program(&program);
        Ok(number)
    }

    fn add_joining_by(&mut self, tool: &Path) -> io::Result<usize> {
        let number = self.members.len();
        let file = self.add_folder(number)?;
        let (own, remote) = (self.address(number), self.address(0));
        let mut command = Command::new(tool);
        command.arg("join-cluster").arg(&file);
        peer::run(command.args([&self.name, &own, &remote]))?;
        self.add(&file);
        Ok(number)
    }

    fn empty(schema: &Value) -> io::Result<Cluster> {
        Cluster::empty_of(Implementation::Corvid, schema)
    }

    fn empty_of(implementation: Implementation, schema: &Value) -> io::Result<Cluster> {
        let (program, tool) = programs(implementation)?;
        Ok(Cluster {
            members: Vec::new(),
            name: schema["name"].as_str().unwrap_or_default().to_owned(),
            program,
            tool,
            prefixes: Vec::new(),
            disk: None,
            options: Vec::new(),
            folder: tempfile::tempdir()?,
        })
    }

    fn add_folder(&self, number: usize) -> io::Result<PathBuf> {
        fs::create_dir(self.folder_of(number))?;
        Ok(self.file(number))
    }

    fn add(&mut self, file: &Path) {
        let number = self.members.len();
        self.members.push(self.process(number, file.to_owned()));
    }

    fn process(&self, number: usize, file: PathBuf) -> Process {
        let mut arguments = self.options.clone();
        arguments.push(file.into());
        let process = Process::new(&self.program, &self.folder_of(number), &arguments);
        let prefix = self.prefixes.get(number).cloned().unwrap_or_default();
        process.by_way_of(&prefix)
    }

    fn folder_of(&self, number: usize) -> PathBuf {
        self.folder.path().join(format!("m{number}"))
    }

    /// Returns the address of a member.
    #[must_use]
    pub fn address(&self, number: usize) -> String {
        let socket = self.folder.path().join(format!("s{number}.raft"));
        format!("unix:{}", socket.display())
    }

    /// Returns the path of a member's file.
    #[must_use]
    pub fn file(&self, number: usize) -> PathBuf {
        let folder = match &self.disk {
            Some((on_disk, folder)) if *on_disk == number => folder.clone(),
            _ => self.folder_of(number),
        };
        folder.join(format!("{}.db", self.name))
    }

    /// Makes the given implementation run on the same files from the next start on, with these
    /// further options.
    ///
    /// # Errors
    ///
    /// If a program is missing.
    pub fn swap(&mut self, implementation: Implementation, options: &[&str]) -> io::Result<()> {
        (self.program, self.tool) = programs(implementation)?;
        self.options = options.iter().map(OsString::from).collect();
        for number in 0..self.members.len() {
            self.members[number] = self.process(number, self.file(number));
        }
        Ok(())
    }

    /// Starts all members and waits until they listen.
    ///
    /// # Errors
    ///
    /// The errors of [`Process::start`].
    pub fn start(&mut self) -> io::Result<()> {
        self.members.iter_mut().try_for_each(Process::launch)?;
        self.members
            .iter_mut()
            .try_for_each(Process::wait_until_listening)
    }

    /// Removes the last member, which has left the cluster, from this list. Its process ends.
    pub fn remove_last(&mut self) {
        self.members.pop();
    }

    /// Returns a member's process.
    pub fn member(&mut self, number: usize) -> &mut Process {
        &mut self.members[number]
    }

    /// Returns the processes of all members.
    #[must_use]
    pub fn members(&self) -> &[Process] {
        &self.members
    }

    /// Stops a member's process, or lets it continue. See [`Process::pause`].
    ///
    /// # Errors
    ///
    /// The errors of [`Process::pause`].
    pub fn pause(&mut self, number: usize, is_paused: bool) -> io::Result<()> {
        self.members[number].pause(is_paused)
    }

    /// Returns the logs of all members, for reports of failures.
    #[must_use]
    pub fn said(&self) -> String {
        let said = |(number, member): (usize, &Process)| format!("--- {number}\n{}", member.said());
        self.members.iter().enumerate().map(said).collect()
    }

    /// Keeps the files of a failed test. Returns their folder.
    #[must_use]
    pub fn keep(self) -> PathBuf {
        self.folder.keep()
    }

    /// Opens a connection to a member.
    ///
    /// # Errors
    ///
    /// An error of the operating system.
    pub fn connect(&self, number: usize) -> io::Result<Client> {
        self.members[number].connect()
    }

    /// Runs a control command at a member. Returns the result, or the error of the reply as an
    /// error.
    ///
    /// # Errors
    ///
    /// The errors of [`Process::control`], and the error of the command.
    pub fn control(&self, number: usize, command: &str, arguments: &[&str]) -> io::Result<String> {
        let arguments: Vec<String> = arguments.iter().map(|text| (*text).to_owned()).collect();
        let reply = self.members[number].control(command, &arguments)?;
        match reply["error"].as_str() {
            Some(error) => Err(io::Error::other(error.to_owned())),
            None => Ok(reply["result"].as_str().unwrap_or_default().to_owned()),
        }
    }

    /// Sets the election timer of a database, at most twice the present one, at the leader. Waits
    /// until every member has it.
    ///
    /// # Errors
    ///
    /// The leader refuses it, or a member does not get it in time.
    pub fn set_election_timer(&self, leader: usize, database: &str, ms: u64) -> io::Result<()> {
        let arguments = [database, &ms.to_string()];
        self.control(leader, "cluster/change-election-timer", &arguments)?;
        let line = format!("\nElection timer: {ms}\n");
        let holds = || {
            let has = |member| {
                self.status(member)
                    .is_ok_and(|status| status.contains(&line))
            };
            (0..self.members.len()).all(has)
        };
        self.wait_until("every member has the timer", holds)
    }

    /// Makes elections slow: one that begins without a transfer of the leadership begins after
    /// [`LONG_TIMER`]. So a client that waits for less has not waited for an election, however busy
    /// the machine is.
    ///
    /// # Errors
    ///
    /// The errors of [`Cluster::set_election_timer`].
    pub fn slow_elections(&self, leader: usize, database: &str) -> io::Result<()> {
        for ms in [2_000, 4_000, 8_000, 16_000] {
            self.set_election_timer(leader, database, ms)?;
        }
        Ok(())
    }

    /// Returns the text of `cluster/status` of a member.
    ///
    /// # Errors
    ///
    /// The errors of [`Cluster::control`].
    pub fn status(&self, number: usize) -> io::Result<String> {
        self.control(number, "cluster/status", &[&self.name])
    }

    /// Returns the servers that a member knows, as the lines of `cluster/status` name them, without
    /// connections, indexes and times.
    ///
    /// # Errors
    ///
    /// The errors of [`Cluster::control`].
    pub fn servers(&self, number: usize) -> io::Result<Vec<String>> {
        let status = self.status(number)?;
        let named = |line: &str| {
            let (name, rest) = line.trim().split_once(" at ")?;
            let address = rest.split_whitespace().next()?;
            Some(format!("{name} at {address}"))
        };
        Ok(status.lines().filter_map(named).collect())
    }

    /// Returns the address at which the other members reach a member, from its `cluster/status`.
    ///
    /// # Errors
    ///
    /// The errors of [`Cluster::control`].
    pub fn peer_address(&self, number: usize) -> io::Result<String> {
        let status = self.status(number)?;
        let mut lines = status.lines();
        let address = lines.find_map(|line| line.strip_prefix("Address: "));
        address.map(str::to_owned).ok_or(io::Error::other(status))
    }

    /// Transfers the leadership to member `to`, and waits until it is the leader.
    ///
    /// # Errors
    ///
    /// The errors of [`Cluster::control`] and [`Cluster::leader_among`].
    pub fn move_leadership(&self, to: usize) -> io::Result<()> {
        let all: Vec<usize> = (0..self.members.len()).collect();
        let (leader, _) = self.leader_among(&all)?;
        if leader != to {
            let address = self.peer_address(to)?;
            let arguments = [self.name.as_str(), &address];
            self.control(leader, "cluster/transfer-leadership", &arguments)?;
            self.leader_among(&[to])?;
        }
        Ok(())
    }

    /// Waits until one of these members is the leader according to `_Server`. Returns its number
    /// and how long this took.
    ///
    /// # Errors
    ///
    /// If none becomes the leader in time. The text contains their logs.
    pub fn leader_among(&self, members: &[usize]) -> io::Result<(usize, Duration)> {
        let began = Instant::now();
        while began.elapsed() < LIMIT {
            for number in members {
                if self.leads(*number).unwrap_or(false) {
                    return Ok((*number, began.elapsed()));
                }
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let logs = members.iter().map(|number| {
            let status = self.status(*number);
            format!("{number}: {status:?}\n{}\n", self.members[*number].said())
        });
        let logs: String = logs.collect();
        Err(io::Error::other(format!("no leader:\n{logs}")))
    }

    /// Whether a member is the leader according to its row in `_Server`.
    ///
    /// # Errors
    ///
    /// The errors of [`Cluster::row`].
    pub fn leads(&self, number: usize) -> io::Result<bool> {
        Ok(self.row(number)?["leader"] == json!(true))
    }

    /// Returns the row of the database in a member's `_Server`.
    ///
    /// # Errors
    ///
    /// The errors of [`Client::call`].
    pub fn row(&self, number: usize) -> io::Result<Value> {
        let select = json!({"op": "select", "table": "Database",
            "where": [["name", "==", self.name]]});
        let reply = self
            .connect(number)?
            .call("transact", &json!(["_Server", select]))?;
        Ok(reply["result"][0]["rows"][0].clone())
    }

    /// Waits until a condition is true.
    ///
    /// # Errors
    ///
    /// If it does not become true in time. The text contains the log of each member.
    pub fn wait_until(&self, what: &str, mut holds: impl FnMut() -> bool) -> io::Result<()> {
        let began = Instant::now();
        while began.elapsed() < LIMIT {
            if holds() {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Err(io::Error::other(format!(
            "not in time: {what}\n{}",
            self.said()
        )))
    }
}

/// Returns the schema as `create-cluster` writes it: a clustered database has no ephemeral columns.
#[must_use]
pub fn without_ephemeral(schema: &Value) -> Value {
    let mut schema = schema.clone();
    let tables = schema["tables"].as_object_mut().into_iter().flatten();
    for (_, table) in tables {
        let columns = table["columns"].as_object_mut().into_iter().flatten();
        for (_, column) in columns {
            if let Some(column) = column.as_object_mut() {
                column.remove("ephemeral");
            }
        }
    }
    schema
}

/// Returns the paths of the server and the offline tool.
fn programs(implementation: Implementation) -> io::Result<(PathBuf, PathBuf)> {
    let tool = match implementation {
        Implementation::Corvid => Some(binary::bin("ovsdb-tool")),
        Implementation::Reference => binary::reference("ovsdb-tool"),
    };
    let tool = tool.ok_or_else(|| io::Error::other("no ovsdb-tool of the reference"))?;
    Ok((implementation.server_binary()?, tool))
}

fn sid(number: usize) -> String {
    format!("{:04x}0000-0000-4000-8000-0000000051d0", 0xa1 + number)
}
