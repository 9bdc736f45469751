//! Types of columns as programs in C see them: `struct corvid_idl_type`, in the layout that the
//! reference's `struct ovsdb_type` has.
//!
//! Descriptions of columns have such a type for programs; the library reads its own schema.
//! Programs pass types back when they read text ([`super::text`]), and ask for those of the
//! server's columns.

use std::ffi::{CString, c_char, c_int, c_uint, c_void};
use std::ptr;

use corvid::data::types::Bounds;
use corvid::data::{AtomRef, BaseType, ColumnType, DatumBuilder, RefType, Reference, TableId};
use corvid::{Atom, Datum, Real, Str};

use super::class::corvid_idl_column;
use super::idl::{corvid_idl, with};
use crate::error::{Failure, guard};
use crate::pointer;
use crate::value::{corvid_uuid, number_of};

/// A string of an atom.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct corvid_idl_string {
    pub(crate) string: *const c_char,
}

/// An atom whose type is known from elsewhere.
#[repr(C)]
#[derive(Clone, Copy)]
pub union corvid_idl_atom {
    pub(crate) integer: i64,
    pub(crate) real: f64,
    pub(crate) boolean: u8,
    pub(crate) s: *const corvid_idl_string,
    pub(crate) uuid: corvid_uuid,
}

/// Atoms of a set, or keys and values of a map.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct corvid_idl_values {
    pub(crate) n: c_uint,
    pub(crate) keys: *const corvid_idl_atom,
    pub(crate) values: *const corvid_idl_atom,
    /// For programs; 0 or null.
    pub(crate) refcnt: *mut c_uint,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct IntegerBounds {
    min: i64,
    max: i64,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct RealBounds {
    min: f64,
    max: f64,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct LengthBounds {
    min: c_uint,
    max: c_uint,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct TargetTable {
    name: *const c_char,
    /// For servers; null.
    table: *const c_void,
    /// 0 strong, 1 weak.
    reference: c_int,
}

#[repr(C)]
#[derive(Clone, Copy)]
union Constraint {
    integer: IntegerBounds,
    real: RealBounds,
    string: LengthBounds,
    uuid: TargetTable,
}

/// The type of keys or values.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct corvid_idl_base_type {
    pub(crate) atom: c_int,
    pub(crate) enumeration: *const corvid_idl_values,
    constraint: Constraint,
}

/// The type of a column.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct corvid_idl_type {
    pub(crate) key: corvid_idl_base_type,
    pub(crate) value: corvid_idl_base_type,
    pub(crate) n_min: c_uint,
    pub(crate) n_max: c_uint,
}

/// A type with the memory that it points to.
pub(crate) struct OwnedType {
    pub(crate) shown: Box<corvid_idl_type>,
    names: Vec<CString>,
    strings: Vec<Box<[corvid_idl_string]>>,
    atoms: Vec<Box<[corvid_idl_atom]>>,
    values: Vec<Box<[corvid_idl_values]>>,
}

// SAFETY: the pointers point into the boxes, which go with the type, and nothing writes there.
unsafe impl Send for OwnedType {}

impl OwnedType {
    pub(crate) fn of(column_type: &ColumnType) -> OwnedType {
        let void = corvid_idl_base_type {
            atom: 0,
            enumeration: ptr::null(),
            constraint: Constraint {
                integer: IntegerBounds { min: 0, max: 0 },
            },
        };
        let mut made = OwnedType {
            shown: Box::new(corvid_idl_type {
                key: void,
                value: void,
                n_min: column_type.min,
                n_max: column_type.max,
            }),
            names: Vec::new(),
            strings: Vec::new(),
            atoms: Vec::new(),
            values: Vec::new(),
        };
        made.shown.key = made.base(&column_type.key);
        if let Some(value) = &column_type.value {
            made.shown.value = made.base(value);
        }
        made
    }

    fn base(&mut self, base: &BaseType) -> corvid_idl_base_type {
        let constraint = match (&base.bounds, &base.reference) {
            (_, Some(reference)) => {
                let name = CString::new(reference.table_name.as_str()).unwrap_or_default();
                let uuid = TargetTable {
                    name: name.as_ptr(),
                    table: ptr::null(),
                    reference: c_int::from(reference.ref_type == RefType::Weak),
                };
                self.names.push(name);
                Constraint { uuid }
            }
            (Bounds::Integer { min, max }, _) => Constraint {
                integer: IntegerBounds {
                    min: *min,
                    max: *max,
                },
            },
            (Bounds::Real { min, max }, _) => Constraint {
                real: RealBounds {
                    min: *min,
                    max: *max,
                },
            },
            (Bounds::Length { min, max }, _) => Constraint {
                string: LengthBounds {
                    min: *min,
                    max: *max,
                },
            },
            (Bounds::None, None) => unbounded(number_of(base.atom)),
        };
        corvid_idl_base_type {
            atom: number_of(base.atom),
            enumeration: self.enumeration(base.enumeration.as_ref()),
            constraint,
        }
    }

    fn enumeration(&mut self, datum: Option<&Datum>) -> *const corvid_idl_values {
        let Some(datum) = datum else {
            return ptr::null();
        };
        let names: Vec<CString> = datum
            .keys()
            .filter_map(|atom| atom.as_string().map(CString::new))
            .map(Result::unwrap_or_default)
            .collect();
        let strings = names.iter().map(|name| corvid_idl_string {
            string: name.as_ptr(),
        });
        let strings: Box<[corvid_idl_string]> = strings.collect();
        let mut places = strings.iter();
        let atoms = datum.keys().map(|atom| match atom {
            AtomRef::Integer(integer) => corvid_idl_atom { integer },
            AtomRef::Real(real) => corvid_idl_atom { real: real.get() },
            AtomRef::Boolean(boolean) => corvid_idl_atom {
                boolean: u8::from(boolean),
            },
            AtomRef::Uuid(uuid) => corvid_idl_atom { uuid: uuid.into() },
            AtomRef::String(_) => corvid_idl_atom {
                s: places.next().map_or(ptr::null(), ptr::from_ref),
            },
        });
        let atoms: Box<[corvid_idl_atom]> = atoms.collect();
        let values: Box<[corvid_idl_values]> = Box::new([corvid_idl_values {
            n: c_uint::try_from(atoms.len()).unwrap_or(0),
            keys: atoms.as_ptr(),
            values: ptr::null(),
            refcnt: ptr::null_mut(),
        }]);
        let shown = values.as_ptr();
        self.names.extend(names);
        self.strings.push(strings);
        self.atoms.push(atoms);
        self.values.push(values);
        shown
    }
}

/// The constraint of a type that has none.
fn unbounded(atom: c_int) -> Constraint {
    match atom {
        1 => Constraint {
            integer: IntegerBounds {
                min: i64::MIN,
                max: i64::MAX,
            },
        },
        2 => Constraint {
            real: RealBounds {
                min: f64::MIN,
                max: f64::MAX,
            },
        },
        4 => Constraint {
            string: LengthBounds {
                min: 0,
                max: c_uint::MAX,
            },
        },
        _ => Constraint {
            uuid: TargetTable {
                name: ptr::null(),
                table: ptr::null(),
                reference: 0,
            },
        },
    }
}

impl corvid_idl_type {
    /// The type of the core.
    pub(crate) fn core_type(&self) -> Result<ColumnType, Failure> {
        Ok(ColumnType {
            key: self.key.to_core()?,
            value: match self.value.atom {
                0 => None,
                _ => Some(self.value.to_core()?),
            },
            min: self.n_min,
            max: self.n_max,
        })
    }
}

impl corvid_idl_base_type {
    /// The base type of the core.
    pub(crate) fn to_core(self) -> Result<BaseType, Failure> {
        let wrong = || Failure::argument("the type is none of a column");
        let atom = crate::value::type_of(self.atom).ok_or_else(wrong)?;
        // SAFETY: the member of the type is set, by the contract of the header.
        let (bounds, reference) = unsafe {
            match self.atom {
                1 => {
                    let IntegerBounds { min, max } = self.constraint.integer;
                    let is_bound = (min, max) != (i64::MIN, i64::MAX);
                    (is_bound.then_some(Bounds::Integer { min, max }), None)
                }
                2 => {
                    let RealBounds { min, max } = self.constraint.real;
                    let is_bound = (min, max) != (f64::MIN, f64::MAX);
                    (is_bound.then_some(Bounds::Real { min, max }), None)
                }
                4 => {
                    let LengthBounds { min, max } = self.constraint.string;
                    let is_bound = (min, max) != (0, c_uint::MAX);
                    (is_bound.then_some(Bounds::Length { min, max }), None)
                }
                5 if !self.constraint.uuid.name.is_null() => {
                    let target = self.constraint.uuid;
                    let reference = Reference {
                        table_name: Str::new(pointer::text(target.name, "a table")?),
                        // The table is not looked up.
                        table: TableId(u16::MAX),
                        ref_type: if target.reference == 0 {
                            RefType::Strong
                        } else {
                            RefType::Weak
                        },
                    };
                    (None, Some(reference))
                }
                _ => (None, None),
            }
        };
        let plain = BaseType::plain(atom);
        let enumeration = if self.enumeration.is_null() {
            None
        } else {
            let values = pointer::array(self.enumeration, 1, "an enumeration")?[0];
            let mut datum = DatumBuilder::new();
            for atom in pointer::array(values.keys, values.n as usize, "an enumeration")? {
                datum.push(atom.to_core(&plain)?, None);
            }
            Some(datum.finish().map_err(Failure::constraint)?)
        };
        Ok(BaseType {
            enumeration,
            bounds: bounds.unwrap_or(Bounds::None),
            reference,
            ..plain
        })
    }
}

impl corvid_idl_atom {
    fn to_core(self, base: &BaseType) -> Result<Atom, Failure> {
        // SAFETY: the member of the type is set, by the contract of the header.
        let atom = unsafe {
            match number_of(base.atom) {
                1 => Atom::Integer(self.integer),
                2 => Atom::Real(Real::new(self.real).unwrap_or_default()),
                3 => Atom::Boolean(self.boolean != 0),
                4 => {
                    let string = pointer::array(self.s, 1, "a string")?[0].string;
                    Atom::String(Str::new(pointer::text(string, "a string")?))
                }
                _ => Atom::Uuid(self.uuid.into()),
            }
        };
        Ok(atom)
    }
}

/// The type that a column has at the last server, or null if the server has no such column. It
/// belongs to the library and lasts as long as the replica.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_server_column_type(
    replica: *const corvid_idl,
    column: *const corvid_idl_column,
) -> *const corvid_idl_type {
    let mut found = ptr::null();
    guard("corvid_idl_server_column_type", || {
        found = with(replica, |_, state| {
            let place = state.layout.column(column)?;
            let wanted = state.column(place);
            let Ok(idl) = super::cell::idl(state) else {
                return Ok(ptr::null());
            };
            let Some(column) = idl.server_column(wanted) else {
                return Ok(ptr::null());
            };
            let column_type = column.column_type.clone();
            let kept = state.server_types.iter();
            if let Some((_, _, kept)) = kept
                .rev()
                .find(|(other, kept, _)| *other == place && *kept == column_type)
            {
                return Ok(ptr::from_ref(&*kept.shown));
            }
            let made = OwnedType::of(&column_type);
            let shown = ptr::from_ref(&*made.shown);
            state.server_types.push((place, column_type, made));
            Ok(shown)
        })?;
        Ok(())
    });
    found
}
