//! What `--help` and the command `help` print.

use corvid_os::{daemon, program, tls, vlog};

use crate::selection;

/// The text, with the defaults of this system.
pub(crate) fn text() -> String {
    let program = program::name();
    let server = selection::default_server();
    format!(
        "\
{program}: Open vSwitch database JSON-RPC client
usage: {program} [OPTIONS] COMMAND [ARG...]

Looking at databases:
  list-dbs [SERVER]              print the names of the databases
  get-schema [SERVER] [DATABASE] print the schema, as JSON
  get-schema-version [SERVER] [DATABASE]
                                 print the version of the schema
  get-schema-cksum [SERVER] [DATABASE]
                                 print the checksum of the schema
  list-tables [SERVER] [DATABASE]
                                 print the names of the tables
  list-columns [SERVER] [DATABASE] [TABLE]
                                 print the columns of TABLE, or of all tables, with their types
  dump [SERVER] [DATABASE] [TABLE [COLUMN...]]
                                 print contents: everything, one table, or some of its columns

Transactions:
  transact [SERVER] TRANSACTION  run TRANSACTION, the params of a \"transact\" request, and print its result
  query [SERVER] TRANSACTION     the same without keeping any change

Watching changes:
  monitor [SERVER] [DATABASE] TABLE [COLUMN,...]...
                                 print the contents of TABLE, then its changes
  monitor [SERVER] [DATABASE] ALL
                                 print the contents of all tables, then their changes
  monitor-cond [SERVER] [DATABASE] CONDITION TABLE [COLUMN,...]
                                 the same for the rows that match CONDITION
  monitor-cond-since [SERVER] [DATABASE] [LASTID] CONDITION TABLE [COLUMN,...]
                                 the same, from what changed after transaction LASTID on
  Among the COLUMNs, !initial, !insert, !delete and !modify switch those rows off.

Schemas:
  convert [SERVER] SCHEMA        convert the database that the file SCHEMA names to that schema
  needs-conversion [SERVER] SCHEMA
                                 print \"yes\" if its schema is another one, else \"no\"

Copies:
  backup [SERVER] [DATABASE] > SNAPSHOT
                                 write contents as a database file
  [--force] restore [SERVER] [DATABASE] < SNAPSHOT
                                 replace contents by those of a database file

Coordination:
  wait [SERVER] DATABASE STATE   wait until DATABASE is \"added\", \"connected\" or \"removed\"
  lock [SERVER] LOCK             wait for LOCK and hold it
  steal [SERVER] LOCK            take LOCK from whoever holds it
  unlock [SERVER] LOCK           give LOCK back

The default SERVER is {server}.
The default DATABASE is Open_vSwitch, or the only one there is.

SERVER is one of these, or several with commas between, of which one that suits is used:
  tcp:HOST:PORT           PORT at remote HOST
  ssl:HOST:PORT           SSL/TLS PORT at remote HOST
  unix:FILE               Unix domain socket named FILE
  ptcp:PORT[:IP]          wait for a connection to TCP PORT on IP
  pssl:PORT[:IP]          wait for an SSL/TLS connection to PORT on IP
  punix:FILE              wait for a connection to Unix domain socket FILE

Output:
  -f, --format=FORMAT     \"table\", \"list\", \"html\", \"csv\" or \"json\"
  -d, --data=FORMAT       cells as \"string\", \"bare\" or \"json\"
  --no-headings           no heading rows
  --pretty                indent JSON
  --bare                  the same as --format=list --data=bare --no-headings
  --max-column-width=N    cut the cells of tables to N bytes
  --timestamp             print the time above what monitors print

Connection:
  --leader-only           of several servers use only a cluster leader (default)
  --no-leader-only        use any server that is connected to its cluster
  -t, --timeout=SECS      give up after SECS seconds
{}{}{}
Other options:
  --force                 restore: ignore differences of schemas
  -h, --help              print this and exit
  -V, --version           print the version and exit
",
        tls::options::HELP,
        daemon::HELP,
        vlog::HELP
    )
}
