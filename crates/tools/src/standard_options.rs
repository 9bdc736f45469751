//! The options that several programs have, with the same meaning and description.
//!
//! Each program gives them its own ids and its own positions in its table, because the order of the
//! table is that of error messages.

use corvid_shell::args::{Arg, Spec};

/// `-h`, `--help`
pub const fn help<I: Copy>(id: I) -> Spec<I> {
    Spec::both("help", 'h', Arg::None, id).means("", "print this and exit")
}

/// `-V`, `--version`
pub const fn version<I: Copy>(id: I) -> Spec<I> {
    Spec::both("version", 'V', Arg::None, id).means("", "print the version and exit")
}

/// `-o`, `--option`
pub const fn listing<I: Copy>(id: I) -> Spec<I> {
    Spec::both("option", 'o', Arg::None, id).means("", "list the options and exit")
}

/// `--fail`
pub const fn fail<I: Copy>(id: I) -> Spec<I> {
    Spec::long("fail", Arg::None, id)
        .means("", "transact: exit with status 2 if the transaction is refused")
        .more(
            "Without this option the exit status only tells whether there was a reply: a refused transaction prints its errors among its \
results, with status 0. With it the first error is also printed on standard error. The option applies to `query` too.",
        )
        .in_full()
}

/// `--timeout`, with the program's short form.
pub const fn timeout<I: Copy>(short: char, id: I) -> Spec<I> {
    Spec::both("timeout", short, Arg::Required, id)
        .means("SECS", "give up after SECS seconds")
        .more("The program then ends by SIGALRM. The variable `OVS_CTL_TIMEOUT` sets a default.")
}
