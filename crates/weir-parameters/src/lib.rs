//! The parameter catalog: one row per tunable, read from data.
//!
//! Everything that weir knows about a tunable stands in a row of `parameters/*.yaml`: its levels,
//! its default, what Debian's package sets, how the proxy spells it, how the effective value is
//! read back, what it constrains. Code here knows *kinds* of levels and *kinds* of rules, never a
//! parameter by name; adding a tunable means adding a row (docs/parameters.md).
//!
//! Kernel parameters and limits are rows like those of a proxy, in `parameters/kernel.yaml`, and go
//! with every proxy. [`Catalog::split`] says who puts which setting into force; users add rows in
//! files of their own ([`Catalog::with_rows`]). What the kernel makes of several settings together
//! is a [`Quantity`]; [`Catalog::inert`] tells by it which changes change nothing.
//!
//! The way of a setting: [`Parameter::check`] turns what somebody wrote into a canonical level,
//! [`Parameter::directives`] turns the level into configuration text, [`Parameter::read_back`]
//! turns what the proxy says it runs with into a level again.

mod catalog;
mod constraint;
pub mod controller;
mod default;
mod file;
mod grammar;
mod level;
mod placing;
mod quantity;
mod row;
mod scoped;
mod shows;
mod spelling;
mod template;
mod turn;
mod workload;

pub use catalog::Catalog;
pub use constraint::{
    ClientLimits, Conflict, Constraint, DescriptorLimits, Limit, Means, Rule, Severity, Unsaid,
};
pub use controller::Controller;
pub use default::{DefaultLevel, Defaults};
pub use file::CatalogError;
pub use level::{Bounds, LevelError, LevelKind};
pub use quantity::{Quantity, Reading};
pub use row::{
    Context, Directive, EffectiveFrom, Hop, Kubernetes, Parameter, ProcessLimit, Role, Safe, Scope,
    Write,
};
pub use scoped::Scoped;
pub use shows::{Counter, ShownBy, Shows};
pub use spelling::Spelling;
pub use workload::{GroupLimit, InWorkload};
