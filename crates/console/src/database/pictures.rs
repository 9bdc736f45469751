//! The pictures that viewers look at: one for all viewers of the same part of the network.
//!
//! ```text
//! replica --changed rows--> input --if a column of the picture changed--> graph --> a picture for
//! each view --parts that changed, encoded once--> events of the view
//! ```
//!
//! The input is brought up to date like an order of a table ([`super::orders`]): by a thread that
//! draws, and before tracked changes are cleared. Each state of it has a version. Pages and events
//! name the version that they show, so a page notices when it has missed an event.
//!
//! A thread of the database draws the views that have viewers after changes ([`run`]). It pauses
//! twice as long as it has drawn.

use std::collections::hash_map::DefaultHasher;
use std::collections::{HashMap, VecDeque};
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use corvid::data::{ColumnId, TableId};
use corvid::json::write;
use corvid::{Column, Idl, Tracked};
use corvid_picture::layout::Size;
use corvid_picture::{Graph, Interpretation, Part, Tables};
use tokio::sync::broadcast;

use super::{Event, Open};
use crate::pages::network::Drawn;
use crate::pages::params::Params;
use crate::web::EVENTS_MAX;

/// The number of views that are kept.
const VIEWS_MAX: usize = 16;

/// The longest event. A page that is told of more asks for the whole picture, which is made once.
const EVENT_BYTES_MAX: usize = 256 * 1024;

/// How often the thread looks whether it is to end.
const TICK: Duration = Duration::from_secs(2);

/// Changes within this time share a picture.
const PACE: Duration = Duration::from_millis(30);

/// The pictures of a database.
pub(crate) struct Pictures {
    /// The tables that pictures were last drawn from.
    wanted: Mutex<Vec<TableId>>,
    input: Mutex<Option<Input>>,
    graph: Mutex<Option<(u64, Arc<Graph>)>>,
    /// The last used at the end.
    views: Mutex<VecDeque<Arc<View>>>,
    version: AtomicU64,
    is_over: AtomicBool,
}

/// The rows that pictures need, kept up to date.
struct Input {
    tables: Arc<Tables>,
    columns: Vec<TableColumns>,
    version: u64,
    /// The change of the replica up to which it is right, and how often the replica has dropped
    /// rows silently.
    at: (u64, u64),
}

/// The columns of a table that pictures need.
struct TableColumns {
    table: TableId,
    name: String,
    columns: Vec<(&'static str, ColumnId)>,
}

/// A view that somebody looks at.
pub(crate) struct View {
    /// The parameters of the viewers' request.
    pub(crate) params: Params,
    state: Mutex<ViewState>,
    events: broadcast::Sender<Event>,
}

#[derive(Default)]
struct ViewState {
    drawn: Option<Arc<Drawn>>,
    /// The parts that viewers were told of last.
    told: Option<Told>,
}

/// The parts of a picture as a viewer has them.
struct Told {
    version: u64,
    size: Size,
    /// Hashes of the texts of parts.
    parts: HashMap<String, u64>,
}

impl Pictures {
    pub(super) fn new(version: u64) -> Pictures {
        Pictures {
            wanted: Mutex::default(),
            input: Mutex::default(),
            graph: Mutex::default(),
            views: Mutex::default(),
            version: AtomicU64::new(version),
            is_over: AtomicBool::new(false),
        }
    }

    fn next_version(&self) -> u64 {
        self.version.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The view that these parameters ask for.
    pub(crate) fn view(&self, params: &Params) -> Arc<View> {
        let mut views = locked(&self.views);
        let place = views.iter().position(|view| view.params == *params);
        if let Some(view) = place.and_then(|place| views.remove(place)) {
            views.push_back(view.clone());
            return view;
        }
        while views.len() >= VIEWS_MAX {
            // One without viewers goes first. The viewers of another one connect again.
            let lonely = views.iter().position(|view| !view.has_viewers());
            views.remove(lonely.unwrap_or(0));
        }
        let view = Arc::new(View {
            params: params.clone(),
            state: Mutex::default(),
            events: broadcast::channel(EVENTS_MAX).0,
        });
        views.push_back(view.clone());
        view
    }

    /// Brings the input up to date. Called with the replica before its tracked changes are cleared.
    pub(super) fn catch_up(&self, idl: &Idl) {
        let mut input = locked(&self.input);
        let is_right = input
            .as_mut()
            .is_none_or(|input| input.catch_up(idl, || self.next_version()));
        if !is_right {
            *input = None;
        }
    }

    /// Forgets everything that was made of a table's rows.
    pub(super) fn forget(&self, table: TableId) {
        let mut input = locked(&self.input);
        let is_concerned = |input: &Input| input.columns.iter().any(|one| one.table == table);
        if input.as_ref().is_some_and(is_concerned) {
            *input = None;
            *locked(&self.graph) = None;
            locked(&self.views).retain(|view| view.has_viewers());
        }
    }

    /// Drops the pictures without viewers, which hold graphs of earlier versions.
    fn drop_unseen(&self) {
        for view in locked(&self.views).iter() {
            // A view that is locked is being drawn.
            if let Ok(mut state) = view.state.try_lock()
                && !view.has_viewers()
            {
                *state = ViewState::default();
            }
        }
    }

    /// Ends the thread.
    pub(super) fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

impl Input {
    fn read(idl: &Idl, known: &Interpretation, wanted: &[TableId], version: u64) -> Input {
        let columns: Vec<TableColumns> = wanted
            .iter()
            .map(|id| {
                let table = idl.schema().table(*id);
                let named = known
                    .tables
                    .iter()
                    .find(|(name, _)| *name == table.name.as_str());
                let names = named.map_or(&[][..], |(_, columns)| columns);
                TableColumns {
                    table: *id,
                    name: table.name.to_string(),
                    columns: names
                        .iter()
                        .filter_map(|name| Some((*name, table.column_id(name)?)))
                        .collect(),
                }
            })
            .collect();
        let mut tables = Tables::new();
        for one in &columns {
            for row in idl.rows(one.table) {
                one.set(&mut tables, idl, row);
            }
        }
        Input {
            tables: Arc::new(tables),
            columns,
            version,
            at: (idl.change_seqno(), idl.resync_epoch()),
        }
    }

    /// Takes changed rows over. Returns whether the input is right; if not, it is to be read anew.
    fn catch_up(&mut self, idl: &Idl, next_version: impl FnOnce() -> u64) -> bool {
        let now = (idl.change_seqno(), idl.resync_epoch());
        if self.at.1 != now.1 {
            return false;
        }
        let mut has_changed = false;
        for one in &self.columns {
            let is_newer = |change: &&Tracked| {
                let is_concerned = change.is_new
                    || change.is_deleted
                    || one.columns.iter().any(|(_, id)| change.is_updated(*id));
                is_concerned && change.seqnos.iter().any(|&seqno| seqno > self.at.0)
            };
            for change in idl.changes(one.table).iter().filter(is_newer) {
                has_changed = true;
                // The rows are copied if a graph is being read from them.
                let tables = Arc::make_mut(&mut self.tables);
                match idl.row(one.table, change.uuid) {
                    Some(row) => one.set(tables, idl, row),
                    None => tables.remove(&one.name, change.uuid),
                }
            }
        }
        self.at = now;
        if has_changed {
            self.version = next_version();
        }
        true
    }
}

impl TableColumns {
    fn set(&self, tables: &mut Tables, idl: &Idl, row: corvid::RowId) {
        let table = self.table;
        let cells = self.columns.iter().map(|(name, id)| {
            let value = idl.read(row, Column { table, id: *id });
            (*name, value.unwrap_or_default())
        });
        tables.set(&self.name, row.uuid, cells);
    }
}

impl Open {
    /// The graph of the rows now, with its version. `wanted` are the tables that it is read from;
    /// their rows are in the replica.
    pub(crate) fn graph(&self, known: &Interpretation, wanted: &[TableId]) -> (u64, Arc<Graph>) {
        let pictures = &self.pictures;
        let (version, tables) = self.client.read(|idl| {
            let read = || Input::read(idl, known, wanted, pictures.next_version());
            // Rows that are read while others arrive are not kept: arriving rows are not tracked.
            if !wanted.iter().all(|table| self.looks.is_tracked(*table)) {
                let input = read();
                return (input.version, input.tables);
            }
            let mut input = locked(&pictures.input);
            let is_right = input.as_mut().is_some_and(|input| {
                let tables = input.columns.iter().map(|one| one.table);
                tables.eq(wanted.iter().copied()) && input.catch_up(idl, || pictures.next_version())
            });
            if !is_right {
                *input = None;
            }
            let input = input.get_or_insert_with(read);
            (input.version, input.tables.clone())
        });
        wanted.clone_into(&mut locked(&pictures.wanted));
        // Locked while the graph is read, so that it is read once.
        let mut kept = locked(&pictures.graph);
        match &*kept {
            Some((of, graph)) if *of == version => (version, graph.clone()),
            _ => {
                let graph = Arc::new((known.read)(&tables));
                *kept = Some((version, graph.clone()));
                drop(kept);
                pictures.drop_unseen();
                (version, graph)
            }
        }
    }
}

impl View {
    fn has_viewers(&self) -> bool {
        self.events.receiver_count() > 0
    }

    /// The picture of a graph, which is drawn if the last one is of another version.
    pub(crate) fn current(&self, open: &Open, graph: (u64, Arc<Graph>)) -> Arc<Drawn> {
        self.drawn(&mut locked(&self.state), open, graph)
    }

    fn drawn(
        &self,
        state: &mut ViewState,
        open: &Open,
        (version, graph): (u64, Arc<Graph>),
    ) -> Arc<Drawn> {
        match &state.drawn {
            Some(drawn) if drawn.version == version => drawn.clone(),
            before => {
                let before = before.as_ref().map(|drawn| &drawn.picture);
                let drawn = Drawn::new(open, (version, graph), &self.params, before);
                let drawn = Arc::new(drawn);
                state.drawn = Some(drawn.clone());
                drawn
            }
        }
    }

    /// The events from now on, and the version that they begin after.
    pub(crate) fn subscribe(
        &self,
        open: &Open,
        graph: (u64, Arc<Graph>),
    ) -> (broadcast::Receiver<Event>, u64) {
        let mut state = locked(&self.state);
        let is_first = !self.has_viewers();
        let events = self.events.subscribe();
        if is_first || state.told.is_none() {
            let drawn = self.drawn(&mut state, open, graph);
            state.told = Some(Told::of(&drawn, &drawn.parts(open.name())));
        }
        let version = state.told.as_ref().map_or(0, |told| told.version);
        (events, version)
    }

    /// Draws the picture anew, and tells viewers what has changed.
    fn update(&self, open: &Open, graph: (u64, Arc<Graph>)) {
        let mut state = locked(&self.state);
        let drawn = self.drawn(&mut state, open, graph);
        if state
            .told
            .as_ref()
            .is_some_and(|told| told.version == drawn.version)
        {
            return;
        }
        let parts = drawn.parts(open.name());
        let now = Told::of(&drawn, &parts);
        if let Some(told) = &state.told {
            // Without viewers there is nobody to tell.
            let _ = self.events.send(encoded(told, &now, &drawn, &parts).into());
        }
        state.told = Some(now);
    }
}

impl Told {
    fn of(drawn: &Drawn, parts: &[Part]) -> Told {
        let hash = |text: &str| {
            let mut hasher = DefaultHasher::new();
            text.hash(&mut hasher);
            hasher.finish()
        };
        Told {
            version: drawn.version,
            size: drawn.picture.layout.size,
            parts: parts
                .iter()
                .map(|part| (part.key.clone(), hash(&part.text)))
                .collect(),
        }
    }
}

/// The difference of two pictures as an event:
/// `{"before":"VERSION","summary":"…","parts":[["KEY","links","<g…"]],"gone":["KEY"]}`; without
/// parts if the size of the picture has changed or there are too many.
fn encoded(told: &Told, now: &Told, drawn: &Drawn, parts: &[Part]) -> Vec<u8> {
    let head = format!(
        "id: {}\ndata: {{\"before\":\"{}\"",
        now.version, told.version
    );
    let mut out = head.clone().into_bytes();
    out.extend_from_slice(b",\"summary\":");
    write::string(&mut out, drawn.summary.as_bytes());
    out.extend_from_slice(b",\"parts\":[");
    let links = drawn.picture.links.len();
    let mut separator: &[u8] = b"";
    for (index, part) in parts.iter().enumerate() {
        if told.parts.get(&part.key) == now.parts.get(&part.key) {
            continue;
        }
        out.extend_from_slice(separator);
        out.push(b'[');
        write::string(&mut out, part.key.as_bytes());
        out.extend_from_slice(if index < links {
            b",\"links\","
        } else {
            b",\"cards\","
        });
        write::string(&mut out, part.text.as_bytes());
        out.push(b']');
        separator = b",";
    }
    out.extend_from_slice(b"],\"gone\":[");
    separator = b"";
    for key in told
        .parts
        .keys()
        .filter(|key| !now.parts.contains_key(*key))
    {
        out.extend_from_slice(separator);
        write::string(&mut out, key.as_bytes());
        separator = b",";
    }
    out.extend_from_slice(b"]}\n\n");
    if told.size != now.size || out.len() > EVENT_BYTES_MAX {
        return format!("{head}}}\n\n").into_bytes();
    }
    out
}

/// Draws the views that have viewers after each change, until the database has another schema.
pub(super) fn run(open: &Open) {
    let Some(known) = corvid_picture::interpretations::of(&open.schema.name) else {
        return;
    };
    let mut seqno = open.client.read(Idl::change_seqno);
    while !open.pictures.is_over.load(Ordering::Relaxed) {
        let waited = open.client.wait_for_change(seqno, Some(TICK));
        thread::sleep(PACE);
        let Ok(now) = waited else {
            continue;
        };
        seqno = now;
        let begin = Instant::now();
        let live: Vec<Arc<View>> = locked(&open.pictures.views)
            .iter()
            .filter(|view| view.has_viewers())
            .cloned()
            .collect();
        if live.is_empty() {
            continue;
        }
        let wanted = locked(&open.pictures.wanted).clone();
        let graph = open.graph(known, &wanted);
        for view in live {
            view.update(open, graph.clone());
        }
        thread::sleep(begin.elapsed() * 2);
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
