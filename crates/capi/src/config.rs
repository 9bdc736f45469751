//! The settings that a client starts with: the schema, the columns with their modes, TLS files, the
//! session.

use std::ffi::{c_char, c_int};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use corvid::data::Arc;
use corvid::json::Value;
use corvid::{Authority, Class, Column, Credentials, Schema, Settings, Setup, TableId};

use crate::error::{Failure, corvid_error, guard};
use crate::handle::{self, Kind};
use crate::pointer::{self, Out};

/// How a client treats a column: one of READ, WRITE and ON_DEMAND, with the others added by `|`.
#[repr(C)]
pub enum corvid_mode {
    /// The column is replicated. Its changes move the change number.
    CORVID_MODE_READ = 1,
    /// The column is replicated for writing: changes of it wake nobody, and writes of the present
    /// value are dropped.
    CORVID_MODE_WRITE = 2,
    /// The column is not replicated; its values come when they are fetched.
    CORVID_MODE_ON_DEMAND = 4,
    /// With READ: changes of it are listed by corvid_changes_new.
    CORVID_MODE_TRACK = 8,
    /// With READ: writes of the present value are dropped.
    CORVID_MODE_CHANGED_ONLY = 16,
}

const READ: c_int = 1;
const WRITE: c_int = 2;
const ON_DEMAND: c_int = 4;
const TRACK: c_int = 8;
const CHANGED_ONLY: c_int = 16;

/// A table, by its number in the schema of the client.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct corvid_table {
    /// The number. With 32 bits a corvid_row has no padding, so memcmp compares rows.
    pub number: u32,
}

/// A column, by its numbers in the schema of the client.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct corvid_column {
    /// The number of the table.
    pub table: u16,
    /// The number of the column.
    pub number: u16,
}

impl From<Column> for corvid_column {
    fn from(column: Column) -> corvid_column {
        corvid_column {
            table: column.table.0,
            number: column.id.0,
        }
    }
}

/// A table that the schema has.
pub(crate) fn table_id(schema: &Schema, table: corvid_table) -> Result<TableId, Failure> {
    let number = u16::try_from(table.number).ok();
    if let Some(number) = number.filter(|number| usize::from(*number) < schema.tables().len()) {
        Ok(TableId(number))
    } else {
        let text = format!("the schema has no table of number {}", table.number);
        Err(Failure::argument(text))
    }
}

/// A column that the schema has.
pub(crate) fn column_key(schema: &Schema, column: corvid_column) -> Result<Column, Failure> {
    let number = column.table.into();
    let table = table_id(schema, corvid_table { number })?;
    if usize::from(column.number) < schema.table(table).columns().len() {
        let id = corvid::ColumnId(column.number);
        Ok(Column { table, id })
    } else {
        let text = format!("the table has no column of number {}", column.number);
        Err(Failure::argument(text))
    }
}

/// The settings of a client before it is made. Free it with corvid_config_free.
pub struct corvid_config {
    _private: [u8; 0],
}

/// The object behind the handle.
pub(crate) struct Config {
    pub(crate) schema: Arc<Schema>,
    settings: Mutex<State>,
}

struct State {
    modes: Vec<(Column, c_int)>,
    tables: Vec<TableId>,
    setup: Setup,
    private_key: Option<String>,
    certificate: Option<String>,
    ca_certificate: Option<String>,
}

impl Kind for Config {
    type Opaque = corvid_config;
    const NAME: &'static str = "config";
}

impl Config {
    /// Settings for a schema in JSON.
    pub(crate) fn of_schema(json: &str) -> Result<Config, Failure> {
        let wrong = |text| Failure::new(corvid_error::CORVID_ERR_SCHEMA, text);
        let value = Value::parse(json.as_bytes())
            .map_err(|e| wrong(format!("the schema is not JSON: {e}")))?;
        let schema = Schema::from_json(&value);
        let schema = schema.map_err(|e| wrong(format!("invalid schema: {e}")))?;
        Ok(Config {
            schema: Arc::new(schema),
            settings: Mutex::new(State {
                modes: Vec::new(),
                tables: Vec::new(),
                setup: Setup::default(),
                private_key: None,
                certificate: None,
                ca_certificate: None,
            }),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Each setting is one assignment, so a panic leaves none half made.
        self.settings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The class of a client, and the settings of its session.
    pub(crate) fn make(&self) -> (Class, Setup) {
        let state = self.state();
        let mut class = Class::new(self.schema.clone());
        class.set_strict(false);
        for table in &state.tables {
            class.add_table(*table);
        }
        for (column, mode) in &state.modes {
            if mode & ON_DEMAND != 0 {
                class.on_demand(*column);
                continue;
            }
            class.add_column(*column);
            if mode & WRITE != 0 {
                class.omit_alert(*column);
            }
            if mode & TRACK != 0 {
                class.track(*column);
            }
            class.set_write_changed_only(*column, mode & CHANGED_ONLY != 0);
        }
        let files = [
            &state.private_key,
            &state.certificate,
            &state.ca_certificate,
        ];
        let settings = Settings {
            private_key: state.private_key.clone(),
            certificate: state.certificate.clone(),
            authority: state.ca_certificate.clone().map(|file| Authority {
                file,
                is_bootstrapped: false,
            }),
            ..Settings::default()
        };
        let has_files = files.iter().any(|file| file.is_some());
        let setup = Setup {
            credentials: has_files.then(|| Credentials::new(&settings)),
            ..state.setup.clone()
        };
        (class, setup)
    }
}

/// A valid combination of modes.
fn check_mode(mode: c_int) -> Result<c_int, Failure> {
    let base = mode & (READ | WRITE | ON_DEMAND);
    let extra = mode & !(READ | WRITE | ON_DEMAND);
    let is_one = base.count_ones() == 1;
    let is_known = extra & !(TRACK | CHANGED_ONLY) == 0;
    if is_one && is_known && (extra == 0 || base == READ) {
        Ok(mode)
    } else {
        Err(Failure::argument(format!("unknown column mode {mode}")))
    }
}

/// Makes settings for the database whose schema is given as JSON. Free them with
/// corvid_config_free. CORVID_ERR_SCHEMA: it is no schema.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_config_new(
    schema: *const c_char,
    config: *mut *mut corvid_config,
) -> corvid_error {
    guard("corvid_config_new", || {
        crate::logging::install();
        let out = Out::new(config, "config")?;
        let schema = pointer::text(schema, "schema")?;
        out.set(handle::store(Config::of_schema(schema)?)?);
        Ok(())
    })
}

/// Frees settings. Null is fine. Clients that were made of them do not need them any more.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_config_free(config: *mut corvid_config) -> corvid_error {
    guard("corvid_config_free", || {
        handle::take::<Config>(config).map(drop)
    })
}

/// Looks a table up by name. CORVID_ERR_SCHEMA: there is none.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_config_table(
    config: *const corvid_config,
    name: *const c_char,
    table: *mut corvid_table,
) -> corvid_error {
    guard("corvid_config_table", || {
        let out = Out::new(table, "table")?;
        let config = handle::get::<Config>(config)?;
        let name = pointer::text(name, "name")?;
        let id = config.schema.table_id(name).ok_or_else(|| {
            let text = format!("the schema has no table {name}");
            Failure::new(corvid_error::CORVID_ERR_SCHEMA, text)
        })?;
        out.set(corvid_table {
            number: id.0.into(),
        });
        Ok(())
    })
}

/// Looks a column up by the names of its table and its own, and has the client treat it so; `mode`
/// is made of corvid_mode, or 0 to look it up only. `*column` names the column in calls for the
/// client; `column` may be null. CORVID_ERR_SCHEMA: there is none.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_config_column(
    config: *const corvid_config,
    table: *const c_char,
    name: *const c_char,
    mode: c_int,
    column: *mut corvid_column,
) -> corvid_error {
    guard("corvid_config_column", || {
        let out = (!column.is_null()).then(|| Out::new(column, "column"));
        let out = out.transpose()?;
        let config = handle::get::<Config>(config)?;
        let class = Class::new(config.schema.clone());
        let table = pointer::text(table, "table")?;
        let found = class
            .column(table, pointer::text(name, "name")?)
            .map_err(|e| Failure::new(corvid_error::CORVID_ERR_SCHEMA, e.to_string()))?;
        if mode != 0 {
            let mode = check_mode(mode)?;
            let mut state = config.state();
            state.modes.retain(|(other, _)| *other != found);
            state.modes.push((found, mode));
        }
        if let Some(out) = out {
            out.set(found.into());
        }
        Ok(())
    })
}

/// Replicates the rows of a table, with or without columns.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_config_add_table(
    config: *const corvid_config,
    table: corvid_table,
) -> corvid_error {
    guard("corvid_config_add_table", || {
        let config = handle::get::<Config>(config)?;
        let table = table_id(&config.schema, table)?;
        config.state().tables.push(table);
        Ok(())
    })
}

/// Replicates every column of every table, in a mode made of corvid_mode.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_config_add_everything(
    config: *const corvid_config,
    mode: c_int,
) -> corvid_error {
    guard("corvid_config_add_everything", || {
        let mode = check_mode(mode)?;
        let config = handle::get::<Config>(config)?;
        let mut state = config.state();
        state.modes.clear();
        for (table, table_schema) in config.schema.iter() {
            state.tables.push(table);
            let columns = table_schema.iter().filter(|(id, _)| !id.is_standard());
            let columns = columns.map(|(id, _)| (Column { table, id }, mode));
            state.modes.extend(columns);
        }
        Ok(())
    })
}

/// Sets the files for `ssl:` remotes: the private key, the certificate and the certificate of the
/// CA, each in PEM. They are read when a connection is made.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_config_set_tls(
    config: *const corvid_config,
    private_key: *const c_char,
    certificate: *const c_char,
    ca_certificate: *const c_char,
) -> corvid_error {
    guard("corvid_config_set_tls", || {
        let config = handle::get::<Config>(config)?;
        let private_key = pointer::owned_text(private_key, "private_key")?;
        let certificate = pointer::owned_text(certificate, "certificate")?;
        let ca_certificate = pointer::owned_text(ca_certificate, "ca_certificate")?;
        let mut state = config.state();
        (state.private_key, state.certificate) = (private_key, certificate);
        state.ca_certificate = ca_certificate;
        Ok(())
    })
}

/// Whether the client connects only to the leader of a cluster. The default is true.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_config_set_leader_only(
    config: *const corvid_config,
    leader_only: bool,
) -> corvid_error {
    guard("corvid_config_set_leader_only", || {
        let config = handle::get::<Config>(config)?;
        config.state().setup.is_leader_only = leader_only;
        Ok(())
    })
}

/// Whether the client tries to connect for ever, or each remote once. The default is true.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_config_set_retry(
    config: *const corvid_config,
    retry: bool,
) -> corvid_error {
    guard("corvid_config_set_retry", || {
        let config = handle::get::<Config>(config)?;
        config.state().setup.is_persistent = retry;
        Ok(())
    })
}

/// Whether remotes are tried in random order. The default is true.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_config_set_shuffle(
    config: *const corvid_config,
    shuffle: bool,
) -> corvid_error {
    guard("corvid_config_set_shuffle", || {
        let config = handle::get::<Config>(config)?;
        config.state().setup.is_shuffled = shuffle;
        Ok(())
    })
}

/// After how many milliseconds of silence the client probes the server; 0 never. The default is
/// 5000 over a network and never on this machine.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_config_set_probe_interval(
    config: *const corvid_config,
    interval_ms: u32,
) -> corvid_error {
    guard("corvid_config_set_probe_interval", || {
        let config = handle::get::<Config>(config)?;
        let interval = Duration::from_millis(interval_ms.into());
        config.state().setup.probe_interval = Some(interval);
        Ok(())
    })
}

/// A lock that the client asks for (corvid_client_set_lock); null for none, the default.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_config_set_lock(
    config: *const corvid_config,
    name: *const c_char,
) -> corvid_error {
    guard("corvid_config_set_lock", || {
        let config = handle::get::<Config>(config)?;
        let name = pointer::optional_text(name, "name")?.map(str::to_owned);
        config.state().setup.lock = name;
        Ok(())
    })
}
