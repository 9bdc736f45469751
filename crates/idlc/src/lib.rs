//! Generates typed Rust, Python and C for the tables of a database schema.
//!
//! The input is a schema as JSON text, with or without annotations. In Rust it becomes one module,
//! with a handle type for the rows of each table, a constant for each column, and an enum for each
//! column that lists its values. The module uses `corvid::typed`. The generated text is meant to be
//! read.
//!
//! ```
//! let schema = r#"{"name":"Zoo","version":"1.0.0","tables":{"Keeper":{"isRoot":true,"columns":{
//!     "name":{"type":"string"},"mood":{"type":{"key":{"type":"string","enum":["set",["good","bad"]]}}}}}}}"#;
//! let code = corvid_idlc::rust(schema)?;
//! assert!(code.contains("pub mod zoo {") && code.contains("pub struct Keeper(RowId);"));
//! assert!(code.contains("pub fn name(self, idl: &Idl) -> Str {"));
//! assert!(code.contains("pub enum KeeperMood {"));
//! # Ok::<(), corvid_idlc::Error>(())
//! ```
//!
//! The program `ovsdb-idlc` and build scripts call this crate. The generators take text and return
//! text, and do no input or output. The feature `program` adds the program's command line, which
//! the generator of manual pages needs.

mod annotation;
mod c;
mod element;
mod error;
#[cfg(feature = "program")]
pub mod manual;
mod names;
#[cfg(feature = "program")]
pub mod options;
mod python;
mod table;

use corvid_data::Schema;
use corvid_json::Value;

pub use annotation::annotate;
pub use error::Error;

/// The names that generated code may import. Each module imports only those that it uses.
const VOCABULARY: [&str; 23] = [
    "Arc",
    "Atom",
    "AtomRef",
    "BTreeMap",
    "BTreeSet",
    "Class",
    "ColumnId",
    "Element",
    "Idl",
    "Map",
    "Misuse",
    "One",
    "OneRow",
    "Optional",
    "Real",
    "Row",
    "RowId",
    "Schema",
    "Set",
    "Str",
    "TableId",
    "TypedColumn",
    "Uuid",
];

/// Generates the Rust module for a schema, which may carry annotations (docs/spec/idl.md 7.1). The
/// text is a single `pub mod` item. Put it in a file of its own, or `include!` it from a build
/// script's output.
///
/// # Errors
/// If the text is not a valid schema, if it carries extensions, whose code is in another language,
/// or if two names in it become one in Rust.
pub fn rust(text: &str) -> Result<String, Error> {
    let schema = parse(text)?;
    let types = names::types_of(&schema)?;
    let mut body = String::new();
    for (id, _) in schema.iter() {
        body += &table::table(&schema, id, &types)?;
    }
    body += &schema_constant(&schema);
    let module = format!(
        "/// The database `{name}`, version {version}.\n#[allow(dead_code, unreachable_pub)]\npub mod {module} {{\n{imports}\n{body}\n}}\n",
        name = schema.name,
        version = schema.version,
        module = names::snake(&schema.name),
        imports = imports(&body),
    );
    let file = syn::parse_file(&module).map_err(|error| Error::Generated(error.to_string()))?;
    Ok(prettyplease::unparse(&file))
}

/// Generates the Python module for a schema, which may carry annotations. The module contains a
/// class for the rows of each table, client classes that know the types of the tables, and
/// functions that connect. It uses the package `corvid`.
///
/// ```
/// let schema = r#"{"name":"Zoo","version":"1.0.0","tables":{"Keeper":{"isRoot":true,"columns":{
///     "name":{"type":"string"},"mood":{"type":{"key":{"type":"string","enum":["set",["good","bad"]]}}}}}}}"#;
/// let code = corvid_idlc::python(schema)?;
/// assert!(code.contains("class Keeper(_Row):"));
/// assert!(code.contains("    mood: _t.Literal[\"bad\", \"good\"]"));
/// # Ok::<(), corvid_idlc::Error>(())
/// ```
///
/// # Errors
/// If the text is not a valid schema, or carries extensions, whose code is in another language.
pub fn python(text: &str) -> Result<String, Error> {
    Ok(python::module(&parse(text)?))
}

/// Generates the C header and source for a schema, which may carry annotations. They use
/// `corvid.h`, and have the shape of the code that Open vSwitch's generator makes.
///
/// Names begin with the annotation `idlPrefix`, or with the database's name in lower case and an
/// underscore. The source includes the header that the annotation `idlHeader` gives, or
/// `"NAME-idl.h"`.
///
/// ```
/// let schema = r#"{"name":"Zoo","version":"1.0.0","idlPrefix":"zoorec_","tables":{"Keeper":{"isRoot":true,"columns":{
///     "name":{"type":"string"}}}}}"#;
/// let code = corvid_idlc::c(schema)?;
/// assert!(code.header.contains("struct zoorec_keeper {"));
/// assert!(code.source.contains("#include \"zoo-idl.h\""));
/// # Ok::<(), corvid_idlc::Error>(())
/// ```
///
/// # Errors
/// If the text is not a valid schema, if a table carries extensions, if an extension of a column
/// does not describe a synthetic column, if a synthetic column depends on itself or on an unknown
/// column, or if two names become one in C.
pub fn c(text: &str) -> Result<C, Error> {
    let mut json = Value::parse(text.as_bytes()).map_err(|error| Error::Json(error.to_string()))?;
    let synthetic = annotation::take_synthetic(&mut json)?;
    let schema = schema_of(json.clone())?;
    let member = |name: &str| json.get(name).and_then(Value::as_str).map(str::to_owned);
    let database = schema.name.to_lowercase();
    let names = c::Names {
        prefix: member("idlPrefix").unwrap_or_else(|| format!("{database}_")),
        header: member("idlHeader").unwrap_or_else(|| format!("\"{database}-idl.h\"")),
        header_text: member("hDecls").unwrap_or_default(),
        source_text: member("cDecls").unwrap_or_default(),
        synthetic,
    };
    c::check(&schema, &names)?;
    Ok(C {
        header: c::header(&schema, &names),
        source: c::source(&schema, &names),
        name: database,
    })
}

/// The C code for a schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct C {
    /// The database's name in lower case, from which the files get their names.
    pub name: String,
    /// The text of the header.
    pub header: String,
    /// The text of the source.
    pub source: String,
}

fn parse(text: &str) -> Result<Schema, Error> {
    schema_of(Value::parse(text.as_bytes()).map_err(|error| Error::Json(error.to_string()))?)
}

/// Parses a schema after its annotations are removed.
fn schema_of(mut json: Value) -> Result<Schema, Error> {
    annotation::strip(&mut json)?;
    Schema::from_json(&json).map_err(|error| Error::Schema(error.to_string()))
}

/// Generates the imports that a module body needs.
fn imports(body: &str) -> String {
    let is_named = |name: &&str| {
        body.split(|letter: char| !letter.is_alphanumeric() && letter != '_')
            .any(|word| word == *name)
    };
    let (standard, typed): (Vec<&str>, Vec<&str>) = VOCABULARY
        .into_iter()
        .filter(is_named)
        .partition(|name| name.starts_with("BTree"));
    let mut imports = String::new();
    if !standard.is_empty() {
        imports += &format!("use std::collections::{{{}}};\n", standard.join(", "));
    }
    imports + &format!("use corvid::typed::{{self, {}}};\n", typed.join(", "))
}

fn schema_constant(schema: &Schema) -> String {
    let text = schema.to_json().to_string();
    format!(
        "/// The schema that this code was made of.\n\
         #[must_use]\npub fn schema() -> Arc<Schema> {{ typed::schema(SCHEMA) }}\n\
         /// A class that holds nothing yet: add what is wanted.\n\
         #[must_use]\npub fn class() -> Class {{ Class::new(schema()) }}\n\
         const SCHEMA: &str = r####\"{text}\"####;\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const ZOO: &str = r#"{"name":"Zoo","version":"1.0.0","tables":{
      "Set":{"isRoot":true,"columns":{"type":{"type":"string"},"id":{"type":"integer"},"TABLE":{"type":"real"}}},
      "Big_Cat":{"isRoot":true,"columns":{
        "prey":{"type":{"key":{"type":"uuid","refTable":"Big_Cat"},"min":0,"max":"unlimited"}},
        "den":{"type":{"key":{"type":"uuid","refTable":"Set"}}},
        "by_number":{"type":{"key":"integer","value":{"type":"uuid","refTable":"Set","refType":"weak"},"min":0,"max":9}},
        "nick":{"type":{"key":"string","min":0,"max":1},"mutable":false},
        "sound":{"type":{"key":{"type":"string","enum":["set",["roar","a-b","a_b"]]},"min":0,"max":1}}}}}}"#;

    #[test]
    fn names_that_are_taken_give_way() {
        let code = rust(ZOO).unwrap();
        for expected in [
            "pub struct SetRow(RowId);",
            "pub fn type_(self, idl: &Idl) -> Str",
            "pub fn id_(self, idl: &Idl) -> i64",
            "pub const TABLE_: TypedColumn<Self, One<Real>>",
            "pub fn prey(self, idl: &Idl) -> BTreeSet<BigCat>",
            "pub fn den(self, idl: &Idl) -> Option<SetRow>",
            "pub fn by_number(self, idl: &Idl) -> BTreeMap<i64, SetRow>",
            "pub fn set_by_number_key(",
            "pub fn add_prey(self, idl: &mut Idl, value: BigCat) -> Result<bool, Misuse>",
            "pub fn set_nick(self, idl: &mut Idl, value: Option<&str>)",
            "pub fn sound(self, idl: &Idl) -> Option<Str>",
        ] {
            assert!(code.contains(expected), "{expected} is not in\n{code}");
        }
        assert!(
            !code.contains("enum BigCatSound"),
            "two of its values have one name"
        );
    }

    #[test]
    fn what_is_no_schema_is_told() {
        for (text, part) in [
            ("{", "JSON"),
            ("{}", "name"),
            (r#"{"name":"a b","version":"1.0.0","tables":{}}"#, "a b"),
            (
                r#"{"name":"Z","version":"1.0.0","tables":{"T":{"columns":{"a":{"type":"string","extensions":{"synthetic":true}}}}}}"#,
                "extensions of column a of table T",
            ),
        ] {
            let error = rust(text).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
