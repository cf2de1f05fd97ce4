//! Proposers, which decide what is measured next. A proposer gets outcomes and never measures: it needs no host, and
//! tests can try its decisions with made-up outcomes.

use weir_model::quantity::CpuSet;
use weir_model::record::{Record, RunHeader};
use weir_model::study::Arm;

use crate::Announcement;
use crate::cell::{ArmId, Block, Cell, Outcome};
use crate::history::History;

/// Error of whoever measures, which proposers pass on.
pub type MeasureError = Box<dyn std::error::Error + Send + Sync>;

/// Next step of a run.
#[derive(Debug)]
pub enum Step {
    /// Starts and stops arms until exactly these run.
    Arms(Vec<ArmId>),
    /// Adds an arm, on CPUs of its own if given; it comes after all others ([`History::added`]).
    Add(Box<Arm>, Option<CpuSet>),
    /// Measures a cell.
    Measure(Box<Cell>),
    /// Appends a record: a pilot, a decision, the end of a load.
    Record(Box<Record>),
    /// Announces what is measured, or what was found.
    Tell(Announcement),
    /// Ends the run with an error: the measurements could not be read.
    Fail(MeasureError),
    /// Ends the session: the study's question is answered.
    Done,
}

/// Makes the proposer of a session from the run's header, with the study as it can be run on the hosts, and the
/// session's number.
pub type MakeProposer<'m> = &'m mut dyn FnMut(&RunHeader, u32) -> Box<dyn Proposer>;

/// Decides what is measured next.
pub trait Proposer {
    /// Returns the next step, in view of all measurements so far.
    fn next(&mut self, history: &History) -> Step;

    /// Returns true if a cell is to go on after one more block: its stopping rule.
    fn go_on(&mut self, _block: &Block) -> bool {
        true
    }

    /// Takes the outcome of the cell that was proposed last.
    ///
    /// # Errors
    /// The run cannot go on after that outcome; usually because an arm is broken.
    fn outcome(&mut self, outcome: Outcome) -> Result<(), MeasureError>;
}
