//! Values as text: the notation of tools (docs/spec/protocol.md 2.7) and JSON, for control
//! utilities.
//!
//! `@NAME` in a text stands for a row that another part of the command creates. A table of symbols
//! gives each name a UUID.

use std::ffi::{c_char, c_int};
use std::sync::{Mutex, PoisonError};

use corvid::Uuid;
use corvid::data::{ColumnType, Datum, text, wire};

use super::column_type::{corvid_idl_base_type, corvid_idl_type};
use crate::error::{Failure, corvid_error, guard};
use crate::handle::{self, Kind};
use crate::pointer::{self, Out};
use crate::value::unique_datum_of;
use crate::value::{View, corvid_atom, corvid_datum, corvid_uuid, corvid_uuid_random};

/// Names of rows that a command creates. Free it with corvid_symbols_free.
pub struct corvid_symbols {
    _private: [u8; 0],
}

/// The object of the handle: names with their UUIDs, and whether a text has named each since it was
/// added.
struct Symbols(Mutex<Vec<Symbol>>);

struct Symbol {
    name: String,
    uuid: Uuid,
    is_named: bool,
}

impl Kind for Symbols {
    type Opaque = corvid_symbols;
    const NAME: &'static str = "table of symbols";
}

impl Symbols {
    /// The UUID of a name, a new one for a new name.
    fn resolve(&self, name: &str) -> Uuid {
        let mut symbols = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(symbol) = symbols.iter_mut().find(|symbol| symbol.name == name) {
            symbol.is_named = true;
            return symbol.uuid;
        }
        let uuid = Uuid::from(corvid_uuid_random());
        symbols.push(Symbol {
            name: name.to_owned(),
            uuid,
            is_named: true,
        });
        uuid
    }
}

/// Makes an empty table of symbols. Free it with corvid_symbols_free.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_symbols_new(symbols: *mut *mut corvid_symbols) -> corvid_error {
    guard("corvid_symbols_new", || {
        let out = Out::new(symbols, "symbols")?;
        out.set(handle::store(Symbols(Mutex::default()))?);
        Ok(())
    })
}

/// Frees a table of symbols. Null is fine.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_symbols_free(symbols: *mut corvid_symbols) -> corvid_error {
    guard("corvid_symbols_free", || {
        handle::take::<Symbols>(symbols).map(drop)
    })
}

/// Adds a name with its UUID, or gives a name that is there this UUID.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_symbols_add(
    symbols: *mut corvid_symbols,
    name: *const c_char,
    uuid: corvid_uuid,
) -> corvid_error {
    guard("corvid_symbols_add", || {
        let symbols = handle::get::<Symbols>(symbols)?;
        let name = pointer::text(name, "name")?;
        let mut symbols = symbols.0.lock().unwrap_or_else(PoisonError::into_inner);
        match symbols.iter_mut().find(|symbol| symbol.name == name) {
            Some(symbol) => symbol.uuid = uuid.into(),
            None => symbols.push(Symbol {
                name: name.to_owned(),
                uuid: uuid.into(),
                is_named: false,
            }),
        }
        Ok(())
    })
}

/// Tells the symbol at `index`, in the order in which names were added or first read: copies its
/// name into `buffer`, cut to `size` bytes with its NUL. `*named` is whether a text has named it.
/// CORVID_ERR_NONE: there are not so many.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_symbols_get(
    symbols: *const corvid_symbols,
    index: usize,
    buffer: *mut c_char,
    size: usize,
    uuid: *mut corvid_uuid,
    named: *mut bool,
) -> corvid_error {
    guard("corvid_symbols_get", || {
        let uuid = Out::new(uuid, "uuid")?;
        let named = Out::new(named, "named")?;
        let symbols = handle::get::<Symbols>(symbols)?;
        let symbols = symbols.0.lock().unwrap_or_else(PoisonError::into_inner);
        let symbol = symbols.get(index);
        let symbol = symbol.ok_or_else(|| Failure::none("there is no such symbol"))?;
        pointer::copy_text(&symbol.name, buffer, size)?;
        uuid.set(symbol.uuid.into());
        named.set(symbol.is_named);
        Ok(())
    })
}

/// Reads with the names of a table of symbols, which may be null.
fn with_names<T>(
    symbols: *mut corvid_symbols,
    read: impl FnOnce(&mut dyn FnMut(&str) -> Option<Uuid>) -> Result<T, String>,
) -> Result<T, Failure> {
    let symbols = if symbols.is_null() {
        None
    } else {
        Some(handle::get::<Symbols>(symbols)?)
    };
    let mut resolve = |name: &str| symbols.as_ref().map(|symbols| symbols.resolve(name));
    // The text is of the user of the program, who is told: this is not misuse.
    read(&mut resolve).map_err(|error| Failure::new(corvid_error::CORVID_ERR_SCHEMA, error))
}

/// Hands a datum over, or copies the message of a failure into `buffer`.
fn finish(
    read: Result<Datum, Failure>,
    datum: Out<*mut corvid_datum>,
    buffer: *mut c_char,
    size: usize,
) -> Result<(), Failure> {
    match read {
        Ok(read) => datum.set(handle::store(View::of(&read))?),
        Err(failure) => {
            pointer::copy_text(&failure.text, buffer, size)?;
            return Err(failure);
        }
    }
    Ok(())
}

/// Reads a value of a column from text, such as `[1, 2]` or `{k=v}`. `@NAME` stands for the UUID
/// that `symbols` has for the name; `symbols` may be null. Free the datum with corvid_datum_free.
/// After a failure the message for the user is in `buffer`, cut to `size` bytes with its NUL.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_text_read(
    column_type: *const corvid_idl_type,
    text: *const c_char,
    symbols: *mut corvid_symbols,
    datum: *mut *mut corvid_datum,
    buffer: *mut c_char,
    size: usize,
) -> corvid_error {
    guard("corvid_text_read", || {
        let out = Out::new(datum, "datum")?;
        let column_type = pointer::array(column_type, 1, "type")?[0].core_type()?;
        let text = pointer::text(text, "text")?;
        let read = with_names(symbols, |names| {
            corvid::data::text::read_datum(text, &column_type, names)
        });
        finish(read, out, buffer, size)
    })
}

/// Reads one atom from text, or a range of integers such as `1-3`, whose elements are in the datum.
/// Otherwise as corvid_text_read.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_text_read_atom(
    base_type: *const corvid_idl_base_type,
    text: *const c_char,
    symbols: *mut corvid_symbols,
    datum: *mut *mut corvid_datum,
    buffer: *mut c_char,
    size: usize,
) -> corvid_error {
    guard("corvid_text_read_atom", || {
        let out = Out::new(datum, "datum")?;
        let base = pointer::array(base_type, 1, "type")?[0].to_core()?;
        let text = pointer::text(text, "text")?;
        let read = with_names(symbols, |names| {
            use corvid::data::text::AtomOrRange;
            let read = corvid::data::text::read_atom_or_range(text, &base, names)?;
            Ok(match read {
                AtomOrRange::Atom(atom) => Datum::one(atom),
                AtomOrRange::Range(first, last) => {
                    let mut range = Datum::empty();
                    for integer in first..=last {
                        range.insert(corvid::Atom::Integer(integer), None);
                    }
                    range
                }
            })
        });
        finish(read, out, buffer, size)
    })
}

/// Notations of corvid_text_write.
#[repr(C)]
pub enum corvid_notation {
    /// That of tools: `[a, "b c"]`.
    CORVID_NOTATION_TEXT = 0,
    /// That of tools without brackets and quotes: `a b c`.
    CORVID_NOTATION_BARE = 1,
    /// JSON as in messages: `["set",["a","b c"]]`.
    CORVID_NOTATION_JSON = 2,
}

/// Copies a value of a column as text into `buffer`, cut to `size` bytes with its NUL. `*length` is
/// the length of the whole text; `length` may be null, and so may `buffer` if `size` is 0.
/// `notation` is a corvid_notation.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_text_write(
    column_type: *const corvid_idl_type,
    keys: *const corvid_atom,
    values: *const corvid_atom,
    count: usize,
    notation: c_int,
    buffer: *mut c_char,
    size: usize,
    length: *mut usize,
) -> corvid_error {
    guard("corvid_text_write", || {
        let out = (!length.is_null()).then(|| Out::new(length, "length"));
        let out = out.transpose()?;
        let column_type = pointer::array(column_type, 1, "type")?[0].core_type()?;
        let datum = unique_datum_of(keys, values, count, &column_type)?;
        let shown = shown(&datum, &column_type, notation)?;
        let whole = pointer::copy_text(&shown, buffer, size)?;
        if let Some(out) = out {
            out.set(whole);
        }
        Ok(())
    })
}

fn shown(datum: &Datum, column_type: &ColumnType, notation: c_int) -> Result<String, Failure> {
    let mut shown = String::new();
    match notation {
        0 => text::write_datum(&mut shown, datum, column_type),
        1 => text::write_datum_bare(&mut shown, datum, column_type),
        2 => {
            let mut bytes = Vec::new();
            wire::write_datum(&mut bytes, datum, column_type.is_map());
            shown = String::from_utf8_lossy(&bytes).into_owned();
        }
        _ => return Err(Failure::argument(format!("unknown notation {notation}"))),
    }
    Ok(shown)
}
