//! Draws a database that is written as JSON and prints a page of HTML:
//! `cargo run -p corvid-picture --example draw DATABASE FILE [dark] [focus=ID] [path=ID,ID]
//! [before=FILE] [find=TEXT]`.
//!
//! In place of a file: `large` (60 switches of 40 ports), `huge` (1,000 of them), `cluster`,
//! `doubled`, `tenants` and `hosts`. In place of a database, the file of a schema, without a file.

#[path = "../tests/picture/large.rs"]
#[allow(dead_code, reason = "tests use the rest")]
mod large;
#[path = "../tests/picture/written.rs"]
#[allow(dead_code, reason = "tests use the rest")]
mod written;

use std::collections::BTreeSet;

use corvid_data::Schema;
use corvid_json::Value;
use corvid_picture::{
    Graph, Id, Picture, STYLE, Tables, Target, Texts, View, difference, interpretations, path,
    search,
};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let Some(database) = arguments.next() else {
        eprintln!(
            "usage: draw DATABASE FILE [dark] [focus=ID] [path=ID,ID] [before=FILE] [find=TEXT]"
        );
        std::process::exit(1);
    };
    let (mut graph, title) = match interpretations::of(&database) {
        Some(known) => {
            let file = arguments.next().expect("a file");
            ((known.read)(&tables(&file)), known.title)
        }
        None => (schema(&database), "Tables and references"),
    };
    let mut view = View::default();
    let mut theme = "light";
    for argument in arguments {
        match argument.split_once('=') {
            None => theme = "dark",
            Some(("focus", id)) => view.focus = Id::parse(id),
            Some(("path", ends)) => {
                let (from, to) = ends.split_once(',').expect("two ids");
                let [from, to] = [from, to].map(|id| Id::parse(id).expect("an id"));
                let path = path::between(&graph, &from, &to).expect("a path");
                view.only = Some(path.ids(&graph));
                view.marked = path.ids(&graph);
            }
            Some(("before", file)) => {
                let known = interpretations::of(&database).expect("a known database");
                graph = difference::between(&(known.read)(&tables(file)), &graph);
            }
            Some(("find", text)) => {
                let found = search(&graph, text, 20);
                view.marked = found
                    .iter()
                    .map(|&node| graph.nodes[node].id.clone())
                    .collect::<BTreeSet<Id>>();
            }
            Some(_) => panic!("{argument}: unknown"),
        }
    }
    let links = |target: Target<'_>| match target {
        Target::Row(row) => Some(format!("/row/{}/{}", row.table, row.uuid)),
        Target::Table(table) => Some(format!("/table/{table}")),
        Target::Around(id) => Some(format!("?focus={id}")),
    };
    let texts = Texts {
        links: Some(&links),
        ..Texts::new(title)
    };
    let svg = Picture::new(&graph, &view, None).svg(&graph, &texts);
    println!(
        "<!DOCTYPE html><html lang=\"en\" data-theme=\"{theme}\"><meta charset=\"utf-8\">\
         <title>{title}</title><style>{STYLE} body {{ margin: 0 }}</style>{svg}</html>"
    );
}

fn tables(file: &str) -> Tables {
    match file {
        "large" => large::northbound(60, 40),
        "huge" => large::northbound(1000, 40),
        "cluster" => large::cluster(60),
        "doubled" => large::doubled(8),
        "tenants" => large::tenants(60),
        "hosts" => large::southbound(60, 20),
        file => written::tables(&std::fs::read_to_string(file).expect("a file")),
    }
}

fn schema(file: &str) -> Graph {
    let text = std::fs::read(file).expect("the file of a schema");
    let json = Value::parse(&text).expect("JSON");
    let schema = Schema::from_json(&json).expect("a schema");
    interpretations::any::read(&schema, &Tables::new())
}
