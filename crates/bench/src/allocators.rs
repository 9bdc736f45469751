//! The `allocators` command: a table of the run time of each workload and the memory of the server
//! with each allocator.
//!
//! Each build of our server contains one allocator. Servers that use the system's allocator are
//! also measured with each other allocator that is installed, which is preloaded (`LD_PRELOAD`).

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::error::Error;
use crate::options::Allocators;
use crate::progress::Progress;
use crate::rounds::OfServer;
use crate::target::{Program, Target};

/// Libraries that replace the allocator, with their file names in distributions.
const LIBRARIES: [(&str, &str); 3] = [
    ("jemalloc", "libjemalloc.so.2"),
    ("tcmalloc", "libtcmalloc_minimal.so.4"),
    ("mimalloc", "libmimalloc.so.2"),
];
/// The folders in which distributions install these libraries.
const FOLDERS: [&str; 4] = [
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
];
/// The name of the build that uses the system's allocator.
const SYSTEM: &str = "system";

/// A build of our server, written `NAME=PROGRAM`.
#[derive(Clone, Debug)]
pub(crate) struct Build {
    name: String,
    program: PathBuf,
}

impl FromStr for Build {
    type Err = String;

    fn from_str(text: &str) -> Result<Build, String> {
        let (name, program) = text
            .split_once('=')
            .ok_or_else(|| format!("{text} is not NAME=PROGRAM"))?;
        Ok(Build {
            name: name.to_owned(),
            program: program.into(),
        })
    }
}

/// A line of the table: a server with one allocator.
struct Line {
    title: String,
    target: Target,
}

/// The cost of a workload with one allocator.
struct Cost {
    /// The time of the measured part, averaged over all runs.
    duration_s: f64,
    memory_mib: f64,
}

/// Measures all allocators. Returns a table with a line for each.
pub(crate) fn table(options: &Allocators) -> Result<String, Error> {
    let lines = lines(options);
    let mut text = format!("{:28}", "server and allocator");
    for workload in &options.workloads {
        let _ = write!(text, "{:>18}", workload.name());
    }
    let _ = write!(text, "\n{:28}", "");
    for _ in &options.workloads {
        let _ = write!(text, "{:>9}{:>9}", "s", "MiB");
    }
    text.push('\n');
    let count = lines.len() * options.workloads.len() * options.rounds as usize;
    let progress = Progress::new(count as u64);
    let mut costs: Vec<Vec<Cost>> = lines.iter().map(|_| Vec::new()).collect();
    for &workload in &options.workloads {
        let directory = tempfile::Builder::new().prefix("corvid-bench-").tempdir()?;
        let file = directory.path().join("prepared.db");
        workload.prepare(options.scale, &file)?;
        let mut servers: Vec<_> = lines.iter().map(|_| OfServer::default()).collect();
        for _ in 0..options.rounds {
            for (line, server) in lines.iter().zip(&mut servers) {
                progress.show(format!("{} {}", workload.name(), line.title));
                server.run(workload, options.scale, &line.target, &file, &progress)?;
            }
        }
        for (server, costs) in servers.iter().zip(&mut costs) {
            costs.push(cost(server));
        }
    }
    for (line, costs) in lines.iter().zip(costs) {
        let _ = write!(text, "{:28}", line.title);
        for cost in costs {
            let _ = write!(text, "{:>9.2}{:>9.1}", cost.duration_s, cost.memory_mib);
        }
        text.push('\n');
    }
    Ok(text)
}

/// Returns a line for each server with each allocator that is available.
fn lines(options: &Allocators) -> Vec<Line> {
    let line = |title: String, path: &Path, preload: Option<PathBuf>| Line {
        title,
        target: Target::Program(Program {
            preload: preload.into_iter().collect(),
            ..Program::plain(path.to_owned())
        }),
    };
    let libraries: Vec<_> = LIBRARIES
        .iter()
        .filter_map(|(name, file)| {
            let paths = FOLDERS.iter().map(|folder| Path::new(folder).join(file));
            Some((name, paths.into_iter().find(|path| path.exists())?))
        })
        .collect();
    let mut lines = Vec::new();
    for build in &options.ours {
        lines.push(line(format!("ours, {}", build.name), &build.program, None));
        if build.name == SYSTEM {
            for (name, library) in &libraries {
                let title = format!("ours, {SYSTEM}, {name} loaded");
                lines.push(line(title, &build.program, Some(library.clone())));
            }
        }
    }
    if let Some(reference) = &options.reference {
        lines.push(line(format!("reference, {SYSTEM}"), reference, None));
        for (name, library) in &libraries {
            let title = format!("reference, {name} loaded");
            lines.push(line(title, reference, Some(library.clone())));
        }
    }
    lines
}

fn cost(server: &OfServer) -> Cost {
    let medians = server.medians();
    let memory = medians.iter().find(|figure| figure.unit == "MiB");
    Cost {
        duration_s: server.cpu_usage().wall_us() / 1e6 / server.runs.len() as f64,
        memory_mib: memory.map_or(f64::NAN, |figure| figure.value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_has_a_name() {
        let build: Build = "system=/a/b".parse().expect("a build");
        assert_eq!(
            (build.name.as_str(), build.program.as_path()),
            (SYSTEM, Path::new("/a/b"))
        );
        assert!("/a/b".parse::<Build>().is_err());
    }
}
