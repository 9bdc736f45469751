//! Programs that were written for the reference's client library, alone and together with parts of
//! the reference's library: its maps, its poll loop and its control socket.
//!
//! The reference's library is not installed where tests run, so `crates/capi/tests/openvswitch`
//! contains a stand-in: the same public declarations, with functions of our own. The environment
//! variable `CORVID_OPENVSWITCH` may name a folder with the reference's sources and a built
//! `lib/.libs/libopenvswitch.a`. In this case, the guide's daemon is also linked with the
//! reference's library.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use corvid_tests::binary;
use corvid_tests::server::Server;
use serde_json::{Value, json};

use super::{
    compile, generate, has, library, package, run, run_with_server, server, skip, transact,
    wait_for, watch_over_the_zoo, zoo,
};

/// Returns the folder of the stand-in for the reference's headers and library.
fn stand_in() -> PathBuf {
    package().join("tests/openvswitch")
}

/// A library to compile with: the flags for its headers, and its files.
pub(super) struct Foreign {
    pub(super) flags: Vec<String>,
    pub(super) files: Vec<PathBuf>,
    /// The libraries that it needs, which come last on the command line.
    pub(super) libraries: Vec<String>,
}

impl Foreign {
    fn none() -> Foreign {
        Foreign {
            flags: Vec::new(),
            files: Vec::new(),
            libraries: Vec::new(),
        }
    }

    fn stand_in() -> Foreign {
        let headers = stand_in().join("include");
        Foreign {
            flags: vec!["-I".to_owned(), headers.display().to_string()],
            files: vec![stand_in().join("library.c")],
            libraries: Vec::new(),
        }
    }

    /// Returns the reference's library and its folder, if the folder is given.
    pub(super) fn reference() -> Option<(PathBuf, Foreign)> {
        let folder = PathBuf::from(std::env::var_os("CORVID_OPENVSWITCH")?);
        // The reference's sources usually have a semicolon after VLOG_DEFINE_THIS_MODULE, which
        // pedantic compilers reject.
        let mut flags = vec!["-Wno-pedantic".to_owned()];
        for part in ["", "include", "lib"] {
            flags.push("-isystem".to_owned());
            flags.push(folder.join(part).display().to_string());
        }
        let (files, libraries) = needs(&folder.join("lib/libopenvswitch.la"));
        let foreign = Foreign {
            flags,
            files,
            libraries,
        };
        Some((folder, foreign))
    }
}

/// Returns the archive that libtool describes in a file, with the archives and libraries that it
/// needs.
fn needs(description: &Path) -> (Vec<PathBuf>, Vec<String>) {
    let archive = |description: &Path| {
        let name = description.with_extension("a");
        let folder = name.parent().expect("a folder");
        folder.join(".libs").join(name.file_name().expect("a name"))
    };
    let text = fs::read_to_string(description).expect("a built library");
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("dependency_libs="));
    let (mut files, mut libraries) = (vec![archive(description)], Vec::new());
    for word in line
        .expect("its needs")
        .trim_matches('\'')
        .split_whitespace()
    {
        if word.ends_with(".la") {
            files.push(archive(Path::new(word)));
        } else {
            libraries.push(word.to_owned());
        }
    }
    (files, libraries)
}

/// Compiles sources together with another library.
fn compile_with(foreign: &Foreign, sources: &[PathBuf], flags: &[&str], program: &Path) {
    let mut all = vec!["-std=gnu11", "-D_GNU_SOURCE"];
    all.extend(foreign.flags.iter().map(String::as_str));
    all.extend(flags);
    let mut inputs = sources.to_vec();
    inputs.extend(foreign.files.iter().cloned());
    inputs.extend(foreign.libraries.iter().map(PathBuf::from));
    compile("cc", &inputs, &all, program);
}

/// Generates typed code with the prefix `zoorec_` in a folder.
fn generate_annotated(dir: &Path) {
    let tool = binary::bin("ovsdb-idlc");
    let merged = run(Command::new(&tool)
        .arg("annotate")
        .arg(zoo())
        .arg(package().join("tests/zoo.ann")));
    let idl = dir.join("zoorec.json");
    fs::write(&idl, merged.stdout).expect("written");
    for (verb, name) in [
        ("c-idl-header", "zoorec-idl.h"),
        ("c-idl-source", "zoorec-idl.c"),
    ] {
        let made = run(Command::new(&tool).arg(verb).arg(&idl));
        fs::write(dir.join(name), made.stdout).expect("written");
    }
}

/// Writes the code blocks in C of the guide, which are one program, to a file. Returns its path.
fn daemon_of_the_guide(dir: &Path) -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/clients/c-migration.md");
    let guide = fs::read_to_string(path).expect("the guide");
    let blocks = guide.split("```c\n").skip(1);
    let blocks: Vec<&str> = blocks
        .map(|block| block.split("```").next().unwrap_or_default())
        .collect();
    assert!(blocks.len() >= 4, "{}", blocks.len());
    let source = dir.join("keeperd.c");
    fs::write(&source, blocks.join("\n")).expect("written");
    source
}

#[test]
fn rows_contain_the_maps_of_the_other_library() {
    if library().is_none() {
        return;
    }
    let reference = Foreign::reference().map(|(_, foreign)| foreign);
    if reference.is_none() {
        skip("maps of the reference's library in rows: no CORVID_OPENVSWITCH");
    }
    for foreign in [Some(Foreign::stand_in()), reference].iter().flatten() {
        let dir = tempfile::tempdir().expect("a folder");
        generate(dir.path());
        let program = dir.path().join("beside");
        let sources = [
            package().join("tests/beside.c"),
            dir.path().join("zoo-idl.c"),
        ];
        let include = dir.path().to_str().expect("a path");
        let flags = ["-DCORVID_WITH_OPENVSWITCH", "-I", include];
        compile_with(foreign, &sources, &flags, &program);
        run_with_server(&program, "zoo");
    }
}

/// A program in which two kinds of maps could be mixed does not compile or does not link, and the
/// message names the switch.
#[test]
fn maps_of_two_libraries_never_meet() {
    if library().is_none() {
        return;
    }
    let dir = tempfile::tempdir().expect("a folder");
    generate(dir.path());
    let headers = stand_in().join("include");
    let refuse = |name: &str, text: &str, flags: &[&str], expected: &str| {
        let source = dir.path().join(name);
        fs::write(&source, text).expect("written");
        let compiled = Command::new("cc")
            .args(["-std=gnu11", "-Wall"])
            .args(flags)
            .arg("-I")
            .arg(&headers)
            .arg("-I")
            .arg(package().join("include"))
            .arg("-I")
            .arg(dir.path())
            .arg("-o")
            .arg(dir.path().join("refused"))
            .arg(&source)
            .output()
            .expect("a compiler");
        let said = String::from_utf8_lossy(&compiled.stderr);
        assert!(!compiled.status.success(), "{name} was compiled");
        assert!(said.contains(expected), "{expected} is not in\n{said}");
    };
    let rest = "int main(void) { return zoo_idl_class.n_tables == 0; }\n";
    let first = "#include <smap.h>\n#include <corvid-idl-compat.h>\n#include \"zoo-idl.h\"\n";
    let switch = "compile the whole program with -DCORVID_WITH_OPENVSWITCH";
    refuse("before.c", &format!("{first}{rest}"), &[], switch);
    let last = "#include <corvid-idl-compat.h>\n#include <smap.h>\n#include \"zoo-idl.h\"\n";
    refuse("after.c", &format!("{last}{rest}"), &[], "struct smap");
    let order = "#include \"zoo-idl.h\"\n#include <corvid-idl-compat.h>\n";
    refuse(
        "order.c",
        &format!("{order}{rest}"),
        &[],
        "corvid.h is included before corvid-idl-compat.h",
    );
}

/// If the generated source and another file of the program are compiled in different ways, they do
/// not link. Neither do a program and the code of another generator.
#[test]
fn files_with_different_rows_do_not_link() {
    let Some(library) = library() else { return };
    let dir = tempfile::tempdir().expect("a folder");
    generate(dir.path());
    let main = dir.path().join("main.c");
    let text =
        "#include <corvid-idl-compat.h>\n#include \"zoo-idl.h\"\nint main(void) { return 0; }\n";
    fs::write(&main, text).expect("written");
    let code = dir.path().join("zoo-idl.c");
    let foreign = dir.path().join("foreign.c");
    let text = "int zoo_idl_class, zoo_table_classes;\n";
    fs::write(&foreign, text).expect("written");
    let cc = |flag: Option<&str>| {
        let mut command = Command::new("cc");
        command.arg("-std=gnu11").args(flag);
        for include in [
            stand_in().join("include"),
            package().join("include"),
            dir.path().to_owned(),
        ] {
            command.arg("-I").arg(include);
        }
        command
    };
    let switch = Some("-DCORVID_WITH_OPENVSWITCH");
    let (with, without) = (
        "zoo_table_classes_with_openvswitch",
        "zoo_table_classes_of_libcorvid",
    );
    for (of_code, code, of_program, missing) in [
        (None, &code, None, None),
        (switch, &code, switch, None),
        (None, &code, switch, Some(with)),
        (switch, &code, None, Some(without)),
        (None, &foreign, None, Some(without)),
        (None, &foreign, switch, Some(with)),
    ] {
        let object = dir.path().join("code.o");
        run(cc(of_code).arg("-c").arg(code).arg("-o").arg(&object));
        let linked = cc(of_program)
            .arg(&main)
            .arg(&object)
            .arg(stand_in().join("library.c"))
            .arg("-o")
            .arg(dir.path().join("main"))
            .arg("-L")
            .arg(library)
            .args(["-lcorvid", "-lpthread"])
            .output()
            .expect("a compiler");
        let said = String::from_utf8_lossy(&linked.stderr);
        match missing {
            None => assert!(linked.status.success(), "{said}"),
            Some(name) => assert!(!linked.status.success() && said.contains(name), "{said}"),
        }
    }
}

/// Waits until a program has ended.
fn wait_for_end(child: &mut Child) {
    let begun = Instant::now();
    while child.try_wait().expect("a status").is_none() {
        if begun.elapsed() > Duration::from_secs(60) {
            let _ = child.kill();
            panic!("the daemon does not end");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Sends a command to the daemon through its control socket.
fn ask(socket: &Path, command: &str) -> String {
    let mut asked = Command::new(binary::bin("ovs-appctl"));
    let output = run(asked.arg("-T").arg("60").arg("-t").arg(socket).arg(command));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn insert(server: &Server, name: &str) -> String {
    let row = json!({"name": name, "external_ids": ["map", [["home", "north"]]]});
    let result = transact(
        server,
        &[json!({"op": "insert", "table": "Keeper", "row": row})],
    );
    result[0]["uuid"][1].as_str().expect("a UUID").to_owned()
}

/// Waits until the daemon has marked a keeper.
fn wait_for_mark(server: &Server, name: &str) {
    let columns = ["name", "external_ids"];
    wait_for(server, "Keeper", &columns, |rows: &[Value]| {
        let row = rows.iter().find(|row| row["name"] == json!(name));
        let ids = row.and_then(|row| row["external_ids"][1].as_array());
        ids.is_some_and(|ids| {
            ids.contains(&json!(["marked", "yes"])) && ids.contains(&json!(["home", "north"]))
        })
    });
}

/// Lets the daemon of the guide do its work, and ends it through its control socket or with a
/// signal.
fn watch(command: &mut Command, has_control: bool) {
    let server = server();
    let dir = tempfile::tempdir().expect("a folder");
    let socket = dir.path().join("keeperd.ctl");
    command.arg(format!("unix:{}", server.socket().display()));
    command.arg(&socket).stdin(Stdio::null());
    let mut daemon = command.stderr(Stdio::piped()).spawn().expect("started");
    insert(&server, "ann");
    wait_for_mark(&server, "ann");
    // Nothing happens in the database now, so only the control socket wakes the daemon. After that,
    // only the database does.
    if has_control {
        assert!(ask(&socket, "keeperd/list").contains("ann "));
    }
    let uuid = insert(&server, "bob");
    wait_for_mark(&server, "bob");
    if has_control {
        let begun = Instant::now();
        let expected = format!("bob {uuid} marked");
        loop {
            let said = ask(&socket, "keeperd/list");
            if said.contains(&expected) {
                break;
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "{said}");
        }
        assert_eq!(ask(&socket, "exit"), "bye\n");
    } else {
        let pid = i32::try_from(daemon.id()).expect("a number");
        run(Command::new("kill").arg(pid.to_string()));
    }
    wait_for_end(&mut daemon);
    let output = daemon.wait_with_output().expect("an end");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    for part in [
        "keeper ann has come",
        "keeper bob has come",
        "keeperd leaves",
    ] {
        assert!(said.contains(part), "{part} is not in\n{said}");
    }
}

/// Compiles the daemon of the guide with the generated code in a folder.
fn build_daemon(dir: &Path, foreign: &Foreign, flags: &[&str], has_control: bool) -> PathBuf {
    let program = dir.join("keeperd");
    let sources = [daemon_of_the_guide(dir), dir.join("zoorec-idl.c")];
    let mut all = vec!["-I", dir.to_str().expect("a path")];
    if has_control {
        all.push("-DHAVE_UNIXCTL");
    }
    all.extend(flags);
    compile_with(foreign, &sources, &all, &program);
    program
}

/// Generates typed code with the generator of the reference.
fn generate_by_reference(folder: &Path, dir: &Path) {
    let idl = dir.join("zoorec.json");
    let tool = |words: &[&str]| {
        let mut command = Command::new("python3");
        command.env("PYTHONPATH", folder.join("python"));
        command.arg(folder.join("ovsdb/ovsdb-idlc")).args(words);
        command
    };
    let merged = run(tool(&["annotate"])
        .arg(zoo())
        .arg(package().join("tests/zoo.ann")));
    fs::write(&idl, merged.stdout).expect("written");
    for suffix in ["h", "c"] {
        let verb = if suffix == "h" {
            "c-idl-header"
        } else {
            "c-idl-source"
        };
        let made = run(tool(&[verb]).arg(&idl));
        fs::write(dir.join(format!("zoorec-idl.{suffix}")), made.stdout).expect("written");
    }
}

/// Compiles the daemon of the guide with our library and runs it, also under valgrind.
fn check_daemon(foreign: &Foreign, flags: &[&str], has_control: bool) {
    let dir = tempfile::tempdir().expect("a folder");
    generate_annotated(dir.path());
    let mut all = vec!["-DUSE_CORVID"];
    all.extend(flags);
    let program = build_daemon(dir.path(), foreign, &all, has_control);
    watch(&mut Command::new(&program), has_control);
    if has("valgrind") {
        let mut command = Command::new("valgrind");
        command.args(["--quiet", "--error-exitcode=9", "--leak-check=full"]);
        command.args(["--errors-for-leak-kinds=definite,indirect"]);
        watch(command.arg(&program), has_control);
    }
}

#[test]
fn the_daemon_of_the_guide_runs_alone() {
    if library().is_some() {
        check_daemon(&Foreign::none(), &[], false);
    }
}

/// Without a switch, the daemon uses the poll loop of the library that it is linked with.
#[test]
fn the_daemon_of_the_guide_waits_in_the_loop_that_is_linked() {
    if library().is_some() {
        check_daemon(&Foreign::stand_in(), &[], true);
    }
}

#[test]
fn the_daemon_of_the_guide_uses_maps_log_and_loop_of_the_other_library() {
    if library().is_some() {
        check_daemon(&Foreign::stand_in(), &["-DCORVID_WITH_OPENVSWITCH"], true);
    }
}

/// The command line names the header, and the source keeps its includes.
#[test]
fn a_source_compiles_as_it_is() {
    if library().is_none() {
        return;
    }
    let dir = tempfile::tempdir().expect("a folder");
    generate_annotated(dir.path());
    let flags = [
        "-DCORVID_WITH_OPENVSWITCH",
        "-include",
        "corvid-idl-compat.h",
    ];
    let program = build_daemon(dir.path(), &Foreign::stand_in(), &flags, true);
    watch(&mut Command::new(&program), true);
}

#[test]
fn the_daemon_of_the_guide_runs_with_the_library_of_the_reference() {
    if library().is_none() {
        return;
    }
    let Some((folder, foreign)) = Foreign::reference() else {
        skip(
            "the guide's daemon with the reference's library: CORVID_OPENVSWITCH is not the folder of its built sources",
        );
        return;
    };
    let dir = tempfile::tempdir().expect("a folder");
    generate_by_reference(&folder, dir.path());
    let program = build_daemon(dir.path(), &foreign, &[], true);
    watch(&mut Command::new(&program), true);
    check_daemon(&foreign, &[], true);
    check_daemon(&foreign, &["-DCORVID_WITH_OPENVSWITCH"], true);
}

/// `examples/warden.c`: the same source works with the reference's client library and with ours.
#[test]
fn the_warden_runs_with_both_libraries() {
    if library().is_none() {
        return;
    }
    let Some((folder, foreign)) = Foreign::reference() else {
        skip("the warden with the reference's library: no CORVID_OPENVSWITCH");
        return;
    };
    for flags in [
        &[][..],
        &["-DUSE_CORVID"],
        &["-DUSE_CORVID", "-DCORVID_WITH_OPENVSWITCH"],
    ] {
        let dir = tempfile::tempdir().expect("a folder");
        if flags.is_empty() {
            generate_by_reference(&folder, dir.path());
        } else {
            generate_annotated(dir.path());
        }
        let program = dir.path().join("warden");
        let sources = [
            package().join("examples/warden.c"),
            dir.path().join("zoorec-idl.c"),
        ];
        let mut all = vec!["-I", dir.path().to_str().expect("a path")];
        all.extend(flags);
        compile_with(&foreign, &sources, &all, &program);
        let server = server();
        let mut command = Command::new(&program);
        command.arg(format!("unix:{}", server.socket().display()));
        watch_over_the_zoo(&mut command, &server);
    }
}
