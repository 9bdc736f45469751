//! Describes which processes run below a process and what each of its threads waits for. This is
//! used in the report of a job that does not end.
//!
//! Rust's test harness names a thread after its test, so the threads of a test program show which
//! tests have not ended. Called by `timed_process`. All information comes from `/proc`. A process
//! that ends in the meantime is left out.

use std::fmt::Write;
use std::path::Path;

/// Returns the threads of a process and then all its descendants, each on a line that is indented
/// by its depth.
pub(crate) fn describe(process: u32) -> String {
    let all = processes();
    let mut text = format!("still running below process {process}:\n");
    for (task, name) in tasks(process) {
        let waits = read(&format!("/proc/{process}/task/{task}/wchan"));
        let _ = writeln!(text, "  thread {task} {name} ({})", waits.trim());
    }
    let mut open = vec![(process, 1)];
    while let Some((parent, depth)) = open.pop() {
        for (child, _) in all.iter().filter(|(_, of)| *of == parent) {
            let command = read(&format!("/proc/{child}/cmdline")).replace('\0', " ");
            let waits = read(&format!("/proc/{child}/wchan"));
            let _ = writeln!(text, "{:1$}{child} {command}({waits})", "", depth * 2);
            open.push((*child, depth + 1));
        }
    }
    text
}

/// Returns each process of the system with its parent.
fn processes() -> Vec<(u32, u32)> {
    let entries = numbers(Path::new("/proc"));
    let of_parent = |process: u32| {
        let stat = read(&format!("/proc/{process}/stat"));
        // The name of a program may contain spaces and brackets.
        let (_, fields) = stat.rsplit_once(") ")?;
        Some((process, fields.split(' ').nth(1)?.parse().ok()?))
    };
    entries.into_iter().filter_map(of_parent).collect()
}

/// Returns the threads of a process with their names.
fn tasks(process: u32) -> Vec<(u32, String)> {
    let folder = format!("/proc/{process}/task");
    let named = |task| {
        let name = read(&format!("{folder}/{task}/comm"));
        (task, name.trim().to_owned())
    };
    let tasks = numbers(Path::new(&folder));
    tasks.into_iter().map(named).collect()
}

/// Returns those names in a folder that are numbers, in ascending order.
fn numbers(folder: &Path) -> Vec<u32> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<u32> = entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    found.sort_unstable();
    found
}

fn read(path: &str) -> String {
    std::fs::read(path).map_or_else(
        |_| String::new(),
        |bytes| String::from_utf8_lossy(&bytes).into_owned(),
    )
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    #[test]
    fn threads_and_descendants_are_listed() {
        let mut child = Command::new("sh")
            .args(["-c", "sleep 300 & echo; wait"])
            .stdout(Stdio::piped())
            .spawn()
            .expect("a shell");
        let mut line = String::new();
        let mut output = std::io::BufReader::new(child.stdout.take().expect("a pipe"));
        std::io::BufRead::read_line(&mut output, &mut line).expect("a line");
        let text = super::describe(std::process::id());
        assert!(text.contains(" process_tree::"), "{text}");
        let shell = format!("  {} sh -c sleep 300", child.id());
        assert!(text.contains(&shell), "{text}");
        let sleep = super::describe(child.id());
        let sleep = sleep.lines().find(|line| line.contains(" sleep 300 "));
        let pid = sleep.and_then(|line| line.split_whitespace().next());
        let mut kill = Command::new("kill");
        let killed = kill.arg(pid.expect("the child of the shell")).status();
        assert!(killed.expect("started").success());
        child.wait().expect("ended");
    }
}
