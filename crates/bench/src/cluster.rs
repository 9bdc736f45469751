//! A cluster under test: several members on this machine. Each is a process with its own file, and
//! they talk to each other over loopback.
//!
//! The program `ovsdb-tool` that belongs to the server makes the files. The members join while they
//! run. Once the cluster is complete, the first member of the list is the leader.

use std::io;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::database_file;
use crate::error::Error;
use crate::requests;
use crate::server::Server;
use crate::target::{Program, Target};
use crate::tool;
use crate::workload::Run;

/// The number of members.
pub(crate) const MEMBERS: usize = 3;
/// The time limit for a member to join, and for a cluster to elect a leader.
const LIMIT: Duration = Duration::from_secs(600);
/// The interval at which a member is asked for its state.
const ASK_EVERY: Duration = Duration::from_millis(5);

/// Starts the members of a cluster with the contents of the prepared file. The leader is first in
/// the list. Only a server that is a program can have several members.
pub(crate) fn start(run: &Run<'_>) -> Result<Vec<Server>, Error> {
    let program = program(run)?;
    let name = name(run)?;
    let tool = tool::beside(&program.path, "ovsdb-tool")?;
    let address = free_address()?;
    let first = open(run, program, |file| {
        let mut make = Command::new(&tool);
        make.arg("create-cluster").args([file, run.file]);
        make.arg(&address);
        execute(&mut make)
    })?;
    let mut members = vec![first];
    await_status(&members, &name, is_member)?;
    while members.len() < MEMBERS {
        let member = join(run, &members)?;
        members.push(member);
    }
    lead_first(&mut members, &name)?;
    Ok(members)
}

/// Starts one more member and waits until it has joined.
pub(crate) fn join(run: &Run<'_>, members: &[Server]) -> Result<Server, Error> {
    let program = program(run)?;
    let name = name(run)?;
    let tool = tool::beside(&program.path, "ovsdb-tool")?;
    let remote = field(&status(&members[0], &name)?, "Address: ");
    let address = free_address()?;
    let member = open(run, program, |file| {
        let mut make = Command::new(&tool);
        make.arg("join-cluster").arg(file);
        make.args([&name, &address, &remote]);
        execute(&mut make)
    })?;
    await_status(std::slice::from_ref(&member), &name, is_member)?;
    await_served(&member, &name)?;
    Ok(member)
}

/// Returns the name of the database in the prepared file.
pub(crate) fn name(run: &Run<'_>) -> Result<String, Error> {
    Ok(database_file::schema_of(run.file)?.name.to_string())
}

/// Returns the text of `cluster/status`.
pub(crate) fn status(member: &Server, name: &str) -> Result<String, Error> {
    member.control("cluster/status", &[name])
}

/// Returns the current term of a member.
pub(crate) fn term(member: &Server, name: &str) -> Result<f64, Error> {
    let term = field(&status(member, name)?, "Term: ");
    Ok(term.parse().unwrap_or(f64::NAN))
}

/// Returns the rest of the line of `cluster/status` that begins with `title`.
fn field(status: &str, title: &str) -> String {
    let mut lines = status.lines();
    let found = lines.find_map(|line| line.strip_prefix(title));
    found.unwrap_or_default().to_owned()
}

/// Whether the error means that a socket does not exist yet, or that nobody listens on it yet.
fn is_early(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
    )
}

fn is_member(status: &str) -> bool {
    status.contains("Status: cluster member") && !status.contains("Leader: unknown")
}

fn program<'a>(run: &Run<'a>) -> Result<&'a Program, Error> {
    match run.target {
        Target::Program(program) => Ok(program),
        Target::Address(_) => Err(Error::NeedsProgram),
    }
}

/// Waits until one of the members is the leader, and moves it to the beginning of the list.
pub(crate) fn lead_first(members: &mut [Server], name: &str) -> Result<(), Error> {
    let leader = await_status(members, name, |status| status.contains("Role: leader"))?;
    members.swap(0, leader);
    Ok(())
}

fn open(
    run: &Run<'_>,
    program: &Program,
    make: impl FnOnce(&Path) -> Result<(), Error>,
) -> Result<Server, Error> {
    Server::open_made(program, run.cpu_totals, make)
}

/// Waits until one of the members has a status that is wanted. Returns its number.
fn await_status(
    members: &[Server],
    name: &str,
    is_wanted: impl Fn(&str) -> bool,
) -> Result<usize, Error> {
    let began = Instant::now();
    loop {
        for (number, member) in members.iter().enumerate() {
            match status(member, name) {
                Ok(status) if is_wanted(&status) => return Ok(number),
                // The server may create the control socket after the socket for clients.
                Err(Error::Io(error)) if !is_early(&error) => {
                    return Err(error.into());
                }
                Ok(_) | Err(Error::Io(_)) => {}
                Err(error) => return Err(error),
            }
            if began.elapsed() > LIMIT {
                return Err(Error::Silent(LIMIT.as_secs()));
            }
        }
        std::thread::sleep(ASK_EVERY);
    }
}

/// Waits until a new member has loaded its contents and answers transactions.
fn await_served(member: &Server, name: &str) -> Result<(), Error> {
    let began = Instant::now();
    let comment = format!(
        r#"{{"method":"transact","params":["{name}",{{"op":"comment","comment":"x"}}],"id":0}}"#
    );
    while requests::is_error(&member.address().request(&comment)?.to_bytes()) {
        if began.elapsed() > LIMIT {
            return Err(Error::Silent(LIMIT.as_secs()));
        }
        std::thread::sleep(ASK_EVERY);
    }
    Ok(())
}

/// Returns an address with a port that is currently free.
fn free_address() -> Result<String, Error> {
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    Ok(format!("tcp:{}", listener.local_addr()?))
}

fn execute(command: &mut Command) -> Result<(), Error> {
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|source| Error::Start {
        program: command.get_program().into(),
        source,
    })?;
    if output.status.success() {
        return Ok(());
    }
    let problem = String::from_utf8_lossy(&output.stderr);
    Err(Error::Refused(problem.trim_end().to_owned()))
}
