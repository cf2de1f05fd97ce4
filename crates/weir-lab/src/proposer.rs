//! Whoever decides what is measured next. A proposer sees outcomes and never measures: it needs no host, and
//! its decisions can be tried on outcomes that a test makes up.

use weir_model::quantity::CpuSet;
use weir_model::record::{Record, RunHeader};
use weir_model::study::Arm;

use crate::cell::{ArmId, Block, Cell, Outcome};
use crate::history::History;
use crate::{Event, LabError};

/// What is to be done next.
#[derive(Debug)]
pub enum Step {
    /// Have exactly these arms run.
    Arms(Vec<ArmId>),
    /// Add an arm, on CPUs of its own if there are any; it comes after all others ([`History::added`]).
    Add(Box<Arm>, Option<CpuSet>),
    /// Measure this.
    Measure(Box<Cell>),
    /// Write this down: a pilot, a decision, the end of a load.
    Record(Box<Record>),
    /// Say this.
    Tell(Event),
    /// End the run with this: what was measured could not be read.
    Fail(Box<LabError>),
    /// Nothing: the question is answered.
    Done,
}

/// Makes the proposer of a session: of the run as it can be made on its hosts, and the session's number.
pub type MakeProposer<'m> = &'m mut dyn FnMut(&RunHeader, u32) -> Box<dyn Proposer>;

/// Decides what is measured next.
pub trait Proposer {
    /// What is to be done next, by all that has been measured.
    fn next(&mut self, history: &History) -> Step;

    /// Whether a cell is to go on after one more block: its stopping rule.
    fn go_on(&mut self, _block: &Block) -> bool {
        true
    }

    /// What came of the cell that was proposed last.
    ///
    /// # Errors
    /// The run cannot go on with that; as a rule because an arm is broken.
    fn outcome(&mut self, outcome: Outcome) -> Result<(), LabError>;
}
