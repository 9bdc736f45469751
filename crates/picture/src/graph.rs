//! The network as a graph: nodes that own other nodes, and edges between any two.
//!
//! An owner is drawn as a card (a router, a switch, a host), with what it owns inside (its ports).
//! Edges join ports where it is known which, else cards. Nodes are in the order in which an
//! interpretation adds them, which follows the UUIDs of rows, so a graph is a function of the rows
//! alone. This file knows no positions.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;

use corvid_data::Uuid;

use crate::interpretations;
use crate::natural;

/// The identity of a node over time: the same row has the same id in every graph of a database.
///
/// ```
/// use corvid_picture::Id;
/// let id = Id::parse("Logical_Switch/00000000-0000-4000-8000-000000000001");
/// assert_eq!(
///     id.expect("a known table").to_string(),
///     "Logical_Switch/00000000-0000-4000-8000-000000000001"
/// );
/// assert_eq!(Id::parse("physical:net/1"), Some(Id::Named("physical", "net/1".to_owned())));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Id {
    /// A row: its table and UUID.
    Row(&'static str, Uuid),
    /// A row that several cards show, as the card of this other row shows it.
    Shared(&'static str, Uuid, Uuid),
    /// Something that no row stands for alone, such as a physical network: its sort and name.
    Named(&'static str, String),
}

/// The sorts of [`Id::Named`].
const SORTS: [&str; 9] = [
    "physical",
    "balancers",
    "translations",
    "overlay",
    "unbound",
    "remote",
    "table",
    "port",
    "more",
];

impl Id {
    /// Reads an id as its text has it, from an address for instance. `None` if no interpretation
    /// makes such ids.
    #[must_use]
    pub fn parse(text: &str) -> Option<Id> {
        let (sort, rest) = text.split_at(text.find(['/', ':'])?);
        if let Some(name) = rest.strip_prefix(':') {
            let sort = SORTS.into_iter().find(|known| *known == sort)?;
            return Some(Id::Named(sort, name.to_owned()));
        }
        let table = interpretations::ALL
            .iter()
            .flat_map(|known| known.tables)
            .find_map(|&(table, _)| (table == sort).then_some(table))?;
        let uuid = |text: &str| Uuid::parse(text.as_bytes());
        Some(match rest[1..].split_once('@') {
            None => Id::Row(table, uuid(&rest[1..])?),
            Some((own, other)) => Id::Shared(table, uuid(own)?, uuid(other)?),
        })
    }
}

/// UUIDs come first, because they nearly always decide.
impl Ord for Id {
    fn cmp(&self, other: &Id) -> Ordering {
        fn key(id: &Id) -> (Uuid, Uuid, &str, &str) {
            match id {
                Id::Row(table, uuid) => (*uuid, Uuid::ZERO, table, ""),
                Id::Shared(table, uuid, owner) => (*uuid, *owner, table, "@"),
                Id::Named(sort, name) => (Uuid::ZERO, Uuid::ZERO, sort, name),
            }
        }
        let sort = |id: &Id| matches!(id, Id::Named(..));
        sort(self)
            .cmp(&sort(other))
            .then_with(|| key(self).cmp(&key(other)))
    }
}

impl PartialOrd for Id {
    fn partial_cmp(&self, other: &Id) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Id::Row(table, uuid) => write!(f, "{table}/{uuid}"),
            Id::Shared(table, uuid, other) => write!(f, "{table}/{uuid}@{other}"),
            Id::Named(sort, name) => write!(f, "{sort}:{name}"),
        }
    }
}

/// The kind of a node. It decides the symbol, the words and the order inside a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A network outside the database: a physical network, the underlay.
    Outside,
    /// An overlay that joins hosts by tunnels.
    Fabric,
    /// A router.
    Router,
    /// A switch or bridge.
    Switch,
    /// A host.
    Host,
    /// A far end that the database knows by its address alone.
    Remote,
    /// A table of a schema that has no other interpretation.
    Table,
    /// Nodes that are not drawn, by their number.
    More,
    /// A gateway that one of several hosts serves.
    Gateway,
    /// A port to a router, or of one.
    RouterPort,
    /// A bond of several interfaces.
    Bond,
    /// A port to a network outside.
    Uplink,
    /// A tunnel.
    Tunnel,
    /// A port to another bridge.
    Patch,
    /// A port of a machine or a container.
    Port,
    /// A load balancer.
    LoadBalancer,
    /// A rule of address translation.
    Nat,
}

impl Kind {
    /// The kind in one word, or a few.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Kind::Outside => "network outside",
            Kind::Fabric => "overlay",
            Kind::Router => "router",
            Kind::Switch => "switch",
            Kind::Host => "host",
            Kind::Remote => "remote end",
            Kind::Table => "table",
            Kind::More => "more",
            Kind::Gateway => "gateway",
            Kind::RouterPort => "router port",
            Kind::Uplink => "uplink",
            Kind::Tunnel => "tunnel",
            Kind::Patch => "patch port",
            Kind::Bond => "bond",
            Kind::Port => "port",
            Kind::LoadBalancer => "load balancer",
            Kind::Nat => "NAT",
        }
    }

    /// A number of the kind, as in "2 switches".
    #[must_use]
    pub fn counted(self, count: usize) -> String {
        let word = self.word();
        let many = match self {
            _ if count == 1 => "",
            Kind::Switch => "es",
            Kind::Outside => return format!("{count} networks outside"),
            Kind::More | Kind::Nat => "",
            _ => "s",
        };
        format!("{count} {word}{many}")
    }

    /// The class of the kind in a picture, which is also the name of its symbol.
    #[must_use]
    pub fn class(self) -> &'static str {
        match self {
            Kind::Outside => "outside",
            Kind::Fabric => "fabric",
            Kind::Router => "router",
            Kind::Switch => "switch",
            Kind::Host => "host",
            Kind::Remote => "remote",
            Kind::Table => "table",
            Kind::More => "more",
            Kind::Gateway => "gateway",
            Kind::RouterPort => "router-port",
            Kind::Uplink => "uplink",
            Kind::Tunnel => "tunnel",
            Kind::Patch => "patch",
            Kind::Bond => "bond",
            Kind::Port => "port",
            Kind::LoadBalancer => "balancer",
            Kind::Nat => "nat",
        }
    }
}

/// How something is. The order is that of severity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// It works, or has no state of its own.
    #[default]
    Ok,
    /// Nothing is known.
    Unknown,
    /// It works, but deserves a look.
    Warn,
    /// It does not work.
    Down,
}

impl State {
    /// The state in one word, which is also its class in a picture.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            State::Ok => "ok",
            State::Unknown => "unknown",
            State::Warn => "warn",
            State::Down => "down",
        }
    }
}

/// How something differs between two moments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Change {
    /// It is the same, or only one moment is drawn.
    #[default]
    None,
    /// Only the later moment has it.
    Added,
    /// Only the earlier moment has it.
    Removed,
    /// Both have it, differently.
    Changed,
}

/// A row of the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Row {
    /// Its table.
    pub table: &'static str,
    /// Its `_uuid`.
    pub uuid: Uuid,
}

/// A line of the text that hovering shows: a name and a value.
pub type Fact = (&'static str, String);

/// A node.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Its identity.
    pub id: Id,
    /// Its kind.
    pub kind: Kind,
    /// Its name.
    pub label: String,
    /// Shown next to the name: an address, a network, a count.
    pub detail: String,
    /// How it is.
    pub state: State,
    /// Why the state is not [`State::Ok`], in a few words.
    pub reason: String,
    /// The row that it stands for.
    pub row: Option<Row>,
    /// The index of the card in which it is drawn; `None` for cards.
    pub owner: Option<usize>,
    /// Further lines of the text that hovering shows.
    pub facts: Vec<Fact>,
    /// How it differs between two moments.
    pub change: Change,
}

impl Node {
    /// A card or a part of one, without details.
    #[must_use]
    pub fn new(id: Id, kind: Kind, label: impl Into<String>) -> Node {
        Node {
            id,
            kind,
            label: label.into(),
            detail: String::new(),
            state: State::Ok,
            reason: String::new(),
            row: None,
            owner: None,
            facts: Vec::new(),
            change: Change::None,
        }
    }

    /// The node of a row.
    #[must_use]
    pub fn of_row(table: &'static str, uuid: Uuid, kind: Kind, label: &str) -> Node {
        let mut node = Node::new(Id::Row(table, uuid), kind, label);
        if label.is_empty() {
            node.label = uuid.to_string()[..8].to_owned();
        }
        node.row = Some(Row { table, uuid });
        node
    }

    /// Adds a fact, unless its value is empty.
    pub fn fact(&mut self, name: &'static str, value: impl Into<String>) {
        let value = value.into();
        if !value.is_empty() {
            self.facts.push((name, value));
        }
    }

    /// Adds a count as a fact, unless it is 0.
    pub fn count(&mut self, name: &'static str, count: usize) {
        if count > 0 {
            self.facts.push((name, count.to_string()));
        }
    }

    /// Makes the state worse, never better, and says why.
    pub fn mark(&mut self, state: State, reason: impl Into<String>) {
        if state > self.state {
            self.state = state;
            self.reason = reason.into();
        }
    }
}

/// The kind of an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EdgeKind {
    /// A link that carries packets.
    Link,
    /// A tunnel.
    Tunnel,
    /// A place where something may run but does not at the moment.
    Standby,
    /// A reference between tables.
    Reference,
    /// A weak reference between tables.
    WeakReference,
}

impl EdgeKind {
    /// The class of the kind in a picture.
    #[must_use]
    pub fn class(self) -> &'static str {
        match self {
            EdgeKind::Link => "link",
            EdgeKind::Tunnel => "tunnel",
            EdgeKind::Standby => "standby",
            EdgeKind::Reference => "reference",
            EdgeKind::WeakReference => "weak",
        }
    }
}

/// An edge. Its ends are indexes of nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct Edge {
    /// One end; for references, the table that refers.
    pub from: usize,
    /// The other end.
    pub to: usize,
    /// Its kind.
    pub kind: EdgeKind,
    /// A short text along the edge.
    pub label: String,
    /// How it is.
    pub state: State,
    /// How it differs between two moments.
    pub change: Change,
}

/// A graph of one database.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Graph {
    /// The nodes. An owner may come after what it owns.
    pub nodes: Vec<Node>,
    /// The edges.
    pub edges: Vec<Edge>,
    /// Sentences about the whole, with their severity.
    pub notes: Vec<(State, String)>,
    by_id: BTreeMap<Id, usize>,
}

impl Graph {
    /// An empty graph.
    #[must_use]
    pub fn new() -> Graph {
        Graph::default()
    }

    /// Adds a node and returns its index. A second node with the same id is not added.
    pub fn add(&mut self, node: Node) -> usize {
        if let Some(&known) = self.by_id.get(&node.id) {
            return known;
        }
        let index = self.nodes.len();
        self.by_id.insert(node.id.clone(), index);
        self.nodes.push(node);
        index
    }

    /// Adds an edge without a state.
    pub fn join(&mut self, from: usize, to: usize, kind: EdgeKind, label: impl Into<String>) {
        self.edges.push(Edge {
            from,
            to,
            kind,
            label: label.into(),
            state: State::Ok,
            change: Change::None,
        });
    }

    /// The index of a node.
    #[must_use]
    pub fn find(&self, id: &Id) -> Option<usize> {
        self.by_id.get(id).copied()
    }

    /// The index of a row's node.
    #[must_use]
    pub fn find_row(&self, table: &'static str, uuid: Uuid) -> Option<usize> {
        self.find(&Id::Row(table, uuid))
    }

    /// The card in which a node is drawn: its owner, or itself.
    #[must_use]
    pub fn card_of(&self, node: usize) -> usize {
        self.nodes[node].owner.unwrap_or(node)
    }

    /// For each node, the nodes that it owns, in the order in which they are drawn.
    #[must_use]
    pub fn owned(&self) -> Vec<Vec<usize>> {
        let mut owned = vec![Vec::new(); self.nodes.len()];
        for (index, node) in self.nodes.iter().enumerate() {
            if let Some(owner) = node.owner {
                owned[owner].push(index);
            }
        }
        for members in &mut owned {
            members.sort_by(|&a, &b| {
                let (a, b) = (&self.nodes[a], &self.nodes[b]);
                a.kind
                    .cmp(&b.kind)
                    .then_with(|| natural::compare(&a.label, &b.label))
                    .then_with(|| a.id.cmp(&b.id))
            });
        }
        owned
    }

    /// The number of nodes of each state.
    #[must_use]
    pub fn count_of(&self, state: State) -> usize {
        self.nodes.iter().filter(|node| node.state == state).count()
    }
}
