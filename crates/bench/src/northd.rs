//! OVN's compiler as a process: the `ovn-northd` of the system's packages, between the two
//! databases of one server.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::error::Error;
use crate::stream::Address;
use crate::usage;

/// The program of the system's packages.
const PROGRAM: &str = "/usr/bin/ovn-northd";

/// A running compiler. Dropping the value ends it.
#[derive(Debug)]
pub(crate) struct Northd {
    child: Child,
    /// The folder of its pidfile and sockets.
    _directory: TempDir,
}

impl Northd {
    /// Starts a compiler between the databases of the server at `address`.
    pub(crate) fn start(address: &Address) -> Result<Northd, Error> {
        let directory = tempfile::Builder::new().prefix("corvid-bench-").tempdir()?;
        let child = Command::new(PROGRAM)
            .arg(format!("--ovnnb-db={address}"))
            .arg(format!("--ovnsb-db={address}"))
            .arg(format!(
                "--unixctl={}",
                directory.path().join("control").display()
            ))
            .args(["-vconsole:off", "-vsyslog:off"])
            .env("OVN_RUNDIR", directory.path())
            .env("OVS_RUNDIR", directory.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|source| Error::Start {
                program: Path::new(PROGRAM).to_owned(),
                source,
            })?;
        Ok(Northd {
            child,
            _directory: directory,
        })
    }

    /// Returns the CPU time that the compiler has used, in us.
    pub(crate) fn cpu_us(&self) -> Result<f64, Error> {
        Ok(usage::cpu_us(self.child.id())?)
    }
}

impl Drop for Northd {
    fn drop(&mut self) {
        // Its work is done, so a failure to end it is ignored.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
