//! The words of a test that failed, found in the output of its program and short enough to be
//! repeated at the end of a run, where the reader of a shortened log looks.

/// The number of lines that are repeated: the last ones, since suites of many checks name the
/// failed ones last.
const LINES: usize = 30;
/// The length of a repeated line in characters.
const WIDTH: usize = 500;

/// Returns the last lines that `test` wrote before its stack, as Rust's test harness shows them
/// below `---- NAME stdout ----`. Lines of checks that passed are left out.
pub(crate) fn last_words(output: &str, test: &str) -> Vec<String> {
    let heading = format!("---- {test} stdout ----");
    let lines = output.lines().skip_while(|line| *line != heading).skip(1);
    let own = lines.take_while(|line| {
        *line != "stack backtrace:" && *line != "failures:" && !is_heading(line)
    });
    let telling = own.filter(|line| !line.trim().is_empty() && !line.starts_with("ok "));
    let telling: Vec<&str> = telling.collect();
    let last = telling.len().saturating_sub(LINES);
    let short = |line: &&str| line.chars().take(WIDTH).collect();
    telling[last..].iter().map(short).collect()
}

fn is_heading(line: &str) -> bool {
    line.starts_with("---- ") && line.ends_with(" stdout ----")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_test_is_quoted_up_to_its_stack() {
        let output = "test a::b ... FAILED\n\nfailures:\n\n---- a::b stdout ----\n\nthread 'a::b' panicked at x.rs:1:2:\n\
                      ok      one\nFAILED  two\n   got: 1\nstack backtrace:\n   0: f\n\n---- c stdout ----\nother\n\n\
                      failures:\n    a::b\n    c\n";
        let panicked = "thread 'a::b' panicked at x.rs:1:2:";
        assert_eq!(
            last_words(output, "a::b"),
            [panicked, "FAILED  two", "   got: 1"]
        );
        assert_eq!(last_words(output, "c"), ["other"]);
        assert!(last_words(output, "d").is_empty());
    }

    #[test]
    fn long_words_keep_their_end_and_long_lines_their_beginning() {
        let lines: String = (0..100).map(|number| format!("{number}\n")).collect();
        let wide = "x".repeat(10_000);
        let words = last_words(&format!("---- t stdout ----\n{lines}{wide}\n"), "t");
        assert_eq!(words.len(), LINES);
        assert_eq!(words[LINES - 2], "99");
        assert_eq!(words[LINES - 1].len(), WIDTH);
    }
}
