//! The command line of the demo.

use std::path::PathBuf;

use corvid_net::dirs;
use corvid_shell::args::{Arg, Args, Item, Spec};
use corvid_shell::program;

const USAGE: &str = "\
corvid-demo: serves example databases, to try Corvid
usage: corvid-demo [--cluster] [DIRECTORY]

Creates the databases in DIRECTORY unless they are there, prints how to reach them, and serves them until Ctrl-C. The files stay.

  --cluster        show a cluster of three members instead: kill the leader, lose nothing
  -h, --help       print this and exit
  -V, --version    print the version and exit

The default DIRECTORY is corvid-demo, with --cluster corvid-cluster, in the directory that the variable OVS_RUNDIR names.
";

/// The values of the command line.
#[derive(Debug)]
pub(crate) struct Options {
    /// `--cluster`
    pub(crate) is_cluster: bool,
    /// The directory for all files.
    pub(crate) directory: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Id {
    Cluster,
    Help,
    Version,
}

const SPECS: [Spec<Id>; 3] = [
    Spec::long("cluster", Arg::None, Id::Cluster),
    Spec::both("help", 'h', Arg::None, Id::Help),
    Spec::both("version", 'V', Arg::None, Id::Version),
];

impl Options {
    /// Parses a command line, `argv[0]` included. Ends the process on errors, and after `--help`
    /// and `--version`.
    pub(crate) fn parse(line: &[String]) -> Options {
        let mut is_cluster = false;
        let mut words = Vec::new();
        let mut args = Args::new(&SPECS, line);
        while let Some(item) = args.or_die() {
            match item {
                Item::Positional(word) => words.push(word),
                Item::Option(Id::Cluster, _) => is_cluster = true,
                Item::Option(Id::Help, _) => program::answer(USAGE),
                Item::Option(Id::Version, _) => program::answer_version(),
            }
        }
        if words.len() > 1 {
            program::fatal("one DIRECTORY at most; use --help for help");
        }
        let name = if is_cluster {
            "corvid-cluster"
        } else {
            "corvid-demo"
        };
        let directory = words.pop().map(PathBuf::from);
        Options {
            is_cluster,
            directory: directory.unwrap_or_else(|| dirs::run().join(name)),
        }
    }
}
