//! Programs that run beside the server and end with it.
//!
//! The demo becomes the server, so nobody is left to end the others. Each of them is started as
//! `corvid-demo --child PROGRAM ARG...`, which asks the kernel for a signal when its parent ends,
//! and then becomes PROGRAM. The request survives that.

use std::os::unix::process::{CommandExt as _, parent_id};
use std::process::{Child, Command, Stdio};

use corvid_net::errno;
use rustix::process::{Signal, set_parent_process_death_signal};

use crate::programs::{about, sibling};

/// The first word of the command line of a child, followed by the process id of the demo.
const WORD: &str = "--child";

/// Starts a program that ends when this process ends, also after this process has become another
/// program.
pub(crate) fn start(program: &str, arguments: &[String], stdout: Stdio) -> Result<Child, String> {
    let demo = sibling("corvid-demo");
    Command::new(&demo)
        .arg(WORD)
        .arg(std::process::id().to_string())
        .arg(sibling(program))
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(stdout)
        .spawn()
        .map_err(|error| about(&demo, &error))
}

/// Becomes the program if this process is a child. Returns if it is none.
pub(crate) fn become_program(line: &[String]) -> Result<(), String> {
    let [_, word, parent, program, arguments @ ..] = line else {
        return Ok(());
    };
    if word != WORD {
        return Ok(());
    }
    set_parent_process_death_signal(Some(Signal::TERM))
        .map_err(|error| errno::text(&error.into()))?;
    // The parent may have ended before.
    if parent_id().to_string() != *parent {
        return Err("the demo has ended".to_owned());
    }
    let error = Command::new(program).args(arguments).exec();
    Err(format!("{program}: {}", errno::text(&error)))
}
