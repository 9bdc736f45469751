//! The program that shows long output page by page. `output` starts it, and waits for its end.

use std::env;
use std::process::{Child, Command, Stdio};

/// Starts the pager, which reads the further output. Unless they are set, `LESS` and `LV` let it
/// show colours, and end at once if everything fits on the screen.
pub(crate) fn start() -> Option<Child> {
    let command = match env::var("PAGER") {
        Ok(command) if command.is_empty() || command == "cat" => return None,
        Ok(command) => command,
        Err(_) => {
            let folders = env::var_os("PATH").unwrap_or_default();
            let has_less = env::split_paths(&folders).any(|folder| folder.join("less").is_file());
            has_less.then(|| "less".to_owned())?
        }
    };
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(command).stdin(Stdio::piped());
    for (name, value) in [("LESS", "FRX"), ("LV", "-c")] {
        if env::var_os(name).is_none() {
            shell.env(name, value);
        }
    }
    shell.spawn().ok()
}
