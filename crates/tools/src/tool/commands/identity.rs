//! The kind of a database file; for a clustered file, also the ids of cluster and server.

use super::{Invocation, Outcome};
use crate::failure::Failure;
use crate::tool::answer::Answer;
use crate::tool::cluster_file::ClusterFile;
use crate::tool::database::DatabaseFile;
use corvid_log::Magic;
use corvid_log::cluster::Header;
use corvid_shell::output;

/// Answers whether the file is a member of a cluster.
pub(super) fn is_clustered(invocation: &Invocation<'_>) -> Outcome {
    is(invocation, Magic::Clustered)
}

/// Answers whether the file is a standalone database.
pub(super) fn is_standalone(invocation: &Invocation<'_>) -> Outcome {
    is(invocation, Magic::Standalone)
}

/// Prints the cluster's id. The file of a member that has not joined may lack it.
pub(super) fn cluster_id(invocation: &Invocation<'_>) -> Outcome {
    match header(invocation)?.cluster_id {
        Some(cluster_id) => {
            output::line(cluster_id.uuid());
            Ok(Answer::Yes)
        }
        None => {
            output::error_line(format_args!(
                "{}: cluster ID not yet known",
                invocation.args[0]
            ));
            Ok(Answer::No)
        }
    }
}

/// Prints the member's server id.
pub(super) fn server_id(invocation: &Invocation<'_>) -> Outcome {
    output::line(header(invocation)?.server_id.0);
    Ok(Answer::Yes)
}

/// Prints the address at which the member listens for other members.
pub(super) fn local_address(invocation: &Invocation<'_>) -> Outcome {
    output::line(header(invocation)?.local_address);
    Ok(Answer::Yes)
}

fn is(invocation: &Invocation<'_>, magic: Magic) -> Outcome {
    let file = DatabaseFile::open(&invocation.database(0))?;
    Ok(Answer::from(file.magic() == magic))
}

fn header(invocation: &Invocation<'_>) -> Result<Header, Failure> {
    let file = DatabaseFile::open(&invocation.database(0))?;
    if file.magic() == Magic::Standalone {
        return Err(Failure::new(format!(
            "{}: not a clustered database",
            invocation.args[0]
        )));
    }
    Ok(ClusterFile::new(file)?.header)
}
