//! What one measurement yields, and medians over several.

/// The figures of one run, or medians of several.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Figures {
    /// Transactions per second.
    pub(crate) rate: f64,
    /// Server CPU time per transaction, microseconds.
    pub(crate) cpu_us: f64,
    /// Half of all replies came within this, microseconds.
    pub(crate) p50_us: f64,
    /// 99 of 100 replies came within this, microseconds.
    pub(crate) p99_us: f64,
    /// Resident memory at the end, MiB.
    pub(crate) resident_mib: f64,
    /// Resident memory at most, MiB.
    pub(crate) peak_mib: f64,
    /// Size of the database file at the end, MiB.
    pub(crate) file_mib: f64,
}

/// One column of the report.
pub(crate) struct Column {
    /// Its head in the table.
    pub(crate) title: &'static str,
    /// Its member in JSON.
    pub(crate) member: &'static str,
    pub(crate) get: fn(&Figures) -> f64,
    /// Digits after the point.
    pub(crate) digits: usize,
}

/// All columns.
pub(crate) const COLUMNS: [Column; 7] = [
    Column {
        title: "txn/s",
        member: "transactions_per_second",
        get: |f| f.rate,
        digits: 0,
    },
    Column {
        title: "cpu us/txn",
        member: "cpu_us_per_transaction",
        get: |f| f.cpu_us,
        digits: 2,
    },
    Column {
        title: "p50 us",
        member: "latency_p50_us",
        get: |f| f.p50_us,
        digits: 0,
    },
    Column {
        title: "p99 us",
        member: "latency_p99_us",
        get: |f| f.p99_us,
        digits: 0,
    },
    Column {
        title: "rss MiB",
        member: "resident_mib",
        get: |f| f.resident_mib,
        digits: 1,
    },
    Column {
        title: "peak MiB",
        member: "peak_mib",
        get: |f| f.peak_mib,
        digits: 1,
    },
    Column {
        title: "file MiB",
        member: "file_mib",
        get: |f| f.file_mib,
        digits: 1,
    },
];

/// The median of each figure on its own. `runs` is not empty.
pub(crate) fn median(runs: &[Figures]) -> Figures {
    let of = |get: fn(&Figures) -> f64| middle(runs.iter().map(get).collect());
    Figures {
        rate: of(|f| f.rate),
        cpu_us: of(|f| f.cpu_us),
        p50_us: of(|f| f.p50_us),
        p99_us: of(|f| f.p99_us),
        resident_mib: of(|f| f.resident_mib),
        peak_mib: of(|f| f.peak_mib),
        file_mib: of(|f| f.file_mib),
    }
}

/// The median of values, of which there is at least one.
pub(crate) fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 {
        values[middle]
    } else {
        f64::midpoint(values[middle - 1], values[middle])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_are_taken_figure_by_figure() {
        let run = |rate, cpu_us| Figures {
            rate,
            cpu_us,
            ..Figures::default()
        };
        let odd = median(&[run(3.0, 1.0), run(1.0, 9.0), run(2.0, 5.0)]);
        assert_eq!((odd.rate, odd.cpu_us), (2.0, 5.0));
        assert_eq!(median(&[run(1.0, 0.0), run(4.0, 0.0)]).rate, 2.5);
    }
}
