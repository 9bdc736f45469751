//! The front page's examples use exactly the code that the generator produces today.

/// With `CORVID_ACCEPT=1`, rewrites the stored code instead of only comparing it.
#[test]
fn generated_code_of_the_documentation_is_what_the_generator_makes() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/doc/");
    let read = |name: &str| std::fs::read_to_string(folder.to_owned() + name).expect("readable");
    let code = corvid_idlc::rust(&read("inventory.ovsschema")).expect("a schema");
    if std::env::var_os("CORVID_ACCEPT").is_some() {
        std::fs::write(folder.to_owned() + "inventory.rs.in", &code).expect("writable");
    }
    assert_eq!(read("inventory.rs.in"), code);
}
