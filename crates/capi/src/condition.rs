//! Conditions: which rows of a table are replicated.

use std::ffi::{c_char, c_int};

use corvid::{Clause, Condition, Function};

use crate::abi::{Versioned, sized_array};
use crate::client::{corvid_client, with};
use crate::config::{column_key, corvid_column, corvid_table, table_id};
use crate::error::{Failure, corvid_error, guard};
use crate::pointer::{self, Out};
use crate::value::{corvid_atom, datum_of};

/// Functions of clauses.
#[repr(C)]
pub enum corvid_function {
    /// `==`
    CORVID_FUNCTION_EQUAL = 0,
    /// `!=`
    CORVID_FUNCTION_NOT_EQUAL = 1,
    /// `<`
    CORVID_FUNCTION_LESS = 2,
    /// `<=`
    CORVID_FUNCTION_LESS_OR_EQUAL = 3,
    /// `>`
    CORVID_FUNCTION_GREATER = 4,
    /// `>=`
    CORVID_FUNCTION_GREATER_OR_EQUAL = 5,
    /// `includes`
    CORVID_FUNCTION_INCLUDES = 6,
    /// `excludes`
    CORVID_FUNCTION_EXCLUDES = 7,
}

fn function_of(number: c_int) -> Result<Function, Failure> {
    Ok(match number {
        0 => Function::Equal,
        1 => Function::NotEqual,
        2 => Function::Less,
        3 => Function::LessOrEqual,
        4 => Function::Greater,
        5 => Function::GreaterOrEqual,
        6 => Function::Includes,
        7 => Function::Excludes,
        _ => return Err(Failure::argument(format!("unknown function {number}"))),
    })
}

/// One clause of a condition. CORVID_CLAUSE sets all members.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct corvid_clause {
    /// `sizeof(corvid_clause)`, set by the caller.
    pub size: usize,
    /// The column.
    pub column: corvid_column,
    /// A corvid_function.
    pub function: c_int,
    /// The elements or keys that the column is compared with.
    pub keys: *const corvid_atom,
    /// The values of a map; null for a set.
    pub values: *const corvid_atom,
    /// How many there are.
    pub count: usize,
}

// SAFETY: numbers and pointers only, the size first.
unsafe impl Versioned for corvid_clause {
    const NAME: &'static str = "corvid_clause";
    const LEAST: usize = 40;
}

/// Chooses the rows of a table that are replicated: those for which any of the clauses holds;
/// without clauses none. `*seqno` is the number that corvid_condition_seqno must reach before the
/// condition is in force; `seqno` may be null. CORVID_ERR_TYPE: a server would refuse a clause, and
/// the condition in force stays.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_condition_set(
    client: *mut corvid_client,
    table: corvid_table,
    clauses: *const corvid_clause,
    count: usize,
    seqno: *mut u64,
) -> corvid_error {
    guard("corvid_condition_set", || {
        let clauses = sized_array(clauses, count, "clauses")?;
        let clauses: Vec<corvid_clause> = clauses.collect::<Result<_, _>>()?;
        set(client, table, Some(&clauses), seqno)
    })
}

/// Replicates all rows of a table, as it is without a condition.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_condition_set_all(
    client: *mut corvid_client,
    table: corvid_table,
    seqno: *mut u64,
) -> corvid_error {
    guard("corvid_condition_set_all", || {
        set(client, table, None, seqno)
    })
}

fn set(
    client: *mut corvid_client,
    table: corvid_table,
    clauses: Option<&[corvid_clause]>,
    seqno: *mut u64,
) -> Result<(), Failure> {
    let out = (!seqno.is_null()).then(|| Out::new(seqno, "seqno"));
    let out = out.transpose()?;
    let promised = with(client, |client| {
        let schema = client.schema().clone();
        let table = table_id(&schema, table)?;
        let mut condition = clauses.map_or_else(Condition::all, |_| Condition::none());
        for clause in clauses.unwrap_or_default() {
            let column = column_key(&schema, clause.column)?;
            if column.table != table {
                return Err(corvid::Misuse::WrongTable.into());
            }
            let column = schema.table(table).column(column.id);
            let column_type = &column.column_type;
            let argument = datum_of(clause.keys, clause.values, clause.count, column_type)?;
            let function = function_of(clause.function)?;
            let is_map = column_type.is_map();
            condition.add(Clause::new(&column.name, function, &argument, is_map));
        }
        Ok(client.set_condition((table, condition))?)
    })?;
    if let Some(out) = out {
        out.set(promised);
    }
    Ok(())
}

/// The number up to which conditions are in force: compare with `>=`. 0 for a handle that is none.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_condition_seqno(client: *const corvid_client) -> u64 {
    let mut seqno = 0;
    guard("corvid_condition_seqno", || {
        seqno = with(client, |client| Ok(client.condition_seqno()))?;
        Ok(())
    });
    seqno
}

/// Copies the server's error, as JSON, into `buffer`, cut to `size` bytes with its NUL, if the
/// server refused the condition whose number is `seqno` (corvid_condition_set). Ask once
/// corvid_condition_seqno has reached the number: the condition before it is in force again.
/// `*length` is the length of the whole text; `length` may be null, and so may `buffer` if `size`
/// is 0. CORVID_ERR_NONE: the server did not refuse it, or conditions were set after it.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_condition_refusal(
    client: *const corvid_client,
    seqno: u64,
    buffer: *mut c_char,
    size: usize,
    length: *mut usize,
) -> corvid_error {
    guard("corvid_condition_refusal", || {
        let out = (!length.is_null()).then(|| Out::new(length, "length"));
        let out = out.transpose()?;
        let refusal = with(client, |client| {
            let refusal = client.idl().condition_refusal(seqno);
            Ok(refusal.map(str::to_owned))
        })?;
        let refusal = refusal.ok_or_else(|| Failure::none("the condition was not refused"))?;
        let whole = pointer::copy_text(&refusal, buffer, size)?;
        if let Some(out) = out {
            out.set(whole);
        }
        Ok(())
    })
}
