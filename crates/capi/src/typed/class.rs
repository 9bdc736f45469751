//! The descriptions that generated code gives: tables, columns, and where columns are in the
//! structs of rows.

use std::collections::BTreeMap;
use std::ffi::{c_char, c_uint};

use corvid::data::{Arc, AtomType, BaseType, ColumnType};
use corvid::{Column, Schema, TableId};

use crate::abi;
use crate::config::Config;
use crate::error::Failure;
use crate::pointer;
use crate::typed::idl::corvid_idl;
use crate::typed::map::{Maps, corvid_idl_map_functions};
use crate::value::corvid_uuid;

/// A column of a generated struct. A constant of generated code.
///
/// In C its type follows, which is for programs alone and may be a struct of another library. So
/// columns lie as far apart as the class says ([`corvid_idl_class::column_size`]).
#[repr(C)]
pub struct corvid_idl_column {
    /// Its name in the schema.
    pub name: *const c_char,
    /// Where its member is, for a map that of the keys.
    pub offset: usize,
    /// Where the member with the values of a map is; 0 for none.
    pub value_offset: usize,
    /// Where the member with the number of elements is; 0 for none.
    pub count_offset: usize,
    /// Whether rows may be changed in it, by the schema.
    pub is_mutable: u8,
    /// Whether the database does not have it, and the program computes it. Such columns are the
    /// last ones of their table.
    pub is_synthetic: u8,
}

/// A table of generated code. A constant.
#[repr(C)]
pub struct corvid_idl_table_class {
    /// Its name in the schema.
    pub name: *const c_char,
    /// Its columns.
    pub columns: *const corvid_idl_column,
    /// How many there are.
    pub n_columns: usize,
    /// The size of the struct of a row.
    pub row_size: usize,
    /// Computes the synthetic columns of a row; null if there are none. It may read the replica,
    /// and must not change it.
    pub parse: Option<unsafe extern "C" fn(row: *mut corvid_idl_row)>,
    /// Frees what `parse` has allocated, before the next `parse` of the row and before the row's
    /// end.
    pub unparse: Option<unsafe extern "C" fn(row: *mut corvid_idl_row)>,
    /// Rows stay without a reference to them. For the program; the library reads the schema.
    pub is_root: bool,
    /// The table has one row at most. For the program.
    pub is_singleton: bool,
}

/// A database of generated code. A constant. The layouts of columns, tables, rows, index columns
/// and cursors belong to its version.
#[repr(C)]
pub struct corvid_idl_class {
    /// CORVID_IDL_VERSION of the header that the code was compiled with.
    pub version: c_uint,
    /// `sizeof(struct corvid_idl_column)` of the code.
    pub column_size: usize,
    /// Its name.
    pub database: *const c_char,
    /// Its schema, as JSON.
    pub schema: *const c_char,
    /// Its tables.
    pub tables: *const corvid_idl_table_class,
    /// How many there are.
    pub n_tables: usize,
    /// Functions for maps of strings in rows; null if the maps are corvid_smap.
    pub maps: *const corvid_idl_map_functions,
}

/// A table of a replica. It belongs to the library and lasts as long as the replica.
#[repr(C)]
#[derive(Debug)]
pub struct corvid_idl_table {
    /// Its description.
    pub class_: *const corvid_idl_table_class,
    /// Its replica.
    pub idl: *mut corvid_idl,
}

/// The head of the struct of a row. It belongs to the library.
#[repr(C)]
#[derive(Debug)]
pub struct corvid_idl_row {
    /// The identity of the row; of one that was inserted in the open transaction, a provisional
    /// one.
    pub uuid: corvid_uuid,
    /// The table of the row.
    pub table: *const corvid_idl_table,
}

/// One pair of a map of strings.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct corvid_smap_node {
    /// The key.
    pub key: *const c_char,
    /// The value.
    pub value: *const c_char,
}

/// A map of strings, in ascending order of keys. In the struct of a row it belongs to the library.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct corvid_smap {
    /// The pairs.
    pub nodes: *const corvid_smap_node,
    /// How many there are.
    pub n: usize,
}

/// One atom of a column: its type, and the table that it refers to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Element {
    pub(crate) atom: AtomType,
    /// The number among the tables of the class.
    pub(crate) target: Option<usize>,
}

impl Element {
    /// Its bytes in an array.
    pub(crate) fn size(self) -> usize {
        match (self.atom, self.target) {
            (AtomType::Uuid, None) => size_of::<corvid_uuid>(),
            (AtomType::Boolean, _) => 1,
            _ => 8,
        }
    }
}

/// How a column is shown (docs/spec/idl.md 7.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// The value itself; for a map of exactly one pair, two of them.
    Scalar,
    /// A pointer that may be null: optional strings and references.
    Pointer,
    /// An array and a number; for a map two arrays.
    Array,
    /// A map of strings.
    StringMap,
}

/// A column of a struct.
#[derive(Debug)]
pub(crate) struct ColumnLayout {
    pub(crate) column: Column,
    pub(crate) shape: Shape,
    pub(crate) key: Element,
    pub(crate) value: Option<Element>,
    pub(crate) offset: usize,
    pub(crate) value_offset: usize,
    pub(crate) count_offset: usize,
    /// Elements that the column admits.
    pub(crate) count_max: usize,
}

impl ColumnLayout {
    pub(crate) fn has_references(&self) -> bool {
        self.key.target.is_some() || self.value.is_some_and(|value| value.target.is_some())
    }
}

/// The code for the synthetic columns of a table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Computed {
    parse: unsafe extern "C" fn(row: *mut corvid_idl_row),
    unparse: Option<unsafe extern "C" fn(row: *mut corvid_idl_row)>,
}

impl Computed {
    pub(crate) fn parse(self, row: *mut corvid_idl_row) {
        // SAFETY: the row is one of the table, whose struct has its memory, and the contract of the
        // class is that its code takes such rows.
        unsafe { (self.parse)(row) }
    }

    pub(crate) fn unparse(self, row: *mut corvid_idl_row) {
        if let Some(unparse) = self.unparse {
            // SAFETY: as above.
            unsafe { unparse(row) }
        }
    }
}

/// A table of a class.
#[derive(Debug)]
pub(crate) struct TableLayout {
    /// The code for synthetic columns.
    pub(crate) computed: Option<Computed>,
    pub(crate) table: TableId,
    pub(crate) row_size: usize,
    pub(crate) columns: Vec<ColumnLayout>,
    /// Maps whose type is the program's.
    pub(crate) maps: Option<Arc<Maps>>,
    /// Addresses of the constants of the generated code, to recognize them by.
    pub(crate) class: usize,
    column_class: usize,
    column_size: usize,
}

/// A class: all tables.
#[derive(Debug)]
pub(crate) struct Layout {
    /// The address of the constant of the generated code.
    pub(crate) class: usize,
    pub(crate) schema: Arc<Schema>,
    pub(crate) tables: Vec<TableLayout>,
}

fn broken(text: &str) -> Failure {
    Failure::argument(format!(
        "the class is not one that ovsdb-idlc generates: {text}"
    ))
}

impl Layout {
    /// Reads a class.
    pub(crate) fn of(class: *const corvid_idl_class) -> Result<Layout, Failure> {
        // Nothing else of a class of another version can be read.
        abi::check_class(pointer::array(class.cast::<c_uint>(), 1, "class")?[0])?;
        let class = &pointer::array(class, 1, "class")?[0];
        let schema = Config::of_schema(pointer::text(class.schema, "schema")?)?.schema;
        let tables = pointer::array(class.tables, class.n_tables, "tables")?;
        let mut ids = Vec::new();
        let mut numbers = BTreeMap::new();
        for (number, table) in tables.iter().enumerate() {
            let name = pointer::text(table.name, "the name of a table")?;
            let id = schema.table_id(name);
            let id = id.ok_or_else(|| broken(&format!("there is no table {name}")))?;
            numbers.insert(id, number);
            ids.push(id);
        }
        let functions = if class.maps.is_null() {
            None
        } else {
            Some(&pointer::array(class.maps, 1, "maps")?[0])
        };
        if !functions.is_none_or(corvid_idl_map_functions::is_whole) {
            return Err(broken("a function for maps is null"));
        }
        let map_size = functions.map_or(size_of::<corvid_smap>(), |functions| functions.size);
        let mut layouts = Vec::new();
        for (table, id) in tables.iter().zip(ids) {
            let mut made = Vec::new();
            for column in columns_of(table, class.column_size)? {
                made.push(column_layout(
                    &schema,
                    id,
                    column,
                    (table.row_size, map_size),
                    &numbers,
                )?);
            }
            if table.row_size < size_of::<corvid_idl_row>() {
                return Err(broken("a row is too small"));
            }
            let computed = table.parse.map(|parse| Computed {
                parse,
                unparse: table.unparse,
            });
            layouts.push(TableLayout {
                computed,
                table: id,
                row_size: table.row_size,
                maps: functions
                    .and_then(|functions| Maps::of(functions, &made))
                    .map(Arc::new),
                columns: made,
                class: std::ptr::from_ref(table).addr(),
                column_class: table.columns.addr(),
                column_size: class.column_size,
            });
        }
        Ok(Layout {
            class: std::ptr::from_ref(class).addr(),
            schema,
            tables: layouts,
        })
    }

    /// The number of a table by the address of its description.
    pub(crate) fn table(&self, class: *const corvid_idl_table_class) -> Result<usize, Failure> {
        let mut tables = self.tables.iter();
        let found = tables.position(|table| table.class == class.addr());
        found.ok_or_else(|| Failure::argument("the table is not one of the class"))
    }

    /// The numbers of the table and of a column by the address of its description.
    pub(crate) fn column(
        &self,
        column: *const corvid_idl_column,
    ) -> Result<(usize, usize), Failure> {
        for (number, table) in self.tables.iter().enumerate() {
            let size = table.column_size;
            let offset = column.addr().wrapping_sub(table.column_class);
            // The range first: it rules out all tables but one without a division.
            if offset < size * table.columns.len() && offset % size == 0 {
                return Ok((number, offset / size));
            }
        }
        Err(Failure::argument("the column is not one of the class"))
    }
}

/// The columns of a table that the database has.
fn columns_of(
    table: &corvid_idl_table_class,
    size: usize,
) -> Result<impl Iterator<Item = &corvid_idl_column>, Failure> {
    let is_sound = size >= size_of::<corvid_idl_column>()
        && size.is_multiple_of(align_of::<corvid_idl_column>())
        && table.columns.is_aligned();
    let bytes = table.n_columns.checked_mul(size).filter(|_| is_sound);
    let bytes = bytes.ok_or_else(|| broken("the size of its columns is wrong"))?;
    let bytes = pointer::array(table.columns.cast::<u8>(), bytes, "columns")?;
    let columns = bytes.chunks_exact(size).map(|bytes| {
        // SAFETY: the place is aligned and has at least as many bytes as the struct, and the code
        // of this version has set them.
        unsafe { &*bytes.as_ptr().cast::<corvid_idl_column>() }
    });
    Ok(columns.take_while(|column| column.is_synthetic == 0))
}

fn column_layout(
    schema: &Schema,
    table: TableId,
    column: &corvid_idl_column,
    (row_size, map_size): (usize, usize),
    numbers: &BTreeMap<TableId, usize>,
) -> Result<ColumnLayout, Failure> {
    let name = pointer::text(column.name, "the name of a column")?;
    let id = schema.table(table).column_id(name);
    let id = id.ok_or_else(|| broken(&format!("there is no column {name}")))?;
    let column_type = &schema.table(table).column(id).column_type;
    let element = |base: &BaseType| Element {
        atom: base.atom,
        target: base
            .reference
            .as_ref()
            .and_then(|reference| numbers.get(&reference.table).copied()),
    };
    let key = element(&column_type.key);
    let value = column_type.value.as_ref().map(element);
    let bases = [
        Some((&column_type.key, key)),
        column_type.value.as_ref().zip(value),
    ];
    let is_lost = |(base, element): (&BaseType, Element)| {
        base.reference.is_some() && element.target.is_none()
    };
    if bases.into_iter().flatten().any(is_lost) {
        return Err(broken(&format!("column {name} refers to another class")));
    }
    let shape = shape_of(column_type);
    let layout = ColumnLayout {
        column: Column { table, id },
        shape,
        key,
        value,
        offset: column.offset,
        value_offset: column.value_offset,
        count_offset: column.count_offset,
        count_max: column_type.max as usize,
    };
    // Each member lies behind the head and within the struct, so filling it touches nothing else.
    let fits = |offset: usize, size: usize| {
        let end = offset.checked_add(size);
        let alignment = if size == size_of::<corvid_uuid>() && shape == Shape::Scalar {
            align_of::<corvid_uuid>()
        } else {
            size.min(8)
        };
        offset >= size_of::<corvid_idl_row>()
            && offset.is_multiple_of(alignment)
            && end.is_some_and(|end| end <= row_size)
    };
    let member = |element: Element| match shape {
        Shape::Scalar => element.size(),
        Shape::StringMap => map_size,
        Shape::Pointer | Shape::Array => 8,
    };
    let mut is_sound = fits(layout.offset, member(key));
    if let Some(value) = value.filter(|_| shape != Shape::StringMap) {
        is_sound &= fits(layout.value_offset, member(value));
    }
    if shape == Shape::Array {
        is_sound &= fits(layout.count_offset, 8);
    }
    if is_sound {
        Ok(layout)
    } else {
        Err(broken(&format!("column {name} is outside of its row")))
    }
}

/// The shape of a type.
pub(crate) fn shape_of(column_type: &ColumnType) -> Shape {
    let is_string = |base: &BaseType| base.atom == AtomType::String;
    let is_scalar = (column_type.min, column_type.max) == (1, 1);
    match &column_type.value {
        _ if is_scalar => Shape::Scalar,
        Some(value) if is_string(value) && is_string(&column_type.key) => Shape::StringMap,
        Some(_) => Shape::Array,
        None if column_type.max == 1
            && (is_string(&column_type.key) || column_type.key.reference.is_some()) =>
        {
            Shape::Pointer
        }
        None => Shape::Array,
    }
}
