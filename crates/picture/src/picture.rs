//! A picture: which cards of a graph are drawn, how large, where, and with what inside.
//!
//! Never everything: at most [`View::cards_max`] cards, each with a bounded number of ports. Cards
//! that are left out are counted where they belong: "N more". A card shows its ports as rows of
//! text where the picture has few, and as a front of small cells, like that of a real switch, where
//! it has many.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::graph::{Change, EdgeKind, Graph, Id, Kind, State};
use crate::layout::{Layout, Point, Problem, Size, lay_out};
use crate::natural;

/// The part of a graph that is drawn.
#[derive(Clone, Debug)]
pub struct View {
    /// Only what is at most `depth` steps from this node.
    pub focus: Option<Id>,
    /// Steps between cards from the focus.
    pub depth: usize,
    /// Only the cards of these nodes, such as those of a path.
    pub only: Option<BTreeSet<Id>>,
    /// Nodes that are emphasised, such as what was searched for.
    pub marked: BTreeSet<Id>,
    /// The most cards that are drawn.
    pub cards_max: usize,
}

impl Default for View {
    fn default() -> View {
        View {
            focus: None,
            depth: 1,
            only: None,
            marked: BTreeSet::new(),
            cards_max: 200,
        }
    }
}

/// The width of a card.
pub(crate) const CARD_WIDTH: i32 = 232;
/// Pixels between the border of a card and what is in it.
pub(crate) const PAD: i32 = 8;
/// Pixels that the name and the line below it take.
pub(crate) const HEAD: i32 = 46;
/// The height of a port as a row of text.
pub(crate) const ROW: i32 = 18;
/// The side of a port as a cell, with the gap to the next one.
pub(crate) const CELL: i32 = 9;
/// Cells side by side.
pub(crate) const CELLS_ACROSS: usize = 24;
/// The height of the line that counts ports left out.
pub(crate) const MORE: i32 = 16;
/// Ports that a card shows as rows.
const ROWS_MAX: usize = 12;
/// Ports that a card shows as rows if it is the focus.
const ROWS_MAX_FOCUS: usize = 96;
/// Rows of a column; a card with more rows gets another column.
pub(crate) const COLUMN: usize = 16;
/// Ports that a card shows as cells.
const CELLS_MAX: usize = 200;
/// Cells that a picture has, unless its cards have fewer than [`CELLS_MIN`] each.
const CELLS_MAX_ALL: usize = 10_000;
/// Ports that a card shows as cells, whatever the size of the picture: one row.
const CELLS_MIN: usize = CELLS_ACROSS;
/// Rows that a picture may have before ports become cells; and with cells, the number below which
/// they become rows again. The difference keeps one port more or less from changing every card.
const DENSE: (usize, usize) = (160, 120);

/// A card that is drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct Card {
    /// Its node; `None` for a card that stands for nodes left out.
    pub node: Option<usize>,
    /// How many cards are left out here; 0 if it is a node.
    pub left_out: usize,
    /// The card of whose neighbours it stands for some; `None` if for unconnected ones.
    pub near: Option<usize>,
    /// The ports that are shown.
    pub members: Vec<usize>,
    /// The number of ports that are not shown.
    pub members_left_out: usize,
    /// Whether ports are rows of text; cells otherwise.
    pub is_open: bool,
    /// Its upper left corner.
    pub corner: Point,
    /// Its size.
    pub size: Size,
}

/// A link between two cards that are drawn: all edges between them.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// Indexes of [`Picture::cards`].
    pub ends: (usize, usize),
    /// Indexes of the graph's edges. None if the link leads to what is left out.
    pub edges: Vec<usize>,
}

/// A picture of a graph, ready to be written.
#[derive(Clone, Debug)]
pub struct Picture {
    /// The cards, by name.
    pub cards: Vec<Card>,
    /// The links.
    pub links: Vec<Link>,
    /// Positions.
    pub layout: Layout,
    /// The nodes that are emphasised, by index.
    pub marked: BTreeSet<usize>,
    /// Cards that are not drawn.
    pub left_out: usize,
    is_dense: bool,
    corners: BTreeMap<Id, Point>,
}

impl Picture {
    /// Chooses, measures and places. Positions of `before`, the picture that this one replaces on
    /// the reader's screen, are kept where possible.
    #[must_use]
    pub fn new(graph: &Graph, view: &View, before: Option<&Picture>) -> Picture {
        let net = Net::new(graph);
        let chosen = net.chosen(view);
        let owned = graph.owned();
        let focus = view.focus.as_ref().and_then(|id| graph.find(id));
        let focus = focus.map(|node| graph.card_of(node));
        let ports: usize = chosen
            .iter()
            .map(|&card| owned[card].len().min(ROWS_MAX))
            .sum();
        let limit = match before {
            Some(before) if before.is_dense => DENSE.1,
            _ => DENSE.0,
        };
        let is_dense = ports > limit;
        let place: BTreeMap<usize, usize> = chosen
            .iter()
            .enumerate()
            .map(|(place, &node)| (node, place))
            .collect();
        let cells_max = (CELLS_MAX_ALL / chosen.len().max(1)).clamp(CELLS_MIN, CELLS_MAX);
        let joined = joined_ports(graph, &place, view);
        let mut cards: Vec<Card> = chosen
            .iter()
            .map(|&node| {
                let is_focus = focus == Some(node);
                let is_open = is_focus || !is_dense;
                let most = match (is_open, is_focus) {
                    (false, _) => cells_max,
                    (true, false) => ROWS_MAX,
                    (true, true) => ROWS_MAX_FOCUS,
                };
                Card::of_node(
                    node,
                    shown(graph, view, &joined, &owned[node], most),
                    owned[node].len(),
                    is_open,
                )
            })
            .collect();
        let mut links = net.links(&place);
        let left_out = net.add_left_out(&place, &mut cards, &mut links, view);
        let referred: BTreeSet<usize> = graph.edges.iter().map(|edge| edge.to).collect();
        let corner_before = |card: &Card| before?.corners.get(&card.id(graph)).copied();
        let problem = Problem {
            sizes: cards.iter().map(|card| card.size).collect(),
            ranks: cards
                .iter()
                .map(|card| card.rank(graph, &referred))
                .collect(),
            links: links.iter().map(|link| link.ends).collect(),
            before: cards.iter().map(corner_before).collect(),
        };
        let layout = lay_out(&problem);
        let mut corners = BTreeMap::new();
        for (card, &corner) in cards.iter_mut().zip(&layout.corners) {
            card.corner = corner;
            corners.insert(card.id(graph), corner);
        }
        let marked = view.marked.iter().filter_map(|id| graph.find(id)).collect();
        Picture {
            cards,
            links,
            layout,
            marked,
            left_out,
            is_dense,
            corners,
        }
    }
}

/// The ends of drawn links, in a picture of a part of the graph.
fn joined_ports(graph: &Graph, place: &BTreeMap<usize, usize>, view: &View) -> BTreeSet<usize> {
    if view.focus.is_none() && view.only.is_none() {
        return BTreeSet::new();
    }
    let is_drawn = |node: usize| place.contains_key(&graph.card_of(node));
    let edges = graph.edges.iter();
    edges
        .filter(|edge| is_drawn(edge.from) && is_drawn(edge.to))
        .flat_map(|edge| [edge.from, edge.to])
        .collect()
}

/// The ports of a card that are shown: the first ones, but none that is emphasised, joined to a
/// drawn card, changed or down is left out for one that is not.
fn shown(
    graph: &Graph,
    view: &View,
    joined: &BTreeSet<usize>,
    ports: &[usize],
    most: usize,
) -> Vec<usize> {
    if ports.len() <= most {
        return ports.to_vec();
    }
    let mut places: Vec<usize> = (0..ports.len()).collect();
    places.sort_by_key(|&place| {
        let node = &graph.nodes[ports[place]];
        let is_focus = view.focus.as_ref() == Some(&node.id);
        (
            !(is_focus || view.marked.contains(&node.id)),
            !joined.contains(&ports[place]),
            node.change == Change::None,
            node.state < State::Warn,
            place,
        )
    });
    places.truncate(most);
    places.sort_unstable();
    places.into_iter().map(|place| ports[place]).collect()
}

impl Card {
    fn of_node(node: usize, members: Vec<usize>, all: usize, is_open: bool) -> Card {
        let count = members.len();
        let rows = |count: usize| i32::try_from(count).unwrap_or(i32::MAX);
        let mut height = HEAD;
        if count > 0 {
            height += match is_open {
                true => rows(count.min(COLUMN)) * ROW,
                false => rows(count.div_ceil(CELLS_ACROSS)) * CELL,
            };
            height += PAD;
        }
        if all > count {
            height += MORE;
        }
        Card {
            node: Some(node),
            left_out: 0,
            near: None,
            members_left_out: all - count,
            members,
            is_open,
            corner: Point::default(),
            size: Size {
                width: match is_open {
                    true => CARD_WIDTH * rows(count.div_ceil(COLUMN).max(1)),
                    false => CARD_WIDTH,
                },
                height,
            },
        }
    }

    fn of_left_out(count: usize, near: Option<usize>) -> Card {
        Card {
            node: None,
            left_out: count,
            near,
            ..Card::of_node(0, Vec::new(), 0, true)
        }
    }

    /// The identity of the card's contents over time.
    pub(crate) fn id(&self, graph: &Graph) -> Id {
        match (self.node, self.near) {
            (Some(node), _) => graph.nodes[node].id.clone(),
            (None, Some(near)) => Id::Named("more", graph.nodes[near].id.to_string()),
            (None, None) => Id::Named("more", String::new()),
        }
    }

    /// The least rank comes on top: networks outside, tables to which no other one refers.
    fn rank(&self, graph: &Graph, referred: &BTreeSet<usize>) -> u8 {
        let Some(node) = self.node else {
            return 2;
        };
        match graph.nodes[node].kind {
            Kind::Outside | Kind::Fabric => 0,
            Kind::Table => u8::from(referred.contains(&node)),
            _ => 1,
        }
    }
}

/// The cards of a graph and which of them are joined.
struct Net<'g> {
    graph: &'g Graph,
    /// For each node, if it is a card, the cards that it is joined to and by which edges.
    near: Vec<BTreeMap<usize, Vec<usize>>>,
}

impl<'g> Net<'g> {
    fn new(graph: &'g Graph) -> Net<'g> {
        let mut near = vec![BTreeMap::new(); graph.nodes.len()];
        for (index, edge) in graph.edges.iter().enumerate() {
            let (a, b) = (graph.card_of(edge.from), graph.card_of(edge.to));
            if a != b {
                let edges: &mut Vec<usize> = near[a].entry(b).or_default();
                edges.push(index);
                near[b].entry(a).or_default().push(index);
            }
        }
        Net { graph, near }
    }

    /// The cards that are drawn, by name.
    fn chosen(&self, view: &View) -> Vec<usize> {
        let graph = self.graph;
        let is_card = |node: &usize| graph.nodes[*node].owner.is_none();
        let mut chosen: Vec<usize> = match (&view.only, &view.focus) {
            (Some(only), _) => {
                let nodes = only.iter().filter_map(|id| graph.find(id));
                let cards: BTreeSet<usize> = nodes.map(|node| graph.card_of(node)).collect();
                cards.into_iter().collect()
            }
            (None, Some(focus)) => match graph.find(focus) {
                Some(node) => self.around(graph.card_of(node), view.depth),
                None => Vec::new(),
            },
            (None, None) => {
                let mut cards: Vec<usize> = (0..graph.nodes.len()).filter(is_card).collect();
                // Cards that join others come first, then those that hang on one, then lone ones.
                cards.sort_by(|&a, &b| {
                    let weight = |node: usize| self.near[node].len().min(2);
                    weight(b).cmp(&weight(a)).then_with(|| self.by_name(a, b))
                });
                cards
            }
        };
        chosen.truncate(view.cards_max);
        chosen.sort_by(|&a, &b| self.by_name(a, b));
        chosen
    }

    fn by_name(&self, a: usize, b: usize) -> std::cmp::Ordering {
        let (a, b) = (&self.graph.nodes[a], &self.graph.nodes[b]);
        a.kind
            .cmp(&b.kind)
            .then_with(|| natural::compare(&a.label, &b.label))
            .then_with(|| a.id.cmp(&b.id))
    }

    /// The cards up to a distance from one, the closest first.
    fn around(&self, card: usize, depth: usize) -> Vec<usize> {
        let mut found = vec![card];
        let mut seen = BTreeSet::from([card]);
        let mut queue = VecDeque::from([(card, 0)]);
        while let Some((card, distance)) = queue.pop_front() {
            if distance == depth {
                continue;
            }
            let mut near: Vec<usize> = self.near[card].keys().copied().collect();
            near.sort_by(|&a, &b| self.by_name(a, b));
            for card in near {
                if seen.insert(card) {
                    found.push(card);
                    queue.push_back((card, distance + 1));
                }
            }
        }
        found
    }

    /// The links between drawn cards.
    fn links(&self, place: &BTreeMap<usize, usize>) -> Vec<Link> {
        let mut links = Vec::new();
        for (&node, &own) in place {
            for (other, edges) in &self.near[node] {
                if let Some(&other) = place.get(other).filter(|&&other| own < other) {
                    links.push(Link {
                        ends: (own, other),
                        edges: edges.clone(),
                    });
                }
            }
        }
        links.sort_by_key(|link| link.ends);
        links
    }

    /// Adds a card for what is left out near each drawn card. Returns how many cards are left out
    /// in all.
    fn add_left_out(
        &self,
        place: &BTreeMap<usize, usize>,
        cards: &mut Vec<Card>,
        links: &mut Vec<Link>,
        view: &View,
    ) -> usize {
        let is_left_out =
            |node: usize| self.graph.nodes[node].owner.is_none() && !place.contains_key(&node);
        let all = (0..self.graph.nodes.len())
            .filter(|&node| is_left_out(node))
            .count();
        if view.only.is_some() {
            return all;
        }
        let mut reached = BTreeSet::new();
        for own in 0..place.len() {
            let Some(node) = cards[own].node else {
                continue;
            };
            let near: Vec<usize> = self.near[node]
                .keys()
                .copied()
                .filter(|&other| is_left_out(other))
                .collect();
            if !near.is_empty() {
                links.push(Link {
                    ends: (own, cards.len()),
                    edges: Vec::new(),
                });
                cards.push(Card::of_left_out(near.len(), Some(node)));
                reached.extend(near);
            }
        }
        if view.focus.is_none() && all > reached.len() {
            cards.push(Card::of_left_out(all - reached.len(), None));
        }
        all
    }
}

impl Link {
    /// The worst state of its edges.
    #[must_use]
    pub fn state(&self, graph: &Graph) -> State {
        let states = self.edges.iter().map(|&edge| graph.edges[edge].state);
        states.max().unwrap_or_default()
    }

    /// How it differs between two moments: as its edges do, if all do alike.
    #[must_use]
    pub fn change(&self, graph: &Graph) -> Change {
        let mut changes = self.edges.iter().map(|&edge| graph.edges[edge].change);
        let first = changes.next().unwrap_or_default();
        match changes.all(|change| change == first) {
            true => first,
            false => Change::Changed,
        }
    }

    /// The kind of its first edge.
    #[must_use]
    pub fn kind(&self, graph: &Graph) -> EdgeKind {
        self.edges
            .iter()
            .map(|&edge| graph.edges[edge].kind)
            .min()
            .unwrap_or(EdgeKind::Standby)
    }
}
