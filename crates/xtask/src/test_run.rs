//! `corvid-xtask test`: builds the test programs of the workspace and runs each as soon as it is
//! built, several at the same time.
//!
//! Many tests wait for processes, so tests run while Cargo is still compiling the other test
//! programs. The output of a program is printed as a whole when the program ends. The run fails if
//! the build, a program, the documentation's tests or the command given by `--beside` fails. The
//! failure of a job is shown in full when it happens. At the end the last words of each failed test
//! are repeated (`failed_test`), and every failure is named. A job that takes longer than [`LIMIT`]
//! is ended and counts as failed (`timed_process`).
//!
//! This file knows how Cargo reports what it has built, and how Rust's test harness reports
//! results. It does not know any particular test.

use std::collections::{HashMap, VecDeque};
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use corvid_json::Value;

use corvid_shell::{output, signals};

use crate::Outcome;
use crate::failed_test::last_words;
use crate::timed_process::{End, Limits, TimedProcess};

/// The number of jobs that run at the same time.
const LANES: usize = 3;

/// Test programs whose tests wait for other processes most of the time. They are started first,
/// with [`THREADS_WAITING`] threads for each core.
const WAITING: [&str; 7] = [
    "tests system",
    "crates/driver clients",
    "crates/idl reference",
    "crates/examples examples",
    "crates/tools tools",
    "crates/server server",
    "crates/shell process",
];

/// The number of threads for each core in programs that wait.
const THREADS_WAITING: usize = 4;

/// The environment variable with the time limit of each job in seconds, for slow machines.
const LIMIT: &str = "CORVID_TEST_LIMIT_S";
/// The default of that limit. It is several times the time that the longest job takes on a busy
/// machine with two cores.
const LIMIT_DEFAULT: Duration = Duration::from_secs(20 * 60);

/// The environment variable that tells tests where the programs are that they start.
const PROGRAMS: &str = "CORVID_BIN_DIR";

/// The values that all jobs share.
#[derive(Debug)]
struct Workspace {
    root: PathBuf,
    /// The folder of this program. The programs under test are in it, because they were built
    /// together with this program.
    programs: PathBuf,
    cores: usize,
}

/// Something to run.
#[derive(Debug)]
struct Job {
    name: String,
    command: Command,
    is_waiting: bool,
}

/// The result of a job.
#[derive(Debug)]
struct Report {
    name: String,
    is_success: bool,
    /// Why the job has failed, unless its own output says so.
    reason: Option<String>,
    tally: Tally,
    output: String,
    warnings: String,
    took: Duration,
}

/// The results of a test program's tests.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tally {
    passed: usize,
    failed: Vec<String>,
    ignored: usize,
    /// Tests that the harness reported as slow and that had no result when the program ended.
    unfinished: Vec<String>,
}

impl Tally {
    /// Counts the results in the output of Rust's test harness, which writes `test NAME ... ok`.
    fn of(output: &str) -> Tally {
        let mut tally = Tally::default();
        let lines = output.lines().filter_map(|line| line.strip_prefix("test "));
        for line in lines {
            if let Some((name, _)) = line.split_once(" has been running for over ") {
                tally.unfinished.push(name.to_owned());
            }
            let Some((name, result)) = line.rsplit_once(" ... ") else {
                continue;
            };
            tally.unfinished.retain(|slow| slow != name);
            match result.split([',', ' ']).next() {
                Some("ok") => tally.passed += 1,
                Some("FAILED") => tally.failed.push(name.to_owned()),
                Some("ignored") => tally.ignored += 1,
                _ => {}
            }
        }
        tally
    }

    fn add(&mut self, other: Tally) {
        self.passed += other.passed;
        self.failed.extend(other.failed);
        self.ignored += other.ignored;
        self.unfinished.extend(other.unfinished);
    }
}

/// Jobs that may be started, and whether more may be added.
#[derive(Debug, Default)]
struct Queue {
    jobs: VecDeque<Job>,
    is_complete: bool,
}

/// The queue, shared by the build and the lanes.
#[derive(Debug, Default)]
struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a job. A job that waits is added before all jobs that do not wait.
    fn add(&self, job: Job) {
        let mut queue = self.lock();
        let at = if job.is_waiting {
            queue.jobs.iter().take_while(|job| job.is_waiting).count()
        } else {
            queue.jobs.len()
        };
        queue.jobs.insert(at, job);
        self.changed.notify_all();
    }

    /// Marks the queue as complete. If the build failed, no more jobs are started.
    fn complete(&self, is_build_good: bool) {
        let mut queue = self.lock();
        if !is_build_good {
            queue.jobs.clear();
        }
        queue.is_complete = true;
        self.changed.notify_all();
    }

    /// Returns the next job as soon as there is one; `None` if there will be none.
    fn next(&self) -> Option<Job> {
        let mut queue = self.lock();
        loop {
            if signals::received().is_some() {
                return None;
            }
            if let Some(job) = queue.jobs.pop_front() {
                return Some(job);
            }
            if queue.is_complete {
                return None;
            }
            queue = self
                .changed
                .wait(queue)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Builds and runs all tests below the current directory, which must be the root of the repository.
/// `beside` is a shell command that is run as one more job.
pub(crate) fn run(beside: Option<&String>) -> Outcome {
    let this = std::env::current_exe()?;
    let workspace = Workspace {
        root: std::env::current_dir()?,
        programs: this.parent().unwrap_or(Path::new(".")).to_owned(),
        cores: thread::available_parallelism().map_or(2, usize::from),
    };
    let limits = limits_of_jobs()?;
    // Each job has its own process group, so signals from the terminal only reach this process. It
    // must therefore end the jobs.
    signals::init()?;
    let started = Instant::now();
    let shared = Shared::default();
    if let Some(line) = beside {
        let mut command = Command::new("sh");
        command.args(["-c", line]);
        shared.add(Job {
            name: line.clone(),
            command,
            is_waiting: true,
        });
    }
    let (built, reports) = thread::scope(|scope| {
        let lanes: Vec<_> = (0..LANES)
            .map(|_| {
                scope.spawn(|| {
                    let jobs = std::iter::from_fn(|| shared.next());
                    jobs.map(|job| show(perform(job, limits)))
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        let built = build(&workspace, &shared);
        let is_good = built.as_ref().is_ok_and(ExitStatus::success);
        output::report(format_args!(
            "tests are built after {} s",
            started.elapsed().as_secs()
        ));
        if is_good {
            let mut command = Command::new("cargo");
            command.args(["test", "--workspace", "--doc"]);
            shared.add(Job {
                name: "examples of the documentation".to_owned(),
                command,
                is_waiting: false,
            });
        }
        shared.complete(is_good);
        let reports = lanes.into_iter().map(thread::ScopedJoinHandle::join);
        (built, reports.collect::<Result<Vec<_>, _>>())
    });
    signals::run();
    if !built?.success() {
        return Err("the tests do not build".into());
    }
    let reports = reports.map_err(|_| "a lane of the tests panicked")?;
    conclude(reports.into_iter().flatten().collect(), started.elapsed())
}

/// Test programs that cannot be started yet, because Cargo reports a test program before it has put
/// the programs of the same package in their place.
#[derive(Debug, Default)]
struct Withheld {
    /// For each manifest, the number of programs of its package that Cargo has not reported yet.
    missing: HashMap<String, usize>,
    jobs: Vec<(String, Job)>,
}

impl Withheld {
    /// Reads the output of `cargo metadata`.
    fn new(metadata: &Value) -> Option<Withheld> {
        let mut missing = HashMap::new();
        for package in metadata.get("packages")?.as_array()? {
            let manifest = package.get("manifest_path")?.as_str()?.to_owned();
            let targets = package.get("targets")?.as_array()?;
            let programs = targets.iter().filter(|target| is_kind(target, "bin"));
            missing.insert(manifest, programs.count());
        }
        Some(Withheld {
            missing,
            jobs: Vec::new(),
        })
    }

    /// Handles a message of Cargo. Returns the jobs that may now be started.
    fn message(&mut self, message: &Value, workspace: &Workspace) -> Vec<Job> {
        let manifest = message.get("manifest_path").and_then(Value::as_str);
        let manifest = manifest.unwrap_or_default();
        if let Some(job) = test_program(message, workspace) {
            let is_integration = message
                .get("target")
                .is_some_and(|target| is_kind(target, "test"));
            if is_integration
                && self
                    .missing
                    .get(manifest)
                    .is_some_and(|missing| *missing > 0)
            {
                self.jobs.push((manifest.to_owned(), job));
                return Vec::new();
            }
            return vec![job];
        }
        let is_program = message
            .get("target")
            .is_some_and(|target| is_kind(target, "bin"));
        if let Some(missing) = self.missing.get_mut(manifest).filter(|_| is_program) {
            *missing = missing.saturating_sub(1);
            if *missing == 0 {
                return self.release(|held| held == manifest);
            }
        }
        Vec::new()
    }

    fn release(&mut self, is_released: impl Fn(&str) -> bool) -> Vec<Job> {
        let held = std::mem::take(&mut self.jobs);
        let (released, kept): (Vec<_>, Vec<_>) = held
            .into_iter()
            .partition(|(manifest, _)| is_released(manifest));
        self.jobs = kept;
        released.into_iter().map(|(_, job)| job).collect()
    }
}

/// Whether a target, as Cargo describes it, is of the given kind.
fn is_kind(target: &Value, kind: &str) -> bool {
    let kinds = target.get("kind").and_then(Value::as_array);
    kinds.is_some_and(|kinds| kinds.iter().any(|found| found.as_str() == Some(kind)))
}

/// Lets Cargo build all test programs. Each is added to the queue when Cargo has reported it and
/// the programs that it starts.
fn build(workspace: &Workspace, shared: &Shared) -> io::Result<ExitStatus> {
    let metadata = Command::new("cargo")
        .args(["metadata", "--no-deps", "--format-version=1"])
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()?;
    let metadata = Value::parse(&metadata.stdout).ok();
    let mut withheld = metadata
        .and_then(|metadata| Withheld::new(&metadata))
        .unwrap_or_default();
    // The build has a low priority, because it has no time limit, but the tests that run at the
    // same time have.
    let mut child = Command::new("nice")
        .args(["cargo", "test", "--workspace", "--no-run", "--quiet"])
        .arg("--message-format=json-render-diagnostics")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    if let Some(stdout) = child.stdout.take() {
        for line in BufReader::new(stdout).lines() {
            if let Ok(message) = Value::parse(line?.as_bytes()) {
                for job in withheld.message(&message, workspace) {
                    shared.add(job);
                }
            }
        }
    }
    let status = child.wait()?;
    for job in withheld.release(|_| true) {
        shared.add(job);
    }
    Ok(status)
}

/// Returns the test program that a message of Cargo announces. Tests run in the folder of their
/// package, as under `cargo test`.
fn test_program(message: &Value, workspace: &Workspace) -> Option<Job> {
    if !message.get("profile")?.get("test")?.as_bool()? {
        return None;
    }
    let executable = message.get("executable")?.as_str()?;
    let folder = Path::new(message.get("manifest_path")?.as_str()?).parent()?;
    let target = message.get("target")?;
    let shown = folder
        .strip_prefix(&workspace.root)
        .unwrap_or(folder)
        .display();
    let name = if is_kind(target, "test") {
        format!("{shown} {}", target.get("name")?.as_str()?)
    } else {
        format!("{shown} (units of {})", target.get("name")?.as_str()?)
    };
    let is_waiting = WAITING.contains(&name.as_str());
    let threads = if is_waiting { THREADS_WAITING } else { 1 } * workspace.cores;
    // A signal that is ignored here, because `make test` was started in the background or by
    // nohup, would be ignored by every program under test, too. The shell is there for paths with
    // an equals sign, which `env` would take for variables.
    let mut command = Command::new("env");
    command
        .args([
            "--default-signal=HUP,INT,QUIT",
            "sh",
            "-c",
            "exec \"$0\" \"$@\"",
        ])
        .arg(PathBuf::from(executable))
        .arg(format!("--test-threads={threads}"))
        .current_dir(folder)
        .env("CARGO_MANIFEST_DIR", folder)
        .env(PROGRAMS, &workspace.programs);
    Some(Job {
        name,
        command,
        is_waiting,
    })
}

/// Returns the limits of each job.
///
/// # Errors
/// If [`LIMIT`] is not a number of seconds.
pub(crate) fn limits_of_jobs() -> Outcome<Limits> {
    Ok(Limits::of(limit(std::env::var(LIMIT).ok().as_deref())?))
}

/// Reads the time limit of each job from the value of [`LIMIT`].
fn limit(text: Option<&str>) -> Outcome<Duration> {
    let Some(text) = text else {
        return Ok(LIMIT_DEFAULT);
    };
    match text.parse() {
        Ok(seconds @ 1..) => Ok(Duration::from_secs(seconds)),
        _ => Err(format!("{LIMIT} is not a number of seconds: {text}").into()),
    }
}

fn perform(mut job: Job, limits: Limits) -> Report {
    let started = Instant::now();
    let result = TimedProcess::run(&mut job.command, limits);
    let took = started.elapsed();
    let report = Report {
        name: job.name,
        is_success: false,
        reason: None,
        tally: Tally::default(),
        output: String::new(),
        warnings: String::new(),
        took,
    };
    match result {
        Ok(process) => {
            let mut warnings = process.errors;
            warnings.push_str(&process.still_running);
            if process.is_output_open {
                warnings.push_str(
                    "a process that it started is still there and keeps its output open\n",
                );
            }
            Report {
                is_success: process.end.is_success(),
                reason: match process.end {
                    End::Exited(status) if status.code().is_some() => None,
                    end => Some(end.to_string()),
                },
                tally: Tally::of(&process.output),
                output: process.output,
                warnings,
                ..report
            }
        }
        Err(error) => Report {
            reason: Some(error.to_string()),
            ..report
        },
    }
}

/// Prints the report of a job. If it failed, this is its whole output; otherwise it is only what
/// its tests wrote directly to standard error, such as what was skipped.
fn show(report: Report) -> Report {
    let mut text = format!(
        "{} {}: {} passed, {} failed, {} ignored, {:.1} s\n",
        if report.is_success { "ok  " } else { "FAIL" },
        report.name,
        report.tally.passed,
        report.tally.failed.len(),
        report.tally.ignored,
        report.took.as_secs_f64()
    );
    if !report.is_success {
        text.push_str(&report.output);
        text.push_str(&report.warnings);
        if let Some(reason) = &report.reason {
            text.push_str(&format!("{}: {reason}\n", report.name));
        }
    } else {
        let is_of_tests = |line: &&str| !line.is_empty() && !line.starts_with("   ");
        for line in report.warnings.lines().filter(is_of_tests) {
            text.push_str("     ");
            text.push_str(line);
            text.push('\n');
        }
    }
    output::report_text(text);
    report
}

/// Reports the end of a run: the failures, and the sums.
fn conclude(reports: Vec<Report>, took: Duration) -> Outcome {
    let mut sum = Tally::default();
    let mut failures = Vec::new();
    for report in reports {
        if let Some(reason) = &report.reason {
            failures.push(format!("{}: {reason}", report.name));
        } else if !report.is_success && report.tally.failed.is_empty() {
            failures.push(report.name.clone());
        }
        for test in &report.tally.failed {
            output::report(format_args!("{}: {test}:", report.name));
            for line in last_words(&report.output, test) {
                output::report(format_args!("    {line}"));
            }
        }
        let names = report.tally.failed.iter();
        failures.extend(names.map(|test| format!("{}: {test}", report.name)));
        let names = report.tally.unfinished.iter();
        failures.extend(names.map(|test| format!("{}: {test} did not end", report.name)));
        sum.add(report.tally);
    }
    for failure in &failures {
        output::report(format_args!("FAILED {failure}"));
    }
    output::report(format_args!(
        "tests: {} passed, {} failed, {} ignored, in {} s",
        sum.passed,
        sum.failed.len(),
        sum.ignored,
        took.as_secs()
    ));
    if failures.is_empty() {
        Ok(())
    } else {
        Err(format!("{} failures", failures.len()).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUILT: &str = r#"{"reason":"compiler-artifact","manifest_path":"/r/crates/json/Cargo.toml",
        "target":{"kind":["test"],"name":"json"},"profile":{"test":true},"executable":"/r/t/json-1"}"#;

    fn program(message: &str) -> Option<Job> {
        let message = Value::parse(message.as_bytes()).expect("JSON");
        let workspace = Workspace {
            root: PathBuf::from("/r"),
            programs: PathBuf::from("/r/t"),
            cores: 2,
        };
        test_program(&message, &workspace)
    }

    #[test]
    fn a_test_program_has_the_name_of_its_package_and_target() {
        let job = program(BUILT).expect("a program");
        assert_eq!(job.name, "crates/json json");
        assert_eq!(
            job.command.get_current_dir(),
            Some(Path::new("/r/crates/json"))
        );
        let units = BUILT.replace(r#"["test"]"#, r#"["lib"]"#);
        let job = program(&units).expect("a program");
        assert_eq!(job.name, "crates/json (units of json)");
    }

    #[test]
    fn only_test_programs_are_run() {
        for other in [
            BUILT.replace(r#""test":true"#, r#""test":false"#),
            BUILT.replace(r#""/r/t/json-1""#, "null"),
            r#"{"reason":"build-finished","success":true}"#.to_owned(),
        ] {
            assert!(program(&other).is_none(), "{other}");
        }
    }

    #[test]
    fn a_test_program_waits_for_the_programs_of_its_package() {
        let metadata = r#"{"packages":[{"manifest_path":"/r/crates/json/Cargo.toml","targets":[
            {"kind":["lib"],"name":"json"},{"kind":["bin"],"name":"a"},{"kind":["bin"],"name":"b"}]}]}"#;
        let metadata = Value::parse(metadata.as_bytes()).expect("JSON");
        let workspace = Workspace {
            root: PathBuf::from("/r"),
            programs: PathBuf::from("/r/t"),
            cores: 2,
        };
        let mut withheld = Withheld::new(&metadata).expect("metadata");
        let mut started = |text: &str| {
            let message = Value::parse(text.as_bytes()).expect("JSON");
            withheld.message(&message, &workspace).len()
        };
        let units = BUILT.replace(r#"["test"]"#, r#"["lib"]"#);
        let program = BUILT
            .replace(r#"["test"]"#, r#"["bin"]"#)
            .replace(r#""test":true"#, r#""test":false"#);
        assert_eq!(started(&units), 1, "units start no program");
        assert_eq!(started(BUILT), 0);
        assert_eq!(started(&program), 0);
        assert_eq!(started(&program), 1, "both programs are there");
        assert_eq!(started(BUILT), 1);
    }

    #[test]
    fn programs_that_wait_are_started_first() {
        let shared = Shared::default();
        for (name, is_waiting) in [("a", false), ("b", true), ("c", false), ("d", true)] {
            shared.add(Job {
                name: name.to_owned(),
                command: Command::new("true"),
                is_waiting,
            });
        }
        shared.complete(true);
        let names: Vec<String> = std::iter::from_fn(|| shared.next())
            .map(|job| job.name)
            .collect();
        assert_eq!(names, ["b", "d", "a", "c"]);
    }

    #[test]
    fn a_failed_build_starts_nothing_more() {
        let shared = Shared::default();
        shared.add(program(BUILT).expect("a program"));
        shared.complete(false);
        assert!(shared.next().is_none());
    }

    #[test]
    fn results_are_counted() {
        let output = "running 4 tests\ntest a::b ... ok\ntest c - should panic ... ok\ntest d ... FAILED\n\
                      test e ... ignored, takes hours\n\nfailures:\n    d\n";
        let expected = Tally {
            passed: 2,
            failed: vec!["d".to_owned()],
            ignored: 1,
            unfinished: Vec::new(),
        };
        assert_eq!(Tally::of(output), expected);
    }

    #[test]
    fn tests_without_a_result_are_named() {
        let output = "test a has been running for over 60 seconds\ntest b::c has been running for over 60 seconds\n\
                      test a ... ok\n";
        let tally = Tally::of(output);
        assert_eq!(
            (tally.passed, tally.unfinished),
            (1, vec!["b::c".to_owned()])
        );
    }

    #[test]
    fn a_job_that_cannot_start_or_fails_without_a_test_is_a_failure() {
        let job = |program: &str| Job {
            name: program.to_owned(),
            command: Command::new(program),
            is_waiting: false,
        };
        let limits = Limits::of(LIMIT_DEFAULT);
        for program in ["false", "/no/such/program"] {
            let report = perform(job(program), limits);
            assert!(!report.is_success && report.tally == Tally::default());
            assert!(conclude(vec![report], Duration::ZERO).is_err(), "{program}");
        }
        let report = perform(job("true"), limits);
        assert!(conclude(vec![report], Duration::ZERO).is_ok());
    }

    #[test]
    fn a_job_out_of_time_is_a_failure_although_its_tests_passed() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo 'test a ... ok'; sleep 600"]);
        let job = Job {
            name: "slow".to_owned(),
            command,
            is_waiting: false,
        };
        let report = perform(job, Limits::of(Duration::from_secs(1)));
        assert_eq!((report.is_success, report.tally.passed), (false, 1));
        assert_eq!(
            report.reason.as_deref(),
            Some("ended after its limit of 1 s")
        );
        assert!(conclude(vec![report], Duration::ZERO).is_err());
    }

    #[test]
    fn the_limit_is_a_number_of_seconds() {
        assert_eq!(limit(None).expect("the default"), LIMIT_DEFAULT);
        assert_eq!(limit(Some("90")).expect("valid"), Duration::from_secs(90));
        for text in ["", "0", "-1", "1m"] {
            limit(Some(text)).expect_err(text);
        }
    }
}
