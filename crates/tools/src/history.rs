//! The parts of the commands about history that `ovsdb-tool` and `ovsdb-client` share: their
//! options, local times, and the printer of the lines in which `corvid_history::json` describes
//! files, events and changes.

mod dates;
mod options;
mod printer;

pub(crate) use dates::{date_text, local};
pub(crate) use options::{HistoryOption, HistoryOptions, spec, takes_moments};
pub(crate) use printer::Printer;
