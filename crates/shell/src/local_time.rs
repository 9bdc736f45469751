//! From local time, as people write it, to ms since the Unix epoch. The C library knows the zone.

/// Ms since the Unix epoch at a local date (month and day from 1) and second of that day. `None` if
/// the C library cannot represent it. A time that a change of the clocks repeats is one of the two.
#[must_use]
#[allow(unsafe_code)]
pub fn to_ms(year: i64, month: u32, day: u32, second_of_day: u32) -> Option<i64> {
    let part = |value: u32| i32::try_from(value).ok();
    // SAFETY: all fields of the struct are numbers or pointers, for which zeros are valid.
    let mut broken_down: libc::tm = unsafe { std::mem::zeroed() };
    broken_down.tm_year = i32::try_from(year.checked_sub(1900)?).ok()?;
    broken_down.tm_mon = part(month)?.checked_sub(1)?;
    broken_down.tm_mday = part(day)?;
    broken_down.tm_hour = part(second_of_day / 3600)?;
    broken_down.tm_min = part(second_of_day / 60 % 60)?;
    broken_down.tm_sec = part(second_of_day % 60)?;
    // The C library finds out whether the clocks are advanced then.
    broken_down.tm_isdst = -1;
    // SAFETY: the argument is a struct of this function.
    let seconds = unsafe { libc::mktime(&raw mut broken_down) };
    // -1 is an error, or one second before the epoch, which no history has.
    (seconds != -1).then(|| seconds.checked_mul(1000)).flatten()
}
