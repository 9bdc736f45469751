//! Pictures of the networks that OVSDB databases describe.
//!
//! Rows go in, SVG comes out, and nothing else: no socket, clock, file or thread. The crate knows
//! neither clients nor pages; a program fills [`Tables`] and serves what [`Picture`] writes. Its
//! files, in the order in which a picture arises:
//!
//! ```text
//! tables            rows as the caller has them
//! interpretations   rows to a graph: one file for each known database, and one for any other
//! graph             cards, ports inside of them, edges, states
//! difference        two graphs to one that shows what changed
//! search, path      nodes by name; the way between two ports
//! natural           the order of names
//! picture           which cards are drawn, and how large
//! layout            where: blocks of rows, layers, links
//! svg               the text, whose colours are in `picture.css`
//! ```
//!
//! ```
//! use corvid_data::{Atom, Datum, DatumBuilder, Str, Uuid};
//! use corvid_picture::{Picture, Tables, Texts, View, interpretations};
//!
//! let text = |text: &str| Datum::one(Atom::String(Str::new(text)));
//! let reference = |uuid: Uuid| Datum::one(Atom::Uuid(uuid));
//! let (switch, port) = (Uuid([1; 16]), Uuid([2; 16]));
//!
//! let mut tables = Tables::new();
//! tables.set("Logical_Switch", switch, [("name", text("web")), ("ports", reference(port))]);
//! tables.set("Logical_Switch_Port", port, [("name", text("web1"))]);
//!
//! let northbound = interpretations::of("OVN_Northbound").expect("it is known");
//! let graph = (northbound.read)(&tables);
//! let picture = Picture::new(&graph, &View::default(), None);
//! let svg = picture.svg(&graph, &Texts::new("Logical network"));
//! assert!(svg.starts_with("<svg") && svg.contains("web1"));
//! ```

pub mod difference;
pub mod graph;
pub mod interpretations;
pub mod layout;
pub mod natural;
pub mod path;
pub mod picture;
pub mod search;
pub mod svg;
pub mod tables;

pub use graph::{Change, Edge, EdgeKind, Graph, Id, Kind, Node, State};
pub use interpretations::Interpretation;
pub use path::Path;
pub use picture::{Picture, View};
pub use search::search;
pub use svg::{Part, STYLE, Target, Texts};
pub use tables::{Cells, Tables};
