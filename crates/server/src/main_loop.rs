//! From the command line to the main loop and out again (docs/spec/cli.md 1.9).

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::http::{self, Address};
use corvid_net::{cleanup, clock, dirs};
use corvid_service::reply_memory::ReplyMemory;
use corvid_shell::memory::{self, MemoryLog};
use corvid_shell::service_manager;
use corvid_shell::unixctl::Server as ControlServer;
use corvid_shell::vlog::{self, Module};
use corvid_shell::{descriptors, hangup, program, signals};

use crate::allocator;
use crate::audit::AuditLog;
use crate::config::applied::{AppliedConfig, ConfigError};
use crate::config::replication::ReplicationSettings;
use crate::config::saved_config::{SavedConfig, SavedConfigFile};
use crate::control::commands;
use crate::control::replication_commands;
use crate::control::reports;
use crate::coverage;
use crate::database::recorder::RecorderSettings;
use crate::metrics::Metrics;
use crate::options::{self, CommandLine};
use crate::remotes::options::RemoteOptions;
use crate::server::reconfiguration::{Reconfiguration, WantedDatabase};
use crate::server::{Config, Server};
use crate::tls_settings::TlsSettings;
use crate::watchdog::Watchdog;

/// Runs the server until it is told to exit. Fatal conditions end the process.
pub fn run(line: CommandLine) {
    // A file says it again after a restart; nothing needs to be kept.
    let config_file = line.config_file.as_deref().map(AppliedConfig::new);
    let saved = config_file
        .is_none()
        .then(|| save(&line))
        .transpose()
        .unwrap_or_else(|error| program::fatal_error("failed to create temporary file", &error));
    // A daemon leaves the directory that relative names are meant from.
    let tls = if line.daemon.is_detached() {
        TlsSettings::absolute(&line.tls)
    } else {
        line.tls
    };
    let audit_log = line.audit_log.as_deref().map(absolute);
    let record = line
        .record
        .as_deref()
        .map(|path| std::path::absolute(path).unwrap_or_else(|_| path.into()));
    // It means this process, not what becomes of it.
    let watchdog = service_manager::Watchdog::from_env();
    hangup::reload();
    let startup = line.daemon.start();
    allocator::give_back();
    let mut control = ControlServer::new()
        .unwrap_or_else(|error| program::fatal_error("could not start", &error));
    coverage::list();
    commands::register(control.registry());
    commands::register_watching(control.registry());
    replication_commands::register(control.registry());
    if line.disable_column_diff {
        commands::register_column_diff(control.registry());
    }
    if line.disable_no_data_conversion {
        commands::register_no_data_conversion(control.registry());
    }
    let metrics = line.metrics_listen.as_deref().map(serve_metrics);
    // As the user that we are now, which must be able to open it again.
    let audit = audit_log.map(|path| {
        commands::register_audit(control.registry());
        keep_audit_log(&path, &line.audit_exclude)
    });
    let config = Config {
        audit,
        shards: shard_count(),
        column_diff: !line.disable_column_diff,
        no_history: line.no_standalone_history,
        slow_ms: line.slow_ms,
        tls,
        limits: line.limits.settle(),
        limit_settings: line.limits,
        is_audited: true,
        record: record.map(|directory| RecorderSettings {
            directory,
            bytes_max: line.record_mib.unwrap_or(RECORDING_MIB) << 20,
        }),
        audit_exclude: line.audit_exclude,
        reply_memory: Arc::new(ReplyMemory::new(line.limits.reply_bytes_max())),
        metrics,
    };
    let mut server = Server::start(config, control.waker())
        .unwrap_or_else(|error| program::fatal_error("could not start", &error));
    match (config_file, &saved) {
        (Some(file), _) => server.configure(file),
        (None, saved) => begin(&mut server, saved.as_ref()),
    }
    let mut watchdog = Watchdog::new(watchdog, server.liveness_registry().clone());
    if let Err(ConfigError) = until_started(&mut server, &mut control, &mut watchdog) {
        program::fatal("server configuration failed");
    }
    server.started(saved);
    // Last of all: who can ask finds everything in its place.
    if let Err(error) = control.listen(line.unixctl.as_deref()) {
        program::fatal(error);
    }
    let mut child = line.run.as_deref().map(start_child);
    // Before whoever started us learns that it may go on: for the service manager that is the process which ends then.
    service_manager::ready(startup.main_pid(), &server.summary());
    // A fatal signal ends it without `finish`.
    cleanup::say_at_last(service_manager::stopping);
    startup.complete();
    if child.is_none() {
        vlog::info(
            Module::OvsdbServer,
            format_args!("{}", program::version_line()),
        );
    }
    if let Some(fd) = hangup::fd()
        && let Err(error) = control.watch(fd)
    {
        program::fatal_error("could not start", &error);
    }
    let mut memory_log = MemoryLog::new(clock::mono_ms());
    let mut status_due_ms = 0;
    while !server.is_exiting() {
        watch(&mut watchdog, &server);
        server.run_events();
        if clock::mono_ms() >= status_due_ms {
            server.show_status();
            server.refresh_tls();
            status_due_ms = clock::mono_ms() + STATUS_INTERVAL_MS;
        }
        let timeout = Duration::from_millis(if child.is_some() {
            CHILD_POLL_MS
        } else {
            STATUS_INTERVAL_MS
        });
        let timeout = watchdog.wait_max(clock::mono_ms(), timeout);
        if let Err(error) = control.turn(&mut server, Some(timeout)) {
            program::fatal_error("poll failed", &error);
        }
        server.run_events();
        if hangup::take() {
            server.hang_up();
        }
        corvid_net::coverage::run(clock::mono_ms());
        if memory_log.run(clock::mono_ms()) {
            server.ask(|server, reports| {
                memory::log_usage(reports::usage(&reports, server.session_count()));
            });
        }
        if let Some((command, process)) = &mut child
            && let Ok(Some(status)) = process.try_wait()
        {
            finish(server, control);
            if !status.success() {
                program::fatal(format_args!(
                    "{command}: child exited, {}",
                    describe(status)
                ));
            }
            program::exit(0);
        }
    }
    finish(server, control);
    program::exit(0);
}

/// Serves the pages from here on, before databases are opened: who probes wants to know that, too.
fn serve_metrics(address: &str) -> Arc<Metrics> {
    let failed = |why: &dyn std::fmt::Display| -> ! {
        program::fatal(format_args!("--metrics-listen={address}: {why}"))
    };
    let parsed = Address::parse(address).unwrap_or_else(|why| failed(&why));
    let metrics = Arc::<Metrics>::default();
    if let Err(error) = http::start(&parsed, metrics.clone()) {
        error.log();
        failed(&format_args!("could not listen ({error})"));
    }
    metrics
}

/// A daemon leaves the directory that relative names are meant from.
fn absolute(file: &str) -> PathBuf {
    std::path::absolute(file).unwrap_or_else(|_| file.into())
}

/// Opens the audit log; whatever ends the process, but for a kill, what is left in it by then is written.
fn keep_audit_log(file: &Path, exclude: &str) -> AuditLog {
    // The list was read before, and is good.
    let exclusions = options::exclusions(exclude).unwrap_or_default();
    let audit = AuditLog::open(file, exclusions).unwrap_or_else(|error| {
        let file = file.display();
        program::fatal_error(format_args!("{file}: cannot open audit log"), &error)
    });
    let last = audit.clone();
    cleanup::say_at_last(move || last.close());
    audit
}

/// Keeps what the command line says for the server that begins now, and for those after it.
fn save(line: &CommandLine) -> std::io::Result<SavedConfigFile> {
    SavedConfigFile::create(&SavedConfig {
        databases: databases(line),
        remotes: line.remotes.clone(),
        sync: ReplicationSettings {
            is_on: line.sync_from.is_some(),
            is_backup: line.sync_from.is_some() && !line.is_active,
            source: line.sync_from.clone(),
            excluded: line.sync_exclude_tables.clone().unwrap_or_default(),
            probe_interval_ms: None,
        },
    })
}

/// Begins to serve what was kept.
fn begin(server: &mut Server, saved: Option<&SavedConfigFile>) {
    let configuration = saved.map_or_else(|| Ok(SavedConfig::default()), SavedConfigFile::read);
    let configuration = configuration.unwrap_or_else(|error| {
        program::fatal_error("failed to read the saved configuration", &error)
    });
    server.set_sync(configuration.sync);
    let databases = configuration
        .databases
        .into_iter()
        .map(|file| WantedDatabase {
            entry: file.clone(),
            file,
            config: None,
        });
    let remotes = configuration.remotes.into_iter();
    let remotes = remotes.map(|remote| (remote, RemoteOptions::default()));
    server.begin(Reconfiguration::new(databases, remotes).stopping_at_failure());
}

/// The main loop before anybody can ask for anything: fatal signals end it, and the service manager hears that the load gets on.
fn until_started(
    server: &mut Server,
    control: &mut ControlServer<Server>,
    watchdog: &mut Watchdog,
) -> Result<(), ConfigError> {
    loop {
        server.run_events();
        if let Some(outcome) = server.take_started() {
            return outcome;
        }
        watch(watchdog, server);
        let timeout =
            watchdog.wait_max(clock::mono_ms(), Duration::from_millis(STATUS_INTERVAL_MS));
        if let Err(error) = control.turn(server, Some(timeout)) {
            program::fatal_error("poll failed", &error);
        }
    }
}

fn watch(watchdog: &mut Watchdog, server: &Server) {
    let now_ms = clock::mono_ms();
    watchdog.run(now_ms, || server.summary());
    watchdog.extend(now_ms, server.is_reconfiguring(now_ms));
}

/// Between writing back how remotes stand, ms (docs/spec/cli.md 1.6).
const STATUS_INTERVAL_MS: u64 = 2500;

/// How long a recording may be unless the command line says otherwise, MiB.
const RECORDING_MIB: u64 = 256;

/// How often a `--run` child is looked after, ms.
const CHILD_POLL_MS: u64 = 50;

fn finish(server: Server, control: ControlServer<Server>) {
    service_manager::stopping();
    server.shut_down();
    control.close();
}

/// The files to serve: the default one unless something else is named.
pub(crate) fn databases(line: &CommandLine) -> Vec<String> {
    let mut databases = Vec::new();
    for file in &line.databases {
        if databases.contains(file) {
            vlog::warn(
                Module::OvsdbServer,
                format_args!("Duplicate database configuration: {file}"),
            );
        } else {
            databases.push(file.clone());
        }
    }
    if databases.is_empty() && !line.no_default_database {
        databases.push(dirs::db().join("conf.db").display().to_string());
    }
    databases
}

/// Connection shards: a core is left to the databases.
fn shard_count() -> usize {
    std::thread::available_parallelism()
        .map_or(1, |cores| cores.get().saturating_sub(1))
        .max(1)
}

/// How a child ended, as the reference words it.
fn describe(status: std::process::ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit status {code}"),
        (None, Some(signal)) => {
            let core = if status.core_dumped() {
                ", core dumped"
            } else {
                ""
            };
            format!("killed ({}){core}", signals::name(signal))
        }
        (None, None) => status.to_string(),
    }
}

fn start_child(command: &str) -> (String, std::process::Child) {
    let mut shell = std::process::Command::new("/bin/sh");
    shell
        .args(["-c", command])
        // It is not the service, and must not speak for it.
        .env_remove("NOTIFY_SOCKET");
    descriptors::restore_for(&mut shell);
    coverage::PROCESS_START.bump();
    match shell.spawn() {
        Ok(child) => (command.to_owned(), child),
        Err(error) => program::fatal_error(format_args!("{command}: could not start"), &error),
    }
}
