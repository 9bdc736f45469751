//! The hot paths, one file each: what prepares its inputs, and how often it is gone while it is measured.

mod apply_diff;
mod client_apply;
mod client_lookup;
mod encode_update3;
mod execute_port;
mod frame;
mod grow_set;
mod load_record;
mod update1;
mod write_contents;

/// One path.
pub(crate) struct Path {
    /// In the table and the file of figures.
    pub(crate) name: &'static str,
    /// What going it once is.
    pub(crate) about: &'static str,
    /// How often it is gone while it is measured; the figure is the mean.
    pub(crate) times: usize,
    /// Makes everything for going it so many times; each call of what it returns goes it once.
    pub(crate) prepare: fn(usize) -> Box<dyn FnMut()>,
}

/// All of them. A new one adds its `mod` line above and its line here.
pub(crate) const ALL: &[Path] = &[
    frame::PATH,
    execute_port::PATH,
    encode_update3::PATH,
    apply_diff::PATH,
    load_record::PATH,
    update1::PATH,
    grow_set::PATH,
    write_contents::PATH,
    client_apply::PATH,
    client_lookup::PATH,
];
