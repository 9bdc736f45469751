//! Text that clients, servers, files and certificates choose, in the form in which it is shown to
//! people. Its control characters never reach a log, standard error or a terminal, so it can
//! neither forge a line nor control the terminal. Pipes get the exact bytes.

mod logs;
mod tools;

/// A text that forges a line of a log, sets a terminal's title, colours the text after it and
/// reverses the text. It is short enough for the name of a certificate.
const HOSTILE: &str = "x\n2026-01-01T00:00:00Z|00001|raft|ERR|F\u{1b}]0;o\u{7}\u{9b}1m\u{202e}";

/// The same text as a person sees it.
const SHOWN: &str = r"x\n2026-01-01T00:00:00Z|00001|raft|ERR|F\u001b]0;o\u0007\u009b1m\u202e";

/// Checks that the hostile text occurs, and that none of its control characters does.
fn check_shown(what: &str, bytes: &[u8]) {
    let text = String::from_utf8(bytes.to_vec()).expect("UTF-8");
    assert!(text.contains(SHOWN), "{what} lacks the text: {text:?}");
    check_clean(what, &text);
}

/// Checks that no control character of the hostile text occurs.
fn check_clean(what: &str, text: &str) {
    for control in ['\u{1b}', '\u{7}', '\u{9b}', '\u{202e}'] {
        assert!(!text.contains(control), "{what} has {control:?}: {text:?}");
    }
    let mut lines = text.lines();
    let forged = lines.find(|line| line.starts_with("2026-01-01T00:00:00Z"));
    assert_eq!(forged, None, "{what}: {text:?}");
}
