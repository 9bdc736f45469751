//! Maps of strings in structs of rows that are of the program's own type.
//!
//! A program that also uses Open vSwitch's library reads maps by that library's functions, so its
//! rows contain that library's `struct smap`. Only code of the program knows this struct: generated
//! code names the functions that fill it (docs/spec/idl.md 7.3).

use std::ffi::c_void;
use std::ptr::NonNull;

use super::class::{ColumnLayout, Shape, corvid_smap_node};

/// Functions for maps of strings in structs of rows whose type is not corvid_smap. A constant
/// of generated code. The functions must not call the library.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct corvid_idl_map_functions {
    /// The size of a map in bytes.
    pub size: usize,
    /// Makes an empty map in memory without a value.
    pub init: Option<extern "C" fn(map: *mut c_void)>,
    /// Replaces the pairs of a map by copies of `n` others.
    pub fill: Option<extern "C" fn(map: *mut c_void, nodes: *const corvid_smap_node, n: usize)>,
    /// Frees what a map owns.
    pub destroy: Option<extern "C" fn(map: *mut c_void)>,
}

impl corvid_idl_map_functions {
    pub(crate) fn is_whole(&self) -> bool {
        self.init.is_some() && self.fill.is_some() && self.destroy.is_some()
    }
}

/// The maps of one table whose type is the program's.
#[derive(Debug)]
pub(crate) struct Maps {
    init: extern "C" fn(*mut c_void),
    fill: extern "C" fn(*mut c_void, *const corvid_smap_node, usize),
    destroy: extern "C" fn(*mut c_void),
    /// Where they are in the struct of a row.
    offsets: Vec<usize>,
}

impl Maps {
    /// The maps among the columns of a table. None if the table has no map, or if `functions` lacks
    /// one of them, which `Layout::of` refuses.
    pub(crate) fn of(
        functions: &corvid_idl_map_functions,
        columns: &[ColumnLayout],
    ) -> Option<Maps> {
        let maps = columns
            .iter()
            .filter(|column| column.shape == Shape::StringMap);
        let offsets: Vec<usize> = maps.map(|column| column.offset).collect();
        if offsets.is_empty() {
            return None;
        }
        Some(Maps {
            init: functions.init?,
            fill: functions.fill?,
            destroy: functions.destroy?,
            offsets,
        })
    }

    /// The address of a member of the struct of a row.
    fn member(row: NonNull<u8>, offset: usize) -> *mut c_void {
        row.as_ptr().wrapping_add(offset).cast()
    }

    /// Makes the maps of a new struct.
    pub(crate) fn init(&self, row: NonNull<u8>) {
        for &offset in &self.offsets {
            (self.init)(Maps::member(row, offset));
        }
    }

    /// Replaces the pairs of a map.
    pub(crate) fn fill(&self, row: NonNull<u8>, offset: usize, nodes: &[corvid_smap_node]) {
        (self.fill)(Maps::member(row, offset), nodes.as_ptr(), nodes.len());
    }

    /// Frees what the maps of a struct own, before its memory is freed.
    pub(crate) fn destroy(&self, row: NonNull<u8>) {
        for &offset in &self.offsets {
            (self.destroy)(Maps::member(row, offset));
        }
    }
}
