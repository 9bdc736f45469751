//! Writes a picture as SVG.
//!
//! Everything that comes from a database is escaped here, and nowhere else: names are text, never
//! markup, and control characters are shown as escapes. There is no style and no script in the
//! text, only classes, so it fits under a strict content security policy; [`STYLE`] gives the
//! classes their colours. A state never shows by its colour alone: cells have a shape for each.

mod escape;
mod symbols;

use std::fmt::Write;

use crate::graph::{Change, EdgeKind, Graph, Id, Kind, Node, Row, State};
use crate::layout::{Point, Route};
use crate::picture::{
    CARD_WIDTH, CELL, CELLS_ACROSS, COLUMN, Card, HEAD, Link, MORE, PAD, Picture, ROW,
};

use escape::{Escaped, cut, fit, units};

/// The style sheet for the classes of a picture: for light and dark screens and for paper.
pub const STYLE: &str = include_str!("picture.css");

/// Where a link in a picture leads.
#[derive(Clone, Copy, Debug)]
pub enum Target<'a> {
    /// A row.
    Row(&'a Row),
    /// A table.
    Table(&'a str),
    /// The picture of what is around a node.
    Around(&'a Id),
}

/// Makes the address of a target; `None` for none.
pub type Links<'a> = &'a dyn Fn(Target<'_>) -> Option<String>;

/// The title of a picture, and where its links lead.
#[derive(Clone, Copy)]
pub struct Texts<'a> {
    /// The title, for those who do not see the picture.
    pub title: &'a str,
    /// Begins all ids, so that several pictures fit in one document: letters, digits and dashes.
    pub prefix: &'a str,
    /// Makes addresses.
    pub links: Option<Links<'a>>,
}

impl<'a> Texts<'a> {
    /// A picture without links.
    #[must_use]
    pub fn new(title: &'a str) -> Texts<'a> {
        Texts {
            title,
            prefix: "picture",
            links: None,
        }
    }
}

/// A link or a card of a picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Names the part as long as the nodes exist. The element has it as `data-key`.
    pub key: String,
    /// The element `g`.
    pub text: String,
}

/// Pixels around the cards.
const MARGIN: i32 = 16;
/// Room for a name in the head of a card, in tenths of a letter.
const NAME_ROOM: u32 = 228;
/// Room for the line below it.
const DETAIL_ROOM: u32 = 330;
/// Room for the line below the name when a count stands at its right.
const DETAIL_ROOM_BADGE: u32 = 235;
/// Room of a row: name and detail.
const ROW_ROOM: u32 = 275;
/// The width of a letter along a link, in pixels.
const LABEL_LETTER: u32 = 6;
/// Letters of a fact.
const FACT_MAX: usize = 300;
/// The radius of the corners of links.
const RADIUS: i32 = 6;

impl Picture {
    /// The picture as SVG.
    #[must_use]
    pub fn svg(&self, graph: &Graph, texts: &Texts<'_>) -> String {
        let mut out = String::with_capacity(4096 + 512 * self.cards.len());
        let writer = Writer {
            picture: self,
            graph,
            texts,
        };
        writer.write(&mut out);
        out
    }

    /// The parts of the picture: links, then cards. A page that shows the last picture needs only
    /// the parts whose text is another one, if [`Picture::layout`] still has the same size.
    #[must_use]
    pub fn parts(&self, graph: &Graph, texts: &Texts<'_>) -> Vec<Part> {
        let writer = Writer {
            picture: self,
            graph,
            texts,
        };
        writer.parts()
    }

    /// The contents of the picture in sentences.
    #[must_use]
    pub fn description(&self, graph: &Graph) -> String {
        let mut counts: std::collections::BTreeMap<Kind, usize> = std::collections::BTreeMap::new();
        for node in self.cards.iter().filter_map(|card| card.node) {
            *counts.entry(graph.nodes[node].kind).or_default() += 1;
        }
        let mut text = String::new();
        for (kind, count) in counts {
            let comma = if text.is_empty() { "" } else { ", " };
            let _ = write!(text, "{comma}{}", kind.counted(count));
        }
        if text.is_empty() {
            text.push_str("Nothing to show");
        }
        text.push('.');
        if self.left_out > 0 {
            let _ = write!(text, " {} more are not drawn.", self.left_out);
        }
        for (_, note) in &graph.notes {
            let _ = write!(text, " {note}.");
        }
        text
    }
}

struct Writer<'a> {
    picture: &'a Picture,
    graph: &'a Graph,
    texts: &'a Texts<'a>,
}

// Writing to a string cannot fail, so results of `write!` are dropped.
impl Writer<'_> {
    fn write(&self, out: &mut String) {
        let size = self.picture.layout.size;
        // Labels of links at the right may be longer than the cards below them.
        let links = self.picture.links.iter().zip(&self.picture.layout.routes);
        let labels = links.filter_map(|(link, route)| {
            let (text, point) = self.label_of(link, route)?;
            Some(point.x + i32::try_from(units(&text) * LABEL_LETTER / 10).unwrap_or(0))
        });
        let right = labels.max().unwrap_or(0).max(size.width);
        let (width, height) = (right + 2 * MARGIN, size.height + 2 * MARGIN);
        let prefix = self.texts.prefix;
        // Links inside of an image would be hidden from screen readers.
        let role = if self.texts.links.is_some() {
            "group"
        } else {
            "img"
        };
        let _ = write!(
            out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"picture\" role=\"{role}\" \
             aria-labelledby=\"{prefix}-title {prefix}-desc\" \
             viewBox=\"{left} {left} {width} {height}\" width=\"{width}\" height=\"{height}\">\n\
             <title id=\"{prefix}-title\">{title}</title>\n\
             <desc id=\"{prefix}-desc\">{description}</desc>\n",
            left = -MARGIN,
            title = Escaped(self.texts.title),
            description = Escaped(&self.picture.description(self.graph)),
        );
        symbols::write(out, prefix);
        out.push_str("<g class=\"links\">\n");
        let parts = self.parts();
        let (links, cards) = parts.split_at(self.picture.links.len());
        for part in links {
            out.push_str(&part.text);
        }
        out.push_str("</g>\n<g class=\"cards\">\n");
        for part in cards {
            out.push_str(&part.text);
        }
        out.push_str("</g>\n</svg>\n");
    }

    /// The links, then the cards.
    fn parts(&self) -> Vec<Part> {
        let picture = self.picture;
        // Broken and changed links are drawn over others.
        let mut order: Vec<usize> = (0..picture.links.len()).collect();
        order.sort_by_key(|&link| {
            let link = &picture.links[link];
            (
                link.state(self.graph),
                link.change(self.graph) != Change::None,
            )
        });
        let key = |card: usize| picture.cards[card].id(self.graph).to_string();
        let mut parts = Vec::with_capacity(order.len() + picture.cards.len());
        for index in order {
            let link = &picture.links[index];
            let key = format!("{} - {}", key(link.ends.0), key(link.ends.1));
            let mut text = format!("<g data-key=\"{}\"", Escaped(&key));
            self.link(&mut text, link, &picture.layout.routes[index]);
            parts.push(Part { key, text });
        }
        for (index, card) in picture.cards.iter().enumerate() {
            let key = key(index);
            let mut text = format!("<g data-key=\"{}\"", Escaped(&key));
            self.card(&mut text, card);
            parts.push(Part { key, text });
        }
        parts
    }

    fn link(&self, out: &mut String, link: &Link, route: &Route) {
        let graph = self.graph;
        let _ = write!(
            out,
            " class=\"link {} {}{}\"><title>",
            link.kind(graph).class(),
            link.state(graph).word(),
            class_of(link.change(graph)),
        );
        for (index, &edge) in link.edges.iter().take(12).enumerate() {
            let edge = &graph.edges[edge];
            if index > 0 {
                out.push('\n');
            }
            let [from, to] = [edge.from, edge.to].map(|node| &graph.nodes[node].label);
            let _ = write!(
                out,
                "{} – {}",
                Escaped(&cut(from, 60)),
                Escaped(&cut(to, 60))
            );
            if !edge.label.is_empty() {
                let _ = write!(out, ": {}", Escaped(&cut(&edge.label, 100)));
            }
            if edge.state != State::Ok {
                let _ = write!(out, " ({})", edge.state.word());
            }
            out.push_str(word_of(edge.change));
        }
        out.push_str("</title><path d=\"");
        path(out, route);
        out.push('"');
        if matches!(
            link.kind(graph),
            EdgeKind::Reference | EdgeKind::WeakReference
        ) {
            self.arrow(out, link);
        }
        out.push_str("/>");
        self.label(out, link, route);
        out.push_str("</g>\n");
    }

    /// An arrow at the end to which a reference leads.
    fn arrow(&self, out: &mut String, link: &Link) {
        let Some(edge) = link.edges.first().map(|&edge| &self.graph.edges[edge]) else {
            return;
        };
        let Some(route) = self
            .picture
            .links
            .iter()
            .position(|other| other.ends == link.ends)
            .map(|link| &self.picture.layout.routes[link])
        else {
            return;
        };
        let Some(&last) = route.points.last() else {
            return;
        };
        let to = self
            .picture
            .cards
            .iter()
            .find(|card| card.node == Some(edge.to));
        let ends_there = to.is_some_and(|card| {
            let corner = card.corner;
            (corner.x..=corner.x + card.size.width).contains(&last.x)
                && (corner.y..=corner.y + card.size.height).contains(&last.y)
        });
        let end = if ends_there { "end" } else { "start" };
        let _ = write!(out, " marker-{end}=\"url(#{}-arrow)\"", self.texts.prefix);
    }

    fn label(&self, out: &mut String, link: &Link, route: &Route) {
        if let Some((text, Point { x, y })) = self.label_of(link, route) {
            let _ = write!(out, "<text x=\"{x}\" y=\"{y}\">{}</text>", Escaped(&text));
        }
    }

    /// The label of a link, next to its last piece, which is upright.
    fn label_of(&self, link: &Link, route: &Route) -> Option<(String, Point)> {
        let mut labels = link
            .edges
            .iter()
            .map(|&edge| self.graph.edges[edge].label.as_str())
            .filter(|label| !label.is_empty());
        let first = labels.next().filter(|_| route.label_room > 0)?;
        let room = u32::try_from(route.label_room).unwrap_or(0) * 10 / LABEL_LETTER;
        let mut text = fit(first, room).into_owned();
        let more = labels.filter(|&label| label != first).count();
        if more > 0 {
            let _ = write!(text, " +{more}");
        }
        let [.., before, end] = route.points.as_slice() else {
            return None;
        };
        let y = if before.y <= end.y {
            end.y - 7
        } else {
            end.y + 14
        };
        Some((text, Point { x: end.x + 5, y }))
    }

    fn card(&self, out: &mut String, card: &Card) {
        let Point { x, y } = card.corner;
        let Some(index) = card.node else {
            self.left_out(out, card);
            return;
        };
        let node = &self.graph.nodes[index];
        let _ = write!(
            out,
            " class=\"card {} {}{}{}\" transform=\"translate({x} {y})\">",
            node.kind.class(),
            node.state.word(),
            class_of(node.change),
            if self.picture.marked.contains(&index) {
                " marked"
            } else {
                ""
            },
        );
        self.begin_anchor(out, node, true);
        let prefix = self.texts.prefix;
        let _ = write!(
            out,
            "<rect class=\"face\" width=\"{}\" height=\"{}\" rx=\"6\"/>\
             <use href=\"#{prefix}-{}\" x=\"{PAD}\" y=\"7\" width=\"18\" height=\"18\"/>\
             <text class=\"name\" x=\"32\" y=\"20\">{}</text>",
            card.size.width,
            card.size.height,
            node.kind.class(),
            Escaped(&fit(&node.label, NAME_ROOM)),
        );
        let detail = match node.state {
            State::Ok => &node.detail,
            _ if node.reason.is_empty() => &node.detail,
            _ => &node.reason,
        };
        let room = match self.worst(card) {
            Some(_) => DETAIL_ROOM_BADGE,
            None => DETAIL_ROOM,
        };
        if !detail.is_empty() {
            let _ = write!(
                out,
                "<text class=\"detail\" x=\"{PAD}\" y=\"38\">{}</text>",
                Escaped(&fit(detail, room)),
            );
        }
        self.end_anchor(out, node);
        self.badge(out, card);
        if node.change != Change::None {
            let _ = write!(
                out,
                "<use href=\"#{prefix}-mark{}\" x=\"-9\" y=\"-9\" width=\"18\" height=\"18\"/>",
                class_of(node.change).replace(' ', "-"),
            );
        }
        for (place, &member) in card.members.iter().enumerate() {
            match card.is_open {
                true => self.row(out, place, member),
                false => self.cell(out, place, member),
            }
        }
        if card.members_left_out > 0 {
            let _ = write!(
                out,
                "<text class=\"detail\" x=\"{PAD}\" y=\"{}\">{} more</text>",
                card.size.height - MORE + 8,
                card.members_left_out,
            );
        }
        out.push_str("</g>\n");
    }

    /// The state of ports of a card that deserves a look, and how many have it.
    fn worst(&self, card: &Card) -> Option<(State, usize)> {
        [State::Down, State::Warn].into_iter().find_map(|state| {
            let is_so = |&&member: &&usize| {
                let node = &self.graph.nodes[member];
                node.state == state && node.change != Change::Removed
            };
            let count = card.members.iter().filter(is_so).count();
            (count > 0).then_some((state, count))
        })
    }

    /// The number of ports that are down, at the right of a card's head.
    fn badge(&self, out: &mut String, card: &Card) {
        if let Some((state, count)) = self.worst(card) {
            let _ = write!(
                out,
                "<text class=\"badge {word}\" x=\"{}\" y=\"38\">{count} {word}</text>",
                card.size.width - PAD,
                word = state.word(),
            );
        }
    }

    fn left_out(&self, out: &mut String, card: &Card) {
        let Point { x, y } = card.corner;
        let _ = write!(
            out,
            " class=\"card more\" transform=\"translate({x} {y})\">"
        );
        let target = card
            .near
            .map(|near| Target::Around(&self.graph.nodes[near].id));
        let address = target.and_then(|target| self.texts.links?(target));
        if let Some(address) = &address {
            let _ = write!(out, "<a href=\"{}\">", Escaped(address));
        }
        let _ = write!(
            out,
            "<rect class=\"face\" width=\"{}\" height=\"{}\" rx=\"6\"/>\
             <text class=\"name\" x=\"{PAD}\" y=\"20\">{} more</text>\
             <text class=\"detail\" x=\"{PAD}\" y=\"38\">{}</text>",
            card.size.width,
            card.size.height,
            card.left_out,
            if card.near.is_some() {
                "not drawn here"
            } else {
                "not drawn: search by name"
            },
        );
        if address.is_some() {
            out.push_str("</a>");
        }
        out.push_str("</g>\n");
    }

    /// A port as a row of text.
    fn row(&self, out: &mut String, place: usize, index: usize) {
        let node = &self.graph.nodes[index];
        let at = |places: usize, step: i32| step * i32::try_from(places).unwrap_or(0);
        let x = at(place / COLUMN, CARD_WIDTH);
        let y = HEAD + at(place % COLUMN, ROW);
        self.begin_port(out, index, node);
        let prefix = self.texts.prefix;
        let detail = match node.detail.is_empty() && node.state != State::Ok {
            true => &node.reason,
            false => &node.detail,
        };
        // A long detail gives way down to a third of the row, then the name does.
        let name_room = ROW_ROOM - units(detail).min(ROW_ROOM / 3);
        let name = fit(&node.label, name_room);
        let detail = fit(detail, ROW_ROOM.saturating_sub(units(&name)));
        let _ = write!(
            out,
            "<rect class=\"hit\" x=\"{}\" y=\"{y}\" width=\"{}\" height=\"{ROW}\" rx=\"3\"/>\
             <use href=\"#{prefix}-cell-{}-{}\" x=\"{}\" y=\"{}\" width=\"9\" height=\"9\"/>\
             <text class=\"port\" x=\"{}\" y=\"{}\">{}</text>",
            x + 2,
            CARD_WIDTH - 4,
            shape(node.kind),
            node.state.word(),
            x + PAD,
            y + 4,
            x + 23,
            y + 13,
            Escaped(&name),
        );
        if !detail.is_empty() {
            let _ = write!(
                out,
                "<text class=\"value\" x=\"{}\" y=\"{}\">{}</text>",
                x + CARD_WIDTH - PAD,
                y + 13,
                Escaped(&detail),
            );
        }
        self.end_port(out, node, x + PAD, y + 4);
    }

    /// A port as a cell.
    fn cell(&self, out: &mut String, place: usize, index: usize) {
        let node = &self.graph.nodes[index];
        let at = |places: usize| CELL * i32::try_from(places).unwrap_or(0);
        let (x, y) = (
            PAD + at(place % CELLS_ACROSS),
            HEAD + at(place / CELLS_ACROSS),
        );
        self.begin_port(out, index, node);
        let _ = write!(
            out,
            "<use href=\"#{}-cell-{}-{}\" x=\"{x}\" y=\"{y}\" width=\"8\" height=\"8\"/>",
            self.texts.prefix,
            shape(node.kind),
            node.state.word(),
        );
        self.end_port(out, node, x, y);
    }

    fn begin_port(&self, out: &mut String, index: usize, node: &Node) {
        let marked = if self.picture.marked.contains(&index) {
            " marked"
        } else {
            ""
        };
        let _ = write!(
            out,
            "<g class=\"port {}{}{marked}\">",
            node.state.word(),
            class_of(node.change),
        );
        self.begin_anchor(out, node, false);
    }

    fn end_port(&self, out: &mut String, node: &Node, x: i32, y: i32) {
        self.end_anchor(out, node);
        if node.change != Change::None {
            let _ = write!(
                out,
                "<use href=\"#{}-mark{}\" x=\"{}\" y=\"{}\" width=\"12\" height=\"12\"/>",
                self.texts.prefix,
                class_of(node.change).replace(' ', "-"),
                x - 2,
                y - 2,
            );
        }
        out.push_str("</g>");
    }

    /// Begins the link to a node's row and tells what hovering shows. Only cards are stops of the
    /// keyboard, because ports are too many.
    fn begin_anchor(&self, out: &mut String, node: &Node, is_card: bool) {
        if let Some(address) = self.address(node) {
            let _ = write!(out, "<a href=\"{}\"", Escaped(&address));
            if !is_card {
                out.push_str(" tabindex=\"-1\"");
            }
            let _ = write!(
                out,
                " aria-label=\"{} {}",
                node.kind.word(),
                Escaped(&cut(&node.label, 60)),
            );
            if node.state != State::Ok {
                let _ = write!(out, ", {}", node.state.word());
            }
            out.push_str("\">");
        }
        let _ = write!(
            out,
            "<title>{} {}",
            node.kind.word(),
            Escaped(&cut(&node.label, FACT_MAX)),
        );
        if !node.detail.is_empty() {
            let _ = write!(out, "\n{}", Escaped(&cut(&node.detail, FACT_MAX)));
        }
        if node.state != State::Ok {
            let _ = write!(out, "\n{}", node.state.word());
            if node.reason != node.state.word() && !node.reason.is_empty() {
                let _ = write!(out, ": {}", Escaped(&cut(&node.reason, FACT_MAX)));
            }
        }
        for (name, value) in &node.facts {
            let _ = write!(out, "\n{name}: {}", Escaped(&cut(value, FACT_MAX)));
        }
        out.push_str(word_of(node.change));
        out.push_str("</title>");
    }

    fn end_anchor(&self, out: &mut String, node: &Node) {
        if self.address(node).is_some() {
            out.push_str("</a>");
        }
    }

    fn address(&self, node: &Node) -> Option<String> {
        let links = self.texts.links?;
        match (&node.row, node.kind) {
            (Some(row), _) => links(Target::Row(row)),
            (None, Kind::Table) => links(Target::Table(&node.label)),
            (None, _) => links(Target::Around(&node.id)),
        }
    }
}

/// The class of a change, after a space.
fn class_of(change: Change) -> &'static str {
    match change {
        Change::None => "",
        Change::Added => " added",
        Change::Removed => " removed",
        Change::Changed => " changed",
    }
}

/// A change in words, as the last line of what hovering shows.
fn word_of(change: Change) -> &'static str {
    match change {
        Change::None => "",
        Change::Added => "\nadded",
        Change::Removed => "\nremoved",
        Change::Changed => "\nchanged",
    }
}

/// The shape of a cell.
fn shape(kind: Kind) -> &'static str {
    match kind {
        Kind::RouterPort | Kind::Patch | Kind::Gateway => "inner",
        Kind::Uplink | Kind::Tunnel | Kind::Bond => "outer",
        Kind::LoadBalancer | Kind::Nat => "service",
        _ => "port",
    }
}

/// The way of a link as the data of a path, with round corners.
fn path(out: &mut String, route: &Route) {
    let points = &route.points;
    let Some(first) = points.first() else {
        return;
    };
    let _ = write!(out, "M{} {}", first.x, first.y);
    for index in 1..points.len() {
        let (from, to) = (points[index - 1], points[index]);
        if route.curve == Some(index - 1) {
            // Upright at both ends; between cards of one layer, a bow below them.
            let half = match to.y == from.y {
                true => 24,
                false => (to.y - from.y) / 2,
            };
            let (first, second) = match to.y == from.y {
                true => (from.y + half, to.y + half),
                false => (from.y + half, to.y - half),
            };
            let _ = write!(
                out,
                "C{} {first} {} {second} {} {}",
                from.x, to.x, to.x, to.y
            );
            continue;
        }
        let is_corner = points.get(index + 1).is_some() && route.curve != Some(index);
        match is_corner {
            true => {
                let next = points[index + 1];
                let radius = RADIUS.min(length(from, to) / 2).min(length(to, next) / 2);
                let (a, b) = (towards(to, from, radius), towards(to, next, radius));
                let _ = write!(out, "L{} {}Q{} {} {} {}", a.x, a.y, to.x, to.y, b.x, b.y);
            }
            false => {
                let _ = write!(out, "L{} {}", to.x, to.y);
            }
        }
    }
}

fn length(a: Point, b: Point) -> i32 {
    (a.x - b.x).abs() + (a.y - b.y).abs()
}

/// The point at a distance from `from` in the direction of `to`, along an axis.
fn towards(from: Point, to: Point, distance: i32) -> Point {
    Point {
        x: from.x + distance * (to.x - from.x).signum(),
        y: from.y + distance * (to.y - from.y).signum(),
    }
}
