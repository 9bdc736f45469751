//! Checks of the files of databases.

use corvid_json::Value;

use super::{Facts, Finding, Verdict, bytes, fine, share};
use corvid_tools::status::document;
use corvid_tools::status::source::LOCAL_FILE_BYTES;

/// A smaller file is compacted quickly, whatever it has grown to, bytes.
const SMALL_BYTES: i64 = 10 << 20;
/// A file that has grown to more than this many times its size after the last compaction is not
/// compacted as it should be.
const GROWTH_MAX: i64 = 8;
/// A file that was never compacted may have this size, bytes.
const FIRST_BYTES: i64 = 100 << 20;
/// So much room is enough for any file that fits, bytes.
const PLENTY_BYTES: i64 = 5 << 30;
/// A job that takes longer is unusual, ms.
const JOB_MAX_MS: i64 = 600_000;

/// The database can be read.
pub(super) fn contents(facts: &Facts) -> Vec<Finding> {
    facts.of_databases(|_, _, database| {
        Some(match document::flag(database, "has_contents")? {
            true => fine("has contents"),
            false => (Verdict::Bad, "no contents".to_owned()),
        })
    })
}

/// Why the file of a database takes no records, as its status says.
pub(crate) fn why_not_stored(database: &Value) -> Option<&str> {
    let error = document::text(database, "storage.error");
    error.or_else(|| document::text(database, "cluster.file_error"))
}

/// Commits can be stored.
pub(super) fn storage(facts: &Facts) -> Vec<Finding> {
    facts.of_databases(|_, _, database| {
        let why = why_not_stored(database);
        let has_failed = document::flag(database, "storage.failed");
        Some(match (has_failed, why) {
            (_, Some(why)) => (
                Verdict::Bad,
                format!("the last commit was not stored: {why}"),
            ),
            (Some(true), None) => (Verdict::Bad, "the last commit was not stored".to_owned()),
            (Some(false), None) => fine("the last commit was stored"),
            // Of a member only the error is told.
            (None, None) => return None,
        })
    })
}

/// The file system has room.
pub(super) fn disk(facts: &Facts) -> Vec<Finding> {
    facts.of_databases(|look, name, database| {
        let file = document::text(database, "file")?;
        let position = facts
            .fleet
            .looks
            .iter()
            .position(|it| std::ptr::eq(it, look))?;
        let Some(disk) = facts.extras[position].disks.get(name) else {
            let evidence = format!("the disk of {file} can be seen on the server's machine only");
            return Some((Verdict::Unknown, evidence));
        };
        let told = document::number(database, "storage.bytes");
        let size = told.or_else(|| document::number(database, LOCAL_FILE_BYTES));
        let size = size.unwrap_or(0);
        let (by_share, percent) = share(
            disk.bytes.saturating_sub(disk.free_bytes),
            disk.bytes,
            90,
            98,
        );
        // A large disk has room although most of it is used.
        let by_share = match disk.free_bytes > PLENTY_BYTES {
            true => Verdict::Ok,
            false => by_share,
        };
        // The new file of a compaction.
        let by_size = match disk.free_bytes < size {
            true => Verdict::Warn,
            false => Verdict::Ok,
        };
        let evidence = format!(
            "{} free of {} ({percent} % used) for {file} of {}",
            bytes(disk.free_bytes),
            bytes(disk.bytes),
            bytes(size)
        );
        Some((by_share.min(by_size), evidence))
    })
}

/// Files are compacted in time.
pub(super) fn file_growth(facts: &Facts) -> Vec<Finding> {
    facts.of_databases(|_, _, database| {
        let size = document::number(database, "storage.bytes")?;
        let compacted = document::number(database, "storage.compacted_bytes").unwrap_or(0);
        let records = document::number(database, "storage.records").unwrap_or(0);
        let limit = match compacted {
            0 => FIRST_BYTES,
            compacted => compacted.saturating_mul(GROWTH_MAX).max(SMALL_BYTES),
        };
        let evidence = match compacted {
            0 => format!("{} in {records} records, never compacted", bytes(size)),
            _ => format!(
                "{}, {} after the last compaction, {records} records since",
                bytes(size),
                bytes(compacted)
            ),
        };
        Some(match size > limit {
            true => (Verdict::Warn, evidence),
            false => fine(evidence),
        })
    })
}

/// No job takes unusually long.
pub(super) fn jobs(facts: &Facts) -> Vec<Finding> {
    facts.of_status(|_, _, document| {
        let Some(jobs) = document::list(document, "jobs") else {
            return Some((Verdict::Unknown, "this server does not tell it".to_owned()));
        };
        let long: Vec<String> = jobs
            .iter()
            .filter_map(|job| {
                let age_ms = document::number(job, "age_ms").filter(|ms| *ms > JOB_MAX_MS)?;
                let kind = document::text(job, "kind").unwrap_or("job");
                let database = document::text(job, "database").unwrap_or("?");
                Some(format!("{kind} of {database} for {} s", age_ms / 1000))
            })
            .collect();
        Some(match long.is_empty() {
            true => fine(format!("{} jobs", jobs.len())),
            false => (Verdict::Warn, long.join(", ")),
        })
    })
}

/// The history is kept.
pub(super) fn history(facts: &Facts) -> Vec<Finding> {
    facts.of_status(|_, extra, document| {
        // Absent if a configuration file sets it for each database.
        if document::text(document, "settings.keep-history") == Some("off") {
            return None;
        }
        let Some(metrics) = &extra.metrics else {
            return Some(no_metrics());
        };
        let failures: Vec<&str> = metrics
            .lines()
            .filter(|line| line.starts_with("corvid_database_history_failures_total{"))
            .filter(|line| !line.ends_with(" 0"))
            .collect();
        Some(match failures.is_empty() {
            true => fine("no failures"),
            false => (Verdict::Warn, failures.join(", ")),
        })
    })
}

/// The judgement without the metrics of a server.
pub(super) fn no_metrics() -> super::Judgement {
    (Verdict::Unknown, "the metrics are not known".to_owned())
}

#[cfg(test)]
mod tests {
    use super::Verdict::{Bad, Ok, Unknown, Warn};
    use super::*;
    use crate::doctor::Disk;
    use crate::doctor::tests::{database, facts, verdicts};

    #[test]
    fn databases_without_contents_or_storage_are_bad() {
        let of = database(r#""has_contents":false,"storage":{"failed":true}"#);
        assert_eq!(verdicts(contents, &of), [Bad]);
        assert_eq!(verdicts(storage, &of), [Bad]);
        let of = database(r#""has_contents":true,"storage":{"failed":false}"#);
        assert_eq!(verdicts(contents, &of), [Ok]);
        assert_eq!(verdicts(storage, &of), [Ok]);
        // A relay has no file.
        assert_eq!(verdicts(storage, &database(r#""file":null"#)), []);
    }

    #[test]
    fn the_reason_why_nothing_is_stored_is_told() {
        for members in [
            r#""storage":{"failed":true,"error":"No space left on device"}"#,
            r#""cluster":{"file_error":"No space left on device"}"#,
        ] {
            let found = storage(&database(members));
            let said = "the last commit was not stored: No space left on device";
            assert_eq!(found[0].evidence, said);
            assert_eq!(found[0].verdict, Bad);
        }
        let healthy = database(r#""cluster":{"file_error":null}"#);
        assert_eq!(verdicts(storage, &healthy), []);
    }

    #[test]
    fn a_disk_needs_room_for_the_next_file() {
        let mut of = database(r#""file":"/a.db","storage":{"bytes":50}"#);
        assert_eq!(verdicts(disk, &of), [Unknown]);
        for (free_bytes, bytes, expected) in [
            (500, 1_000, Ok),
            (40, 100, Warn),
            (90, 1_000, Warn),
            (10, 1_000, Bad),
            (6 << 30, 900 << 30, Ok),
        ] {
            let room = Disk { free_bytes, bytes };
            of.extras[0].disks.insert("Lab".to_owned(), room);
            assert_eq!(verdicts(disk, &of), [expected], "{room:?}");
        }
    }

    #[test]
    fn a_file_that_grows_without_compaction_is_found() {
        let of = |bytes: i64, compacted: i64| {
            database(&format!(
                r#""storage":{{"bytes":{bytes},"compacted_bytes":{compacted}}}"#
            ))
        };
        for (bytes, compacted, expected) in [
            (9 << 20, 1_000, Ok),
            (90 << 20, 0, Ok),
            (110 << 20, 0, Warn),
            (110 << 20, 20 << 20, Ok),
            (200 << 20, 20 << 20, Warn),
        ] {
            let of = of(bytes, compacted);
            assert_eq!(verdicts(file_growth, &of), [expected], "{bytes}");
        }
    }

    #[test]
    fn long_jobs_are_found() {
        let of = |jobs: &str| facts(&format!(r#"{{"version":1,"databases":[]{jobs}}}"#));
        assert_eq!(verdicts(jobs, &of("")), [Unknown]);
        assert_eq!(verdicts(jobs, &of(r#","jobs":[{"age_ms":5}]"#)), [Ok]);
        assert_eq!(
            verdicts(jobs, &of(r#","jobs":[{"age_ms":700000}]"#)),
            [Warn]
        );
    }

    #[test]
    fn failures_of_the_history_are_in_the_metrics() {
        let off = facts(r#"{"version":1,"databases":[],"settings":{"keep-history":"off"}}"#);
        assert_eq!(verdicts(history, &off), []);
        let mut of = facts(r#"{"version":1,"databases":[],"settings":{"keep-history":"7d"}}"#);
        assert_eq!(verdicts(history, &of), [Unknown]);
        for (count, expected) in [("0", Ok), ("3", Warn)] {
            let line =
                format!("corvid_database_history_failures_total{{database=\"Lab\"}} {count}\n");
            of.extras[0].metrics = Some(line);
            assert_eq!(verdicts(history, &of), [expected]);
        }
    }
}
