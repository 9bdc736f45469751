//! The text of pictures.

use corvid_data::{Atom, Datum};
use corvid_picture::{
    Graph, Id, Part, Picture, STYLE, Tables, Target, Texts, View, interpretations,
};

use crate::large;
use crate::written::tables;

fn graph(tables: &Tables) -> Graph {
    let interpretation = interpretations::of("OVN_Northbound").expect("it is known");
    (interpretation.read)(tables)
}

fn drawn(tables: &Tables, view: &View) -> String {
    let graph = graph(tables);
    let links = |target: Target<'_>| match target {
        Target::Row(row) => Some(format!("/row/{}/{}", row.table, row.uuid)),
        Target::Table(table) => Some(format!("/table/{table}")),
        Target::Around(id) => Some(format!("?around={id}&depth=1")),
    };
    let texts = Texts {
        links: Some(&links),
        ..Texts::new("Logical network")
    };
    Picture::new(&graph, view, None).svg(&graph, &texts)
}

/// Fails if elements are not closed in order, or a text has a bracket.
pub(crate) fn assert_well_formed(svg: &str) {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = svg;
    while let Some(start) = rest.find('<') {
        assert!(!rest[..start].contains('>'), "{}", &rest[..start]);
        let end = start + rest[start..].find('>').expect("a tag ends");
        let tag = &rest[start + 1..end];
        rest = &rest[end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name));
        } else if !tag.ends_with('/') {
            open.push(tag.split_whitespace().next().expect("a name"));
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn text_is_well_formed_and_has_no_style_or_script() {
    let svg = drawn(
        &tables(include_str!("databases/northbound.json")),
        &View::default(),
    );
    assert_well_formed(&svg);
    for forbidden in ["style=", "<style", "<script", "onclick", "javascript:"] {
        assert!(!svg.contains(forbidden), "{forbidden}");
    }
    assert!(svg.contains("role=\"group\""));
    assert!(svg.contains(">Logical network</title>"));
    assert!(svg.contains("1 network outside, 2 routers, 5 switches."));
    assert!(!STYLE.contains("url("), "nothing is loaded");
}

#[test]
fn hostile_names_are_text() {
    let hostile = "\"><script>alert('x')</script>\u{202e}\u{1b}[31m&amp;\u{ffff}";
    let mut tables = Tables::new();
    let text = |text: &str| Datum::one(Atom::String(text.into()));
    let name = || ("name", text(hostile));
    let (switch, port, router, lrp) = (
        large::uuid(2, 0),
        large::uuid(4, 0),
        large::uuid(1, 0),
        large::uuid(3, 0),
    );
    tables.set(
        "Logical_Router",
        router,
        [name(), ("ports", large::references([lrp]))],
    );
    tables.set(
        "Logical_Router_Port",
        lrp,
        [name(), ("networks", text(hostile))],
    );
    tables.set(
        "Logical_Switch",
        switch,
        [name(), ("ports", large::references([port]))],
    );
    let options = Datum::pair(
        Atom::String("router-port".into()),
        Atom::String(hostile.into()),
    );
    tables.set(
        "Logical_Switch_Port",
        port,
        [name(), ("type", text("router")), ("options", options)],
    );
    let svg = drawn(&tables, &View::default());
    assert_well_formed(&svg);
    assert!(!svg.contains("<script"));
    assert!(!svg.contains(['\u{202e}', '\u{1b}', '\u{ffff}']));
    assert!(svg.contains("&lt;script&gt;"));
}

#[test]
fn a_megabyte_in_a_cell_is_cut() {
    let mut tables = large::northbound(1, 1);
    let long = "x<".repeat(500_000);
    tables.set(
        "Logical_Switch",
        large::uuid(2, 0),
        [("name", large::text(&long))],
    );
    let svg = drawn(&tables, &View::default());
    assert_well_formed(&svg);
    assert!(svg.len() < 40_000, "{}", svg.len());
}

#[test]
fn sixty_switches_show_every_port() {
    let svg = drawn(&large::northbound(60, 40), &View::default());
    assert_well_formed(&svg);
    assert_eq!(svg.matches("aria-label=\"port vm").count(), 2400);
    assert_eq!(svg.matches("class=\"card switch").count(), 60);
}

#[test]
fn a_thousand_switches_are_bounded() {
    let svg = drawn(&large::northbound(1000, 40), &View::default());
    assert_eq!(svg.matches("class=\"card switch").count(), 199);
    assert!(svg.contains(">801 more</text>"));
    assert!(svg.contains("801 more are not drawn"));
}

#[test]
fn an_empty_database_is_a_picture() {
    let svg = drawn(&Tables::new(), &View::default());
    assert_well_formed(&svg);
    assert!(svg.contains("Nothing to show."));
}

#[test]
fn a_change_is_a_change_of_one_part() {
    let mut tables = large::northbound(60, 40);
    let parts = |tables: &Tables, before: Option<&Picture>| {
        let graph = graph(tables);
        let picture = Picture::new(&graph, &View::default(), before);
        let parts = picture.parts(&graph, &Texts::new("Logical network"));
        (picture, parts)
    };
    let (first, old) = parts(&tables, None);
    let down = Datum::one(Atom::Boolean(false));
    tables.set("Logical_Switch_Port", large::uuid(4, 7001), [("up", down)]);
    let (second, new) = parts(&tables, Some(&first));
    assert_eq!(first.layout.size, second.layout.size);
    let changed: Vec<&Part> = new.iter().filter(|part| !old.contains(part)).collect();
    let [part] = changed.as_slice() else {
        panic!("{} parts changed", changed.len());
    };
    let switch = Id::Row("Logical_Switch", large::uuid(2, 7));
    assert_eq!(part.key, switch.to_string());
    assert!(
        part.text
            .starts_with(&format!("<g data-key=\"{switch}\" class=\"card switch"))
    );
    assert!(part.text.len() < 10_000, "{}", part.text.len());
}

#[test]
fn cards_of_many_ports_are_bounded_together() {
    let svg = drawn(&large::northbound(150, 300), &View::default());
    let cells = svg.matches("#picture-cell-").count();
    assert!((5_000..=10_500).contains(&cells), "{cells}");
    assert!(svg.contains(">235 more</text>"));
}
