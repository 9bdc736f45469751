//! Conditions of typed replicas, which are made before a replica is named.

use std::ffi::{c_int, c_uint};
use std::ptr;
use std::sync::{Mutex, PoisonError};

use corvid::data::{BaseType, DatumBuilder};
use corvid::{Clause, Condition, Datum, Function};

use super::class::{corvid_idl_column, corvid_idl_table_class};
use super::idl::{corvid_idl, with};
use crate::abi::{SizedOut, Versioned, sized_array};
use crate::error::{Failure, Outcome, guard};
use crate::handle::{self, Kind};
use crate::pointer;
use crate::value::{corvid_atom, type_of};

/// The clauses of a condition.
pub struct corvid_idl_clauses {
    _private: [u8; 0],
}

struct Clauses(Mutex<Vec<StoredClause>>);

/// A clause before its column is known.
#[derive(Clone)]
struct StoredClause {
    /// The address of the column's description.
    column: usize,
    function: Function,
    argument: Datum,
    is_map: bool,
}

impl Kind for Clauses {
    type Opaque = corvid_idl_clauses;
    const NAME: &'static str = "condition";
}

/// A condition. CORVID_IDL_CONDITION_INIT is the empty one, which no row meets. Free it with
/// corvid_idl_condition_destroy.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct corvid_idl_condition {
    /// `sizeof(struct corvid_idl_condition)`, set by the caller.
    pub size: usize,
    /// Its clauses; null for none.
    pub clauses: *mut corvid_idl_clauses,
    /// Every row meets it, if it is not 0.
    pub is_true: u8,
}

// SAFETY: numbers and a pointer only, the size first.
unsafe impl Versioned for corvid_idl_condition {
    const NAME: &'static str = "corvid_idl_condition";
    const LEAST: usize = 24;
}

/// The members of a condition of the program.
fn held(condition: *const corvid_idl_condition) -> Result<corvid_idl_condition, Failure> {
    let mut conditions = sized_array(condition, 1, "condition")?;
    conditions
        .next()
        .ok_or_else(|| Failure::null("condition"))?
}

/// Does something with a condition of the program.
fn with_condition(
    name: &'static str,
    condition: *mut corvid_idl_condition,
    work: impl FnOnce(&mut corvid_idl_condition) -> Outcome,
) {
    guard(name, || {
        let out = SizedOut::new(condition)?;
        let mut held = held(condition)?;
        let outcome = work(&mut held);
        out.set(held);
        outcome
    });
}

/// Empties a condition.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_condition_clear(condition: *mut corvid_idl_condition) {
    with_condition("corvid_idl_condition_clear", condition, |condition| {
        condition.is_true = 0;
        let clauses = std::mem::replace(&mut condition.clauses, ptr::null_mut());
        handle::take::<Clauses>(clauses).map(drop)
    });
}

/// Frees what a condition holds, and empties it.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_condition_destroy(condition: *mut corvid_idl_condition) {
    corvid_idl_condition_clear(condition);
}

/// Adds a clause. `function` is an enum ovsdb_function: 0 false, 1 true, 2 ==, 3 includes, 4 <=, 5
/// <, 6 >=, 7 >, 8 excludes, 9 !=. `values` is null for a set.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_condition_add_clause(
    condition: *mut corvid_idl_condition,
    function: c_int,
    column: *const corvid_idl_column,
    keys: *const corvid_atom,
    values: *const corvid_atom,
    count: usize,
) {
    with_condition("corvid_idl_condition_add_clause", condition, |condition| {
        let function = match function {
            0 => return Ok(()),
            1 => {
                condition.is_true = 1;
                return Ok(());
            }
            2 => Function::Equal,
            3 => Function::Includes,
            4 => Function::LessOrEqual,
            5 => Function::Less,
            6 => Function::GreaterOrEqual,
            7 => Function::Greater,
            8 => Function::Excludes,
            9 => Function::NotEqual,
            _ => return Err(Failure::argument(format!("unknown function {function}"))),
        };
        let keys = pointer::array(keys, count, "keys")?;
        let is_map = !values.is_null();
        let values = if is_map {
            pointer::array(values, count, "values")?
        } else {
            &[]
        };
        let mut argument = DatumBuilder::new();
        for (at, key) in keys.iter().enumerate() {
            let value = values.get(at).map(|value| atom_of(*value)).transpose()?;
            argument.push(atom_of(*key)?, value);
        }
        let argument = argument.finish();
        let argument = argument.map_err(|error| Failure::argument(error.to_string()))?;
        if condition.clauses.is_null() {
            condition.clauses = handle::store(Clauses(Mutex::default()))?;
        }
        let clauses = handle::get::<Clauses>(condition.clauses)?;
        let mut clauses = clauses.0.lock().unwrap_or_else(PoisonError::into_inner);
        clauses.push(StoredClause {
            column: column.addr(),
            function,
            argument,
            is_map,
        });
        Ok(())
    });
}

/// An atom by its own type.
fn atom_of(atom: corvid_atom) -> Result<corvid::Atom, Failure> {
    let unknown = || Failure::argument(format!("unknown type {}", atom.kind));
    let atom_type = type_of(atom.kind).ok_or_else(unknown)?;
    atom.to_atom(&BaseType::plain(atom_type))
}

/// Chooses the rows of a table that are replicated. Returns the number that
/// corvid_idl_get_condition_seqno must reach before the condition is in force. A condition that a
/// server would refuse is logged and changes nothing; the number is 0 then.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_set_condition(
    replica: *mut corvid_idl,
    class: *const corvid_idl_table_class,
    condition: *const corvid_idl_condition,
) -> c_uint {
    let mut promised = 0;
    guard("corvid_idl_set_condition", || {
        let condition = held(condition)?;
        let clauses = if condition.clauses.is_null() {
            Vec::new()
        } else {
            let clauses = handle::get::<Clauses>(condition.clauses)?;
            let clauses = clauses.0.lock().unwrap_or_else(PoisonError::into_inner);
            clauses.clone()
        };
        let is_true = condition.is_true != 0;
        promised = with(replica, |_, state| {
            let number = state.layout.table(class)?;
            let table = state.layout.tables[number].table;
            let mut made = if is_true {
                Condition::all()
            } else {
                Condition::none()
            };
            for clause in clauses {
                let place = state
                    .layout
                    .column(ptr::without_provenance(clause.column))?;
                if place.0 != number {
                    return Err(corvid::Misuse::WrongTable.into());
                }
                let column = state.column(place);
                let name = &state.layout.schema.table(table).column(column.id).name;
                made.add(Clause::new(
                    name,
                    clause.function,
                    &clause.argument,
                    clause.is_map,
                ));
            }
            if let Some(client) = &mut state.client {
                return Ok(client.set_condition((table, made))? as c_uint);
            }
            // The client that is made later reports no errors to this caller.
            made.check(state.layout.schema.table(table))
                .map_err(corvid::Misuse::from)?;
            // It goes with the first request for contents, and is in force when they come.
            state.conditions.retain(|(other, _)| *other != table);
            let is_default = made.is_true();
            state.conditions.push((table, made));
            Ok(c_uint::from(!is_default))
        })?;
        Ok(())
    });
    promised
}

/// The number up to which conditions are in force: compare with `>=`.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_get_condition_seqno(replica: *const corvid_idl) -> c_uint {
    let mut seqno = 0;
    guard("corvid_idl_get_condition_seqno", || {
        seqno = with(replica, |_, state| {
            let client = state.client.as_ref();
            Ok(client.map_or(0, |client| client.condition_seqno()) as c_uint)
        })?;
        Ok(())
    });
    seqno
}
