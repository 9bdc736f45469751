//! The library for C in the form in which it is installed: the shared library, the archive,
//! headers, a pkg-config file and a manual page. They are installed below a prefix, or packed as
//! two Debian packages.
//!
//! The manual page is made from the header, so every function is on it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use corvid_shell::output;

use roff::{Roff, bold, roman};

use crate::Outcome;
use crate::deb::{self, Inputs};
use crate::tree::{Tree, output, run};

/// The name of the shared library. It changes when programs must be linked again.
const SONAME: &str = "libcorvid.so.0";

const HEADERS: [&str; 16] = [
    "corvid.h",
    "corvid-idl-compat.h",
    "corvid-compat-idl.h",
    "corvid-compat-idl-session.h",
    "corvid-compat-memory.h",
    "corvid-compat-ovsdb-data.h",
    "corvid-compat-ovsdb-data-own.h",
    "corvid-compat-ovsdb-text-own.h",
    "corvid-compat-poll-loop.h",
    "corvid-compat-smap.h",
    "corvid-compat-stream-ssl.h",
    "corvid-compat-types.h",
    "corvid-compat-uuid.h",
    "corvid-compat-vlog.h",
    "corvid-compat-vlog-macros.h",
    "corvid-compat-vlog-own.h",
];

/// Installs everything below a prefix.
pub(crate) fn install(dir: &Path, archive: &Path, source: &Path) -> Outcome {
    let tree = Tree::new(dir.to_owned())?;
    let prefix = std::path::absolute(dir)?;
    add_shared(&tree, "lib", archive, source)?;
    add_development(
        &tree,
        "lib",
        archive,
        source,
        "",
        &prefix.display().to_string(),
    )?;
    symlink(SONAME, tree.root().join("lib/libcorvid.so"))?;
    let page = page(&header(source)?);
    tree.write("share/man/man3/libcorvid.3", 0o644, page.as_bytes())?;
    output::report(dir.display());
    Ok(())
}

/// Builds `libcorvid0` and `libcorvid-dev`.
pub(crate) fn packages(
    inputs: &Inputs,
    archive: &Path,
    version: &str,
    architecture: &str,
) -> Outcome {
    let triplet = output(Command::new("cc").arg("-print-multiarch"))?;
    let libraries = format!("usr/lib/{}", triplet.trim());
    let tree = Tree::new(inputs.dir.join("tree"))?;
    let library = add_shared(&tree, &libraries, archive, &inputs.source)?;
    add_copyright(&tree, "libcorvid0", &inputs.source)?;
    let c_library = deb::library_version(&fs::read(library)?);
    let c_library = c_library.ok_or("the library names no version of the C library")?;
    let shlibs = format!("libcorvid 0 libcorvid0 (>= {version})\n");
    tree.write("DEBIAN/shlibs", 0o644, shlibs.as_bytes())?;
    tree.write("DEBIAN/triggers", 0o644, b"activate-noawait ldconfig\n")?;
    let common = format!(
        "Version: {version}\nArchitecture: {architecture}\nMulti-Arch: same\nSource: corvid\nMaintainer: Corvid maintainers <maintainers@corvid.invalid>\nPriority: optional\n"
    );
    let control = format!(
        "Package: libcorvid0\n{common}Section: libs\nDepends: libc6 (>= {}.{}), libgcc-s1\nDescription: client library for OVSDB, the database of Open vSwitch and OVN\n \
         Keeps a replica of the chosen tables up to date, with transactions, indexes\n and tracked changes.\n",
        c_library.0, c_library.1
    );
    pack(
        &tree,
        inputs,
        &control,
        &format!("libcorvid0_{version}_{architecture}.deb"),
        None,
    )?;

    let tree = Tree::new(inputs.dir.join("tree"))?;
    add_development(&tree, &libraries, archive, &inputs.source, "usr/", "/usr")?;
    let page = page(&header(&inputs.source)?);
    tree.write_compressed("usr/share/man/man3/libcorvid.3", page.as_bytes())?;
    add_copyright(&tree, "libcorvid-dev", &inputs.source)?;
    let link = tree.root().join(&libraries).join("libcorvid.so");
    let control = format!(
        "Package: libcorvid-dev\n{common}Section: libdevel\nDepends: libcorvid0 (= {version})\nSuggests: corvid\nDescription: client library for OVSDB: headers and archive\n \
         Headers, the archive and the manual page of libcorvid. The program ovsdb-idlc of\n the package corvid makes typed code of schemas for it.\n"
    );
    pack(
        &tree,
        inputs,
        &control,
        &format!("libcorvid-dev_{version}_{architecture}.deb"),
        Some(&link),
    )
}

/// Packs a tree. The optional symbolic link to the shared library has no checksum, because its
/// target is in another package.
fn pack(tree: &Tree, inputs: &Inputs, control: &str, name: &str, link: Option<&Path>) -> Outcome {
    let sums = deb::checksums(tree)?;
    let size_kib = deb::size(tree)?.div_ceil(1024);
    let control = control.replacen(
        "Priority: optional\n",
        &format!("Priority: optional\nInstalled-Size: {size_kib}\n"),
        1,
    );
    tree.write("DEBIAN/control", 0o644, control.as_bytes())?;
    tree.write("DEBIAN/md5sums", 0o644, sums.as_bytes())?;
    if let Some(link) = link {
        symlink(SONAME, link)?;
    }
    deb::pack(tree, inputs, name)
}

/// Links the shared library and adds it to the tree. Returns its path.
fn add_shared(tree: &Tree, directory: &str, archive: &Path, source: &Path) -> Outcome<PathBuf> {
    let path = format!("{directory}/{SONAME}");
    let place = tree.write(&path, 0o644, b"")?;
    let folder = place.parent().ok_or("no folder")?;
    run(Command::new(source.join("crates/capi/link.sh"))
        .arg(archive)
        .arg(folder))?;
    // The link without a version is only needed to compile programs, so it belongs to the package
    // with the headers.
    fs::remove_file(folder.join("libcorvid.so"))?;
    // The names of functions are kept for backtraces.
    run(Command::new("strip").arg("--strip-debug").arg(&place))?;
    let made = fs::read(&place)?;
    tree.write(&path, 0o644, &made)
}

fn add_development(
    tree: &Tree,
    libraries: &str,
    archive: &Path,
    source: &Path,
    top: &str,
    prefix: &str,
) -> Outcome {
    let place = tree.write(
        &format!("{libraries}/libcorvid.a"),
        0o644,
        &fs::read(archive)?,
    )?;
    run(Command::new("strip").arg("--strip-debug").arg(&place))?;
    for name in HEADERS {
        let text = fs::read(source.join("crates/capi/include").join(name))?;
        tree.write(&format!("{top}include/{name}"), 0o644, &text)?;
    }
    let below = libraries.strip_prefix(top).unwrap_or(libraries);
    let version = env!("CARGO_PKG_VERSION");
    let text = format!(
        "prefix={prefix}\nlibdir=${{prefix}}/{below}\nincludedir=${{prefix}}/include\n\n\
         Name: libcorvid\nDescription: client library for OVSDB, the database of Open vSwitch and OVN\nVersion: {version}\n\
         Cflags: -I${{includedir}}\nLibs: -L${{libdir}} -lcorvid\nLibs.private: -lgcc_s -lutil -lrt -lpthread -lm -ldl\n"
    );
    tree.write(
        &format!("{libraries}/pkgconfig/libcorvid.pc"),
        0o644,
        text.as_bytes(),
    )?;
    Ok(())
}

fn add_copyright(tree: &Tree, package: &str, source: &Path) -> Outcome {
    let copyright = fs::read(source.join("packaging/debian/copyright"))?;
    tree.write(
        &format!("usr/share/doc/{package}/copyright"),
        0o644,
        &copyright,
    )?;
    let changelog = fs::read(source.join("packaging/debian/changelog"))?;
    tree.write_compressed(
        &format!("usr/share/doc/{package}/changelog.Debian"),
        &changelog,
    )
}

fn header(source: &Path) -> Outcome<String> {
    Ok(fs::read_to_string(
        source.join("crates/capi/include/corvid.h"),
    )?)
}

/// Returns the functions of the header: the declaration of each in one line, and the comment above
/// it.
fn functions(header: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let (mut text, mut declaration) = (Vec::new(), String::new());
    for line in header.lines() {
        if let Some(comment) = line.strip_prefix("//") {
            text.push(comment.trim());
            continue;
        }
        let begins = !line.starts_with([' ', '#', '}', '/', '*'])
            && line.contains("corvid_")
            && line.contains('(');
        if begins || !declaration.is_empty() {
            declaration += line.trim();
            declaration.push(' ');
            if line.ends_with(';') {
                let whole = std::mem::take(&mut declaration);
                found.push((whole.trim().to_owned(), text.join(" ")));
            }
        }
        if declaration.is_empty() {
            text.clear();
        }
    }
    found
}

/// Returns the manual page.
fn page(header: &str) -> String {
    let mut page = Roff::new();
    let source = concat!("Corvid ", env!("CARGO_PKG_VERSION"));
    page.control(
        "TH",
        ["LIBCORVID", "3", "", source, "Open vSwitch databases"],
    );
    page.control("SH", ["NAME"]);
    page.text([roman(
        "libcorvid - client library for OVSDB, the database of Open vSwitch and OVN",
    )]);
    page.control("SH", ["SYNOPSIS"]);
    page.text([bold("#include <corvid.h>")]);
    page.control("PP", []);
    page.text([roman(
        "cc program.c $(pkg-config --cflags --libs libcorvid)",
    )]);
    page.control("SH", ["DESCRIPTION"]);
    for paragraph in DESCRIPTION.split("\n\n") {
        page.control("PP", []);
        page.text([roman(paragraph.replace('\n', " "))]);
    }
    page.control("SH", ["FUNCTIONS"]);
    for (declaration, text) in functions(header) {
        page.control("TP", []);
        page.text([bold(declaration)]);
        page.text([roman(text.replace('`', ""))]);
    }
    page.control("SH", ["SEE ALSO"]);
    page.text([
        bold("ovsdb-idlc"),
        roman("(1), "),
        bold("ovsdb-server"),
        roman("(1), docs/clients/c.md"),
    ]);
    page.to_roff()
}

const DESCRIPTION: &str = "\
A client of OVSDB does not query. It names the tables and columns that it needs. The server sends their rows once, and every change after that, so the client holds a replica and
reads from memory. To change something, the client opens a transaction, changes rows of the replica, and commits.

A program makes a corvid_config of a schema, chooses columns, and makes a corvid_client of it. Its main loop calls corvid_client_run, does its own work, and waits with poll(2) for
the events that corvid_client_wait tells.

Handles are numbers that the library looks up. A handle that is null, was freed or is of another type is reported as CORVID_ERR_HANDLE. The other pointers must point to memory of the
stated size. A result other than CORVID_OK means that nothing has changed; corvid_error_text says more. Misuse is logged too. The program takes log messages by corvid_log_next.

Any thread may call any function; calls for one client wait for one another. The library calls no function of the program
but those that a corvid_idl_class names for maps.

The functions whose names begin with corvid_idl are for code that ovsdb-idlc makes of a schema: structs for rows, as the client library of Open vSwitch has them. One thread at a time
uses such a replica, because the program reads the structs without a lock.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_of_the_header_is_on_the_page() {
        let header = "// Frees\n// it.\nenum corvid_error corvid_a_free(corvid_a *a);\n\n// Long.\nvoid corvid_b(int x,\n              int y);\ntypedef struct corvid_c {\n  int corvid_x;\n} corvid_c;\n";
        let found = functions(header);
        assert_eq!(found.len(), 2, "{found:?}");
        assert_eq!(found[0].1, "Frees it.");
        assert_eq!(found[1].0, "void corvid_b(int x, int y);");
        let page = page(header);
        assert!(
            page.contains("corvid_a_free") && page.contains("corvid_b"),
            "{page}"
        );
    }
}
