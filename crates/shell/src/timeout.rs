//! The wall-clock deadline of the tools: `--timeout` or `OVS_CTL_TIMEOUT`, enforced by SIGALRM.
//!
//! When it expires, the process cleans up and dies of SIGALRM, whatever it is doing. ovsdb-server
//! has no such option.

#![allow(unsafe_code)]

use std::str::FromStr;

/// Parses the option's value, seconds.
///
/// # Errors
/// The value is not a positive integer; the text to show is
/// `value X on -t or --timeout is invalid`, with `letter` in place of `t`.
pub fn parse(value: &str, letter: char) -> Result<u32, String> {
    u32::from_str(value)
        .ok()
        .filter(|&seconds| seconds >= 1)
        .ok_or_else(|| format!("value {value} on -{letter} or --timeout is invalid"))
}

/// Arms the deadline: `seconds` of the option, else of the environment, whose value is ignored if
/// invalid. Returns whether a deadline is set.
pub fn arm(seconds: Option<u32>) -> bool {
    let from_env = || std::env::var("OVS_CTL_TIMEOUT").ok()?.parse().ok();
    let seconds = seconds.or_else(from_env).filter(|&seconds| seconds > 0);
    if let Some(seconds) = seconds {
        // SAFETY: alarm takes no pointers.
        unsafe { libc::alarm(seconds) };
    }
    seconds.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_positive_integers() {
        assert_eq!(parse("5", 't'), Ok(5));
        assert_eq!(
            parse("0", 't'),
            Err("value 0 on -t or --timeout is invalid".to_owned())
        );
        assert!(parse("x", 'T').is_err());
    }
}
