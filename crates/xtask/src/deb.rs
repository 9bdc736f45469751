//! The Debian package: programs, pages, completions and units, and scripts that divert the files
//! that the package replaces. The packages of the library for C are in `c_library`.
//!
//! `dpkg-deb`, which every Debian system has, builds it from a tree without a rules file. Each
//! diverted path is a file of this package. The list of diversions is made here and inserted into
//! the maintainer scripts, so the two cannot differ. It consists of `PATH=DIVERTED`, where DIVERTED
//! is the new path of the other package's file.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use corvid_shell::output;

use crate::tree::{Tree, files_below, output, run};
use crate::{Outcome, c_library, completion, page, programs};

/// The inputs of a package.
pub(crate) struct Inputs {
    /// The folder in which the package is made.
    pub(crate) dir: PathBuf,
    /// The folder that contains the programs.
    pub(crate) bin_dir: PathBuf,
    /// The root of the repository.
    pub(crate) source: PathBuf,
    /// Whether to compress fast instead of well.
    pub(crate) fast: bool,
    /// The archive of the library for C, if its packages are made, too.
    pub(crate) library: Option<PathBuf>,
}

const SCRIPTS: [&str; 4] = ["preinst", "postinst", "prerm", "postrm"];

/// The units. None is enabled by the installation.
const UNITS: [&str; 2] = ["corvid-console.service", "corvid-ovsdb-server@.service"];

/// The files and folders of the repository that are in the package. They are below
/// [`DOCUMENTS_DIR`] at the same relative paths, so that links between them work.
const DOCUMENTS: [&str; 10] = [
    "README.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "LICENSE",
    "RELEASING.md",
    "ROADMAP.md",
    "SECURITY.md",
    "docs",
    "contrib",
];

/// The folder of the installed documents.
const DOCUMENTS_DIR: &str = "usr/share/doc/corvid";

/// Builds `corvid_VERSION_ARCH.deb` and prints its path.
pub(crate) fn build(inputs: &Inputs) -> Outcome {
    fs::create_dir_all(&inputs.dir)?;
    let tree = Tree::new(inputs.dir.join("tree"))?;
    let diverted = add_programs(&tree, inputs)?;
    add_completions(&tree, &inputs.dir)?;
    add_documents(&tree, &inputs.source)?;
    for unit in UNITS {
        let text = fs::read(inputs.source.join("packaging/systemd").join(unit))?;
        tree.write(&format!("usr/lib/systemd/system/{unit}"), 0o644, &text)?;
    }

    let sums = checksums(&tree)?;
    let size_kib = size(&tree)?.div_ceil(1024);
    let version = format!("{}-1", env!("CARGO_PKG_VERSION"));
    let architecture = output(Command::new("dpkg").arg("--print-architecture"))?;
    let control = control(&version, &architecture, size_kib, &inputs.bin_dir)?;
    tree.write("DEBIAN/control", 0o644, control.as_bytes())?;
    tree.write("DEBIAN/md5sums", 0o644, sums.as_bytes())?;
    let scripts = inputs.source.join("packaging/debian");
    for script in SCRIPTS {
        let text = fs::read_to_string(scripts.join(script))?;
        let text = text.replace("@DIVERTED@", &diverted.join(" "));
        tree.write(&format!("DEBIAN/{script}"), 0o755, text.as_bytes())?;
    }

    pack(
        &tree,
        inputs,
        &format!("corvid_{version}_{architecture}.deb"),
    )?;
    match &inputs.library {
        Some(archive) => c_library::packages(inputs, archive, &version, &architecture),
        None => Ok(()),
    }
}

/// Makes a package from a tree that already contains the control files, prints its path and removes
/// the tree.
pub(crate) fn pack(tree: &Tree, inputs: &Inputs, name: &str) -> Outcome {
    let package = inputs.dir.join(name);
    let level = if inputs.fast { "-z1" } else { "-z6" };
    run(Command::new("dpkg-deb")
        .args(["--root-owner-group", level, "--build"])
        .arg(tree.root())
        .arg(&package)
        .stdout(std::process::Stdio::null()))?;
    fs::remove_dir_all(tree.root())?;
    output::report(package.display());
    Ok(())
}

/// Adds the programs and their pages. Returns the diversions: packages of Open vSwitch contain the
/// same paths.
fn add_programs(tree: &Tree, inputs: &Inputs) -> Outcome<Vec<String>> {
    let mut diverted = Vec::new();
    for program in programs::all() {
        let name = program.manual.name;
        let binary = fs::read(inputs.bin_dir.join(name))
            .map_err(|error| format!("{name} in {}: {error}", inputs.bin_dir.display()))?;
        let path = format!("{}/{name}", program.directory);
        let place = tree.write(&path, 0o755, &binary)?;
        // Symbols are kept for backtraces. Line tables are removed, because they would be the
        // largest part of the package.
        run(Command::new("strip").arg("--strip-debug").arg(place))?;
        let page = format!("usr/share/man/{}", program.page());
        tree.write_compressed(&page, page::text(&program.manual).as_bytes())?;
        if program.replaces_another {
            diverted.push(format!("/{path}=/{path}.openvswitch"));
            diverted.push(format!("/{page}.gz=/{}", diverted_page(&page)));
        }
    }
    Ok(diverted)
}

/// Returns the path to which the page of another package is diverted. `man` warns about files whose
/// names do not end with a section, so the suffix is put before the section.
/// `man ovsdb-server.openvswitch` shows that page.
fn diverted_page(path: &str) -> String {
    let (name, section) = path.rsplit_once('.').unwrap_or((path, ""));
    format!("{name}.openvswitch.{section}.gz")
}

fn add_completions(tree: &Tree, dir: &Path) -> Outcome {
    let made = Tree::new(dir.join("completions"))?;
    completion::write_all(made.root())?;
    for file in made.files()? {
        let place = file.strip_prefix(made.root())?;
        let path = format!("usr/share/{}", place.display());
        tree.write(&path, 0o644, &fs::read(&file)?)?;
    }
    Ok(fs::remove_dir_all(made.root())?)
}

fn add_documents(tree: &Tree, source: &Path) -> Outcome {
    for name in DOCUMENTS {
        for file in files_below(&source.join(name))? {
            let path = file.strip_prefix(source)?;
            let path = format!("{DOCUMENTS_DIR}/{}", path.display());
            // Documents are not compressed, so that links between them work.
            tree.write(&path, 0o644, &fs::read(&file)?)?;
        }
    }
    let copyright = fs::read(source.join("packaging/debian/copyright"))?;
    tree.write(&format!("{DOCUMENTS_DIR}/copyright"), 0o644, &copyright)?;
    let changelog = fs::read(source.join("packaging/debian/changelog"))?;
    tree.write_compressed(&format!("{DOCUMENTS_DIR}/changelog.Debian"), &changelog)
}

/// Returns the lines of `md5sums`.
pub(crate) fn checksums(tree: &Tree) -> Outcome<String> {
    let mut names = Vec::new();
    for file in tree.files()? {
        names.push(file.strip_prefix(tree.root())?.to_owned());
    }
    let sums = output(Command::new("md5sum").args(names).current_dir(tree.root()))?;
    Ok(sums + "\n")
}

/// Returns the sum of the sizes of all files, in bytes.
pub(crate) fn size(tree: &Tree) -> Outcome<u64> {
    let mut total = 0;
    for file in tree.files()? {
        total += file.metadata()?.len();
    }
    Ok(total)
}

fn control(version: &str, architecture: &str, size_kib: u64, bin_dir: &Path) -> Outcome<String> {
    let library = library_version(&fs::read(bin_dir.join("ovsdb-server"))?)
        .ok_or("ovsdb-server names no version of the C library")?;
    let mut text = String::new();
    write!(
        text,
        "\
Package: corvid
Version: {version}
Architecture: {architecture}
Maintainer: Corvid maintainers <maintainers@corvid.invalid>
Installed-Size: {size_kib}
Depends: libc6 (>= {}.{}), libgcc-s1
Enhances: openvswitch-common, ovn-central
Section: net
Priority: optional
Description: OVSDB server and tools that stand in for those of Open vSwitch
 Serves the databases of Open vSwitch and OVN, speaks the same protocol, reads
 and writes the same files, and takes the same options and control commands.
 .
 While this package is installed, ovsdb-server, ovsdb-client, ovsdb-tool and
 ovs-appctl are its own; those of the packages of Open vSwitch are kept beside
 them under the suffix .openvswitch and come back when it is removed.
 .
 corvid reads and changes any database from the command line or a shell,
 corvid-console shows databases in a browser, and ovsdb-idlc makes typed Rust,
 Python and C of schemas, for clients.
",
        library.0, library.1
    )?;
    Ok(text)
}

/// Returns the newest version of the C library that a program refers to by its symbols.
pub(crate) fn library_version(program: &[u8]) -> Option<(u32, u32)> {
    const MARK: &[u8] = b"GLIBC_";
    let number = |bytes: &[u8]| -> Option<u32> { std::str::from_utf8(bytes).ok()?.parse().ok() };
    program
        .windows(MARK.len())
        .enumerate()
        .filter(|(_, window)| *window == MARK)
        .filter_map(|(at, _)| {
            let rest = &program[at + MARK.len()..];
            let end = rest.iter().position(|&byte| byte == 0)?;
            let mut parts = rest[..end].split(|&byte| byte == b'.');
            Some((number(parts.next()?)?, number(parts.next()?)?))
        })
        .max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newest_version_is_found() {
        let program = b"..GLIBC_2.9\0GLIBC_2.34\0GLIBC_2.3.4\0GLIBC_PRIVATE\0..";
        assert_eq!(library_version(program), Some((2, 34)));
        assert_eq!(library_version(b"nothing"), None);
    }

    #[test]
    fn diverted_pages_are_names_of_pages() {
        assert_eq!(
            diverted_page("usr/share/man/man8/ovs-appctl.8"),
            "usr/share/man/man8/ovs-appctl.openvswitch.8.gz"
        );
    }
}
