//! The parameter catalog: one row per tunable, read from data.
//!
//! Everything that weir knows about a tunable is in a row of `parameters/*.yaml`: its levels, its default, the level
//! that Debian's package sets, its spelling in the proxy's configuration, the way to read the effective value back, and
//! its constraints. Code here knows *kinds* of levels and *kinds* of rules, never a parameter by name; adding a tunable
//! means adding a row (docs/parameters.md).
//!
//! Kernel parameters and limits are rows like those of a proxy, in `parameters/kernel.yaml`, and go with every proxy.
//! [`Catalog::split`] groups settings by the component that applies them. Users add rows in files of their own
//! ([`Catalog::with_rows`]). A value that the kernel derives from several settings together is a [`Quantity`];
//! [`Catalog::inert`] uses quantities to find changes without effect.
//!
//! A setting is processed in three steps: [`Parameter::check`] turns user input into a canonical level,
//! [`Parameter::directives`] turns the level into configuration text, and [`Parameter::read_back`] turns the
//! configuration that the proxy runs with into a level again.

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
    ClientLimits, Conflict, Constraint, DescriptorLimits, Hindrance, Limit, Means, Rule, Severity,
    Unsaid,
};
pub use controller::Controller;
pub use default::{DefaultLevel, Defaults, is_version_at_least};
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
