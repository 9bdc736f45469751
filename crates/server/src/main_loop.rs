//! The main thread from start to exit: applies the command line, starts the server, runs the main
//! loop, and shuts the server down (docs/spec/cli.md 1.9).

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use corvid_net::{cleanup, clock, dirs, os_name};
use corvid_shell::memory::{self, MemoryLog};
use corvid_shell::service_manager;
use corvid_shell::unixctl::Server as ControlServer;
use corvid_shell::vlog::{self, Module};
use corvid_shell::{descriptors, hangup, program, signals};

use crate::allocator;
use crate::audit::AuditSlot;
use crate::config::applied::{AppliedConfig, ConfigError};
use crate::config::relay::RelaySettings;
use crate::config::replication::ReplicationSettings;
use crate::config::saved_config::{SavedConfig, SavedConfigFile};
use crate::control::cluster_commands;
use crate::control::commands;
use crate::control::replication_commands;
use crate::coverage;
use crate::database::file_name;
use crate::database::recorder::RecorderSettings;
use crate::jobs::Jobs;
use crate::metrics::Metrics;
use crate::options::{self, CommandLine};
use crate::remotes::options::RemoteOptions;
use crate::server::pages::Pages;
use crate::server::reconfiguration::{Reconfiguration, WantedDatabase};
use crate::server::{Config, Server};
use crate::tls_settings::TlsSettings;
use crate::trusted_relays::TrustedRelays;
use crate::watchdog::Watchdog;

/// Runs the server until a command, a signal or the end of the `--run` child stops it. Fatal
/// conditions end the process.
pub fn run(line: CommandLine) {
    // A server that the supervisor restarts reads the configuration file again. Without one, it
    // reads the configuration that is saved here.
    let config_file = line.config_file.as_deref().map(AppliedConfig::new);
    let saved = config_file
        .is_none()
        .then(|| save(&line))
        .transpose()
        .unwrap_or_else(|error| program::fatal_error("failed to create temporary file", &error));
    // Relative file names are valid only until the process leaves the start directory. The names
    // must also be known before any database is opened: from then on `/readyz` lists the databases
    // that are still being opened.
    let names = line.metrics_listen.is_some().then(|| database_names(&line));
    // Relative file names refer to the start directory, which a daemon leaves.
    let tls = if line.daemon.is_detached() {
        TlsSettings::absolute(&line.tls)
    } else {
        line.tls
    };
    let audit_log = line.audit_log.as_deref();
    let audit_log = audit_log.map(|file| absolute(os_name::path(file)));
    let record = line.record.as_deref().map(absolute);
    // `WATCHDOG_PID` holds this process's id, so it is read before the fork.
    let watchdog = service_manager::Watchdog::from_env();
    hangup::reload();
    let startup = line.daemon.start();
    allocator::give_back();
    let mut control = ControlServer::new()
        .unwrap_or_else(|error| program::fatal_error("could not start", &error));
    coverage::list();
    commands::register(control.registry());
    replication_commands::register(control.registry());
    if line.disable_column_diff {
        commands::register_column_diff(control.registry());
    }
    if line.disable_no_data_conversion {
        commands::register_no_data_conversion(control.registry());
    }
    let metrics = Arc::<Metrics>::default();
    let mut pages = Pages::default();
    if let Some(setting) = &line.metrics_listen {
        let names = names.unwrap_or_default();
        if let Err(why) = pages.set(&metrics, setting, &names) {
            program::fatal(format_args!("--metrics-listen={setting}: {why}"));
        }
    }
    // Opened after the change of user: reopening at a log rotation runs as that user and must
    // succeed too.
    let audit = AuditSlot::default();
    if let Some(path) = &audit_log {
        keep_audit_log(&audit, path, &line.audit_exclude);
    }
    let config = Config {
        audit,
        shards: shard_count(),
        column_diff: !line.disable_column_diff,
        data_conversion: line.disable_no_data_conversion,
        no_history: line.no_standalone_history,
        slow_ms: line.slow_ms,
        tls,
        limits: line.limits.resolve(),
        limit_settings: line.limits,
        is_audited: true,
        record: record.map(|directory| RecorderSettings {
            directory,
            bytes_max: line.recording_bytes_max.unwrap_or(RECORDING_BYTES_MAX),
        }),
        audit_exclude: line.audit_exclude,
        trusted_relays: Arc::new(TrustedRelays::new(&line.trusted_relays)),
        client_memory: Arc::default(),
        metrics,
        jobs: Jobs::default(),
        histories: Arc::default(),
        keep_history: line.keep_history,
        record_clients: line.record_clients,
    };
    config.limit_settings.limit(&config.client_memory);
    let mut has_audit_commands = false;
    let mut server = Server::start(config, control.waker())
        .unwrap_or_else(|error| program::fatal_error("could not start", &error));
    server.keep_pages(pages);
    match (config_file, &saved) {
        (Some(file), _) => server.configure(file),
        (None, saved) => begin(&mut server, saved.as_ref()),
    }
    let mut watchdog = Watchdog::new(watchdog, server.liveness_registry().clone());
    if let Err(ConfigError) = until_started(&mut server, &mut control, &mut watchdog) {
        program::fatal("server configuration failed");
    }
    server.started(saved);
    if server.is_audit_open() {
        commands::register_audit(control.registry());
        has_audit_commands = true;
    }
    // The control socket comes last: its first command finds the server complete.
    if let Err(error) = control.listen(line.unixctl.as_deref()) {
        program::fatal(error);
    }
    let mut child = line.run.as_deref().map(start_child);
    // `startup.complete()` ends the parent process, which the service manager still watches. The
    // service manager learns the new main process first.
    service_manager::ready(startup.main_pid(), &server.summary());
    // A fatal signal ends the process without `finish`, so the service manager is notified here.
    cleanup::at_exit(service_manager::stopping);
    startup.complete();
    if child.is_none() {
        vlog::info(
            Module::OvsdbServer,
            format_args!("{}", program::version_line()),
        );
        vlog::info(Module::OvsdbServer, format_args!("{}", program::CORVID));
    }
    if let Some(fd) = hangup::fd()
        && let Err(error) = control.watch(fd)
    {
        program::fatal_error("could not start", &error);
    }
    let mut has_cluster_commands = false;
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
        let timeout = server.status_wait_max(timeout);
        if server.has_clusters() && !has_cluster_commands {
            cluster_commands::register(control.registry());
            has_cluster_commands = true;
        }
        if server.is_audit_open() && !has_audit_commands {
            commands::register_audit(control.registry());
            has_audit_commands = true;
        }
        if let Err(error) = control.turn(&mut server, Some(timeout)) {
            program::fatal_error("poll failed", &error);
        }
        server.run_events();
        if hangup::take() {
            server.hang_up();
        }
        corvid_net::coverage::run(clock::mono_ms());
        if memory_log.run(clock::mono_ms()) {
            server.ask_all(|server, reports| {
                memory::log_usage(server.usage(&reports));
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

/// The names of the databases that the command line or the configuration file lists; files that
/// cannot be read are left out.
fn database_names(line: &CommandLine) -> Vec<String> {
    let files = match &line.config_file {
        // A fault in the file is reported when the file is applied.
        Some(file) => AppliedConfig::new(file).files().unwrap_or_default(),
        None => databases(line),
    };
    let name = |file: &String| match RelaySettings::of_argument(file) {
        Some(relay) => Some(relay.name),
        None => file_name::database_of_file(Path::new(file)),
    };
    files.iter().filter_map(name).collect()
}

/// The absolute name of a file, resolved before a daemon leaves the start directory.
fn absolute(file: impl AsRef<Path>) -> PathBuf {
    let file = file.as_ref();
    std::path::absolute(file).unwrap_or_else(|_| file.to_owned())
}

/// Opens the audit log.
fn keep_audit_log(audit: &AuditSlot, file: &Path, exclude: &str) {
    // The option's parser has already rejected invalid lists.
    let exclusions = options::exclusions(exclude).unwrap_or_default();
    if let Err(error) = audit.begin(file, exclusions) {
        let file = file.display();
        program::fatal_error(format_args!("{file}: cannot open audit log"), &error)
    }
}

/// Saves the command line's configuration, for this process and for restarted ones.
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
        relay_probe_interval_ms: None,
    })
}

/// Begins to apply the saved configuration.
fn begin(server: &mut Server, saved: Option<&SavedConfigFile>) {
    let configuration = saved.map_or_else(|| Ok(SavedConfig::default()), SavedConfigFile::read);
    let configuration = configuration.unwrap_or_else(|error| {
        program::fatal_error("failed to read the saved configuration", &error)
    });
    server.set_sync(configuration.sync);
    server.restore_relay_probe_interval(configuration.relay_probe_interval_ms);
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

/// Runs the main loop, without control commands, until the first configuration is applied. Fatal
/// signals still end the process. The service manager is asked for more time while loading makes
/// progress.
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

/// The interval at which the status of remotes is written to rows, ms (docs/spec/cli.md 1.6).
const STATUS_INTERVAL_MS: u64 = 2500;

/// The default size limit of a recording, bytes.
const RECORDING_BYTES_MAX: u64 = 256 << 20;

/// The interval at which the exit of the `--run` child is polled, ms.
const CHILD_POLL_MS: u64 = 50;

fn finish(server: Server, control: ControlServer<Server>) {
    service_manager::stopping();
    server.shut_down();
    control.close();
}

/// The database files to serve; the default file if the command line names none.
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
        databases.push(os_name::text(dirs::db().join("conf.db").as_os_str()));
    }
    databases
}

/// The number of connection shards: one core is left to the databases.
fn shard_count() -> usize {
    std::thread::available_parallelism()
        .map_or(1, |cores| cores.get().saturating_sub(1))
        .max(1)
}

/// Describes how a child ended, in the reference's words.
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
        // The child is not the service, and must not notify the service manager.
        .env_remove("NOTIFY_SOCKET");
    descriptors::restore_for(&mut shell);
    coverage::PROCESS_START.bump();
    match shell.spawn() {
        Ok(child) => (command.to_owned(), child),
        Err(error) => program::fatal_error(format_args!("{command}: could not start"), &error),
    }
}
