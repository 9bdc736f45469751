//! Event handlers: for which rows they are called, when, and what they see then.

use std::sync::mpsc::{self, Receiver, Sender};

use corvid_data::{Atom, Datum, TableId};
use corvid_driver::Idl;
use corvid_driver::blocking::Client;
use corvid_idl::track::Kind;
use corvid_idl::typed::Row;
use corvid_idl::{Misuse, RowId, Tracked};

use crate::fixture::{TIMEOUT, class, column, insert, names, on_each, remote, server, string};

/// A row of the only table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Keeper(RowId);

impl Row for Keeper {
    const TABLE: TableId = TableId(0);

    fn of(row: RowId) -> Keeper {
        Keeper(row)
    }

    fn id(self) -> RowId {
        self.0
    }
}

fn name(idl: &Idl, keeper: Keeper) -> String {
    let name = idl.read(keeper.0, column(idl, "name"));
    name.and_then(|name| name.as_string().map(ToString::to_string))
        .unwrap_or_default()
}

/// Registers a handler of each kind. Each sends lines that name its row and all names in the
/// replica at that moment.
fn listen(client: &mut Client, lines: &Sender<String>) {
    let sender = lines.clone();
    let idl = client.idl_mut();
    idl.on_insert(move |idl: &Idl, keeper: Keeper| {
        let line = format!("+ {} of {:?}", name(idl, keeper), names(idl));
        sender.send(line).expect("read");
    });
    let sender = lines.clone();
    idl.on_update(move |idl: &Idl, keeper: Keeper, change: &Tracked| {
        let age = column(idl, "age");
        let old = change.old(age.id).and_then(Datum::as_integer);
        let now = idl.read(keeper.0, age).and_then(|age| age.as_integer());
        let line = format!("~ {} from {old:?} to {now:?}", name(idl, keeper));
        sender.send(line).expect("read");
    });
    let sender = lines.clone();
    idl.on_delete(move |idl: &Idl, keeper: Keeper| {
        let line = format!("- {} leaves {:?}", name(idl, keeper), names(idl));
        sender.send(line).expect("read");
    });
}

fn heard(lines: &Receiver<String>) -> Vec<String> {
    let mut lines: Vec<String> = lines.try_iter().collect();
    lines.sort();
    lines
}

#[test]
fn handlers_are_called_when_an_update_has_been_applied_as_a_whole() {
    on_each(|implementation| {
        let server = server(implementation, &[]);
        let mut other = Client::connect(class(), &remote(&server)).expect("a client");
        insert(&mut other, "ann");
        let mut client = Client::connect(class(), &remote(&server)).expect("a client");
        let (sender, lines) = mpsc::channel();
        listen(&mut client, &sender);
        client.wait_for_contents(TIMEOUT).expect("contents");
        assert_eq!(
            heard(&lines),
            [r#"+ ann of ["ann"]"#],
            "the initial contents"
        );
        // A transaction inserts two rows: the handler of each sees both.
        let (name, age) = (column(&client, "name"), column(&client, "age"));
        let made = client.transact(TIMEOUT, |idl| -> Result<_, Misuse> {
            for text in ["bob", "cid"] {
                let row = idl.insert_new(name.table)?;
                idl.write(row, name, string(text))?;
            }
            Ok(())
        });
        made.expect("it fits");
        assert_eq!(
            heard(&lines),
            [
                r#"+ bob of ["ann", "bob", "cid"]"#,
                r#"+ cid of ["ann", "bob", "cid"]"#
            ]
        );
        // A change, and a deletion whose row still reads as before. Handlers report the client's
        // own changes and those of others alike.
        for (client, whose) in [(&mut client, "ann"), (&mut other, "bob")] {
            let wanted = client.wait_until(TIMEOUT, |idl| names(idl).len() == 3);
            wanted.expect("told");
            let is_meant = |row: &RowId| client.idl().read(*row, name) == Some(string(whose));
            let row = client.idl().rows(name.table).find(is_meant).expect("one");
            let seen = client.change_seqno();
            let done = client.transact(TIMEOUT, |idl| {
                let old = idl.read(row, age).and_then(|age| age.as_integer());
                let new = Atom::Integer(old.unwrap_or_default() + 1);
                idl.write(row, age, Datum::one(new))
            });
            done.expect("it fits");
            assert_ne!(client.change_seqno(), seen);
        }
        client
            .wait_until(TIMEOUT, |idl| idl.metrics().events >= 5)
            .expect("both were heard");
        let changes = heard(&lines);
        let expected = ["ann", "bob"].map(|name| format!("~ {name} from Some(0) to Some(1)"));
        assert_eq!(changes, expected);
        let gone = client.idl().rows(name.table).next().expect("one");
        client
            .transact(TIMEOUT, |idl| idl.delete(gone))
            .expect("it fits");
        let [line] = heard(&lines).try_into().expect("one");
        assert!(
            line.starts_with("- ") && line.contains("leaves [\""),
            "{line}"
        );
        // Handlers and tracked changes do not affect each other.
        assert!(client.changes(name.table).is_empty(), "nothing is tracked");
    });
}

#[test]
fn a_handler_that_was_removed_is_called_no_more() {
    on_each(|implementation| {
        let server = server(implementation, &[]);
        let mut client = Client::connect(class(), &remote(&server)).expect("a client");
        let table = column(&client, "name").table;
        let (sender, lines) = mpsc::channel();
        let id = client
            .idl_mut()
            .on_change(table, Kind::Insert, move |_, row, change| {
                assert!(change.is_new);
                sender.send(row.uuid.to_string()).expect("read");
            });
        insert(&mut client, "ann");
        assert_eq!(heard(&lines).len(), 1);
        assert!(client.idl_mut().remove_handler(id));
        assert!(!client.idl_mut().remove_handler(id));
        insert(&mut client, "bob");
        assert!(lines.try_recv().is_err());
    });
}

#[test]
fn handlers_hear_nothing_of_transactions_that_fail() {
    on_each(|implementation| {
        let server = server(implementation, &[]);
        let mut client = Client::connect(class(), &remote(&server)).expect("a client");
        insert(&mut client, "ann");
        let (sender, lines) = mpsc::channel();
        listen(&mut client, &sender);
        let name = column(&client, "name");
        let twice = client.transact(TIMEOUT, |idl| {
            let row = idl.insert_new(name.table)?;
            idl.write(row, name, string("ann"))
        });
        assert!(twice.is_err(), "the name is taken");
        let given_up = client.transact(TIMEOUT, |idl| {
            idl.insert_new(name.table)?;
            Err::<(), _>(Misuse::ReadOnly)
        });
        assert!(given_up.is_err());
        assert_eq!(heard(&lines), [""; 0]);
    });
}
