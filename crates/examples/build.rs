//! Generates typed rows for the tables that the examples use, for the database of the tutorial, and
//! for the schemas of installed packages. Also makes one function of all code in the tutorial, and
//! one of the example on the front page of `corvid`.

use std::path::{Path, PathBuf};
use std::{env, fs};

/// The `cfg` flag of each packaged schema, and the places where the schema may be.
/// `tests/setup/vtep.sh` fetches the schema of the last package without its package.
const PACKAGED: [(&str, &[&str]); 4] = [
    ("has_northbound", &["/usr/share/ovn/ovn-nb.ovsschema"]),
    ("has_southbound", &["/usr/share/ovn/ovn-sb.ovsschema"]),
    ("has_vswitch", &["/usr/share/openvswitch/vswitch.ovsschema"]),
    (
        "has_vtep",
        &[
            "/usr/share/openvswitch/vtep.ovsschema",
            "../../.venv/share/vtep.ovsschema",
        ],
    ),
];

/// The database that `make run` serves.
const INVENTORY: &str = "../server/src/demo/inventory.ovsschema";

fn main() {
    let folder = PathBuf::from(env::var_os("OUT_DIR").expect("cargo gives one"));
    generate(
        Path::new("schemas/northbound.ovsschema"),
        &folder.join("example.rs"),
    );
    generate(Path::new(INVENTORY), &folder.join("inventory.rs"));
    chain(
        Path::new("../../docs/clients/rust.md"),
        &folder.join("tutorial.rs"),
    );
    front_page(
        Path::new("../corvid/src/lib.rs"),
        &folder.join("front_page.rs"),
    );
    for (name, places) in PACKAGED {
        println!("cargo:rustc-check-cfg=cfg({name})");
        let mut places = places.iter().map(Path::new);
        if let Some(schema) = places.find(|place| place.is_file()) {
            println!("cargo:rustc-cfg={name}");
            generate(schema, &folder.join(name).with_extension("rs"));
        }
    }
}

/// Writes a function that takes a remote and runs all code blocks of a document, in their order.
fn chain(document: &Path, code: &Path) {
    println!("cargo:rerun-if-changed={}", document.display());
    let text = fs::read_to_string(document).expect("it is there");
    let blocks = text.split("```rust\n").skip(1);
    let blocks: String = blocks.filter_map(|rest| rest.split("```").next()).collect();
    let function = format!(
        "#[allow(clippy::redundant_closure_for_method_calls)] // Who learns reads closures more easily.\nfn tutorial(remote: &str) -> Result<(), Box<dyn std::error::Error>> {{\n{blocks}Ok(())\n}}\n"
    );
    fs::write(code, function).expect("written");
}

/// Writes a function that runs the first example of a crate's documentation. The function's remote
/// replaces the one in the text.
fn front_page(source: &Path, code: &Path) {
    println!("cargo:rerun-if-changed={}", source.display());
    let text = fs::read_to_string(source).expect("it is there");
    let (_, example) = text.split_once("//! ```no_run\n").expect("an example");
    let (example, _) = example.split_once("//! ```\n").expect("its end");
    let shown: String = example
        .lines()
        .map(|line| line.strip_prefix("//!").expect("documentation"))
        .map(|line| line.strip_prefix(' ').unwrap_or(line))
        .filter(|line| !line.starts_with("# "))
        .map(|line| format!("{line}\n"))
        .collect();
    let (before, rest) = shown.split_once("class, \"").expect("a remote");
    let (_, after) = rest.split_once("\")").expect("its end");
    let function = format!(
        "fn front_page(remote: &str) -> Result<(), Box<dyn std::error::Error>> {{\n{before}class, remote){after}Ok(())\n}}\n"
    );
    fs::write(code, function).expect("written");
}

fn generate(schema: &Path, code: &Path) {
    println!("cargo:rerun-if-changed={}", schema.display());
    let text = fs::read_to_string(schema).expect("it is there");
    let generated =
        corvid_idlc::rust(&text).unwrap_or_else(|error| panic!("{}: {error}", schema.display()));
    fs::write(code, generated).expect("written");
}
