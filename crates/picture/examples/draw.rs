//! Draws a database that is written as JSON: `cargo run -p corvid-picture --example draw DATABASE
//! FILE [dark] [focus=TABLE/UUID]`. `large` as the file is 60 switches of 40 ports. Prints a page
//! of HTML.

#[path = "../tests/picture/large.rs"]
#[allow(dead_code, reason = "tests use the rest")]
mod large;
#[path = "../tests/picture/written.rs"]
#[allow(dead_code, reason = "tests use the rest")]
mod written;

use corvid_picture::{Id, Picture, STYLE, Target, Texts, View, interpretations};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let (Some(database), Some(file)) = (arguments.next(), arguments.next()) else {
        eprintln!("usage: draw DATABASE FILE [dark] [focus=ID]");
        std::process::exit(1);
    };
    let interpretation = interpretations::of(&database).expect("a known database");
    let tables = match file.as_str() {
        "large" => large::northbound(60, 40),
        "huge" => large::northbound(1000, 40),
        file => written::tables(&std::fs::read_to_string(file).expect("a file")),
    };
    let mut view = View::default();
    let mut theme = "light";
    for argument in arguments {
        if argument == "dark" {
            theme = "dark";
        } else if let Some(id) = argument.strip_prefix("focus=") {
            view.focus = Id::parse(id);
        }
    }
    let graph = (interpretation.read)(&tables);
    let picture = Picture::new(&graph, &view, None);
    let links = |target: Target<'_>| match target {
        Target::Row(row) => Some(format!("/row/{}/{}", row.table, row.uuid)),
        Target::Table(table) => Some(format!("/table/{table}")),
        Target::Around(id) => Some(format!("?focus={id}")),
    };
    let svg = picture.svg(
        &graph,
        &Texts {
            links: Some(&links),
            ..Texts::new(interpretation.title)
        },
    );
    println!(
        "<!DOCTYPE html><html lang=\"en\" data-theme=\"{theme}\"><meta charset=\"utf-8\">\
         <title>{}</title><style>{STYLE} body {{ margin: 0 }}</style>{svg}</html>",
        interpretation.title
    );
}
