//! `client-lookup`: finds a row among 20,000 by an index of two columns. The first column is equal
//! in all rows.

use std::fmt::Write as _;
use std::hint::black_box;

use corvid_data::{Atom, Datum, Str};
use corvid_idl::IndexColumn;

use super::Path;
use crate::replica;

pub(super) const PATH: Path = Path {
    name: "client-lookup",
    about: "finds a row by an index of two columns among 20,000",
    times: 1000,
    prepare,
};

const ROWS: usize = 20_000;

fn prepare(_times: usize) -> Box<dyn FnMut()> {
    let mut contents = r#""Logical_Switch_Port":{"#.to_owned();
    for number in 0..ROWS {
        let comma = if number == 0 { "" } else { "," };
        let _ = write!(
            contents,
            r#"{comma}"00000000-0000-4000-8000-{number:012x}":{{"initial":{{"name":"{}"}}}}"#,
            name_of(number)
        );
    }
    contents.push('}');
    let (idl, (kind, name, index)) = replica::holding(&contents, |class| {
        let column = |name| class.column("Logical_Switch_Port", name).expect("a column");
        let (kind, name) = (column("type"), column("name"));
        let columns = [kind, name].map(IndexColumn::ascending).to_vec();
        let index = class.add_index(name.table, "", columns).expect("held");
        (kind, name, index)
    });
    let mut key = idl.key(index);
    let string = |text: &str| Datum::one(Atom::String(Str::new(text)));
    key.set(kind, string(""));
    let mut at = 0;
    Box::new(move || {
        key.set(name, string(&name_of(at)));
        black_box(idl.find(&key).expect("it is there"));
        // The step has no common factor with the number of rows, so all rows are visited.
        at = (at + 7919) % ROWS;
    })
}

fn name_of(number: usize) -> String {
    format!("port-{number:06}")
}
