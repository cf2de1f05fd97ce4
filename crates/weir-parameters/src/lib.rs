//! The parameter catalog: one row per tunable, read from data.
//!
//! Everything that weir knows about a tunable stands in a row of `parameters/*.yaml`: its levels,
//! its default, what Debian's package sets, how the proxy spells it, how the effective value is
//! read back, what it constrains. Code here knows *kinds* of levels and *kinds* of rules, never a
//! parameter by name; adding a tunable means adding a row (docs/parameters.md).
//!
//! The way of a setting: [`Parameter::check`] turns what somebody wrote into a canonical level,
//! [`Parameter::directives`] turns the level into configuration text, [`Parameter::read_back`]
//! turns what the proxy says it runs with into a level again.

mod catalog;
mod constraint;
mod level;
mod row;
mod scoped;
mod template;

pub use catalog::{Catalog, CatalogError};
pub use constraint::{ClientLimits, Conflict, Constraint, DescriptorLimits, Limit, Rule, Severity};
pub use level::{Bounds, LevelError, LevelKind};
pub use row::{Context, DefaultLevel, Directive, EffectiveFrom, Parameter, Role, Scope, Write};
pub use scoped::Scoped;
