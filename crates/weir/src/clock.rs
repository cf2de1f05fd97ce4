//! Check of this machine's clock: records carry times of RFC 3339, which has years of four digits.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::failure::Failure;

/// End of the year 9999, seconds since 1970.
const END: Duration = Duration::from_secs(253_402_300_799);

/// Refuses a time that no record could carry.
///
/// # Errors
/// The time is before 1970 or after 9999.
pub(crate) fn check(now: SystemTime) -> Result<(), Failure> {
    match now.duration_since(UNIX_EPOCH) {
        Ok(since) if since < END => Ok(()),
        Ok(_) => Err(wrong("after the year 9999")),
        Err(_) => Err(wrong("before the year 1970")),
    }
}

fn wrong(when: &str) -> Failure {
    Failure::failed(format!("the clock of this machine is {when}")).hint("set it: see date(1)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_that_no_record_could_carry_are_refused() {
        for (time, is_fit) in [
            (UNIX_EPOCH, true),
            (SystemTime::now(), true),
            (UNIX_EPOCH - Duration::from_secs(1), false),
            (UNIX_EPOCH + END, false),
        ] {
            assert_eq!(check(time).is_ok(), is_fit, "{time:?}");
        }
    }
}
