//! Questions that take more than one run: each run's findings say what the next one is.
//!
//! An experiment makes studies (weir-study), has the lab carry them out (weir-lab), and reads the findings
//! (weir-analysis). It prints nothing; the command line shows what it announces.

pub mod confirm;
