//! The older text format (`text/plain; version=0.0.4`), translated from OpenMetrics, for clients
//! that do not ask for OpenMetrics.
//!
//! The formats differ in three ways. In the older one a counter's samples have the name of the
//! family, an info is a gauge, and there is no end mark.

/// Translates OpenMetrics text to the older format.
pub(super) fn from_openmetrics(text: &str) -> String {
    let mut plain = String::with_capacity(text.len() + 1024);
    // The help of a family precedes its type, and the type decides the name of the family in this
    // format.
    let mut help = None;
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            help = rest.split_once(' ');
        } else if let Some((name, kind)) = line
            .strip_prefix("# TYPE ")
            .and_then(|rest| rest.split_once(' '))
        {
            let (suffix, kind) = match kind {
                "counter" => ("_total", kind),
                "info" => ("_info", "gauge"),
                "unknown" => ("", "untyped"),
                _ => ("", kind),
            };
            if let Some((_, help)) = help.take() {
                plain.push_str(&format!("# HELP {name}{suffix} {help}\n"));
            }
            plain.push_str(&format!("# TYPE {name}{suffix} {kind}\n"));
        } else if !line.starts_with("# ") {
            plain.push_str(line);
            plain.push('\n');
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_info_and_end_are_translated() {
        let text = "# HELP a Of a.\n# TYPE a counter\na_total{b=\"# TYPE\"} 1\n\
                    # HELP c Of c.\n# TYPE c info\nc_info{d=\"e\"} 1\n\
                    # HELP f Of f.\n# TYPE f gauge\n# UNIT f seconds\nf 2.5\n# EOF\n";
        let plain = "# HELP a_total Of a.\n# TYPE a_total counter\na_total{b=\"# TYPE\"} 1\n\
                     # HELP c_info Of c.\n# TYPE c_info gauge\nc_info{d=\"e\"} 1\n\
                     # HELP f Of f.\n# TYPE f gauge\nf 2.5\n";
        assert_eq!(from_openmetrics(text), plain);
    }
}
