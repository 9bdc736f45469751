//! `client-apply`: a replica receives an update that inserts an element into a set of 30,000 or
//! deletes it.

use std::fmt::Write as _;

use corvid_session::Input;

use super::Path;
use crate::replica;

pub(super) const PATH: Path = Path {
    name: "client-apply",
    about: "a replica applies a change of one element of a set of 30,000 addresses",
    times: 200,
    prepare,
};

const ELEMENTS: usize = 30_000;
const SET: &str = "00000000-0000-4000-8000-000000000001";

fn prepare(_times: usize) -> Box<dyn FnMut()> {
    let mut contents =
        format!(r#""Address_Set":{{"{SET}":{{"initial":{{"name":"all","addresses":["set",["#);
    for number in 0..ELEMENTS {
        let comma = if number == 0 { "" } else { "," };
        let _ = write!(contents, r#"{comma}"{}""#, address(number));
    }
    contents.push_str("]]}}}");
    let (mut idl, ()) = replica::holding(&contents, |_| ());
    // The elements are spread over the set. Their number is odd, so each element is inserted and
    // deleted in turn.
    let updates: Vec<String> = (0..51)
        .map(|number| {
            let address = address(number * 1171);
            format!(
                r#"{{"id":null,"method":"update2","params":[["monid","OVN_Northbound"],{{"Address_Set":{{"{SET}":{{"modify":{{"addresses":["set",["{address}"]]}}}}}}}}]}}"#
            )
        })
        .collect();
    let mut at = 0;
    Box::new(move || {
        let seqno = idl.change_seqno();
        replica::handle(&mut idl, Input::Received(updates[at].as_bytes()));
        assert_ne!(idl.change_seqno(), seqno, "it is there");
        at = (at + 1) % updates.len();
    })
}

fn address(number: usize) -> String {
    format!("10.{}.{}", number / 256, number % 256)
}
