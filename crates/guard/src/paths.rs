//! The hot paths, with one file for each. It contains the preparation of the inputs and the number
//! of measured runs.

mod apply_diff;
mod client_apply;
mod client_lookup;
mod encode_update3;
mod execute_port;
mod frame;
mod grow_set;
mod load_record;
mod peer_append;
mod update1;
mod write_contents;

/// A path.
pub(crate) struct Path {
    /// The name in the table and in the file of figures.
    pub(crate) name: &'static str,
    /// A description of one run.
    pub(crate) about: &'static str,
    /// The number of measured runs. The figure is their mean.
    pub(crate) times: usize,
    /// Prepares the inputs for the given number of runs. Each call of the returned function is one
    /// run.
    pub(crate) prepare: fn(usize) -> Box<dyn FnMut()>,
}

/// All paths. To add one, add its `mod` line above and a line here.
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
    peer_append::PATH,
];
