//! The section `loads`: who sends what, when, for how long.

use std::ops::Range;
use std::time::Duration;

use weir_model::bursts::Bursts;
use weir_model::load::{Lifetime, RequestSpec};
use weir_model::quantity::{format_duration, parse_rate};
use weir_model::study::{BlockSpec, LoadSpec, StudyArrivals};

use crate::arms;
use crate::check::{Checker, Fields, fraction, short};
use crate::flow;
use crate::matrix::{self, Axes, Cell};
use crate::scale::Scale;
use crate::tree::{Node, Value};

const KEYS: [&str; 13] = [
    "name",
    "closed",
    "rate",
    "burst",
    "connections",
    "connection",
    "tls",
    "hold",
    "duration",
    "size",
    "request",
    "timeout",
    "optional",
];
const TIMEOUT: Duration = Duration::from_secs(2);
const LONGEST: Duration = Duration::from_secs(24 * 3600);
/// Shortest slice that the pilot tries: what a block takes at least, for each arm.
const SHORTEST_SLICE: Duration = Duration::from_millis(50);

/// A load, and where its parts stand.
#[derive(Debug)]
pub(crate) struct Draft {
    pub(crate) spec: LoadSpec,
    /// What the file calls it: a cell of a matrix is named by its numbers, which a scale changes.
    pub(crate) written: String,
    /// Whether it is left out where the machine has no room for its connections.
    pub(crate) optional: bool,
    /// Where its connections stand.
    pub(crate) connections: Range<usize>,
    duration: Range<usize>,
    /// Where its burst stands.
    burst: Option<Range<usize>>,
    /// Where the size of the content that it asks for stands.
    pub(crate) size: Option<Range<usize>>,
    /// Where it says that it asks over TLS.
    pub(crate) tls: Option<Range<usize>>,
}

/// All loads.
#[derive(Debug, Default)]
pub(crate) struct Loads {
    pub(crate) drafts: Vec<Draft>,
    /// Cells of a matrix, as the file calls them, that a scale makes the same as another.
    pub(crate) merged: Vec<String>,
}

impl Loads {
    /// What is said of cells that a scale makes the same as another.
    pub(crate) fn left_out(&self, scale: Scale) -> Option<String> {
        let (first, count) = (self.merged.first()?, self.merged.len());
        Some(format!(
            "{count} of the loads of a matrix are left out, `{first}` the first: at a scale of {scale} they \
             are the same as others"
        ))
    }
}

pub(crate) fn read(node: Option<&Node>, scale: Scale, check: &mut Checker) -> Loads {
    let mut loads = Loads::default();
    let nodes = node.and_then(|node| check.list(node, "a list of loads"));
    for node in nodes.unwrap_or_default() {
        let closed_before = loads
            .drafts
            .iter()
            .any(|load| load.spec.arrivals == StudyArrivals::Closed);
        let Some(template) = read_load(node, closed_before, check) else {
            continue;
        };
        for load in expanded(&template, scale, &mut loads.merged) {
            let name = &load.written;
            let is_taken = loads.drafts.iter().any(|other| other.written == *name);
            if !name.is_empty() && is_taken {
                let message = format!("a second load is named `{name}`");
                check.error(template.name_at.clone(), message);
            }
            loads.drafts.push(load);
        }
    }
    if let Some(node) = node
        && loads.drafts.len() > matrix::MAX_LOADS
    {
        let (count, most) = (loads.drafts.len(), matrix::MAX_LOADS);
        check.error(
            node.span.clone(),
            format!("{count} loads are more than {most}"),
        );
    }
    loads
}

/// A load as it was read: one, or what the cells of a matrix have in common.
struct Template {
    draft: Draft,
    axes: Option<Axes>,
    name_at: Range<usize>,
}

/// The loads that `template` stands for, scaled, each once.
fn expanded(template: &Template, scale: Scale, merged: &mut Vec<String>) -> Vec<Draft> {
    let spec = &template.draft.spec;
    let cells = match &template.axes {
        Some(axes) => axes.loads(spec, scale),
        None => vec![Cell {
            spec: scaled(spec.clone(), scale),
            written: spec.name.clone(),
        }],
    };
    let mut drafts: Vec<Draft> = Vec::new();
    for cell in cells {
        if drafts.iter().any(|other| other.spec.name == cell.spec.name) {
            merged.push(cell.written);
            continue;
        }
        drafts.push(Draft {
            spec: LoadSpec {
                held: scale.held(cell.spec.held),
                ..cell.spec
            },
            written: cell.written,
            optional: template.draft.optional,
            connections: template.draft.connections.clone(),
            duration: template.draft.duration.clone(),
            burst: template.draft.burst.clone(),
            size: template.draft.size.clone(),
            tls: template.draft.tls.clone(),
        });
    }
    drafts
}

/// A load that is no matrix, scaled. Shares of what was measured scale by themselves.
fn scaled(spec: LoadSpec, scale: Scale) -> LoadSpec {
    let burst = spec.burst.map(|size| scale.connections(size));
    LoadSpec {
        arrivals: match (spec.arrivals, spec.burst, burst) {
            // As many bursts as before, so that slices still hold whole ones.
            (StudyArrivals::Constant(rate), Some(size), Some(scaled)) => {
                StudyArrivals::Constant(rate * f64::from(scaled) / f64::from(size))
            }
            (StudyArrivals::Constant(rate), ..) => StudyArrivals::Constant(scale.rate(rate)),
            (other, ..) => other,
        },
        burst,
        connections: scale.connections(spec.connections),
        ..spec
    }
}

/// Reads a load. Parts that are wrong are reported and replaced, so that the load still counts for
/// whoever looks at it next.
fn read_load(node: &Node, closed_before: bool, check: &mut Checker) -> Option<Template> {
    let fields = Fields::known(node, "a load", &KEYS, check)?;
    let axes = matrix::axes(&fields, check);
    // The cells of a matrix are named by their numbers.
    let name = match axes {
        Some(_) => fields.get("name"),
        None => fields.required("name", check),
    };
    let name_at = name.map_or(fields.span(), |node| node.span.clone());
    let name = name.and_then(|node| check.name(node));
    let arrivals = arrivals(&fields, closed_before, check);
    let burst = burst(&fields, arrivals, check);
    let connections = fields.required("connections", check);
    let connections_at = connections.map_or(fields.span(), |node| node.span.clone());
    let connections = connections
        .filter(|node| !matrix::is_axis(node))
        .and_then(|node| check.whole(node, 1..=1_000_000));
    let duration = fields.required("duration", check);
    let duration_at = duration.map_or(fields.span(), |node| node.span.clone());
    let duration = duration.and_then(|node| check.duration(node, Duration::from_secs(1)..=LONGEST));
    let mut request = fields
        .get("request")
        .and_then(|node| request(node, check))
        .unwrap_or_else(|| RequestSpec::get("/"));
    let size_node = fields.get("size");
    let size = size_node
        .and_then(|node| flow::size(node, &fields, check))
        .map(|(size, target)| {
            request.target = target;
            size
        });
    let lifetime = fields
        .get("connection")
        .and_then(|node| flow::lifetime(node, check))
        .unwrap_or(Lifetime::Kept);
    let tls_node = fields.get("tls");
    let tls = tls_node.and_then(|node| flow::tls(node, check));
    let tls_at = tls_node.filter(|_| tls.is_some());
    let hold = fields.get("hold");
    let held = hold.and_then(|node| flow::held(node, check)).unwrap_or(0);
    let optional = fields
        .get("optional")
        .and_then(|node| check.flag(node))
        .unwrap_or(false);
    let timeout = fields
        .get("timeout")
        .and_then(|node| check.duration(node, Duration::from_millis(1)..=LONGEST))
        .unwrap_or(TIMEOUT);
    let draft = Draft {
        spec: LoadSpec {
            // Empty: the name was refused, so the load equals no other by name.
            name: name.unwrap_or_default(),
            arrivals: arrivals.unwrap_or(StudyArrivals::Closed),
            burst,
            connections: connections.map_or(1, |number| number as u32),
            lifetime,
            tls,
            held,
            request,
            size,
            duration: duration.unwrap_or(LONGEST),
            timeout,
            cell: None,
        },
        written: String::new(),
        optional,
        // What is held is what there may be too many of.
        connections: hold.map_or(connections_at, |node| node.span.clone()),
        duration: duration_at,
        burst: fields.get("burst").map(|node| node.span.clone()),
        size: size.and(size_node).map(|node| node.span.clone()),
        tls: tls_at.map(|node| node.span.clone()),
    };
    Some(Template {
        draft,
        axes,
        name_at,
    })
}

fn arrivals(
    fields: &Fields<'_>,
    closed_before: bool,
    check: &mut Checker,
) -> Option<StudyArrivals> {
    match (fields.entry("closed"), fields.entry("rate")) {
        (Some(closed), None) => match check.flag(&closed.value)? {
            true => Some(StudyArrivals::Closed),
            false => {
                check
                    .error(
                        closed.value.span.clone(),
                        "a load that is not closed needs a rate",
                    )
                    .hint("write `rate: 5000`, or `rate: 60% of slowest`, in its place");
                None
            }
        },
        // The levels of a matrix are read by it.
        (None, Some(rate)) if matrix::is_axis(&rate.value) => Some(StudyArrivals::Constant(1.0)),
        (None, Some(rate)) => read_rate(&rate.value, closed_before, check),
        (Some(_), Some(rate)) => {
            check
                .error(rate.span.clone(), "a load is either closed or has a rate")
                .hint("leave one of the two out, or make two loads of it");
            None
        }
        (None, None) => {
            check
                .error(fields.span(), "a load needs `closed: true` or a `rate`")
                .hint("closed: a connection asks again when it was answered; rate: requests per second, whatever the answers do");
            None
        }
    }
}

/// Requests that come at once: of an open loop whose rate the study itself gives, because slices are
/// made for it.
fn burst(fields: &Fields<'_>, arrivals: Option<StudyArrivals>, check: &mut Checker) -> Option<u32> {
    let entry = fields.entry("burst")?;
    let size = check.whole(&entry.value, 2..=1_000_000)?;
    let (message, hint) = match arrivals {
        Some(StudyArrivals::Closed) => (
            "a closed load has no bursts",
            "give it a `rate` in place of `closed`: in a closed load a connection asks again when it was answered",
        ),
        Some(StudyArrivals::ShareOfSlowest(_)) => (
            "a load with bursts needs its rate in requests per second",
            "slices hold whole bursts, so how often these come must be known before anything is measured",
        ),
        Some(StudyArrivals::Constant(_)) | None => return Some(size as u32),
    };
    check.error(entry.span.clone(), message).hint(hint);
    None
}

fn read_rate(node: &Node, closed_before: bool, check: &mut Checker) -> Option<StudyArrivals> {
    let text = check.text(node)?;
    let Some((percent, of)) = text.split_once('%') else {
        return match parse_rate(&text) {
            Ok(rate) => Some(StudyArrivals::Constant(rate)),
            Err(error) => {
                check
                    .error(node.span.clone(), error.to_string())
                    .hint("a share of what was measured before is written `60% of slowest`");
                None
            }
        };
    };
    let share = fraction(&format!("{percent}%")).filter(|share| *share > 0.0 && *share <= 1.0);
    let Some(share) = share.filter(|_| of.trim() == "of slowest") else {
        check
            .error(node.span.clone(), format!("`{}` is not a rate", short(&text)))
            .hint("write `60% of slowest`, from above 0 % to 100 %, or requests per second such as 5000");
        return None;
    };
    if !closed_before {
        check
            .error(node.span.clone(), "no closed load comes before this one")
            .hint("the slowest arm's rate is measured in a closed load: put one first, or give requests per second");
    }
    Some(StudyArrivals::ShareOfSlowest(share))
}

fn request(node: &Node, check: &mut Checker) -> Option<RequestSpec> {
    let known = ["method", "path", "fields", "content"];
    let fields = Fields::known(node, "a request", &known, check)?;
    let mut request = RequestSpec::get("/");
    if let Some(node) = fields.get("method")
        && let Some(method) = check.text(node)
    {
        if !is_token(&method) {
            let message = format!("`{}` is not a method (RFC 9110 §9)", short(&method));
            check.error(node.span.clone(), message);
        }
        request.method = method;
    }
    if let Some(node) = fields.get("path")
        && let Some(path) = check.text(node)
    {
        if !path.starts_with('/') || !path.bytes().all(|b| b.is_ascii_graphic() && b != b'#') {
            let message = format!("`{}` is not a path", short(&path));
            check
                .error(node.span.clone(), message)
                .hint("a path begins with `/` and has printable ASCII characters only, no blank and no `#`");
        }
        request.target = path;
    }
    if let Some(node) = fields.get("fields") {
        request.fields = request_fields(node, check);
    }
    if let Some(node) = fields.get("content")
        && let Some(content) = check.text(node)
    {
        request.content = content.into_bytes();
    }
    Some(request)
}

/// Fields of a request, in the user's order.
pub(crate) fn request_fields(node: &Node, check: &mut Checker) -> Vec<(String, String)> {
    let mut fields = Vec::new();
    for entry in check
        .entries(node, "a field such as `Accept: text/html`")
        .unwrap_or_default()
    {
        let name = &entry.key;
        if !is_token(name) {
            let message = format!("`{}` is no name of a field (RFC 9110 §5.1)", short(name));
            check.error(entry.span.clone(), message);
        }
        // Whoever frames the request must be the only one who says how long it is.
        if ["content-length", "transfer-encoding"].contains(&&*name.to_ascii_lowercase()) {
            check
                .error(entry.span.clone(), format!("weir writes `{name}` itself"))
                .hint("leave it out");
        }
        let value = match &entry.value.value {
            Value::Empty => Some(String::new()),
            _ => check.text(&entry.value),
        };
        if let Some(value) = value {
            if value.chars().any(|c| c.is_control() && c != '\t') {
                let message = "a field's value holds a control character (RFC 9110 §5.5)";
                check.error(entry.value.span.clone(), message);
            }
            fields.push((name.clone(), value));
        }
    }
    fields
}

/// A token (RFC 9110 §5.6.2).
pub(crate) fn is_token(text: &str) -> bool {
    let token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    !text.is_empty() && text.bytes().all(token)
}

/// Every load must have the time for the blocks that the study wants at least.
pub(crate) fn check_fit(
    loads: &[Draft],
    arms: &[arms::Draft],
    blocks: &BlockSpec,
    has_limit: bool,
    check: &mut Checker,
) {
    // Without a limit such a study is refused as one that compares nothing.
    if let (true, None, [alone]) = (has_limit, blocks.slice, arms) {
        check
            .error(alone.span.clone(), "an arm that is alone needs a slice")
            .hint("a pilot compares two arms: write `blocks: {slice: 1s}`");
    }
    let slice = blocks.slice.unwrap_or(SHORTEST_SLICE);
    let slices = blocks.at_least.saturating_mul(arms.len() as u32);
    let needed = slice.saturating_mul(slices);
    let mut said: Option<&Range<usize>> = None;
    for load in loads.iter().filter(|load| load.spec.duration < needed) {
        // The cells of a matrix have one duration.
        if said.replace(&load.duration) == Some(&load.duration) {
            continue;
        }
        let message = format!(
            "{} is too short for {} blocks of {} arms",
            format_duration(load.spec.duration),
            blocks.at_least,
            arms.len()
        );
        let which = match blocks.slice {
            Some(_) => "slices of",
            None => "slices of no less than",
        };
        let hint = format!(
            "with {which} {} they take {}",
            format_duration(slice),
            format_duration(needed)
        );
        check.error(load.duration.clone(), message).hint(hint);
    }
}

/// Every slice must have the same bursts, and every request of a burst a connection of its own.
pub(crate) fn check_bursts(loads: &[Draft], blocks: &BlockSpec, check: &mut Checker) {
    for load in loads {
        let (Some(bursts), Some(at)) = (Bursts::of(&load.spec), &load.burst) else {
            continue;
        };
        let (size, connections) = (bursts.size, load.spec.connections);
        if size > connections {
            let message =
                format!("bursts of {size} requests are more than {connections} connections");
            check
                .error(at.clone(), message)
                .hint("a request that finds no connection waits for one, and is in no burst");
            return;
        }
        let period = bursts.period();
        let every = format!(
            "{size} requests at {} requests/s come every {}",
            bursts.rate,
            format_duration(period)
        );
        let Some(slice) = blocks.slice else {
            check
                .error(at.clone(), "a load with bursts needs a slice")
                .hint(format!(
                    "{every}: write `blocks: {{slice: {}}}`, or twice as long",
                    format_duration(period)
                ));
            return;
        };
        if bursts.in_slice(slice).is_none() {
            let message = format!(
                "slices of {} do not hold whole bursts",
                format_duration(slice)
            );
            check.error(at.clone(), message).hint(format!(
                "{every}: make `slice` a multiple of that, so that no arm gets more of them than another"
            ));
            return;
        }
    }
}
