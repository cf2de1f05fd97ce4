//! Published recommendations about proxies and the kernel: who gives them, what they change, where they claim to help.
//!
//! ```text
//! advice/*.yaml ──► Book ──► Standing here ──► trials (weir-study makes studies of them)
//!                                                │  runs, analysed by weir-analysis
//!                                                ▼
//!                                              judge ──► AdviceFindings
//! ```
//!
//! A recommendation is a row of data, like a parameter or a limiter: it names parameters of the catalog and the load
//! under which it claims to help, and no code knows one by name. [`standing`] says whether it can be tried here,
//! [`trials`] puts those that can side by side, in as few runs as there are loads, and [`judge`] holds what was measured
//! against the claim. Nothing here measures, prints or reads a file.

mod book;
mod findings;
mod judge;
mod standing;
mod trials;

pub use book::{About, Book, BookError, Obsolete, Recommendation, Situation, Source};
pub use findings::{
    AdviceFinding, AdviceFindings, AdviceVerdict, Because, InForce, TrialRun, Untried,
};
pub use judge::{ArmResult, judge};
pub use standing::{Installed, Standing, standing};
pub use trials::{Trial, TrialArm, trials};
