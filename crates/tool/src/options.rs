//! The command line: options that take effect as they are met, then the command and its arguments.

use corvid_data::Uuid;
use corvid_log::cluster::{ELECTION_TIMER_MAX_MS, ELECTION_TIMER_MIN_MS};
use corvid_os::args::{self, Arg, Args, Item, Spec};
use corvid_os::{dirs, program, vlog};

use crate::failure::Failure;

/// What the command line asks for.
#[derive(Debug, Default)]
pub(crate) struct Options {
    /// How often `-m` was given.
    pub(crate) verbosity: u32,
    /// `--rbac-role`
    pub(crate) role: Option<String>,
    /// `--cid`, not zero
    pub(crate) cluster_id: Option<Uuid>,
    /// `--election-timer`, within its range
    pub(crate) election_timer_ms: Option<u64>,
    /// The command and its arguments.
    pub(crate) words: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Id {
    More,
    Role,
    Cid,
    ElectionTimer,
    Verbose,
    Help,
    Options,
    Version,
}

const SPECS: [Spec<Id>; 8] = [
    Spec::both("more", 'm', Arg::None, Id::More),
    Spec::long("rbac-role", Arg::Required, Id::Role),
    Spec::long("cid", Arg::Required, Id::Cid),
    Spec::long("election-timer", Arg::Required, Id::ElectionTimer),
    Spec::both("verbose", 'v', Arg::Optional, Id::Verbose),
    Spec::both("help", 'h', Arg::None, Id::Help),
    Spec::both("option", 'o', Arg::None, Id::Options),
    Spec::both("version", 'V', Arg::None, Id::Version),
];

impl Options {
    /// Reads a command line, `argv[0]` included. Ends the process after `--help` and the like, and on errors.
    pub(crate) fn parse(line: &[String]) -> Options {
        let mut options = Options::default();
        let mut args = Args::new(&SPECS, line);
        while let Some(item) = args.or_die() {
            match item {
                Item::Positional(word) => options.words.push(word),
                Item::Option(id, value) => options.apply(id, value),
            }
        }
        options
    }

    fn apply(&mut self, id: Id, value: Option<String>) {
        match id {
            Id::More => self.verbosity += 1,
            Id::Role => self.role = value,
            Id::Cid => self.cluster_id = value.map(|text| or_die(parse_cluster_id(&text))),
            Id::ElectionTimer => {
                self.election_timer_ms = value.map(|text| or_die(parse_election_timer(&text)));
            }
            Id::Verbose => set_verbosity(value.as_deref().unwrap_or_default()),
            Id::Help => program::answer(usage()),
            Id::Options => program::answer(args::listing(&SPECS)),
            Id::Version => program::answer_version(),
        }
    }
}

/// Arguments of options are checked as they are met, whatever the command.
fn or_die<T>(parsed: Result<T, Failure>) -> T {
    parsed.unwrap_or_else(|failure| program::fatal(failure))
}

/// The argument of `--cid`: a UUID, not all zeros.
fn parse_cluster_id(text: &str) -> Result<Uuid, Failure> {
    Uuid::parse(text.as_bytes())
        .filter(|uuid| *uuid != Uuid::ZERO)
        .ok_or_else(|| Failure::new(format!("{text}: not a valid UUID")))
}

/// The argument of `--election-timer`, ms.
fn parse_election_timer(text: &str) -> Result<u64, Failure> {
    let range = ELECTION_TIMER_MIN_MS..=ELECTION_TIMER_MAX_MS;
    text.parse()
        .ok()
        .filter(|timer| range.contains(timer))
        .ok_or_else(|| {
            Failure::new(format!(
                "ovsdb error: election timer must be between {} and {}, in msec.",
                range.start(),
                range.end()
            ))
        })
}

fn set_verbosity(spec: &str) {
    if let Err(error) = vlog::set(spec) {
        program::fatal(format_args!("processing \"{spec}\": {error}"));
    }
}

/// What `--help` and the command `help` print.
pub(crate) fn usage() -> String {
    let program = program::name();
    let database = dirs::db().join("conf.db");
    let schema = dirs::pkgdata().join("vswitch.ovsschema");
    let (database, schema) = (database.display(), schema.display());
    format!(
        "\
{program}: Open vSwitch database management utility
usage: {program} [OPTIONS] COMMAND [ARG...]

Making and rewriting database files:
  create [DB [SCHEMA]]           make DB, empty, with SCHEMA
  compact [DB [DST]]             drop history from DB (result to DST, which must be new)
  convert [DB [SCHEMA [DST]]]    fit DB's contents to SCHEMA (result to DST, which must be new)
  needs-conversion [DB [SCHEMA]] tell whether DB has another schema than SCHEMA

Looking into them:
  db-name [DB]                   print the name of DB's schema
  db-version [DB]                print the version of DB's schema
  db-cksum [DB]                  print the checksum of DB's schema
  db-is-standalone DB            succeed if DB is a standalone database
  db-is-clustered DB             succeed if DB is a clustered database
  db-cid DB                      print clustered DB's cluster ID
  db-sid DB                      print clustered DB's server ID
  db-local-address DB            print clustered DB's local address
  [-m]... show-log [DB]          print DB's records

Transactions:
  query [DB] TRNS                execute TRNS on DB's contents, keep no change
  transact [DB] TRNS             execute TRNS on DB

Schemas:
  schema-name [SCHEMA]           print SCHEMA's name
  schema-version [SCHEMA]        print SCHEMA's version
  schema-cksum [SCHEMA]          print SCHEMA's checksum
  compare-versions A OP B        succeed if A OP B holds for schema versions A and B

Clusters:
  [--election-timer=MS] create-cluster DB CONTENTS LOCAL
                                 make the first member of a cluster
  [--cid=UUID] join-cluster DB NAME LOCAL REMOTE...
                                 make a member that will join a cluster
  cluster-to-standalone DB CLUSTERDB
                                 rescue the contents of a member
  check-cluster DB...            check members' files against each other

The default DB is {database}.
The default SCHEMA is {schema}.

Options:
  -m, --more                     show-log: print rows (once) and columns (twice)
  --election-timer=MS            create-cluster: election timer, 100 to 600000
  --cid=UUID                     join-cluster: join no other cluster than this
  --rbac-role=ROLE               query and transact with the rights of ROLE
  -vSPEC, --verbose=SPEC         set logging levels
  -v, --verbose                  log everything
  -o, --option                   list the options and exit
  -h, --help                     print this and exit
  -V, --version                  print the version and exit
"
    )
}
