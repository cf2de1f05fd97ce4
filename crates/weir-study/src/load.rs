//! The section `loads`: requests, their arrivals, and the duration of each load.

use std::ops::Range;
use std::time::Duration;

use weir_model::flow::{ArrivalsSpec, FlowSpec, LoadSpec, MAIN};
use weir_model::load::Spacing;
use weir_model::quantity::QuantityError;
use weir_model::spin::Spin;
use weir_model::study::BlockSpec;

use crate::check::{Checker, Fields};
use crate::flow;
use crate::matrix::{self, Axes, Cell};
use crate::scale::Scale;
use crate::tree::{Node, Value};
use crate::words::Slices;

mod fit;

pub(crate) use fit::{check_all, must_last};

/// Keys of a load besides those of its main flow.
const KEYS: [&str; 7] = ["name", "duration", "size", "hold", "flows", "spin", "optional"];

const LONGEST: Duration = Duration::from_secs(24 * 3600);
/// Duration of a load whose study gives none.
const UNSAID: Duration = Duration::from_secs(60);
/// Maximum number of flows of a load, including the main one.
const MOST_FLOWS: usize = 16;

/// A load, and the positions of its parts.
#[derive(Debug)]
pub(crate) struct Draft {
    pub(crate) spec: LoadSpec,
    /// Name in the file. The name of a matrix cell has the cell's numbers, which a scale changes.
    pub(crate) written: String,
    /// True if the load is left out when the machine has no room for its connections.
    pub(crate) optional: bool,
    pub(crate) places: Places,
}

/// Positions of the parts of a load that are checked once the whole study is known.
#[derive(Debug, Clone)]
pub(crate) struct Places {
    /// Position of the connections, or of the held ones, for errors about too many.
    pub(crate) connections: Range<usize>,
    /// Position of the duration, or of the whole load if it has none.
    duration: Range<usize>,
    has_duration: bool,
    burst: Option<Range<usize>>,
    /// Position of the size of the requested content.
    pub(crate) size: Option<Range<usize>>,
    /// Position of the key `tls`, if the load uses TLS.
    pub(crate) tls: Option<Range<usize>>,
    /// Positions of ports in the load and its flows.
    ports: Vec<Range<usize>>,
}

/// All loads of a study.
#[derive(Debug, Default)]
pub(crate) struct Loads {
    pub(crate) drafts: Vec<Draft>,
    /// Names in the file of matrix cells that a scale makes equal to another.
    pub(crate) merged: Vec<String>,
}

impl Loads {
    /// Returns a remark on cells that a scale makes equal to others.
    pub(crate) fn left_out(&self, scale: Scale) -> Option<String> {
        let (first, count) = (self.merged.first()?, self.merged.len());
        Some(format!(
            "{count} of the loads of a matrix are left out, `{first}` the first: at a scale of {scale} they \
             are the same as others"
        ))
    }
}

pub(crate) fn read(
    node: Option<&Node>,
    blocks: &BlockSpec,
    scale: Scale,
    check: &mut Checker,
) -> Loads {
    let mut loads = Loads::default();
    let nodes = node.and_then(|node| check.list(node, "a list of loads"));
    for node in nodes.unwrap_or_default() {
        let closed_before =
            loads.drafts.iter().any(|load| load.spec.arrivals == ArrivalsSpec::Closed);
        let slices = Slices { length: blocks.slice, closed_before };
        let Some(template) = read_load(node, slices, check) else {
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
            format!("{count} loads are too many: at most {most} are allowed"),
        );
    }
    loads
}

/// A load as it was read: a single one, or the common part of the cells of a matrix.
struct Template {
    draft: Draft,
    axes: Option<Axes>,
    name_at: Range<usize>,
}

/// Expands `template` to its loads, scaled, each once.
fn expanded(template: &Template, scale: Scale, merged: &mut Vec<String>) -> Vec<Draft> {
    let spec = &template.draft.spec;
    let cells = match &template.axes {
        Some(axes) => axes.loads(spec, scale),
        None => vec![Cell { spec: scaled(spec.clone(), scale), written: spec.name.clone() }],
    };
    let mut drafts: Vec<Draft> = Vec::new();
    for cell in cells {
        if drafts.iter().any(|other| other.spec.name == cell.spec.name) {
            merged.push(cell.written);
            continue;
        }
        drafts.push(Draft {
            spec: beside_scaled(cell.spec, scale),
            written: cell.written,
            optional: template.draft.optional,
            places: template.draft.places.clone(),
        });
    }
    drafts
}

/// Scales the main flow of a load that is not a matrix.
fn scaled(mut spec: LoadSpec, scale: Scale) -> LoadSpec {
    scale_flow(&mut spec.main, scale);
    spec
}

fn beside_scaled(mut spec: LoadSpec, scale: Scale) -> LoadSpec {
    spec.beside.iter_mut().for_each(|flow| scale_flow(flow, scale));
    spec.beside.retain(|flow| flow.connections > 0);
    spec
}

/// Scales a flow. Shares of a measured rate scale by themselves. Traces keep their times and are not scaled.
fn scale_flow(flow: &mut FlowSpec, scale: Scale) {
    flow.connections = if flow.is_held() {
        scale.held(flow.connections)
    } else {
        scale.connections(flow.connections)
    };
    let mut factor = None;
    if let Spacing::Burst { size } = &mut flow.spacing {
        // As many bursts as before, so that slices still hold whole ones.
        let before = f64::from(*size);
        *size = scale.connections(*size);
        factor = Some(f64::from(*size) / before);
    }
    match (&mut flow.arrivals, factor) {
        (ArrivalsSpec::Constant(rate), Some(factor)) => *rate *= factor,
        (ArrivalsSpec::Constant(rate), None) => *rate = scale.rate(*rate),
        (ArrivalsSpec::Varied(segments), _) => {
            for segment in segments {
                segment.from *= scale.factor();
                segment.to *= scale.factor();
            }
        }
        _ => {}
    }
}

/// Reads a load. Invalid parts are reported and replaced, so that later checks still have a load.
fn read_load(node: &Node, slices: Slices, check: &mut Checker) -> Option<Template> {
    let keys = [&KEYS[..], &flow::KEYS[..]].concat();
    let fields = Fields::known(node, "a load", &keys, check)?;
    let axes = matrix::axes(&fields, check);
    // The cells of a matrix are named by their numbers.
    let name_node = match axes {
        Some(_) => fields.get("name"),
        None => fields.required("name", check),
    };
    let name_at = name_node.map_or(fields.span(), |node| node.span.clone());
    let name = name_node.and_then(|node| check.name(node));
    let mut main = flow::read(&fields, MAIN, slices, check);
    if main.is_held() {
        let at = fields.entry("connection").map_or(fields.span(), |entry| entry.value.span.clone());
        check
            .error(at, "a load must send requests")
            .hint("write `hold: 10000` in a load that sends requests");
    }
    let duration_node = fields.get("duration");
    let duration =
        duration_node.and_then(|node| check.duration(node, Duration::from_secs(1)..=LONGEST));
    let size_node = fields.get("size");
    let size = size_node.and_then(|node| flow::size(node, &fields, &mut main, check));
    let hold = fields.get("hold");
    let held = hold.and_then(|node| flow::held(node, check)).unwrap_or(0);
    let mut beside = read_beside(&fields, &main, slices, check);
    beside.extend((held > 0).then(|| FlowSpec::held(held)));
    let spin = fields.get("spin").and_then(|node| spin_of(node, check));
    let optional = fields.get("optional").and_then(|node| check.flag(node)).unwrap_or(false);
    let places = Places {
        connections: fields
            .value_span("hold")
            .or(fields.value_span("connections"))
            .unwrap_or(fields.span()),
        duration: fields.value_span("duration").unwrap_or(fields.span()),
        has_duration: duration_node.is_some(),
        burst: fields.value_span("burst").or(fields.value_span("arrivals")),
        size: size.and(fields.value_span("size")),
        tls: main.tls.as_ref().and(fields.value_span("tls")),
        ports: fields.value_span("port").into_iter().chain(ports_of_flows(&fields)).collect(),
    };
    let spec = LoadSpec {
        beside,
        spin: spin.unwrap_or(Spin::Auto),
        size,
        // Without a name it was refused, so the load equals no other by name.
        ..LoadSpec::new(&name.unwrap_or_default(), main, duration.unwrap_or(UNSAID))
    };
    let draft = Draft { spec, written: String::new(), optional, places };
    Some(Template { draft, axes, name_at })
}

/// Reads `auto`, or a duration.
fn spin_of(node: &Node, check: &mut Checker) -> Option<Spin> {
    let text = check.scalar(node, "auto or a duration such as 60us")?;
    text.parse()
        .map_err(|error: QuantityError| check.error(node.span.clone(), error.to_string()))
        .ok()
}

/// Returns the positions of ports in the flows beside a load's own.
fn ports_of_flows(fields: &Fields<'_>) -> Vec<Range<usize>> {
    let flows = match fields.get("flows").map(|node| &node.value) {
        Some(Value::List(flows)) => &flows[..],
        _ => &[],
    };
    let ports = flows
        .iter()
        .filter_map(|flow| match &flow.value {
            Value::Mapping(entries) => Some(entries),
            _ => None,
        })
        .flatten()
        .filter(|entry| entry.key == "port");
    ports.map(|entry| entry.value.span.clone()).collect()
}

/// Reads the flows that run at the same time as the main one.
fn read_beside(
    fields: &Fields<'_>,
    main: &FlowSpec,
    slices: Slices,
    check: &mut Checker,
) -> Vec<FlowSpec> {
    let mut flows: Vec<FlowSpec> = Vec::new();
    let nodes = fields.get("flows").and_then(|node| check.list(node, "a list of flows"));
    for node in nodes.unwrap_or_default() {
        let keys = [&["name"][..], &flow::KEYS[..]].concat();
        let Some(flow_fields) = Fields::known(node, "a flow", &keys, check) else {
            continue;
        };
        let name = flow_fields
            .required("name", check)
            .and_then(|node| check.name(node))
            .unwrap_or_default();
        let flow = flow::read(&flow_fields, &name, slices, check);
        #[rustfmt::skip]
        let faults = [
            (name == MAIN || flows.iter().any(|other| !name.is_empty() && other.name == name),
             "two flows of the load have this name",
             "give each flow its own name; the load's own flow is called `main`"),
            (!flow.is_held() && flow.is_open() != main.is_open(),
             "the flows of a load must all be closed, or all have rates",
             "closed and open loads measure different things: write two loads"),
            (matches!(flow.arrivals, ArrivalsSpec::ShareOfSlowest(_) | ArrivalsSpec::UpToShareOfSlowest(_)),
             "a flow under `flows` needs its rate in requests per second",
             "only the load's own rate can be a share of the slowest arm's"),
            (matches!(flow.spacing, Spacing::Burst { .. }),
             "only the load's own flow can have bursts",
             "slices are fitted to the bursts of one flow"),
        ];
        let connections = flow_fields.get("connections").filter(|node| matrix::is_axis(node));
        let rate = flow_fields.get("rate").filter(|node| matrix::is_axis_of_rates(node));
        for node in connections.into_iter().chain(rate) {
            check
                .error(node.span.clone(), "a flow under `flows` has a single value for each key")
                .hint("only the load itself may be a matrix: write one number, or one load for each number");
        }
        for (_, message, hint) in faults.iter().filter(|(is_so, ..)| *is_so) {
            check.error(flow_fields.span(), *message).hint(*hint);
        }
        flows.push(flow);
    }
    if flows.len() >= MOST_FLOWS {
        let message = format!("a load has at most {MOST_FLOWS} flows, its own included");
        check.error(fields.span(), message);
    }
    flows
}
