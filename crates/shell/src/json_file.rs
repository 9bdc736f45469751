//! Files that hold one JSON text, shipped or written by hand.
//!
//! A file is read whole and once; the caller interprets the text.

use std::io::Read;
use std::path::Path;

use corvid_json::Value;

use corvid_net::errno;

/// Reads a file whose text is one object or array.
///
/// # Errors
/// The file cannot be read or parsed; the text is for the user:
/// `"FILE" could not be read as JSON (REASON)`.
pub fn read(path: &Path) -> Result<Value, String> {
    let shown = path.display();
    parse(path).map_err(|reason| format!("\"{shown}\" could not be read as JSON ({reason})"))
}

fn parse(path: &Path) -> Result<Value, String> {
    let mut file = std::fs::File::open(path).map_err(|error| {
        let reason = errno::text(&error);
        format!("error opening \"{}\": {reason}", path.display())
    })?;
    let mut text = Vec::new();
    file.read_to_end(&mut text)
        .map_err(|error| format!("error reading JSON stream: {}", errno::text(&error)))?;
    Value::parse_text(&text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_file_and_its_fault() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.json");
        let shown = path.display();
        assert_eq!(
            read(&path).unwrap_err(),
            format!(
                "\"{shown}\" could not be read as JSON (error opening \"{shown}\": No such file or directory)"
            )
        );
        assert!(
            read(dir.path())
                .unwrap_err()
                .ends_with("(error reading JSON stream: Is a directory)")
        );
        std::fs::write(&path, "{\"a\": ").unwrap();
        assert!(read(&path).is_err());
        std::fs::write(&path, " [1]\n").unwrap();
        assert_eq!(read(&path).unwrap().to_bytes(), b"[1]");
    }
}
