//! The struct of one row: memory at a fixed address, which is filled column by column.
//!
//! A column that needs more than its member (strings, arrays) has a block of memory of its own:
//! keys, values, texts. Filling makes a new block, lets the members point to it, and hands out the
//! old one, which the program may still be reading.

use std::alloc::{Layout as Memory, alloc_zeroed, dealloc, handle_alloc_error};
use std::ffi::c_char;
use std::ptr::NonNull;

use corvid::data::{Arc, AtomRef, AtomType};
use corvid::{Datum, Uuid};

use super::class::{ColumnLayout, Element, Shape, TableLayout, corvid_idl_row, corvid_idl_table};
use super::map::Maps;
use crate::value::corvid_uuid;

/// Whether a row is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// It is there.
    Live,
    /// The open transaction deleted it.
    Hidden,
    /// It is gone. Its struct stays for a while.
    Dead,
}

/// A row, and its struct.
#[derive(Debug)]
pub(crate) struct Record {
    memory: NonNull<u8>,
    layout: Memory,
    pub(crate) uuid: Uuid,
    pub(crate) state: State,
    /// Whether synthetic columns were computed.
    pub(crate) is_parsed: bool,
    /// Whether they are to be computed anew.
    pub(crate) is_due: bool,
    /// The slot of its row in the core, if it is among the shown rows.
    pub(crate) core_slot: Option<usize>,
    /// The memory that the members of each column point to.
    blocks: Vec<Box<[u64]>>,
    /// Maps whose type is the program's. They own their memory, which goes with the record.
    maps: Option<Arc<Maps>>,
    /// The present values of columns with references, by the number of the column.
    pub(crate) references: Vec<(usize, Datum)>,
}

// SAFETY: the memory belongs to the record alone, as that of a box would.
unsafe impl Send for Record {}

impl Record {
    pub(crate) fn new(layout: &TableLayout, uuid: Uuid, table: *const corvid_idl_table) -> Record {
        let size = layout.row_size.next_multiple_of(8);
        // A size that the constants of generated code have fits.
        let memory_layout = Memory::from_size_align(size, 8).unwrap_or(Memory::new::<u64>());
        // SAFETY: the size is not 0: the head has its own.
        let memory = unsafe { alloc_zeroed(memory_layout) };
        let Some(memory) = NonNull::new(memory) else {
            handle_alloc_error(memory_layout)
        };
        let head = corvid_idl_row {
            uuid: uuid.into(),
            table,
        };
        // SAFETY: the memory is new, aligned to 8 and has room for the head (`Layout::of`).
        unsafe { memory.cast::<corvid_idl_row>().write(head) };
        let record = Record {
            memory,
            layout: memory_layout,
            uuid,
            state: State::Live,
            is_parsed: false,
            is_due: false,
            core_slot: None,
            blocks: std::iter::repeat_with(Box::default)
                .take(layout.columns.len())
                .collect(),
            maps: layout.maps.clone(),
            references: Vec::new(),
        };
        if let Some(maps) = &record.maps {
            maps.init(memory);
        }
        // Zeros are the defaults of all members but these.
        for column in &layout.columns {
            if column.shape == Shape::Scalar && column.key.atom == AtomType::String {
                record.put(column.offset, c"".as_ptr());
            }
            let value = column.value.filter(|_| column.shape == Shape::Scalar);
            if value.is_some_and(|value| value.atom == AtomType::String) {
                record.put(column.value_offset, c"".as_ptr());
            }
        }
        record
    }

    /// The address that the program knows it by.
    pub(crate) fn row(&self) -> *mut corvid_idl_row {
        self.memory.as_ptr().cast()
    }

    /// Writes a member.
    fn put<T>(&self, offset: usize, value: T) {
        // SAFETY: `Layout::of` has seen that the member is within the struct and aligned. The
        // program reads structs only between its calls.
        unsafe { self.memory.as_ptr().add(offset).cast::<T>().write(value) }
    }

    /// Fills the members of a column. `resolve` turns a reference into the address of its row, if
    /// that is there. Returns the memory that the members pointed to before.
    pub(crate) fn fill(
        &mut self,
        number: usize,
        column: &ColumnLayout,
        datum: &Datum,
        resolve: &dyn Fn(usize, Uuid) -> Option<*mut corvid_idl_row>,
    ) -> Box<[u64]> {
        let is_there = |element: Element, atom: AtomRef<'_>| match (element.target, atom) {
            (Some(table), AtomRef::Uuid(uuid)) => resolve(table, uuid).is_some(),
            _ => true,
        };
        // A transaction may have written more elements than the column admits, for the server to
        // refuse.
        let elements = || {
            let there = datum.iter().filter(|(key, value)| {
                is_there(column.key, *key)
                    && (column.value.zip(*value))
                        .is_none_or(|(element, atom)| is_there(element, atom))
            });
            there.take(column.count_max)
        };
        // Members that hold their value need no block.
        let is_alone = matches!(column.shape, Shape::Scalar | Shape::Pointer);
        if is_alone && column.value.is_none() && column.key.atom != AtomType::String {
            let mut writer = Writer {
                base: self.memory.as_ptr(),
                texts: 0,
                resolve,
            };
            match elements().next() {
                Some((atom, _)) => writer.element(column.offset, column.key, atom),
                None => self.put_scalar(column.offset, column.key, std::ptr::null()),
            }
            return Box::default();
        }
        let (mut count, mut texts_len) = (0, 0);
        let text_len = |atom: AtomRef<'_>| atom.as_string().map_or(0, |text| text.len() + 1);
        for (key, value) in elements() {
            count += 1;
            texts_len += text_len(key) + value.map_or(0, text_len);
        }
        let is_interleaved = column.shape == Shape::StringMap;
        let key_size = column.key.size();
        let value_size = column.value.map_or(0, Element::size);
        let keys_len = (count * key_size).next_multiple_of(8);
        let arrays_len = if is_interleaved {
            count * 16
        } else {
            keys_len + (count * value_size).next_multiple_of(8)
        };
        let mut block = vec![0u64; (arrays_len + texts_len).div_ceil(8)].into_boxed_slice();
        let mut writer = Writer {
            base: block.as_mut_ptr().cast(),
            texts: arrays_len,
            resolve,
        };
        for (at, (key, value)) in elements().enumerate() {
            let (key_at, value_at) = if is_interleaved {
                (at * 16, at * 16 + 8)
            } else {
                (at * key_size, keys_len + at * value_size)
            };
            writer.element(key_at, column.key, key);
            if let (Some(element), Some(atom)) = (column.value, value) {
                writer.element(value_at, element, atom);
            }
        }
        let base = writer.base;
        // SAFETY: both offsets are within the block or just behind it.
        let (keys, values) = unsafe { (base, base.add(if is_interleaved { 0 } else { keys_len })) };
        let array = |pointer: *mut u8| {
            if count == 0 {
                std::ptr::null_mut()
            } else {
                pointer
            }
        };
        match column.shape {
            Shape::Scalar => {
                self.put_scalar(column.offset, column.key, array(keys));
                if let Some(value) = column.value {
                    self.put_scalar(column.value_offset, value, array(values));
                }
            }
            Shape::Pointer if count == 0 => self.put(column.offset, std::ptr::null::<u8>()),
            Shape::Pointer => self.put_scalar(column.offset, column.key, keys),
            Shape::Array => {
                self.put(column.offset, array(keys));
                self.put(column.count_offset, count);
                if column.value.is_some() {
                    self.put(column.value_offset, array(values));
                }
            }
            Shape::StringMap => {
                if let Some(maps) = &self.maps {
                    // SAFETY: the block has `count` pairs of pointers, which were written above; it
                    // is aligned to 8 and lives until the end of this function.
                    let nodes = unsafe { std::slice::from_raw_parts(keys.cast(), count) };
                    // The map copies the strings and frees those that it had.
                    maps.fill(self.memory, column.offset, nodes);
                    return Box::default();
                }
                self.put(column.offset, array(keys));
                self.put(column.offset + 8, count);
            }
        }
        std::mem::replace(&mut self.blocks[number], block)
    }

    /// Copies the only element of an array into a member; the default of its type without one.
    fn put_scalar(&self, offset: usize, element: Element, array: *const u8) {
        if array.is_null() {
            match (element.atom, element.target) {
                (AtomType::String, _) => self.put(offset, c"".as_ptr()),
                (AtomType::Uuid, None) => self.put(offset, corvid_uuid::ZERO),
                (AtomType::Boolean, _) => self.put(offset, 0u8),
                _ => self.put(offset, 0u64),
            }
            return;
        }
        // SAFETY: the array has an element of this size, and `Layout::of` has seen that the member
        // is within the struct.
        unsafe {
            std::ptr::copy_nonoverlapping(array, self.memory.as_ptr().add(offset), element.size());
        }
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        if let Some(maps) = &self.maps {
            maps.destroy(self.memory);
        }
        // SAFETY: it was allocated with this layout, and nothing points into it any more: the
        // address is out of the registry.
        unsafe { dealloc(self.memory.as_ptr(), self.layout) }
    }
}

/// Writes elements and their texts into a block that was made long enough for them.
struct Writer<'a> {
    base: *mut u8,
    /// Where the next text goes.
    texts: usize,
    resolve: &'a dyn Fn(usize, Uuid) -> Option<*mut corvid_idl_row>,
}

impl Writer<'_> {
    fn put<T>(&mut self, at: usize, value: T) {
        // SAFETY: the arrays have a place of this size for each element; the base is aligned to 8
        // and `at` to the size of the element, or 8.
        unsafe { self.base.add(at).cast::<T>().write(value) }
    }

    fn element(&mut self, at: usize, element: Element, atom: AtomRef<'_>) {
        match atom {
            AtomRef::Integer(integer) => self.put(at, integer),
            AtomRef::Real(real) => self.put(at, real.get()),
            AtomRef::Boolean(boolean) => self.put(at, u8::from(boolean)),
            AtomRef::Uuid(uuid) => match element.target {
                Some(table) => {
                    let row = (self.resolve)(table, uuid);
                    self.put(at, row.unwrap_or(std::ptr::null_mut()));
                }
                None => self.put(at, corvid_uuid::from(uuid)),
            },
            AtomRef::String(text) => {
                let bytes = text.as_str().as_bytes();
                // SAFETY: the block has room for all texts and their NULs, of which this is the
                // next; it was zeroed.
                let place = unsafe {
                    let place = self.base.add(self.texts);
                    std::ptr::copy_nonoverlapping(bytes.as_ptr(), place, bytes.len());
                    place
                };
                self.texts += bytes.len() + 1;
                self.put(at, place.cast::<c_char>().cast_const());
            }
        }
    }
}
