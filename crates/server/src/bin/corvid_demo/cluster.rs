//! `make cluster`: three members of a clustered example database on this machine, each in its own
//! process. The demo kills the leader while the user watches, and nothing is lost.
//!
//! The members are children of this process. They run until Ctrl-C ends all of them, or until
//! standard input ends if that is a pipe.

use std::fs;
use std::io::{IsTerminal as _, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use corvid_shell::output;

use crate::databases::{ROWS, SCHEMA};
use crate::programs::{about, sibling, tool};
use crate::running;

const MEMBERS: usize = 3;
const DATABASE: &str = "Inventory";

/// The time limit for a member to listen and to take part in the cluster.
const LIMIT: Duration = Duration::from_secs(60);
/// The interval between queries of a member's state.
const ASK_EVERY: Duration = Duration::from_millis(10);

/// A running member.
struct Member {
    number: usize,
    folder: PathBuf,
    child: Child,
}

/// Demonstrates a cluster whose files are in `directory`.
pub(crate) fn run(directory: &Path) -> Result<(), String> {
    for number in 1..=MEMBERS {
        running::refuse(directory, &folder(directory, number))?;
    }
    let mut members = start(directory)?;
    let leader = await_leader(&members)?;
    output::report(format_args!(
        "Corvid serves {DATABASE} on {MEMBERS} members, each a process with a file of its own.\n"
    ));
    for member in &members {
        let role = if member.number == members[leader].number {
            "   leader"
        } else {
            ""
        };
        output::report(format_args!(
            "  member {}  {}{role}",
            member.number,
            member.remote()
        ));
    }
    let remotes: Vec<String> = members.iter().map(Member::remote).collect();
    let remotes = remotes.join(",");

    let first = Site::new("written-before");
    output::report(format_args!(
        "\nThe site {} is written through all members' addresses:",
        first.name
    ));
    let took = first.insert(&remotes)?;
    output::report(format_args!("  done after {} ms", took.as_millis()));

    let killed = members.remove(leader);
    let number = killed.number;
    output::report(format_args!(
        "\nMember {number}, the leader, is killed (kill -9), and another site is written at once:"
    ));
    killed.kill();
    let second = Site::new("written-after");
    let took = second.insert(&remotes)?;
    output::report(format_args!(
        "  done after {} ms, by a new leader",
        took.as_millis()
    ));

    output::report(format_args!(
        "\nMember {number} is started again. It has both sites:"
    ));
    let returned = Member::launch(directory, number)?;
    returned.await_status(|status| !status.contains("Leader: unknown"))?;
    for site in [&first, &second] {
        site.await_at(&returned)?;
        output::report(format_args!("  {}", site.name));
    }
    members.insert(leader, returned);
    introduce(&remotes, &members);
    wait();
    for member in members {
        member.kill();
    }
    Ok(())
}

/// Starts all members; creates their files if they do not exist yet.
fn start(directory: &Path) -> Result<Vec<Member>, String> {
    let is_new = !folder(directory, MEMBERS).join("complete").exists();
    if is_new {
        let schema = directory.join("inventory.ovsschema");
        fs::write(&schema, SCHEMA).map_err(|error| about(&schema, &error))?;
        for number in 1..=MEMBERS {
            let folder = folder(directory, number);
            // Files of an interrupted start.
            let _ = fs::remove_dir_all(&folder);
            fs::create_dir_all(&folder).map_err(|error| about(&folder, &error))?;
        }
    }
    let mut members = Vec::new();
    for number in 1..=MEMBERS {
        if is_new {
            make_file(directory, number)?;
        }
        let member = Member::launch(directory, number)?;
        if is_new {
            member.await_status(|status| status.contains("Status: cluster member"))?;
        }
        members.push(member);
    }
    let complete = folder(directory, MEMBERS).join("complete");
    fs::write(&complete, "").map_err(|error| about(&complete, &error))?;
    Ok(members)
}

/// Creates the file of a member: the first member begins a cluster with the example's rows, the
/// others join it.
fn make_file(directory: &Path, number: usize) -> Result<(), String> {
    let file = folder(directory, number).join("cluster.db");
    // A server is named after the last component of its address.
    let address = |number| {
        let socket = format!("member-{number}.peers");
        let socket = folder(directory, number).join(socket);
        format!("unix:{}", socket.display())
    };
    let program = sibling("ovsdb-tool");
    if number > 1 {
        let mut join = Command::new(&program);
        join.arg("join-cluster").arg(&file).arg(DATABASE);
        tool(join.args([address(number), address(1)]))?;
        return Ok(());
    }
    let standalone = folder(directory, number).join("standalone.db");
    let schema = directory.join("inventory.ovsschema");
    tool(
        Command::new(&program)
            .arg("create")
            .args([&standalone, &schema]),
    )?;
    tool(
        Command::new(&program)
            .arg("transact")
            .arg(&standalone)
            .arg(ROWS),
    )?;
    let mut create = Command::new(&program);
    tool(
        create
            .arg("create-cluster")
            .args([&file, &standalone])
            .arg(address(1)),
    )?;
    Ok(())
}

fn folder(directory: &Path, number: usize) -> PathBuf {
    directory.join(format!("member-{number}"))
}

fn await_leader(members: &[Member]) -> Result<usize, String> {
    let deadline = Instant::now() + LIMIT;
    loop {
        let leads = |member: &Member| {
            let status = member.control("cluster/status").unwrap_or_default();
            status.contains("\nRole: leader\n")
        };
        if let Some(leader) = members.iter().position(leads) {
            return Ok(leader);
        }
        if Instant::now() > deadline {
            return Err(format!("the cluster has no leader after {LIMIT:?}"));
        }
        thread::sleep(ASK_EVERY);
    }
}

impl Member {
    /// Starts the server of a member.
    fn launch(directory: &Path, number: usize) -> Result<Member, String> {
        let folder = folder(directory, number);
        let program = sibling("ovsdb-server");
        let child = Command::new(&program)
            .arg("-vconsole:off")
            .arg(format!(
                "--remote=punix:{}",
                folder.join("db.sock").display()
            ))
            .arg(format!(
                "--unixctl={}",
                folder.join("ovsdb-server.ctl").display()
            ))
            .arg(format!(
                "--log-file={}",
                folder.join("ovsdb-server.log").display()
            ))
            .arg(folder.join("cluster.db"))
            .stdin(Stdio::null())
            .spawn()
            .map_err(|error| about(&program, &error))?;
        Ok(Member {
            number,
            folder,
            child,
        })
    }

    fn remote(&self) -> String {
        format!("unix:{}", self.folder.join("db.sock").display())
    }

    fn control(&self, command: &str) -> Result<String, String> {
        let socket = self.folder.join("ovsdb-server.ctl");
        let mut control = Command::new(sibling("ovs-appctl"));
        control.arg("-t").arg(socket).args([command, DATABASE]);
        tool(&mut control)
    }

    fn await_status(&self, is_wanted: impl Fn(&str) -> bool) -> Result<(), String> {
        let deadline = Instant::now() + LIMIT;
        loop {
            let status = self.control("cluster/status");
            if status.as_deref().is_ok_and(&is_wanted) {
                return Ok(());
            }
            if Instant::now() > deadline {
                let log = self.folder.join("ovsdb-server.log");
                let (number, log) = (self.number, log.display());
                return Err(format!(
                    "member {number} is not ready after {LIMIT:?}; its log is {log}"
                ));
            }
            thread::sleep(ASK_EVERY);
        }
    }

    fn kill(self) {
        drop(self);
    }
}

/// No member outlives the demo, however the demo ends.
impl Drop for Member {
    fn drop(&mut self) {
        // Both fail only if the process has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A row that the demo inserts.
struct Site {
    name: String,
}

impl Site {
    fn new(name: &str) -> Site {
        Site {
            name: format!("{name}-{}", std::process::id()),
        }
    }

    /// Inserts the site through whichever member leads. Returns how long that took.
    fn insert(&self, remotes: &str) -> Result<Duration, String> {
        let began = Instant::now();
        let row = format!(
            r#"{{"op":"insert","table":"Site","row":{{"name":"{}"}}}}"#,
            self.name
        );
        let mut client = Command::new(sibling("ovsdb-client"));
        // Any member accepts the request, and forwards it once a leader is known.
        client.args(["--no-leader-only", "transact"]).arg(remotes);
        tool(client.arg(format!(r#"["{DATABASE}",{row}]"#)))?;
        Ok(began.elapsed())
    }

    /// Waits until a member has the row.
    fn await_at(&self, member: &Member) -> Result<(), String> {
        let wait = format!(
            r#"{{"op":"wait","table":"Site","where":[["name","==","{0}"]],"columns":["name"],"until":"==","rows":[{{"name":"{0}"}}],"timeout":60000}}"#,
            self.name
        );
        let mut client = Command::new(sibling("ovsdb-client"));
        client
            .args(["--no-leader-only", "transact"])
            .arg(member.remote());
        tool(client.arg(format!(r#"["{DATABASE}",{wait}]"#)))?;
        Ok(())
    }
}

fn introduce(remotes: &str, members: &[Member]) {
    let client = sibling("ovsdb-client").display().to_string();
    let control = sibling("ovs-appctl").display().to_string();
    output::report(format_args!("\nTry, in another terminal:\n"));
    output::report(format_args!(
        "  {client} dump {remotes} {DATABASE} Site name"
    ));
    for member in members {
        let socket = member.folder.join("ovsdb-server.ctl");
        output::report(format_args!(
            "  {control} -t {} cluster/status {DATABASE}",
            socket.display()
        ));
    }
    output::report(format_args!(
        "\nCtrl-C ends all members; their files stay where they are, and are served again next time."
    ));
}

/// Waits for Ctrl-C, which ends this process and the members, or for the end of a pipe.
fn wait() {
    let mut input = std::io::stdin();
    if input.is_terminal() {
        loop {
            thread::park();
        }
    }
    let mut rest = [0; 256];
    while matches!(input.read(&mut rest), Ok(count) if count > 0) {}
}
