//! The load engine: open and closed loop HTTP load, free of coordinated omission.
