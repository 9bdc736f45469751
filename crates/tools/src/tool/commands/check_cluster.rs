//! `check-cluster`: checks the files of cluster members for states that the Raft algorithm cannot
//! reach (docs/spec/storage.md 16).
//!
//! It checks all headers, then the records of each file by the rules of its own log, then the
//! properties that span several logs. The first fault ends the command. It needs about 40 bytes of
//! memory per entry; an entry that a message shows is read again.

mod member;
mod properties;

use super::{Invocation, Outcome};
use crate::failure::Failure;
use crate::tool::answer::Answer;
use crate::tool::cluster_file::ClusterFile;
use corvid_data::Uuid;
use corvid_log::cluster::{Cid, Membership, Sid, ids};
use corvid_net::os_name;
use corvid_shell::output;
use corvid_shell::progress::Spinner;
use member::{Member, Warning};
use properties::Properties;

/// Checks the files. Prints warnings about unusual but allowed events; otherwise prints nothing if
/// there is no fault.
pub(super) fn check_cluster(invocation: &Invocation<'_>) -> Outcome {
    let _progress = Spinner::new("Checking");
    let files = open_all(invocation.args)?;
    let names = Names::of(&files);
    let mut properties = Properties::default();
    let mut members = Vec::with_capacity(files.len());
    for file in files {
        let member = Member::read(file, &names, print_warning)?;
        properties.elections(&member, &names)?;
        members.push(member);
    }
    properties.check(&members)?;
    Ok(Answer::Yes)
}

/// The names of servers in messages: a server's file if that file is checked, else its id.
struct Names(Vec<(Sid, String)>);

impl Names {
    fn of(files: &[ClusterFile]) -> Names {
        let name = |file: &ClusterFile| (file.header.server_id, file.name.clone());
        Names(files.iter().map(name).collect())
    }

    fn of_server(&self, sid: Sid) -> String {
        let found = self.0.iter().find(|(found, _)| *found == sid);
        found.map_or_else(|| sid.to_string(), |(_, name)| name.clone())
    }
}

/// Opens the files of members and compares their headers. Files of servers that have not joined are
/// omitted.
fn open_all(names: &[String]) -> Result<Vec<ClusterFile>, Failure> {
    let mut files: Vec<ClusterFile> = Vec::with_capacity(names.len());
    for name in names {
        let file = ClusterFile::open(&os_name::path(name))?;
        if let Membership::Joining { .. } = file.header.membership {
            output::line(format_args!("{name} has not joined the cluster, omitting"));
            continue;
        }
        if let Some(first) = files.first() {
            compare(first, &file, &files)?;
        }
        files.push(file);
    }
    Ok(files)
}

fn compare(
    first: &ClusterFile,
    file: &ClusterFile,
    earlier: &[ClusterFile],
) -> Result<(), Failure> {
    let sid = file.header.server_id;
    if let Some(twin) = earlier.iter().find(|other| other.header.server_id == sid) {
        return Err(Failure::new(format!(
            "Duplicate server ID {sid} in {} and {}.",
            file.name, twin.name
        )));
    }
    if first.header.cluster_id != file.header.cluster_id {
        let [one, other] = [first, file].map(|file| {
            let cluster_id = file.header.cluster_id.map_or(Uuid::ZERO, Cid::uuid);
            format!("{} has cluster ID {}", file.name, ids::short(cluster_id))
        });
        return Err(Failure::new(format!("{one} but {other}")));
    }
    if first.header.name != file.header.name {
        return Err(Failure::new(format!(
            "{} is named \"{}\" but {} is named \"{}\"",
            first.name, first.header.name, file.name, file.header.name
        )));
    }
    Ok(())
}

fn print_warning(file: &str, number: u64, warning: Warning) {
    match warning {
        Warning::Truncated(from, to) => {
            output::line(format_args!(
                "{file}: record {number} truncates log from {from} to {to} entries"
            ));
        }
        Warning::Left => output::line(format_args!(
            "{file}: record {number} shows that the server left the cluster"
        )),
    }
}
