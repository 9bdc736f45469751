//! The tables of `docs/reference`: metrics and settings, as the code declares them.
//!
//! Options and control commands are in the [manual](super::manual). The generator of the documents
//! calls this; nothing in the server does.

use crate::metrics::families::{self, Family, Kind};
use crate::server::settings::SETTINGS;

/// The heading of the control commands in the [manual](super::manual).
pub const CONTROL_COMMANDS: &str = "CONTROL COMMANDS";

/// A metric of `/metrics`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metric {
    /// The name of its samples; those of a histogram have a suffix more.
    pub name: String,
    /// `counter`, `gauge`, `histogram` or `info`.
    pub kind: &'static str,
    /// Names of its labels.
    pub labels: &'static [&'static str],
    /// Its help text, one or more sentences.
    pub help: &'static str,
}

/// A setting that `ovsdb-server/set-setting` changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Its name, that of an option.
    pub name: &'static str,
    /// The form of its value.
    pub value: &'static str,
    /// Its value without its option, a phrase.
    pub default: &'static str,
    /// When and how a change takes effect, a phrase.
    pub effect: &'static str,
}

/// All metrics, in the order of the page.
#[must_use]
pub fn metrics() -> Vec<Metric> {
    families::ALL.iter().map(metric).collect()
}

/// All settings, in the order of `ovsdb-server/list-settings`.
#[must_use]
pub fn settings() -> &'static [Setting] {
    &SETTINGS
}

fn metric(family: &Family) -> Metric {
    let (kind, suffix) = match family.kind {
        Kind::Counter => ("counter", "_total"),
        Kind::Gauge => ("gauge", ""),
        Kind::Histogram => ("histogram", ""),
        Kind::Info => ("info", "_info"),
    };
    Metric {
        name: format!("{}{suffix}", family.name),
        kind,
        labels: family.labels,
        help: family.help,
    }
}
