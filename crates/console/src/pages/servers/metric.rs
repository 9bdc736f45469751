//! The metric behind a figure (docs/reference/metrics.md): its name, and a link to the server's
//! page of metrics if its address is known.

/// A metric.
#[derive(Clone, Debug, Default)]
pub(super) struct Metric {
    /// The name; empty: none.
    pub(super) name: &'static str,
    /// The address of the page; empty if it is not known.
    pub(super) href: String,
}

impl Metric {
    pub(super) fn new(name: &'static str, page: Option<&str>) -> Metric {
        Metric {
            name,
            href: page.unwrap_or_default().to_owned(),
        }
    }
}
