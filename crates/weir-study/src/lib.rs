//! Studies: those of files (parsing, checks with line and column, expansion to arms), of a URL (`server`) and of a
//! confirmation (`confirmation`).
//!
//! A study is YAML that people write (docs/study.md). All errors in it are found in one pass and reported with file,
//! line, column, the offending text, a hint and the nearest valid name, before anything is started. Serde stops at the
//! first error and does not keep positions, so the file is read in two steps instead:
//!
//! 1. `tree`: parser events to a tree of nodes that know their position in the text;
//! 2. one module per section (`proxy`, `load`, `arms`, `plan`, `published`) that checks its part of the tree with the
//!    small readers of `check`, reports errors, and continues with a default.
//!
//! Only a study without any error becomes a [`Study`]. Files of requests ([`parse_requests`]) are read in the same way.

mod advice;
mod arms;
mod arrivals;
mod candidate;
mod check;
mod confirmation;
mod controller;
mod effects;
mod engine;
mod error;
mod factors;
mod flow;
mod launchers;
mod load;
mod machine;
mod matrix;
mod programs;
mod proxy;
mod published;
mod ready;
mod remarks;
mod requests;
mod room;
mod scale;
mod sections;
mod server;
mod tls;
mod tree;
mod words;

use weir_model::study::Study;
use weir_parameters::Catalog;

pub use advice::{AdviceStudy, RequestedConfiguration};
pub use candidate::{CandidatePair, ProgramFiles};
pub use check::Finding;
pub use confirmation::Confirmation;
pub use engine::{Engine, RequestFault, read_small};
pub use error::{StudyError, StudyErrors, utf8};
pub use machine::CheckContext;
pub use programs::programs;
pub use ready::{ReadyMade, studies};
pub use remarks::remarks;
pub use requests::parse_requests;
pub use scale::{Scale, ScaleError};
pub use server::{NamedServer, ServerPair, ServerSearch, UnseenLimit, check_timeout};

use check::{Checker, Fields};
use room::Room;

/// Version of the study format that this crate reads: the value of the key `weir`.
pub const VERSION: u64 = 1;

/// Keys of a study, in the order in which docs/study.md explains them.
#[rustfmt::skip]
const KEYS: [&str; 23] = [
    "weir", "name", "title", "question", "proxy", "origin", "loads", "baseline", "a/a", "arms",
    "one-at-a-time", "cumulative", "factorial", "stratify", "launchers", "compare", "blocks", "until",
    "budget", "objective", "cpus", "network", "published",
];

/// Reads a study, checks all of it, and expands it to arms.
///
/// `file_name` is the name of the text in errors.
///
/// # Errors
/// Returns all errors in the text, in the order of the text.
pub fn parse(
    text: &str,
    file_name: &str,
    catalog: &Catalog,
    context: &CheckContext,
) -> Result<Study, StudyErrors> {
    parse_scaled(text, file_name, catalog, context, Scale::ONE)
}

/// Like [`parse`], with the connections and rates of all loads multiplied by `scale`. The machine's limits apply to the
/// result.
///
/// # Errors
/// Returns the same errors as [`parse`].
pub fn parse_scaled(
    text: &str,
    file_name: &str,
    catalog: &Catalog,
    context: &CheckContext,
    scale: Scale,
) -> Result<Study, StudyErrors> {
    let mut check = Checker::new(context.engine);
    let study = tree::read(text, &tree::STUDY, &mut check)
        .and_then(|root| study(&root, catalog, context, scale, &mut check));
    match study {
        Some(study) if check.is_clean() => Ok(study),
        _ => Err(StudyErrors::new(file_name, text, check.into_findings())),
    }
}

/// Reports a study of another version. Other errors are reported too, because most often the version is a slip.
fn check_version(fields: &Fields<'_>, check: &mut Checker) {
    let Some(node) = fields.required("weir", check) else {
        return;
    };
    let Some(version) = check.scalar(node, "a version") else {
        return;
    };
    if version.parse() == Ok(VERSION) {
        return;
    }
    let message = format!("this weir reads studies of version {VERSION} only");
    let hint = format!(
        "write `weir: {VERSION}`, or use the version of weir that the study was written for; in another version \
         other keys may be right"
    );
    check.error(node.span.clone(), message).hint(hint);
}

/// Reads all sections of a study. Returns `None` only if an error was reported.
fn study(
    root: &tree::Node,
    catalog: &Catalog,
    context: &CheckContext,
    scale: Scale,
    check: &mut Checker,
) -> Option<Study> {
    let mut fields = Fields::open(root, "a study", &KEYS, check)?;
    check_version(&fields, check);
    fields.refuse_unknown(&KEYS, check);
    let name = fields.required("name", check).and_then(|node| check.name(node));
    let title = fields.get("title").and_then(|node| check.text(node));
    let question = fields.required("question", check).and_then(|node| check.text(node));
    let proxy =
        fields.required("proxy", check).and_then(|node| proxy::read(node, catalog, context, check));
    let origin = sections::origin(fields.get("origin"), check);
    let blocks = sections::blocks(fields.get("blocks"), check);
    let network = sections::network(fields.get("network"), origin.address.is_some(), check);
    let loads = load::read(fields.required("loads", check), &blocks, scale, check);
    let (objective, capacity, search) =
        sections::objective(fields.get("objective"), &loads.drafts, check);
    load::must_last(&loads.drafts, &capacity, check);
    let serves_files = proxy.as_ref().is_some_and(proxy::Draft::serves_files);
    let (until, budget) = sections::ends(&fields, &objective, check);
    let cpus = sections::cpus(fields.get("cpus"), serves_files, context, check);
    let arms = arms::read(&fields, proxy.as_ref(), cpus.as_ref(), catalog, context, check);
    let launchers = launchers::read(fields.get("launchers"), catalog, check);
    launchers::check_used(&launchers, &arms.drafts, catalog, check);
    let compare = sections::compare(fields.get("compare"), check);
    sections::check_overall(fields.get("compare"), compare, &arms.drafts, &loads.drafts, check);
    let published = published::read(fields.get("published"), &arms, &loads, check);
    let mut left_out = arms.left_out;
    left_out.extend(loads.left_out(scale));
    let mut load_drafts = loads.drafts;
    load::check_all(&load_drafts, &arms.drafts, proxy.as_ref(), &blocks, check);
    let room = Room { arms: &arms.drafts, proxy: proxy.as_ref(), catalog, context };
    left_out.extend(room.check(&mut load_drafts, check));

    Some(Study {
        title: title.or_else(|| name.clone())?,
        name: name?,
        question: question?,
        blocks: sections::spread(blocks, proxy.as_ref()),
        proxy: proxy?.spec,
        origin,
        loads: load_drafts.into_iter().map(|draft| draft.spec).collect(),
        arms: arms.drafts.into_iter().map(|draft| draft.arm).collect(),
        launchers,
        compare,
        until,
        budget,
        objective,
        capacity,
        search,
        cpus,
        network,
        published,
        left_out,
        scale: scale.change(),
    })
}
