//! Generates typed rows: of the tables that the programs here use, and of the schemas that the system's packages bring, where they are.

use std::path::{Path, PathBuf};
use std::{env, fs};

/// Schemas of packages, with the names that tests know them by.
const PACKAGED: [(&str, &str); 4] = [
    ("has_northbound", "/usr/share/ovn/ovn-nb.ovsschema"),
    ("has_southbound", "/usr/share/ovn/ovn-sb.ovsschema"),
    ("has_vswitch", "/usr/share/openvswitch/vswitch.ovsschema"),
    ("has_vtep", "/usr/share/openvswitch/vtep.ovsschema"),
];

fn main() {
    let folder = PathBuf::from(env::var_os("OUT_DIR").expect("cargo gives one"));
    generate(
        Path::new("schemas/northbound.ovsschema"),
        &folder.join("example.rs"),
    );
    for (name, path) in PACKAGED {
        println!("cargo:rustc-check-cfg=cfg({name})");
        if Path::new(path).is_file() {
            println!("cargo:rustc-cfg={name}");
            generate(Path::new(path), &folder.join(name).with_extension("rs"));
        }
    }
}

fn generate(schema: &Path, code: &Path) {
    println!("cargo:rerun-if-changed={}", schema.display());
    let text = fs::read_to_string(schema).expect("it is there");
    let generated =
        corvid_idlc::rust(&text).unwrap_or_else(|error| panic!("{}: {error}", schema.display()));
    fs::write(code, generated).expect("written");
}
