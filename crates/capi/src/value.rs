//! Values: atoms of C, and data as arrays of atoms.
//!
//! A datum of the core is a tree with shared strings without NUL. [`View`] is a copy of one as C
//! wants it: two arrays, and the strings in one block of memory.

use std::ffi::{c_char, c_int};
use std::ptr;

use corvid::data::{AtomRef, AtomType, BaseType, ColumnType, DatumBuilder, WireError};
use corvid::{Atom, Datum, Real, Str, Uuid};

use crate::error::{Failure, corvid_error, guard};
use crate::handle::{self, Kind};
use crate::pointer::{self, Out, copy_text};

/// A UUID: the numbers of its text, from left to right, eight hexadecimal digits each. The layout
/// is that of `struct uuid` of Open vSwitch's library.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct corvid_uuid {
    /// The numbers, in the byte order of the machine.
    pub parts: [u32; 4],
}

impl corvid_uuid {
    pub(crate) const ZERO: corvid_uuid = corvid_uuid { parts: [0; 4] };
}

impl From<Uuid> for corvid_uuid {
    fn from(uuid: Uuid) -> corvid_uuid {
        let whole = u128::from_be_bytes(uuid.0);
        let part = |shift: u32| (whole >> shift) as u32;
        corvid_uuid {
            parts: [part(96), part(64), part(32), part(0)],
        }
    }
}

impl From<corvid_uuid> for Uuid {
    fn from(uuid: corvid_uuid) -> Uuid {
        let parts = uuid.parts.iter();
        let whole = parts.fold(0u128, |whole, part| (whole << 32) | u128::from(*part));
        Uuid(whole.to_be_bytes())
    }
}

/// Types of atoms.
#[repr(C)]
pub enum corvid_type {
    /// None: a set has no values.
    CORVID_TYPE_VOID = 0,
    /// `integer`
    CORVID_TYPE_INTEGER = 1,
    /// `real`
    CORVID_TYPE_REAL = 2,
    /// `boolean`
    CORVID_TYPE_BOOLEAN = 3,
    /// `string`
    CORVID_TYPE_STRING = 4,
    /// `uuid`, also of a row that is referred to.
    CORVID_TYPE_UUID = 5,
}

/// The value of an atom.
#[repr(C)]
#[derive(Clone, Copy)]
pub union corvid_atom_value {
    /// CORVID_TYPE_INTEGER
    pub integer: i64,
    /// CORVID_TYPE_REAL
    pub real: f64,
    /// CORVID_TYPE_BOOLEAN: 0 is false.
    pub boolean: u8,
    /// CORVID_TYPE_STRING
    pub string: *const c_char,
    /// CORVID_TYPE_UUID
    pub uuid: corvid_uuid,
}

/// One element of a set, a key or a value.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct corvid_atom {
    /// A corvid_type, which says which member of `value` holds.
    pub kind: c_int,
    /// The value.
    pub value: corvid_atom_value,
}

impl corvid_atom {
    const ZERO: corvid_atom_value = corvid_atom_value {
        uuid: corvid_uuid::ZERO,
    };

    /// An atom, all bytes of it set.
    fn with(kind: c_int, set: impl FnOnce(&mut corvid_atom_value)) -> corvid_atom {
        let mut value = corvid_atom::ZERO;
        set(&mut value);
        corvid_atom { kind, value }
    }

    /// An atom as C sees it; a string is at the given place.
    pub(crate) fn shown(atom: Option<AtomRef<'_>>, string: Option<*const c_char>) -> corvid_atom {
        match atom {
            None => corvid_atom::with(0, |_| {}),
            Some(AtomRef::Integer(integer)) => {
                corvid_atom::with(1, |value| value.integer = integer)
            }
            Some(AtomRef::Real(real)) => corvid_atom::with(2, |value| value.real = real.get()),
            Some(AtomRef::Boolean(boolean)) => {
                corvid_atom::with(3, |value| value.boolean = u8::from(boolean))
            }
            Some(AtomRef::String(_)) => {
                corvid_atom::with(4, |value| value.string = string.unwrap_or(c"".as_ptr()))
            }
            Some(AtomRef::Uuid(uuid)) => corvid_atom::with(5, |value| value.uuid = uuid.into()),
        }
    }

    /// The atom of the core; an error if the type or the text is wrong.
    pub(crate) fn to_atom(self, base: &BaseType) -> Result<Atom, Failure> {
        let expected = number_of(base.atom);
        if self.kind != expected {
            let text = format!(
                "an atom of type {} stands where {} belongs",
                self.kind,
                base.atom.name()
            );
            return Err(Failure::new(corvid_error::CORVID_ERR_TYPE, text));
        }
        // SAFETY: every pattern of bits is a value of each member that is read, and the union has
        // no other part that could be unset by a caller that keeps the contract: the member of
        // `kind` is set.
        let atom = unsafe {
            match base.atom {
                AtomType::Integer => Atom::Integer(self.value.integer),
                AtomType::Real => {
                    let real = Real::new(self.value.real);
                    Atom::Real(real.ok_or_else(|| wrong_value("a real must be finite"))?)
                }
                AtomType::Boolean => Atom::Boolean(self.value.boolean != 0),
                AtomType::String => {
                    let text = Str::from_utf8(pointer::bytes(self.value.string, "a string")?);
                    Atom::String(text.map_err(Failure::constraint)?)
                }
                AtomType::Uuid => Atom::Uuid(self.value.uuid.into()),
            }
        };
        Ok(atom)
    }
}

fn wrong_value(text: impl Into<std::borrow::Cow<'static, str>>) -> Failure {
    Failure::new(corvid_error::CORVID_ERR_TYPE, text)
}

/// The number of a type in C.
pub(crate) fn number_of(atom: AtomType) -> c_int {
    match atom {
        AtomType::Integer => 1,
        AtomType::Real => 2,
        AtomType::Boolean => 3,
        AtomType::String => 4,
        AtomType::Uuid => 5,
    }
}

/// The type of a number in C.
pub(crate) fn type_of(number: c_int) -> Option<AtomType> {
    Some(match number {
        1 => AtomType::Integer,
        2 => AtomType::Real,
        3 => AtomType::Boolean,
        4 => AtomType::String,
        5 => AtomType::Uuid,
        _ => return None,
    })
}

/// A datum from arrays of atoms.
pub(crate) fn datum_of(
    keys: *const corvid_atom,
    values: *const corvid_atom,
    count: usize,
    column_type: &ColumnType,
) -> Result<Datum, Failure> {
    sorted(keys, values, count, column_type)?.map_err(Failure::constraint)
}

/// As [`datum_of`], but an element that is given twice counts once, as with setters of the
/// reference's library. Of the pairs of a map with one key that with the least value counts.
pub(crate) fn unique_datum_of(
    keys: *const corvid_atom,
    values: *const corvid_atom,
    count: usize,
    column_type: &ColumnType,
) -> Result<Datum, Failure> {
    if let Ok(datum) = sorted(keys, values, count, column_type)? {
        return Ok(datum);
    }
    // Only duplicates lead here, so usual data are neither copied nor compared twice.
    let mut given = Vec::new();
    elements(keys, values, count, column_type, &mut |key, value| {
        given.push((key, value));
    })?;
    given.sort();
    given.dedup_by(|later, former| later.0 == former.0);
    let mut datum = DatumBuilder::new();
    for (key, value) in given {
        datum.push(key, value);
    }
    datum.finish().map_err(Failure::constraint)
}

/// The sorted elements of arrays of atoms. The inner error reports an element that is given twice,
/// the outer one an element that cannot be one of the column.
fn sorted(
    keys: *const corvid_atom,
    values: *const corvid_atom,
    count: usize,
    column_type: &ColumnType,
) -> Result<Result<Datum, WireError>, Failure> {
    // Most columns hold one value, which needs no builder.
    if count == 1 && column_type.value.is_none() && values.is_null() {
        let key = pointer::array(keys, count, "keys")?[0];
        return Ok(Ok(Datum::one(key.to_atom(&column_type.key)?)));
    }
    let mut datum = DatumBuilder::new();
    elements(keys, values, count, column_type, &mut |key, value| {
        datum.push(key, value);
    })?;
    Ok(datum.finish())
}

/// The elements that arrays of atoms have, in the order of the arrays.
fn elements(
    keys: *const corvid_atom,
    values: *const corvid_atom,
    count: usize,
    column_type: &ColumnType,
    push: &mut dyn FnMut(Atom, Option<Atom>),
) -> Result<(), Failure> {
    let keys = pointer::array(keys, count, "keys")?;
    if let Some(value_type) = &column_type.value {
        let values = pointer::array(values, count, "values")?;
        for (key, value) in keys.iter().zip(values) {
            let value = value.to_atom(value_type)?;
            push(key.to_atom(&column_type.key)?, Some(value));
        }
    } else {
        if !values.is_null() && count > 0 {
            return Err(wrong_value("a set has no values"));
        }
        for key in keys {
            push(key.to_atom(&column_type.key)?, None);
        }
    }
    Ok(())
}

/// A copy of a datum in the form of C.
pub(crate) struct View {
    keys: Vec<corvid_atom>,
    /// Empty for a set.
    values: Vec<corvid_atom>,
    /// The strings, each with its NUL. The atoms point into it, and it never changes.
    _texts: Box<[u8]>,
}

// SAFETY: the pointers point into `_texts`, which goes with the view, and nothing writes there.
unsafe impl Send for View {}
// SAFETY: as above.
unsafe impl Sync for View {}

/// A value of a column: a copy that does not change. Free it with corvid_datum_free.
pub struct corvid_datum {
    _private: [u8; 0],
}

impl Kind for View {
    type Opaque = corvid_datum;
    const NAME: &'static str = "datum";
}

impl View {
    pub(crate) fn of(datum: &Datum) -> View {
        let text_len = |atom: AtomRef<'_>| atom.as_string().map_or(0, |text| text.len() + 1);
        let lengths = datum
            .iter()
            .map(|(key, value)| text_len(key) + value.map_or(0, text_len));
        let mut texts = Vec::with_capacity(lengths.sum());
        let mut keys = Vec::with_capacity(datum.len());
        let mut values = Vec::new();
        // Strings are offsets until the block has its address.
        let mut put = |atom: AtomRef<'_>| {
            let offset = ptr::without_provenance(texts.len());
            if let AtomRef::String(text) = atom {
                texts.extend_from_slice(text.as_str().as_bytes());
                texts.push(0);
            }
            corvid_atom::shown(Some(atom), Some(offset))
        };
        for (key, value) in datum {
            keys.push(put(key));
            values.extend(value.map(&mut put));
        }
        let texts = texts.into_boxed_slice();
        for atom in keys.iter_mut().chain(&mut values) {
            if atom.kind == 4 {
                // SAFETY: the member was set above, to an offset within the block.
                atom.value.string = unsafe { texts.as_ptr().add(atom.value.string.addr()) }.cast();
            }
        }
        View {
            keys,
            values,
            _texts: texts,
        }
    }
}

/// The number of elements; 0 for a handle that is none.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_datum_count(datum: *const corvid_datum) -> usize {
    let mut count = 0;
    guard("corvid_datum_count", || {
        count = handle::get::<View>(datum)?.keys.len();
        Ok(())
    });
    count
}

/// The elements of a set, or the keys of a map: an array of corvid_datum_count atoms in ascending
/// order. It and its strings belong to the datum and stay valid until corvid_datum_free. Null for a
/// handle that is none.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_datum_keys(datum: *const corvid_datum) -> *const corvid_atom {
    let mut keys = ptr::null();
    guard("corvid_datum_keys", || {
        keys = handle::get::<View>(datum)?.keys.as_ptr();
        Ok(())
    });
    keys
}

/// The values of a map, in the order of its keys; as corvid_datum_keys. Null for a set.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_datum_values(datum: *const corvid_datum) -> *const corvid_atom {
    let mut values = ptr::null();
    guard("corvid_datum_values", || {
        let view = handle::get::<View>(datum)?;
        if !view.values.is_empty() {
            values = view.values.as_ptr();
        }
        Ok(())
    });
    values
}

/// Frees a datum, its arrays and its strings. Null is fine. No other thread may be using its
/// arrays.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_datum_free(datum: *mut corvid_datum) -> corvid_error {
    guard("corvid_datum_free", || {
        handle::take::<View>(datum).map(drop)
    })
}

/// An integer atom.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_atom_integer(integer: i64) -> corvid_atom {
    corvid_atom::with(1, |value| value.integer = integer)
}

/// A real atom.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_atom_real(real: f64) -> corvid_atom {
    corvid_atom::with(2, |value| value.real = real)
}

/// A boolean atom.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_atom_boolean(boolean: bool) -> corvid_atom {
    corvid_atom::with(3, |value| value.boolean = u8::from(boolean))
}

/// A string atom. It borrows `string`, which must live as long as the atom is used.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_atom_string(string: *const c_char) -> corvid_atom {
    corvid_atom::with(4, |value| value.string = string)
}

/// A UUID atom, for a reference the UUID of the row.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_atom_uuid(uuid: corvid_uuid) -> corvid_atom {
    corvid_atom::with(5, |value| value.uuid = uuid)
}

/// Reads a UUID from its 36 characters. CORVID_ERR_ARGUMENT: the text is none.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_uuid_parse(text: *const c_char, uuid: *mut corvid_uuid) -> corvid_error {
    guard("corvid_uuid_parse", || {
        let out = Out::new(uuid, "uuid")?;
        let text = pointer::text(text, "text")?;
        let uuid = Uuid::parse(text.as_bytes());
        let uuid = uuid.ok_or_else(|| Failure::argument(format!("{text:?} is not a UUID")))?;
        out.set(uuid.into());
        Ok(())
    })
}

/// Writes the 36 characters of a UUID and a NUL into `buffer`, which has at least 37 bytes.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_uuid_format(uuid: corvid_uuid, buffer: *mut c_char) -> corvid_error {
    guard("corvid_uuid_format", || {
        let text = Uuid::from(uuid).to_text();
        let text = String::from_utf8_lossy(&text);
        copy_text(&text, buffer, Uuid::TEXT_LEN + 1).map(drop)
    })
}

/// A new random UUID. It is all zeros if the system has no random numbers, which corvid_error_text
/// tells.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_uuid_random() -> corvid_uuid {
    let mut made = Uuid::ZERO;
    guard("corvid_uuid_random", || {
        let mut bytes = [0u8; 16];
        // SAFETY: the buffer has as many bytes as are asked for.
        let got = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
        // So few bytes come at once or not at all (getrandom(2)).
        if usize::try_from(got) != Ok(bytes.len()) {
            let text = std::io::Error::last_os_error().to_string();
            return Err(Failure::new(corvid_error::CORVID_ERR_LIMIT, text));
        }
        made = Uuid::from_random(bytes);
        Ok(())
    });
    made.into()
}
