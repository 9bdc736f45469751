//! Files that are made from the tables of options, and files that are installed: manual pages,
//! completions, units, the Debian package and the image.
//!
//! The package is really installed, but in a private root (`tests/packaging/private-root`), never
//! on this machine. If a test needs something that the machine does not have (root, groff, systemd,
//! shells), this is reported on standard error and the test is skipped.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use corvid_tests::binary::bin;
use corvid_tests::limited;
use corvid_tests::server::{Implementation, Server, Setup};
use tempfile::TempDir;

const PROGRAMS: [(&str, &str); 7] = [
    ("ovsdb-server", "man1/ovsdb-server.1"),
    ("ovsdb-client", "man1/ovsdb-client.1"),
    ("ovsdb-tool", "man1/ovsdb-tool.1"),
    ("ovs-appctl", "man8/ovs-appctl.8"),
    ("ovsdb-idlc", "man1/ovsdb-idlc.1"),
    ("corvid", "man1/corvid.1"),
    ("corvid-console", "man8/corvid-console.8"),
];

/// The commands of `ovsdb-client`.
const CLIENT: [&str; 21] = [
    "list-dbs",
    "get-schema",
    "get-schema-version",
    "get-schema-cksum",
    "list-tables",
    "list-columns",
    "transact",
    "query",
    "dump",
    "monitor",
    "monitor-cond",
    "monitor-cond-since",
    "backup",
    "restore",
    "convert",
    "needs-conversion",
    "wait",
    "ping",
    "lock",
    "steal",
    "unlock",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Reports a skipped part in a way that the test runner does not capture.
fn skip(what: &str) {
    let _ = writeln!(std::io::stderr(), "\nSKIPPED: {what}");
}

/// Whether a program can be started.
fn has(program: &str) -> bool {
    let mut command = Command::new(program);
    command.arg("--version").stdout(Stdio::null());
    command.stderr(Stdio::null()).status().is_ok()
}

fn run(command: &mut Command) -> Output {
    let shown = format!("{command:?}");
    let output = limited::output(command);
    let output = output.unwrap_or_else(|error| panic!("{shown}: {error}"));
    let said = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{shown}: {}\n{said}",
        output.status
    );
    output
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Returns the files that `corvid-xtask TASK DIR` makes.
fn made(task: &str) -> TempDir {
    let dir = tempfile::tempdir().expect("a directory");
    run(Command::new(bin("corvid-xtask")).arg(task).arg(dir.path()));
    dir
}

/// Returns those words of a text that are long options, without their arguments.
fn long_options(text: &str) -> Vec<String> {
    let words = text.split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '-'));
    let mut options: Vec<String> = words
        .filter(|word| word.starts_with("--") && word.len() > 2)
        .map(str::to_owned)
        .collect();
    options.sort();
    options.dedup();
    options
}

#[test]
fn lines_of_every_crate_are_counted_into_a_pipe() {
    let output = text(&run(Command::new(bin("corvid-xtask"))
        .arg("lines")
        .arg(root())));
    let of_service = output.lines().find(|line| line.ends_with(" service"));
    assert!(of_service.is_some(), "{output:?}");
    assert!(output.ends_with(" together\n"), "{output:?}");
}

#[test]
fn pages_name_every_option_and_command() {
    let dir = made("man");
    let setup = Setup {
        options: vec![
            "--no-dbs".to_owned(),
            "--disable-file-column-diff".to_owned(),
            "--disable-file-no-data-conversion".to_owned(),
        ],
        ..Setup::default()
    };
    let server = Server::start(Implementation::Corvid, &setup).expect("a server");
    let reply = server.control("list-commands", &[]).expect("a reply");
    let listed = reply["result"].as_str().expect("a text").to_owned();
    for (program, page) in PROGRAMS {
        let page = fs::read_to_string(dir.path().join(page)).expect("a page");
        let page = page.replace("\\-", "-");
        let help = text(&run(Command::new(bin(program)).arg("--help")));
        let options = long_options(&help);
        assert!(options.len() > 2, "{help}");
        for option in options {
            assert!(page.contains(&option), "{program}: {option}");
        }
        if program == "ovsdb-server" {
            for command in listed.lines().skip(1) {
                let name = command.split_whitespace().next().unwrap_or_default();
                assert!(page.contains(name), "{name}");
            }
        }
    }
}

/// Returns the commands of a program whose first word is a command.
fn commands(program: &str) -> Vec<String> {
    match program {
        "ovsdb-client" => CLIENT.iter().map(|&name| name.to_owned()).collect(),
        "ovsdb-tool" => {
            let listed = text(&run(Command::new(bin(program)).arg("list-commands")));
            let first = |line: &str| line.split_whitespace().next().map(str::to_owned);
            listed.lines().skip(1).filter_map(first).collect()
        }
        "ovsdb-idlc" => ["annotate", "rust"].map(str::to_owned).to_vec(),
        "corvid" => ["list", "set", "log", "top", "bundle", "revert"]
            .map(str::to_owned)
            .to_vec(),
        _ => Vec::new(),
    }
}

#[test]
fn pages_and_help_name_commands_and_letters() {
    let dir = made("man");
    let letters = [
        "pcCvhV",
        "fdtpcCvhV",
        "mvhVo",
        "tTfeovhV",
        "ChV",
        "fdqtpcCvhV",
        "pcCvhoV",
    ];
    for ((program, page), letters) in PROGRAMS.into_iter().zip(letters) {
        let page = fs::read_to_string(dir.path().join(page)).expect("a page");
        let page = page.replace("\\-", "-");
        let help = text(&run(Command::new(bin(program)).arg("--help")));
        for letter in letters.chars() {
            let (bold, plain) = (format!("-{letter}"), format!("  -{letter}"));
            assert!(page.contains(&bold), "the page of {program}: -{letter}");
            assert!(help.contains(&plain), "{program} --help: -{letter}");
        }
        for command in commands(program) {
            let is_term = |line: &str| {
                let words = line.trim_start_matches("\\fB").trim_end_matches("\\fR");
                words.split([' ', '\\']).any(|word| word == command)
            };
            assert!(
                page.lines().any(is_term),
                "the page of {program}: {command}"
            );
            assert!(help.lines().any(is_term), "{program} --help: {command}");
        }
    }
}

#[test]
fn options_that_scripts_search_for_are_in_the_help() {
    for (program, options) in [
        (
            "ovsdb-server",
            &["disable-file-column-diff", "ciphersuites"][..],
        ),
        ("ovsdb-tool", &["--election-timer"]),
    ] {
        let help = text(&run(Command::new(bin(program)).arg("--help")));
        for option in options {
            assert!(help.contains(option), "{program}: {option}");
        }
    }
}

#[test]
fn pages_are_sound() {
    if !has("groff") {
        return skip("groff is not here to judge the manual pages");
    }
    let dir = made("man");
    for (_, page) in PROGRAMS {
        let page = dir.path().join(page);
        let output = run(Command::new("groff")
            .args(["-man", "-ww", "-Tutf8", "-rLL=100n", "-z"])
            .arg(&page));
        let complaints = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(complaints, "", "{}", page.display());
        let source = fs::read_to_string(&page).expect("a page");
        for section in ["NAME", "SYNOPSIS", "OPTIONS", "ENVIRONMENT", "EXAMPLES"] {
            let heading = format!(".SH {section}\n");
            assert!(source.contains(&heading), "{}: {section}", page.display());
        }
    }
}

/// Words on a page that explain something which the page of the replaced program also explains, in
/// no particular order.
const EXPLAINED: [(&str, &[&str]); 4] = [
    (
        "ovsdb-tool",
        &[
            "never overwritten",
            "Ephemeral columns",
            "Warning: dropping a column",
            "another server id",
            "cluster/change-election-timer",
            "For standalone files only",
            "rights",
            "disk has lost writes",
            "cannot elect a leader",
        ],
    ),
    (
        "ovsdb-client",
        &[
            "Rows get new UUIDs",
            "not survive a restart",
            "Warning: dropping a column",
            "set_db_change_aware",
            "RFC 4180",
            "may be named once",
            "not a list",
            "--no-leader-only",
        ],
    ),
    (
        "ovs-appctl",
        &[
            "%D{FORMAT}",
            "emer",
            "SIGALRM",
            "--pidfile",
            "vlog/close",
            "strftime",
        ],
    ),
    (
        "ovsdb-server",
        &[
            "inactivity_probe",
            "accepts any peer",
            "trusted from then on",
            "two histories",
            "never comes back with the same file",
            "vlog/disable-rate-limit",
            "core dump",
            "at least ten minutes",
        ],
    ),
];

#[test]
fn pages_say_no_less_than_those_they_replace() {
    let dir = made("man");
    for (program, phrases) in EXPLAINED {
        let (_, page) = PROGRAMS
            .iter()
            .find(|(name, _)| *name == program)
            .expect("a page");
        let path = dir.path().join(page);
        let source = fs::read_to_string(&path).expect("a page");
        let words: Vec<&str> = source.split_whitespace().collect();
        let source = words
            .join(" ")
            .replace("\\-", "-")
            .replace("\\fB", "")
            .replace("\\fR", "");
        for phrase in phrases {
            assert!(source.contains(phrase), "{program}: {phrase}");
        }
        let replaced = Path::new("/usr/share/man").join(format!("{page}.gz"));
        if !has("man") || !replaced.exists() {
            skip(&format!(
                "{} is not here to be compared",
                replaced.display()
            ));
            continue;
        }
        let count = |page: &Path| {
            text(&run(Command::new("man").arg("-l").arg(page)))
                .split_whitespace()
                .count()
        };
        // The reference's page has options of another system, and explains common options again on
        // every page.
        let (ours, theirs) = (count(&path), count(&replaced));
        assert!(
            4 * ours >= 3 * theirs,
            "{program}: {ours} words for {theirs}"
        );
    }
}

#[test]
fn completions_complete() {
    let dir = made("completions");
    let file = |place: &str| dir.path().join(place).display().to_string();
    let completed = |program: &str, typed: &str| {
        // The word to complete is the last one, or empty if the line ends with a blank.
        let script = format!(
            "set -u; source '{}'; function=$(complete -p {program} | sed 's/.*-F \\([^ ]*\\).*/\\1/'); \
             COMP_WORDS=({program} {typed}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); \
             $function {program} \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[COMP_CWORD - 1]}}\"; \
             printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            file(&format!("bash-completion/completions/{program}"))
        );
        let found = text(&run(Command::new("bash").args(["-c", &script])));
        found.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    for (program, typed, expected) in [
        ("ovsdb-server", "--overw", "--overwrite-pidfile"),
        ("ovsdb-client", "monitor-cond-s", "monitor-cond-since"),
        ("ovsdb-client", "--max-col", "--max-column-width"),
        ("ovsdb-tool", "compare", "compare-versions"),
        ("ovsdb-idlc", "anno", "annotate"),
        ("corvid", "wait", "wait-until"),
        ("corvid", "revert --dry", "--dry-run"),
        ("ovs-appctl", "ovsdb-server/reco", "ovsdb-server/reconnect"),
        ("ovsdb-client", "dump --form", "--format"),
        ("ovs-appctl", "version --tar", "--target"),
    ] {
        assert_eq!(completed(program, typed), [expected], "{program} {typed}");
    }
    for (program, _) in PROGRAMS {
        let (offered, mut options) = (completed(program, "''"), completed(program, "--"));
        for command in commands(program) {
            assert!(offered.contains(&command), "{program}: {command}");
            options.extend(completed(program, &format!("{command} --")));
        }
        for option in long_options(&text(&run(Command::new(bin(program)).arg("--help")))) {
            assert!(options.contains(&option), "{program}: {option}");
        }
    }
    for (shell, check, place) in [
        ("zsh", "-n", "zsh/vendor-completions/_"),
        ("fish", "--no-execute", "fish/vendor_completions.d/"),
    ] {
        if !has(shell) {
            skip(&format!("{shell} is not here to read its completions"));
            continue;
        }
        for (program, _) in PROGRAMS {
            let end = if shell == "fish" { ".fish" } else { "" };
            run(Command::new(shell)
                .arg(check)
                .arg(file(&format!("{place}{program}{end}"))));
        }
    }
}

/// Builds the package from the programs under test.
fn package(dir: &Path) -> Option<PathBuf> {
    for program in ["dpkg-deb", "strip", "gzip"] {
        if !has(program) {
            skip(&format!("{program} is not here to build the package"));
            return None;
        }
    }
    let server = bin("ovsdb-server");
    let programs = server.parent().expect("a directory");
    let output = run(Command::new(bin("corvid-xtask"))
        .args(["deb", "--fast", "--bin-dir"])
        .arg(programs)
        .arg("--source")
        .arg(root())
        .arg(dir));
    Some(PathBuf::from(text(&output).trim()))
}

#[test]
fn the_package_replaces_a_running_reference_and_goes_back() {
    let dir = tempfile::tempdir().expect("a directory");
    let Some(package) = package(dir.path()) else {
        return;
    };
    let contents = text(&run(Command::new("dpkg-deb").arg("-c").arg(&package)));
    for (program, page) in PROGRAMS {
        assert!(contents.contains(&format!("bin/{program}\n")), "{contents}");
        assert!(contents.contains(&format!("man/{page}.gz\n")), "{contents}");
    }
    for line in contents.lines() {
        assert!(line.contains(" root/root "), "{line}");
        assert!(
            line.starts_with("drwxr-xr-x") || line.starts_with("-rw"),
            "{line}"
        );
    }
    let control = text(&run(Command::new("dpkg-deb").arg("-I").arg(&package)));
    for part in [
        "Package: corvid",
        "Depends: libc6 (>= 2.",
        "preinst",
        "postrm",
    ] {
        assert!(control.contains(part), "{control}");
    }
    if !Path::new("/usr/share/openvswitch/scripts/ovs-ctl").exists() {
        return skip("the packages of Open vSwitch are not here to be replaced");
    }
    let copy = dir.path().join("corvid.deb");
    fs::copy(&package, &copy).expect("copied");
    let output = Command::new(root().join("tests/packaging/private-root"))
        .arg("replace-and-go-back")
        .arg(&copy)
        .stdin(Stdio::null())
        .output()
        .expect("started");
    let said = text(&output) + &String::from_utf8_lossy(&output.stderr);
    match output.status.code() {
        Some(0) => assert!(said.ends_with("replaced, and back\n"), "{said}"),
        Some(77) => skip(&said),
        _ => panic!("{}\n{said}", output.status),
    }
}

/// Returns those targets of the links in a text that are files.
fn links(text: &str) -> Vec<String> {
    let links = text
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split_once(')'))
        .filter_map(|(target, _)| target.split('#').next())
        .filter(|target| !target.is_empty() && !target.contains("://"));
    links.map(str::to_owned).collect()
}

#[test]
fn links_in_the_package_lead_to_files_in_it() {
    let dir = tempfile::tempdir().expect("a directory");
    let Some(package) = package(dir.path()) else {
        return;
    };
    let unpacked = dir.path().join("unpacked");
    run(Command::new("dpkg-deb")
        .arg("-x")
        .args([&package, &unpacked]));
    let place = unpacked.join("usr/share/doc/corvid");
    let mut left = vec![place.clone()];
    let (mut seen, mut missing) = (0, Vec::new());
    while let Some(path) = left.pop() {
        if path.is_dir() {
            left.extend(
                fs::read_dir(&path)
                    .expect("a folder")
                    .map(|entry| entry.expect("an entry").path()),
            );
        } else if path.extension() == Some(OsStr::new("md")) {
            let text = fs::read_to_string(&path).expect("a document");
            let linked = links(&text)
                .into_iter()
                .map(|target| path.with_file_name(target));
            // Prose names these files from the root of the repository.
            let spans = text.split('`').skip(1).step_by(2);
            let told = spans
                .filter(|span| {
                    span.starts_with("contrib/")
                        || (span.starts_with("docs/") && span.ends_with(".md"))
                })
                .map(|span| place.join(span));
            for target in linked.chain(told) {
                seen += 1;
                if !target.exists() {
                    missing.push(format!("{}: {}", path.display(), target.display()));
                }
            }
        }
    }
    assert!(seen > 50, "{seen} links");
    assert!(missing.is_empty(), "\n{}", missing.join("\n"));
}

/// The page names exactly the commands that the test runs.
#[test]
fn commands_of_the_page_are_those_that_are_tested() {
    let page = root().join("docs/start/replace-the-reference.md");
    let page = fs::read_to_string(page).expect("the page");
    let script = root().join("tests/packaging/replace-and-go-back");
    let script = fs::read_to_string(script).expect("the script");
    for (told, tried) in [
        ("sudo dpkg -i target/deb/corvid_*.deb", "dpkg -i corvid.deb"),
        (
            "sudo systemctl restart ovsdb-server",
            "systemctl restart ovsdb-server",
        ),
        (
            "ovs-appctl -t ovsdb-server version",
            "ovs-appctl -t ovsdb-server version",
        ),
        ("sudo dpkg -r corvid", "dpkg -r corvid"),
    ] {
        assert!(page.contains(told), "the page: {told}");
        assert!(script.contains(tried), "{tried}");
    }
}

#[test]
fn units_are_sound() {
    let folder = root().join("packaging/systemd");
    let dir = tempfile::tempdir().expect("a directory");
    let has_judge = has("systemd-analyze");
    if !has_judge {
        skip("systemd-analyze is not here to judge the units");
    }
    for entry in fs::read_dir(folder).expect("units") {
        let path = entry.expect("a unit").path();
        let unit = fs::read_to_string(&path).expect("a unit");
        let name = path.file_name().expect("a name").to_string_lossy();
        let of_server = [
            "Type=notify",
            "WatchdogSec=",
            "ExecStart=/usr/sbin/ovsdb-server ",
        ];
        let own = match &*name {
            "corvid-console.service" => &["ExecStart=/usr/bin/corvid-console "][..],
            _ => &of_server,
        };
        for part in ["[Unit]", "Description="].iter().chain(own) {
            assert!(unit.contains(part), "{}: {part}", path.display());
        }
        // The unit is tested as an instance, with a program that exists whether or not a server is
        // installed.
        let instance = dir.path().join(name.replace('@', "@example"));
        fs::write(
            &instance,
            unit.replace("/usr/sbin/ovsdb-server", "/bin/true")
                .replace("/usr/bin/corvid-console", "/bin/true"),
        )
        .expect("written");
        if has_judge {
            let output = run(Command::new("systemd-analyze")
                .args(["verify", "--man=no"])
                .arg(&instance));
            assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{name}");
        }
    }
}

#[test]
fn files_that_the_image_copies_exist() {
    let file = root().join("packaging/container/Containerfile");
    let recipe = fs::read_to_string(file).expect("a recipe");
    let joined = recipe.replace("\\\n", " ");
    let instructions: Vec<&str> = joined
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .collect();
    let known = [
        "FROM",
        "WORKDIR",
        "COPY",
        "RUN",
        "ENV",
        "USER",
        "VOLUME",
        "EXPOSE",
        "STOPSIGNAL",
        "HEALTHCHECK",
        "ENTRYPOINT",
        "CMD",
    ];
    for line in &instructions {
        let (instruction, rest) = line.split_once(' ').expect("arguments");
        assert!(known.contains(&instruction), "{line}");
        let words: Vec<&str> = rest.split_whitespace().collect();
        if instruction == "COPY" && !rest.contains("--from=") {
            let sources = words[..words.len() - 1].iter();
            for source in sources.filter(|word| !word.starts_with("--")) {
                assert!(root().join(source).exists(), "{line}");
            }
        }
    }
    // The code generator is for developers only.
    for (program, _) in PROGRAMS
        .into_iter()
        .filter(|(program, _)| *program != "ovsdb-idlc")
    {
        assert!(
            joined.contains(&format!("/source/target/release/{program} ")),
            "{program}"
        );
    }
}

/// The contents of an image, in a folder.
struct Image(TempDir);

impl Image {
    fn new() -> Image {
        let image = Image(tempfile::tempdir().expect("a directory"));
        for place in ["run", "db", "schemas", "bin"] {
            fs::create_dir(image.at(place)).expect("made");
        }
        let schema = r#"{"name": "Things", "version": "1.0.0", "tables": {"T": {"columns": {"n": {"type": "integer"}}}}}"#;
        fs::write(image.at("schemas/things.ovsschema"), schema).expect("written");
        for (program, _) in PROGRAMS {
            std::os::unix::fs::symlink(bin(program), image.at("bin").join(program))
                .expect("linked");
        }
        image
    }

    fn at(&self, place: &str) -> PathBuf {
        self.0.path().join(place)
    }

    /// Returns a command with the environment of the image.
    fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .env(
                "PATH",
                format!("{}:/usr/bin:/bin", self.at("bin").display()),
            )
            .env("OVS_RUNDIR", self.at("run"))
            .env("OVS_DBDIR", self.at("db"))
            .env("OVS_PKGDATADIR", self.at("schemas"));
        command
    }
}

fn entry_point() -> PathBuf {
    root().join("packaging/container/serve")
}

#[test]
fn the_image_serves_every_schema() {
    let image = Image::new();
    // The second start finds the existing database, and converts nothing.
    for _ in 0..2 {
        let output = run(image.command(entry_point()).args([
            "-vconsole:off",
            "--run",
            "ovsdb-client list-tables Things",
        ]));
        assert!(text(&output).contains("\nT"), "{}", text(&output));
    }
    assert!(image.at("db/Things.db").exists());
}

/// Returns the options with which `unshare` can make a process the first one of its own process
/// namespace, if this is allowed.
fn first_process() -> Option<&'static [&'static str]> {
    let ways: [&[&str]; 2] = [
        &["--pid", "--fork", "--kill-child"],
        &[
            "--user",
            "--map-root-user",
            "--pid",
            "--fork",
            "--kill-child",
        ],
    ];
    ways.into_iter().find(|options| {
        let mut command = Command::new("unshare");
        command.args(*options).arg("true").stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    })
}

#[test]
fn the_first_process_of_a_container_ends_by_the_code_of_its_signal() {
    let Some(options) = first_process() else {
        return skip("nobody may be made a first process here, so no server was ended as one");
    };
    for (signal, code) in [("TERM", 143), ("INT", 130)] {
        let image = Image::new();
        // The processes that are listed in /proc are still those of the outer namespace.
        let tell = "read pid rest < /proc/self/stat; echo $pid; exec \"$0\" \"$@\"";
        // A shell starts its background jobs with SIGINT ignored, and the server keeps ignoring a
        // signal that was ignored when it started.
        let mut child = image
            .command("env")
            .args(["--default-signal", "unshare"])
            .args(options)
            .args(["sh", "-c", tell])
            .arg(entry_point())
            .arg("-vconsole:off")
            .stdout(Stdio::piped())
            .spawn()
            .expect("started");
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().expect("piped"))
            .read_line(&mut line)
            .expect("a number");
        let pid: u32 = line.trim().parse().expect("a number");
        let deadline = Instant::now() + Duration::from_secs(60);
        let mut is_signalled = false;
        let status = loop {
            if let Some(status) = child.try_wait().expect("a child") {
                break status;
            }
            if Instant::now() > deadline {
                child.kill().expect("a child");
                child.wait().expect("a child");
                panic!("it does not end");
            }
            if !is_signalled && image.at("run/db.sock").exists() {
                run(Command::new("kill").args([format!("-{signal}"), pid.to_string()]));
                is_signalled = true;
            }
            thread::sleep(Duration::from_millis(5));
        };
        assert_eq!(status.code(), Some(code), "{status}");
        assert!(!image.at("run/db.sock").exists(), "it has cleaned up");
    }
}
