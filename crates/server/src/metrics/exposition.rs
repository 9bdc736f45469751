//! The page `/metrics`: all figures as OpenMetrics text, composed for each scrape.
//!
//! The order is that of `families::ALL`. A family without values still shows its name, kind and
//! meaning, so dashboards and alerts can be checked against an idle server.

mod relays;

use std::fmt::Error;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};

use crate::process_figures::ProcessFigures;
use corvid_consensus::Status;
use corvid_consensus::member::{Connected, FileState, Role};
use corvid_engine::OperationKind;
use corvid_net::clock;
use corvid_reactor::shard::Refusals;
use corvid_service::message::{FileReport, Report};
use corvid_service::replication;
use corvid_shell::durations::{BOUNDS_NS, Counted};
use corvid_shell::program;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;

use crate::allocator;
use crate::audit::AuditLog;
use crate::database::history::HistoryFigures;

use super::Metrics;
use super::database::DatabaseFigures;
use super::families::{self, Family, Kind};
use super::member::MemberFigures;
use super::shard::{End, SessionTotals, ShardFigures};

/// Composes the text of the page.
///
/// # Errors
/// None in practice: writing to memory does not fail.
pub(super) fn text(metrics: &Metrics) -> Result<String, Error> {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Scrape::of(metrics)));
    let mut text = String::with_capacity(64 << 10);
    text::encode(&mut text, &registry)?;
    Ok(text)
}

/// The values of a sample's labels, in the order of the family's labels.
type Labels = Vec<String>;

/// The samples of a family.
enum Samples {
    /// Counts, and integer gauges.
    Whole(Vec<(Labels, u64)>),
    /// Seconds.
    Real(Vec<(Labels, f64)>),
    /// Durations.
    Durations(Vec<(Labels, Counted)>),
}

/// All families with their samples.
struct Scrape(Vec<(Family, Samples)>);

impl std::fmt::Debug for Scrape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scrape").finish_non_exhaustive()
    }
}

/// One database at the moment of the scrape.
struct Database {
    name: String,
    figures: Arc<DatabaseFigures>,
    report: Arc<Report>,
}

impl Scrape {
    fn of(metrics: &Metrics) -> Scrape {
        let mut scrape = Scrape(Vec::new());
        scrape.of_server(metrics);
        scrape.of_sessions(metrics);
        let databases: Vec<Database> = metrics
            .served()
            .into_iter()
            .map(|(name, figures)| Database {
                report: figures.latest(),
                name,
                figures,
            })
            .collect();
        scrape.of_work(&databases);
        scrape.of_content(&databases);
        scrape.of_files(&databases);
        scrape.of_histories(metrics);
        scrape.of_clusters(&metrics.members());
        scrape.of_relays(&metrics.relays());
        scrape.of_audit(metrics);
        scrape.of_process();
        scrape
    }

    fn one(&mut self, family: Family, value: u64) {
        self.whole(family, [(Vec::new(), value)]);
    }

    fn whole(&mut self, family: Family, samples: impl IntoIterator<Item = (Labels, u64)>) {
        let samples = Samples::Whole(samples.into_iter().collect());
        self.0.push((family, samples));
    }

    fn real(&mut self, family: Family, samples: impl IntoIterator<Item = (Labels, f64)>) {
        let samples = Samples::Real(samples.into_iter().collect());
        self.0.push((family, samples));
    }

    fn durations(&mut self, family: Family, samples: impl IntoIterator<Item = (Labels, Counted)>) {
        let samples = Samples::Durations(samples.into_iter().collect());
        self.0.push((family, samples));
    }

    fn of_server(&mut self, metrics: &Metrics) {
        let versions = vec![
            env!("CARGO_PKG_VERSION").to_owned(),
            program::VERSION.to_owned(),
        ];
        self.whole(families::BUILD, [(versions, 1)]);
        let threads: Vec<(String, u64)> = metrics.unanswered().collect();
        let is_ready = metrics.is_ready();
        self.one(families::READY, u64::from(is_ready));
        let unresponsive = threads
            .into_iter()
            .map(|(thread, ms)| (vec![thread], ms as f64 / 1e3));
        self.real(families::UNRESPONSIVE, unresponsive);
    }

    fn of_sessions(&mut self, metrics: &Metrics) {
        let shards = metrics.shards();
        let sum = |count: &dyn Fn(&ShardFigures) -> u64| {
            shards
                .iter()
                .map(|shard| count(&shard.figures))
                .sum::<u64>()
        };
        let all = |counted: &dyn Fn(&ShardFigures) -> Counted| {
            let mut all = Counted::default();
            shards
                .iter()
                .for_each(|shard| all += counted(&shard.figures));
            all
        };
        let mut totals = SessionTotals::default();
        shards
            .iter()
            .for_each(|shard| totals += shard.figures.totals());
        let load = |cell: &std::sync::atomic::AtomicU64| cell.load(Ordering::Relaxed);

        self.one(families::SESSIONS, totals.sessions);
        self.one(families::SESSIONS_OPENED, sum(&|shard| load(&shard.opened)));
        let closed = End::ALL.map(|why| {
            let count = sum(&|shard| shard.closed(why));
            (vec![why.name().to_owned()], count)
        });
        self.whole(families::SESSIONS_CLOSED, closed);
        let refusals = metrics.shared_state.get().map(|it| &it.refusals);
        self.one(
            families::SESSIONS_REFUSED,
            refusals.map_or(0, Refusals::count),
        );
        let sessions_max = refusals.and_then(Refusals::connections_max);
        let sessions_max = sessions_max.map(|max| (Vec::new(), max as u64));
        self.whole(families::SESSIONS_LIMIT, sessions_max);
        self.one(families::SESSIONS_BACKLOGGED, totals.behind);
        self.one(families::BACKLOG, totals.backlog_bytes);
        self.one(families::BACKLOG_MAX, totals.backlog_max_bytes);
        let lag_seconds = seconds(totals.lag_max_ns);
        self.real(families::LAG_MAX, [(Vec::new(), lag_seconds)]);
        let drain = all(&|shard| shard.drain.read());
        self.durations(families::DRAIN, [(Vec::new(), drain)]);
        let read = all(&|shard| shard.read.read());
        self.durations(families::PARSE, [(Vec::new(), read)]);
        let memory = metrics.shared_state.get().map(|it| &it.client_memory);
        let refused = memory.map_or(0, |memory| memory.refused());
        self.one(families::REQUESTS_REFUSED, refused);
        let requests = refusals.map_or((0, 0), Refusals::unfinished_bytes);
        let replies = memory.map_or((0, 0), |it| (it.held(), it.bytes_max()));
        let kept = memory.map_or((0, 0), |it| (it.kept(), it.kept_bytes_max()));
        let kinds = [
            ("requests", requests),
            ("replies", replies),
            ("monitors_and_waits", kept),
        ];
        let label = |kind: &str| vec![kind.to_owned()];
        let held = kinds.map(|(kind, (bytes, _))| (label(kind), bytes as u64));
        self.whole(families::CLIENT_MEMORY, held);
        let max = kinds.map(|(kind, (_, bytes_max))| (label(kind), bytes_max as u64));
        self.whole(families::CLIENT_MEMORY_LIMIT, max);
        self.one(
            families::RECEIVED,
            sum(&|shard| load(&shard.received_bytes)),
        );
        self.one(families::SENT, sum(&|shard| load(&shard.sent_bytes)));
        let (held, waiting) = metrics.shared_state.get().map_or((0, 0), |shared_state| {
            let locks = shared_state.locks.lock();
            locks.unwrap_or_else(PoisonError::into_inner).counts()
        });
        self.one(families::LOCKS_HELD, held);
        self.one(families::LOCK_WAITERS, waiting);
        let handshakes = [
            (vec!["ok".to_owned()], sum(&|shard| load(&shard.handshakes))),
            (
                vec!["failed".to_owned()],
                sum(&|shard| load(&shard.handshakes_failed)),
            ),
        ];
        self.whole(families::HANDSHAKES, handshakes);
        let expiry = metrics
            .shared_state
            .get()
            .and_then(|shared_state| shared_state.credentials.certificate_expiry_s());
        let expiry = expiry.map(|expiry_s| (Vec::new(), expiry_s as f64));
        self.real(families::CERTIFICATE, expiry);
    }

    /// Adds counters and durations of databases.
    fn of_work(&mut self, databases: &[Database]) {
        let outcomes = databases.iter().flat_map(|database| {
            let counts = &database.report.counts;
            let failed = counts.failed.iter().map(|(_, count)| count).sum();
            [
                (database.with("committed"), counts.committed),
                (database.with("unchanged"), counts.unchanged),
                (database.with("failed"), failed),
                (database.with("storage_error"), counts.store_failures),
            ]
        });
        self.whole(families::TRANSACTIONS, outcomes);
        let errors = databases.iter().flat_map(|database| {
            let failed = database.report.counts.failed.iter();
            failed.map(|(tag, count)| (database.with(tag.text()), *count))
        });
        self.whole(families::ERRORS, errors);
        let operations = databases.iter().flat_map(|database| {
            let counts = database.report.counts.operations;
            let named = OperationKind::ALL.iter().zip(counts);
            named.map(|(kind, count)| (database.with(kind.name()), count))
        });
        self.whole(families::OPERATIONS, operations);
        let updates = databases.iter().flat_map(|database| {
            let counts = database.report.counts.updates;
            let named = ["update", "update2", "update3"].iter().zip(counts);
            named.map(|(name, count)| (database.with(name), count))
        });
        let count = |count: fn(&Report) -> u64| {
            databases
                .iter()
                .map(move |database| (database.alone(), count(&database.report)))
        };
        self.whole(families::WAITS, count(|report| report.counts.blocked));
        self.whole(families::UPDATES, updates);
        let duration = |read: fn(&DatabaseFigures) -> Counted| {
            databases
                .iter()
                .map(move |database| (database.alone(), read(&database.figures)))
        };
        self.durations(families::EXECUTE, duration(|it| it.execute.read()));
        self.durations(families::TRANSACTION, duration(|it| it.transaction.read()));
        self.durations(families::WRITE, duration(|it| it.write.read()));
        self.durations(families::SYNC, duration(|it| it.sync.read()));
        self.durations(families::DELIVERY, duration(|it| it.delivery.read()));
        self.durations(families::COMPACTION, duration(|it| it.compaction.read()));
        let failed = databases.iter().map(|database| {
            let failed = database.figures.compactions_failed.load(Ordering::Relaxed);
            (database.alone(), failed)
        });
        self.whole(families::COMPACTIONS_FAILED, failed);
        self.whole(families::RECORDS, count(|report| report.counts.records));
        let bytes = count(|report| report.counts.record_bytes);
        self.whole(families::RECORD_BYTES, bytes);
    }

    /// Adds gauges of databases.
    fn of_content(&mut self, databases: &[Database]) {
        let rows = databases.iter().flat_map(|database| {
            let tables = database.report.tables.iter();
            tables.map(|table| (database.with(&table.name), table.rows))
        });
        self.whole(families::ROWS, rows);
        let mut usage = |family, count: fn(&Report) -> u64| {
            let samples = databases
                .iter()
                .map(|database| (database.alone(), count(&database.report)));
            self.whole(family, samples);
        };
        usage(families::ATOMS, |report| report.usage.atoms);
        usage(families::MONITORS, |report| report.usage.monitors);
        usage(families::TRIGGERS, |report| report.usage.triggers);
        usage(families::HISTORY, |report| report.usage.history_commits);
        usage(families::HISTORY_ATOMS, |report| report.usage.history_atoms);
        let queues = databases
            .iter()
            .map(|database| (database.alone(), database.figures.queued() as u64));
        self.whole(families::QUEUE, queues);
        let mut usage = |family, count: fn(&Report) -> u64| {
            let samples = databases
                .iter()
                .map(|database| (database.alone(), count(&database.report)));
            self.whole(family, samples);
        };
        usage(families::PENDING_REPLIES, |report| report.pending);
        usage(families::DEFERRED_REQUESTS, |report| report.queued);
    }

    fn of_files(&mut self, databases: &[Database]) {
        let orders = databases
            .iter()
            .map(|database| (database.alone(), database.figures.orders()));
        self.whole(families::DISK_QUEUE, orders);
        let freeing = databases.iter().map(|database| {
            let bytes = database.figures.freeing.load(Ordering::Relaxed);
            (database.alone(), bytes as u64)
        });
        self.whole(families::FREEING, freeing);
        let mut file = |family, figure: fn(&FileReport) -> u64| {
            let samples = databases.iter().filter_map(|database| {
                let file = database.report.file.as_ref()?;
                Some((database.alone(), figure(file)))
            });
            self.whole(family, samples);
        };
        file(families::FILE, |file| file.size);
        file(families::FILE_COMPACTED, |file| file.base);
        file(families::FILE_RECORDS, |file| file.records);
        file(families::REWRITING, |file| u64::from(file.is_rewriting));
        let converting = databases.iter().map(|database| {
            let is_converting = database.report.is_converting;
            (database.alone(), u64::from(is_converting))
        });
        self.whole(families::CONVERTING, converting);
        let failed = databases.iter().filter_map(|database| {
            let file = database.report.file.as_ref()?;
            Some((database.alone(), u64::from(file.error.is_some())))
        });
        self.whole(families::STORAGE_FAILED, failed);
        let poisoned = databases.iter().map(|database| {
            let is_poisoned = database.figures.is_poisoned();
            (database.alone(), u64::from(is_poisoned))
        });
        self.whole(families::STORAGE_POISONED, poisoned);
        let damaged = databases.iter().map(|database| {
            let is_damaged = database.figures.salvage_copy().is_some();
            (database.alone(), u64::from(is_damaged))
        });
        self.whole(families::FILE_DAMAGED, damaged);
        let standings = databases.iter().flat_map(|database| {
            let standing = database.report.replication;
            let states = standing.into_iter().flat_map(move |standing| {
                replication::ReplicationStatus::ALL
                    .map(|state| (state.name(), u64::from(state == standing)))
            });
            states.map(|(state, value)| (database.with(state), value))
        });
        self.whole(families::REPLICATION_STATE, standings);
        let now_ms = clock::mono_ms();
        let ages = databases.iter().filter_map(|database| {
            let age_ms = database.figures.request().age_ms(now_ms)?;
            Some((database.alone(), age_ms as f64 / 1e3))
        });
        self.real(families::REPORT_AGE, ages);
    }

    /// Adds the histories on disk.
    fn of_histories(&mut self, metrics: &Metrics) {
        let histories = metrics.shared_state.get().map(|it| it.histories.figures());
        let histories = histories.unwrap_or_default();
        let mut figure = |family, figure: fn(&HistoryFigures) -> u64| {
            let samples = histories.iter();
            let samples = samples.map(|(name, figures)| (vec![name.clone()], figure(figures)));
            self.whole(family, samples);
        };
        figure(families::SEGMENTS, |figures| figures.files);
        figure(families::SEGMENT_BYTES, |figures| figures.bytes);
        figure(families::SEGMENT_FAILURES, |figures| figures.warnings);
        let oldest = histories.iter().filter_map(|(name, figures)| {
            let first_ms = figures.first_ms?;
            Some((vec![name.clone()], first_ms as f64 / 1e3))
        });
        self.real(families::SEGMENT_OLDEST, oldest);
    }

    fn of_clusters(&mut self, members: &[(String, Arc<MemberFigures>)]) {
        let known: Vec<(&String, Arc<Status>)> = members
            .iter()
            .filter_map(|(name, figures)| Some((name, figures.status()?)))
            .collect();
        let roles = known.iter().flat_map(|(name, status)| {
            let roles = [
                ("follower", Role::Follower),
                ("candidate", Role::Candidate),
                ("leader", Role::Leader),
            ];
            roles.map(|(label, role)| {
                let is_present = u64::from(status.role == role);
                (vec![(*name).clone(), label.to_owned()], is_present)
            })
        });
        self.whole(families::CLUSTER_ROLE, roles);
        let mut gauge = |family, figure: fn(&Status) -> u64| {
            let known = known.iter();
            let samples = known.map(|(name, status)| (vec![(*name).clone()], figure(status)));
            self.whole(family, samples);
        };
        gauge(families::CLUSTER_CONNECTED, |status| {
            u64::from(status.connected == Connected::Member)
        });
        let files = known.iter().flat_map(|(name, status)| {
            let states = [
                ("intact", FileState::Intact),
                ("failing", FileState::Failing),
                ("poisoned", FileState::Poisoned),
                ("damaged", FileState::Damaged),
                ("lost", FileState::Lost),
                ("diverged", FileState::Diverged),
            ];
            states.map(|(label, state)| {
                let is_present = u64::from(status.file == state);
                (vec![(*name).clone(), label.to_owned()], is_present)
            })
        });
        self.whole(families::CLUSTER_FILE_STATE, files);
        let mut gauge = |family, figure: fn(&Status) -> u64| {
            let known = known.iter();
            let samples = known.map(|(name, status)| (vec![(*name).clone()], figure(status)));
            self.whole(family, samples);
        };
        gauge(families::CLUSTER_HAS_LEADER, |status| {
            u64::from(status.leader.is_some())
        });
        gauge(families::CLUSTER_TERM, |status| status.term.0);
        gauge(families::CLUSTER_LAST, |status| {
            status.log_end.0.saturating_sub(1)
        });
        gauge(families::CLUSTER_COMMIT, |status| status.commit.0);
        gauge(families::CLUSTER_APPLIED, |status| status.applied.0);
        gauge(families::CLUSTER_LOG_BYTES, |status| status.log_bytes);
        let peers = known.iter().flat_map(|(name, status)| {
            let servers = status.servers.iter();
            let others = servers.filter(|server| server.sid != status.sid);
            others.map(move |server| {
                let labels = vec![(*name).clone(), server.sid.0.to_string()];
                (labels, status, server)
            })
        });
        let lags = peers.clone().filter_map(|(labels, status, peer)| {
            let stored = peer.match_index?;
            let last = status.log_end.0.saturating_sub(1);
            Some((labels, last.saturating_sub(stored.0)))
        });
        let lags: Vec<(Labels, u64)> = lags.collect();
        let silences = peers
            .clone()
            .map(|(labels, _, peer)| (labels, peer.silent_ms as f64 / 1000.0));
        let silences: Vec<(Labels, f64)> = silences.collect();
        let ages = peers.clone().filter_map(|(labels, _, peer)| {
            let age_ms = peer.index_age_ms?;
            Some((labels, age_ms as f64 / 1000.0))
        });
        let ages: Vec<(Labels, f64)> = ages.collect();
        let snapshots = peers.filter_map(|(labels, _, peer)| {
            let (have, of) = peer.snapshot?;
            Some((labels, have as f64 / of.max(1) as f64))
        });
        let snapshots: Vec<(Labels, f64)> = snapshots.collect();
        let own_ages = known.iter().map(|(name, status)| {
            let age_seconds = status.index_age_ms as f64 / 1000.0;
            (vec![(*name).clone()], age_seconds)
        });
        self.real(families::CLUSTER_STALLED, own_ages);
        self.real(families::CLUSTER_PEER_SILENT, silences);
        self.real(families::CLUSTER_PEER_STALLED, ages);
        self.whole(families::CLUSTER_LAG, lags);
        self.real(families::CLUSTER_SNAPSHOT, snapshots);
        let elections = known
            .iter()
            .map(|(name, status)| (vec![(*name).clone()], status.elections));
        self.whole(families::CLUSTER_ELECTIONS, elections);
        let mut count = |family, cell: fn(&MemberFigures) -> &AtomicU64| {
            let samples = members
                .iter()
                .map(|(name, figures)| (vec![name.clone()], cell(figures).load(Ordering::Relaxed)));
            self.whole(family, samples);
        };
        count(families::CLUSTER_APPENDS, |figures| &figures.appends);
        count(families::CLUSTER_SENT_ENTRIES, |figures| &figures.entries);
        let quorum = members
            .iter()
            .map(|(name, figures)| (vec![name.clone()], figures.quorum.read()));
        self.durations(families::CLUSTER_QUORUM, quorum);
        let mut count = |family, cell: fn(&MemberFigures) -> &AtomicU64| {
            let samples = members
                .iter()
                .map(|(name, figures)| (vec![name.clone()], cell(figures).load(Ordering::Relaxed)));
            self.whole(family, samples);
        };
        count(families::CLUSTER_CONNECTIONS, |figures| {
            &figures.connections
        });
        count(families::CLUSTER_BACKLOG, |figures| &figures.backlog_bytes);
    }

    fn of_audit(&mut self, metrics: &Metrics) {
        let shared_state = metrics.shared_state.get();
        let audit = shared_state.and_then(|it| it.audit.get());
        let counts = audit.map(AuditLog::counts);
        self.whole(
            families::AUDIT_RECORDS,
            counts.map(|(written, _)| (Vec::new(), written)),
        );
        self.whole(
            families::AUDIT_DROPPED,
            counts.map(|(_, lost)| (Vec::new(), lost)),
        );
    }

    fn of_process(&mut self) {
        let held = allocator::figures();
        let held = held
            .into_iter()
            .map(|(kind, bytes)| (vec![kind.to_owned()], bytes));
        self.whole(families::ALLOCATOR, held);
        let figures = ProcessFigures::read();
        let unlabelled = |value: f64| (Vec::new(), value);
        self.real(families::CPU, figures.cpu_seconds.map(unlabelled));
        self.real(families::STARTED, figures.started_seconds.map(unlabelled));
        let unlabelled = |value: u64| (Vec::new(), value);
        self.whole(families::RESIDENT, figures.resident_bytes.map(unlabelled));
        self.whole(families::VIRTUAL, figures.virtual_bytes.map(unlabelled));
        self.whole(families::THREADS, figures.threads.map(unlabelled));
        self.whole(families::FDS, figures.open_descriptors.map(unlabelled));
        self.whole(families::FDS_MAX, figures.descriptors_max.map(unlabelled));
    }
}

impl Database {
    /// The labels of a sample for the whole database.
    fn alone(&self) -> Labels {
        vec![self.name.clone()]
    }

    /// The labels of one of several samples of the database.
    fn with(&self, label: &str) -> Labels {
        vec![self.name.clone(), label.to_owned()]
    }
}

impl Collector for Scrape {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        for (family, samples) in &self.0 {
            let kind = match family.kind {
                Kind::Counter => MetricType::Counter,
                Kind::Gauge => MetricType::Gauge,
                Kind::Histogram => MetricType::Histogram,
                Kind::Info => MetricType::Info,
            };
            let mut metric = encoder.encode_descriptor(family.name, family.help, None, kind)?;
            match samples {
                Samples::Whole(samples) => {
                    for (labels, value) in samples {
                        encode_sample(family, labels, &mut metric, |sample| match family.kind {
                            Kind::Counter => sample.encode_counter::<NoLabels, _, f64>(value, None),
                            _ => sample.encode_gauge(value),
                        })?;
                    }
                }
                Samples::Real(samples) => {
                    for (labels, value) in samples {
                        encode_sample(family, labels, &mut metric, |sample| match family.kind {
                            Kind::Counter => sample.encode_counter::<NoLabels, _, f64>(value, None),
                            _ => sample.encode_gauge(value),
                        })?;
                    }
                }
                Samples::Durations(samples) => {
                    for (labels, counted) in samples {
                        encode_sample(family, labels, &mut metric, |sample| {
                            encode_durations(sample, counted)
                        })?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// Writes one sample with its labels.
fn encode_sample(
    family: &Family,
    labels: &Labels,
    metric: &mut MetricEncoder<'_>,
    write: impl FnOnce(&mut MetricEncoder<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    debug_assert_eq!(family.labels.len(), labels.len(), "{}", family.name);
    let labels: Vec<(&str, &str)> = family
        .labels
        .iter()
        .copied()
        .zip(labels.iter().map(String::as_str))
        .collect();
    match family.kind {
        Kind::Info => metric.encode_info(&labels),
        // An empty pair of braces would be valid but unusual.
        _ if labels.is_empty() => write(metric),
        _ => write(&mut metric.encode_family(&labels)?),
    }
}

/// The labels of exemplars, which are not used.
type NoLabels = [(&'static str, &'static str); 0];

fn encode_durations(sample: &mut MetricEncoder<'_>, counted: &Counted) -> Result<(), Error> {
    let bounds = BOUNDS_NS
        .iter()
        .map(|bound| seconds(*bound))
        .chain([f64::INFINITY]);
    let buckets: Vec<(f64, u64)> = bounds.zip(counted.buckets).collect();
    sample.encode_histogram::<NoLabels>(seconds(counted.sum_ns), counted.count(), &buckets, None)
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use std::sync::Weak;

    use super::*;

    #[test]
    fn every_family_is_exported_once_and_in_order() {
        let metrics = Metrics::default();
        let figures = Arc::new(DatabaseFigures::new(Weak::new()));
        figures.execute.add(1_500);
        metrics.add_database("A", figures);
        let text = text(&metrics).unwrap();
        let names: Vec<&str> = text
            .lines()
            .filter_map(|line| line.strip_prefix("# TYPE "))
            .filter_map(|rest| rest.split(' ').next())
            .collect();
        let expected: Vec<&str> = families::ALL.iter().map(|family| family.name).collect();
        assert_eq!(names, expected);
        assert!(text.ends_with("# EOF\n"));
        let bucket = "corvid_database_execute_seconds_bucket{le=\"0.000002\",database=\"A\"} 1\n";
        assert!(text.contains(bucket), "{text}");
        let count = "corvid_database_execute_seconds_count{database=\"A\"} 1\n";
        assert!(text.contains(count), "{text}");
    }
}
