//! A cluster under test: several members on this machine, each a process with a file of its own, which talk to each other over loopback.
//!
//! The program `ovsdb-tool` that belongs to the server makes the files; the members join while they run. The first member of the list leads
//! when the cluster is complete.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::database_file;
use crate::error::Error;
use crate::server::Server;
use crate::target::{Program, Target};
use crate::tool;
use crate::workload::Run;

/// The number of members.
pub(crate) const MEMBERS: usize = 3;
/// Time limit for a member to join, and for a cluster to have a leader.
const LIMIT: Duration = Duration::from_secs(120);
/// The interval between questions for the state of a member.
const ASK_EVERY: Duration = Duration::from_millis(5);

/// Starts the members of a cluster with the contents of the prepared file, the leader first. Only a program can have several.
pub(crate) fn start(run: &Run<'_>) -> Result<Vec<Server>, Error> {
    let Target::Program(program) = run.target else {
        return Err(Error::NeedsProgram);
    };
    let name = database_file::schema_of(run.file)?.name.to_string();
    let tool = tool::beside(&program.path, "ovsdb-tool")?;
    let addresses = addresses()?;
    let mut members = Vec::with_capacity(MEMBERS);
    for (number, address) in addresses.iter().enumerate() {
        let member = open(run, program, |file| {
            let mut make = Command::new(&tool);
            if number == 0 {
                make.arg("create-cluster").args([file, run.file]);
                make.arg(address);
            } else {
                make.arg("join-cluster").arg(file);
                make.args([&name, address, &addresses[0]]);
            }
            execute(&mut make)
        })?;
        members.push(member);
        await_status(&members[number..], &name, |status| {
            status.contains("Status: cluster member") && !status.contains("Leader: unknown")
        })?;
    }
    lead_first(&mut members, &name)?;
    Ok(members)
}

/// Puts the leader at the beginning of the list, as soon as there is one.
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

/// Waits until one of the members has such a status. Returns its number.
fn await_status(
    members: &[Server],
    name: &str,
    is_wanted: impl Fn(&str) -> bool,
) -> Result<usize, Error> {
    let began = Instant::now();
    loop {
        for (number, member) in members.iter().enumerate() {
            let status = member.control("cluster/status", &[name])?;
            if is_wanted(&status) {
                return Ok(number);
            }
            if began.elapsed() > LIMIT {
                return Err(Error::Silent(LIMIT.as_secs()));
            }
        }
        std::thread::sleep(ASK_EVERY);
    }
}

/// Addresses with ports that are free now.
fn addresses() -> Result<Vec<String>, Error> {
    let listeners: Result<Vec<TcpListener>, _> = (0..MEMBERS)
        .map(|_| TcpListener::bind(("127.0.0.1", 0)))
        .collect();
    let addresses: Result<Vec<String>, _> = listeners?
        .iter()
        .map(|listener| Ok(format!("tcp:{}", listener.local_addr()?)))
        .collect();
    addresses
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
