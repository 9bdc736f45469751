//! The databases of the demo: what they contain, and their files.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::programs::{about, sibling, tool};

/// The schema of `Inventory`, a small inventory of a network.
pub(crate) const SCHEMA: &str = include_str!("../../demo/inventory.ovsschema");
/// The rows of `Inventory`.
pub(crate) const ROWS: &str = include_str!("../../demo/rows.json");

/// A part of OVN's northbound schema, for machines without its packages.
const NETWORK_SCHEMA: &str = include_str!("../../demo/network.ovsschema");
/// A small logical network.
const NETWORK: &str = include_str!("../../demo/network.json");

/// A database that the demo creates.
struct Source {
    name: &'static str,
    /// The schema that a package has installed.
    installed: Option<&'static str>,
    /// The schema otherwise.
    built_in: Option<&'static str>,
    /// The first transaction.
    rows: Option<&'static str>,
}

const SOURCES: [Source; 4] = [
    Source {
        name: "Inventory",
        installed: None,
        built_in: Some(SCHEMA),
        rows: Some(ROWS),
    },
    Source {
        name: "Open_vSwitch",
        installed: Some("/usr/share/openvswitch/vswitch.ovsschema"),
        built_in: None,
        rows: None,
    },
    Source {
        name: "OVN_Northbound",
        installed: Some("/usr/share/ovn/ovn-nb.ovsschema"),
        built_in: Some(NETWORK_SCHEMA),
        rows: Some(NETWORK),
    },
    Source {
        name: "OVN_Southbound",
        installed: Some("/usr/share/ovn/ovn-sb.ovsschema"),
        built_in: None,
        rows: None,
    },
];

impl Source {
    /// The file of the schema, which is written if it is built in. `None`: there is no schema.
    fn schema(&self, directory: &Path) -> Result<Option<PathBuf>, String> {
        if let Some(path) = self
            .installed
            .map(PathBuf::from)
            .filter(|path| path.exists())
        {
            return Ok(Some(path));
        }
        let Some(text) = self.built_in else {
            return Ok(None);
        };
        let path = directory.join(format!("{}.ovsschema", self.name.to_lowercase()));
        fs::write(&path, text).map_err(|error| about(&path, &error))?;
        Ok(Some(path))
    }
}

/// Whether the schemas of a program's package are installed.
pub(crate) fn are_installed(name: &str) -> bool {
    let source = SOURCES.iter().find(|source| source.name == name);
    source
        .and_then(|source| source.installed)
        .is_some_and(|path| Path::new(path).exists())
}

/// The file of a database.
pub(crate) fn file(directory: &Path, name: &str) -> PathBuf {
    directory.join(format!("{name}.db"))
}

/// Creates the missing database files, and returns the names of all databases.
///
/// A file is created in a scratch directory and renamed when it is complete, so an interrupted
/// start leaves no incomplete file.
pub(crate) fn make_missing(directory: &Path) -> Result<Vec<&'static str>, String> {
    let scratch = directory.join("new");
    let mut names = Vec::new();
    for source in &SOURCES {
        let Some(schema) = source.schema(directory)? else {
            continue;
        };
        names.push(source.name);
        let path = file(directory, source.name);
        if path.exists() {
            continue;
        }
        let _ = fs::remove_dir_all(&scratch);
        fs::create_dir(&scratch).map_err(|error| about(&scratch, &error))?;
        let made = file(&scratch, source.name);
        let program = sibling("ovsdb-tool");
        tool(Command::new(&program).arg("create").args([&made, &schema]))?;
        if let Some(rows) = source.rows {
            tool(Command::new(&program).arg("transact").arg(&made).arg(rows))?;
        }
        fs::rename(&made, &path).map_err(|error| about(&path, &error))?;
        fs::remove_dir_all(&scratch).map_err(|error| about(&scratch, &error))?;
    }
    Ok(names)
}
