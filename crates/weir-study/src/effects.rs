//! Remarks on keys of a study that can have no effect as things stand. These are not errors, but the user should not
//! expect the effect.

use std::time::Duration;

use weir_model::flow::FlowSpec;
use weir_model::spin::Spin;
use weir_model::study::{Arm, ArmRole, BlockSpec, Compare, LoadSpec, OriginSpec, ProxyRole, Study};
use weir_parameters::{Catalog, Counter, ShownBy};

/// Shortest slice that the lab chooses.
const SHORTEST_SLICE: Duration = Duration::from_millis(50);

/// Returns a sentence for each key without effect.
pub(crate) fn without_effect(study: &Study, catalog: &Catalog) -> Vec<String> {
    let mut sentences = Vec::new();
    sentences.extend(study.loads.iter().filter_map(spin));
    sentences.extend(study.loads.iter().filter_map(weight));
    sentences.extend(launchers(study, catalog));
    sentences.extend(pairs(study));
    sentences.extend(origin(study));
    sentences.extend(instances(study));
    sentences.extend(confidence(study));
    sentences
}

/// Returns a remark on an arm that compresses, although no request of a load says that the client accepts it.
/// Compression in a stock configuration is nobody's intention, and gets no remark.
pub(crate) fn compression(study: &Study, catalog: &Catalog, arm: &Arm) -> Option<String> {
    let kind = study.proxy_of(arm).kind;
    let is_baseline = arm.role == ArmRole::Baseline;
    let stock = catalog.stock(kind);
    let (id, level) = arm.settings.iter().find(|&(id, level)| {
        let is_wished = arm.changes.contains_key(id) || is_baseline && stock.get(id) != Some(level);
        let shows = catalog.get(kind, id).and_then(|row| row.shows.as_ref());
        is_wished
            && shows.is_some_and(|shows| {
                shows.counter == Counter::ReceivedBytes
                    && shows.goes == ShownBy::Down
                    && shows.is_on(level)
            })
    })?;
    let loads: Vec<&str> = study
        .loads
        .iter()
        .filter(|load| {
            let mut asking = load.flows().filter(|flow| !flow.is_held()).peekable();
            asking.peek().is_some() && !asking.any(FlowSpec::asks_compressed)
        })
        .map(|load| &*load.name)
        .collect();
    let scope = match loads.len() {
        0 => return None,
        some if some == study.loads.len() => String::new(),
        _ => format!(" of load `{}`", loads.join("`, `")),
    };
    Some(format!(
        "arm `{}`: `{id}: {level}` has no effect: no request{scope} has the header Accept-Encoding, and a client that does not \
         ask gets plain responses; give the load `request: {{fields: {{Accept-Encoding: gzip}}}}`",
        arm.name
    ))
}

fn spin(load: &LoadSpec) -> Option<String> {
    (matches!(load.spin, Spin::For(_)) && !load.spin.is_off() && !load.is_open()).then(|| {
        format!(
            "`spin` of load `{}` has no effect: a closed loop has no arrivals to be awake before",
            load.name
        )
    })
}

fn weight(load: &LoadSpec) -> Option<String> {
    let [only] = &load.main.requests[..] else {
        return None;
    };
    (only.weight != 1.0)
        .then(|| format!("the weight of the only request of load `{}` has no effect", load.name))
}

fn launchers<'a>(study: &'a Study, catalog: &'a Catalog) -> impl Iterator<Item = String> {
    study
        .launchers
        .keys()
        .filter(|name| {
            let mut arms = study.arms.iter();
            !arms.any(|arm| catalog.started_through(&arm.settings) == Some(*name))
        })
        .map(|name| format!("launcher `{name}` has no effect: no arm is started through it"))
}

fn pairs(study: &Study) -> Option<String> {
    let compared = study.arms.iter().filter(|arm| arm.role != ArmRole::SameAsBaseline);
    (study.compare == Compare::Pairs && compared.count() < 3).then(|| {
        "`compare: pairs` has no effect: there is only one pair of arms, which is compared anyway"
            .to_owned()
    })
}

fn origin(study: &Study) -> Option<String> {
    let serves_files = matches!(study.proxy.role, ProxyRole::StaticFiles { .. });
    (serves_files && study.origin != OriginSpec::default()).then(|| {
        "`origin` has no effect: the proxy serves files and asks no origin server".to_owned()
    })
}

/// Returns the load with most blocks, and their number.
fn most_blocks(study: &Study) -> Option<(&str, u32)> {
    let slice = study.blocks.slice.unwrap_or(SHORTEST_SLICE);
    let block = slice * 2 * study.arms.len() as u32;
    let blocks_of_loads = study.loads.iter().map(|load| {
        let fit = load.duration.as_nanos() / block.as_nanos().max(1);
        (&*load.name, (fit.min(u128::from(u32::MAX)) as u32).max(study.blocks.at_least))
    });
    blocks_of_loads.max_by_key(|(_, blocks)| *blocks)
}

/// Returns a remark on more `instances` than blocks. The default gets no remark, because no user chose it.
fn instances(study: &Study) -> Option<String> {
    let (wanted, usual) = (study.blocks.instances, BlockSpec::default().instances);
    let (load, blocks) = most_blocks(study).filter(|(_, blocks)| wanted > (*blocks).max(usual))?;
    Some(format!(
        "`instances: {wanted}` cannot have its effect: load `{load}` has {blocks} blocks at most, each with an instance \
         at most"
    ))
}

/// Returns a remark on a confidence that needs more blocks than any load has. The interval from the smallest to the
/// largest of n replicates has a confidence of 1 - 2^(1 - n).
fn confidence(study: &Study) -> Option<String> {
    let confidence = study.objective.confidence;
    let needed = (1.0 - (1.0 - confidence).log2() - 1e-9).ceil();
    let (load, blocks) = most_blocks(study).filter(|(_, blocks)| f64::from(*blocks) < needed)?;
    Some(format!(
        "`confidence: {}%` cannot have its effect: it takes {needed} blocks, and load `{load}` has {blocks} at most",
        confidence * 100.0
    ))
}
