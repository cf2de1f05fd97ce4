//! The five forms, as shapes: ln y = ln a + shape(x, θ). Each coordinate of θ runs from 0 to 1.

use serde::{Deserialize, Serialize};

use super::{Factor, Parameter};

/// Form of the growth of a response y with a factor x.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// `a·x`: in proportion.
    Linear,
    /// `min(a·x, c)`: in proportion up to a ceiling that all share. If y falls with x, `min(c, a / x)`: unchanged up to
    /// a knee, then in inverse proportion.
    SharedCap,
    /// `a·x / (1 + σ(x−1))`: a share of the work is done by one at a time (Amdahl).
    Amdahl,
    /// `a·x / (1 + σ(x−1) + κx(x−1))`: the universal scalability law (Gunther).
    Universal,
    /// `1 / (b + c·x)`: a fixed cost for each request and one per unit of x. If y grows with x, as bytes per second do
    /// with the size of contents, `x / (b + c·x)`, which has the same two costs.
    Amortised,
}

impl Form {
    /// Returns the number of parameters beside `a`.
    pub(super) fn dimensions(self) -> usize {
        match self {
            Form::Linear => 0,
            Form::SharedCap | Form::Amdahl | Form::Amortised => 1,
            Form::Universal => 2,
        }
    }

    /// Returns the forms that are possible for a factor.
    pub(super) fn possible(factor: Factor, falls: bool) -> &'static [Form] {
        match (factor, falls) {
            (Factor::Servers, _) => &[Form::Linear, Form::SharedCap, Form::Amdahl, Form::Universal],
            (Factor::Work, false) => &[Form::Linear, Form::SharedCap, Form::Amortised],
            (Factor::Work, true) => &[Form::SharedCap, Form::Amortised],
        }
    }

    /// Returns the parameters of the form and the quantities that follow from them.
    pub(super) fn parameters(self) -> &'static [Parameter] {
        use Parameter::{Ceiling, Coherence, Contention, FixedCost, Knee, Peak, PerUnit, UnitCost};
        match self {
            Form::Linear => &[PerUnit],
            Form::SharedCap => &[PerUnit, Knee, Ceiling],
            Form::Amdahl => &[PerUnit, Contention, Ceiling],
            Form::Universal => &[PerUnit, Contention, Coherence, Peak],
            Form::Amortised => &[FixedCost, UnitCost],
        }
    }
}

/// Range of x and direction of y, which the coordinates depend on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Scope {
    pub(super) lowest: f64,
    pub(super) highest: f64,
    pub(super) falls: bool,
}

/// Position in the space of a form's parameters; unused coordinates are 0.
pub(super) type Theta = [f64; 2];

impl Scope {
    /// Returns the level of a knee: from the lowest level to the highest, evenly on the log scale.
    fn knee(&self, theta: Theta) -> f64 {
        self.lowest * (self.highest / self.lowest).powf(theta[0])
    }

    /// Returns σ, with more room for small ones.
    fn contention(theta: Theta) -> f64 {
        theta[0].powi(3)
    }

    /// Returns κ, at most so large that the peak is at the lowest level.
    fn coherence(&self, theta: Theta) -> f64 {
        theta[1].powi(3) / self.lowest.max(1.0).powi(2)
    }

    /// Returns ln(y / a) at a level.
    pub(super) fn shape(&self, form: Form, theta: Theta, x: f64) -> f64 {
        match form {
            Form::Linear => x.ln(),
            Form::SharedCap if self.falls => (self.knee(theta) / x).min(1.0).ln(),
            Form::SharedCap => x.min(self.knee(theta)).ln(),
            Form::Amdahl => x.ln() - (Self::contention(theta) * (x - 1.0)).ln_1p(),
            Form::Universal => {
                let contention = Self::contention(theta) * (x - 1.0);
                x.ln() - (contention + self.coherence(theta) * x * (x - 1.0)).ln_1p()
            }
            Form::Amortised => {
                let share = theta[0] * x / self.highest;
                let gain = if self.falls { 0.0 } else { x.ln() };
                gain - (1.0 - theta[0] + share).ln()
            }
        }
    }

    /// Returns a parameter on its own scale (see [`is_logarithm`]) as (s, f): s·ln a + f.
    pub(super) fn quantity(&self, form: Form, parameter: Parameter, theta: Theta) -> (f64, f64) {
        match parameter {
            Parameter::PerUnit if form == Form::SharedCap && self.falls => {
                (1.0, self.knee(theta).ln())
            }
            Parameter::PerUnit => (1.0, 0.0),
            Parameter::Knee => (0.0, self.knee(theta).ln()),
            Parameter::Ceiling if form == Form::Amdahl => (1.0, -Self::contention(theta).ln()),
            Parameter::Ceiling if self.falls => (1.0, 0.0),
            Parameter::Ceiling => (1.0, self.knee(theta).ln()),
            Parameter::Contention => (0.0, Self::contention(theta)),
            Parameter::Coherence => (0.0, self.coherence(theta)),
            Parameter::Peak => {
                let square = (1.0 - Self::contention(theta)).max(0.0) / self.coherence(theta);
                (0.0, 0.5 * square.ln())
            }
            Parameter::FixedCost => (-1.0, (1.0 - theta[0]).ln()),
            Parameter::UnitCost => (-1.0, (theta[0] / self.highest).ln()),
        }
    }
}

/// Returns true if a parameter is searched by its logarithm.
pub(super) fn is_logarithm(parameter: Parameter) -> bool {
    !matches!(parameter, Parameter::Contention | Parameter::Coherence)
}
