//! Requests of loads to configurations that the user wrote, and arms that cannot have a copy of their configuration.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use weir_agent::message::{ArmStarted, CopyJob, HostRequirements, Missing};
use weir_model::flow::LoadSpec;
use weir_model::record::{
    AskedRecord, FROM_FILES, Remark, ReplacedRecord, SpotRecord, replaced_sentences,
};
use weir_model::study::{Arm, ArmRole, AskSpec, Compare, ProxyRole, ProxySpec, Settings, Study};

use crate::error::HostError;
use crate::hosts::Hosts;
use crate::left_out::without;
use crate::options::{Options, Role};

/// Requests of a study's loads, by the name of the arm whose configuration answers them.
pub type AskedByArm = BTreeMap<String, Vec<AskedRecord>>;

/// Returns, by arm name, why arms cannot have their copies of the user's configurations, or cannot be compared by them.
///
/// # Errors
/// One of these arms is the baseline, without which no study is possible, or no change is left.
pub fn no_copies(study: &Study, missing: &Missing) -> Result<BTreeMap<String, String>, HostError> {
    let mut whys = missing.copies.clone();
    for arm in &study.arms {
        if let Some(what) = lost_difference(study, arm, missing) {
            let hint = "measure it where the originals run: `weir load` and `weir capacity` with the address of each";
            whys.entry(arm.name.clone()).or_insert((what, Some(hint.to_owned())));
        }
    }
    let mut changes = study.arms.iter().filter(|arm| arm.role == ArmRole::Change);
    let is_any_left = changes.any(|arm| !whys.contains_key(&arm.name));
    let mut refused = BTreeMap::new();
    for arm in &study.arms {
        let Some((what, hint)) = whys.get(&arm.name) else {
            continue;
        };
        let error =
            HostError::Copy { arm: arm.name.clone(), what: what.clone(), hint: hint.clone() };
        if arm.role != ArmRole::Change || !is_any_left {
            return Err(error);
        }
        let why = match hint {
            Some(hint) => format!("{what}; {hint}"),
            None => what.clone(),
        };
        refused.insert(arm.name.clone(), why);
    }
    Ok(refused)
}

/// Returns the reason why an arm is not compared with the earlier arms that it would be compared with; `None` if it can
/// be. For requests of the loads, one of the two originals has a part that its copy lacks and the other original does
/// not have, so the copies would not show that they differ.
fn lost_difference(study: &Study, arm: &Arm, missing: &Missing) -> Option<String> {
    if arm.role != ArmRole::Change {
        return None;
    }
    let compared = study.arms.iter().enumerate().filter(|(place, other)| {
        *place == arm.against
            || (study.compare == Compare::Pairs && other.role != ArmRole::SameAsBaseline)
    });
    compared.map(|(_, other)| other).take_while(|other| other.name != arm.name).find_map(|base| {
        let lost = lost_between(arm, base, missing);
        lost.or_else(|| same_copy(study, [arm, base], missing))
    })
}

/// Describes two configurations whose copies are the same, if the arms differ in nothing else.
fn same_copy(study: &Study, arms: [&Arm; 2], missing: &Missing) -> Option<String> {
    let [arm, base] = arms;
    let [own, other] = arms.map(|arm| missing.hashes.get(&arm.name));
    let ([text, copy], [other_text, other_copy]) = (own?, other?);
    let [proxy, other_proxy] = arms.map(|arm| study.proxy_of(arm));
    let is_same = copy == other_copy
        && (&arm.settings, &arm.cpus) == (&base.settings, &base.cpus)
        && proxy.executable == other_proxy.executable;
    (text != other_text && is_same).then(|| {
        format!(
            "`{}` and `{}` differ, but their copies are the same: nothing in which they differ is kept in a copy",
            arm.name, base.name
        )
    })
}

fn lost_between(arm: &Arm, base: &Arm, missing: &Missing) -> Option<String> {
    let of_arm = lost(missing.asked.get(&arm.name)?);
    let of_base = lost(missing.asked.get(&base.name)?);
    let mut bearer = arm;
    let mut sentences = only_in(&of_arm, &of_base);
    if sentences.is_empty() {
        bearer = base;
        sentences = only_in(&of_base, &of_arm);
    }
    (!sentences.is_empty()).then(|| {
        format!(
            "`{}` and `{}` differ in what copies lose, and a comparison of the copies would not show it: `{}` has {}",
            arm.name,
            base.name,
            bearer.name,
            sentences.join("; ")
        )
    })
}

/// Describes in sentences the replaced parts that one configuration has and another has not.
fn only_in(records: &[&ReplacedRecord], others: &[&ReplacedRecord]) -> Vec<String> {
    replaced_sentences(records.iter().copied().filter(|record| {
        !others
            .iter()
            .any(|other| (other.part, &other.original.name) == (record.part, &record.original.name))
    }))
}

/// Returns the parts of a configuration that its copy lacks.
fn lost(asked: &[AskedRecord]) -> Vec<&ReplacedRecord> {
    asked
        .iter()
        .flat_map(|record| &record.replaced)
        .filter(|record| record.part.is_lost())
        .collect()
}

/// Returns, by arm name, the jobs for copies of the user's configurations.
pub fn build_copies(study: &Study) -> BTreeMap<String, CopyJob> {
    study
        .arms
        .iter()
        .filter_map(|arm| {
            let proxy = study.proxy_of(arm);
            let job = CopyJob {
                kind: proxy.kind,
                executable: proxy.executable.clone(),
                main: proxy.configuration.as_ref()?.file.clone(),
                settings: arm.settings.clone(),
                asks: study.asks(proxy),
            };
            Some((arm.name.clone(), job))
        })
        .collect()
}

/// Finds the parts of the user's configurations that answer a study's loads, by arm, as they are on the proxies' host.
/// The remarks say why arms cannot have a copy. Nothing is started.
///
/// # Errors
/// The host cannot be reached; the baseline cannot have its configuration.
pub fn asked(study: &Study, options: &Options) -> Result<(AskedByArm, Vec<Remark>), HostError> {
    let copies = build_copies(study);
    if copies.is_empty() || options.places.model.is_some() {
        return Ok(Default::default());
    }
    let hosts = Hosts::open(options)?;
    let wanted = HostRequirements { copies, ..HostRequirements::default() };
    let missing = hosts.host(Role::Proxy).ask(wanted)?;
    let (_, mut remarks) = without(study, no_copies(study, &missing)?)?;
    remarks.extend(about_answers(study, &missing));
    remarks.extend(about_vanished(study, &missing));
    let asked_by_arm = missing
        .asked
        .into_iter()
        .filter_map(|(name, records)| {
            let arm = study.arms.iter().find(|arm| arm.name == name)?;
            let records = with_loads(study, study.proxy_of(arm), records);
            Some((name, records))
        })
        .collect();
    Ok((asked_by_arm, remarks))
}

/// Maximum number of places that a remark names.
const MOST_PLACES: usize = 8;

/// Returns remarks about differences between two arms' configurations that their copies lack, except those listed as
/// replaced.
pub fn about_vanished(study: &Study, missing: &Missing) -> Vec<Remark> {
    study
        .arms
        .iter()
        .filter(|arm| arm.role == ArmRole::Change)
        .filter_map(|arm| vanished_from(&study.arms[arm.against], arm, missing))
        .collect()
}

fn vanished_from(base: &Arm, arm: &Arm, missing: &Missing) -> Option<Remark> {
    let replaced =
        [base, arm].map(|arm| missing.asked.get(&arm.name)).into_iter().flatten().flatten();
    let originals: Vec<&SpotRecord> =
        replaced.flat_map(|record| &record.replaced).map(|record| &record.original).collect();
    let all = missing.vanished.get(&base.name)?.get(&arm.name)?;
    let places: Vec<String> = all
        .iter()
        .filter(|spot| {
            let mut replaced = originals.iter();
            !replaced.any(|original| (&original.file, original.line) == (&spot.file, spot.line))
        })
        .map(ToString::to_string)
        .collect();
    let first = places.get(..MOST_PLACES).unwrap_or(&places);
    let more = match places.len() - first.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (!places.is_empty()).then(|| Remark {
        arm: None,
        text: format!(
            "the copies of `{}` and `{}` are alike in what differs in the originals at {}{more}, so the comparison shows nothing of it",
            arm.name,
            base.name,
            first.join(", ")
        ),
    })
}

/// Returns remarks about answers that are seldom intended: a reverse proxy answers from files, so that the origin
/// server gets no requests (a distribution's default server); or the user configured compression and no request of the
/// load accepts it.
pub fn about_answers(study: &Study, missing: &Missing) -> Vec<Remark> {
    let mut remarks: Vec<Remark> = Vec::new();
    for arm in &study.arms {
        let proxy = study.proxy_of(arm);
        let records = missing.asked.get(&arm.name).cloned().unwrap_or_default();
        let is_gateway = proxy.role == ProxyRole::ReverseProxy;
        for record in with_loads(study, proxy, records) {
            let loads = record.loads.join(", ");
            let mut requests = record.requests.iter();
            let files = (is_gateway && requests.all(|request| request.answer == FROM_FILES)).then(|| {
                format!(
                    "{loads}: {}, so the origin server gets no requests; if this is not intended, name `host`, `path` or `port` in the load",
                    record.places().join(", ")
                )
            });
            let plain = unasked(&record, &arm.settings).map(|spot| {
                format!(
                    "{loads}: {spot} has no effect: no request has the header Accept-Encoding, which browsers send, and a client \
                     that does not ask gets plain responses; give the load `request: {{fields: {{Accept-Encoding: gzip}}}}`"
                )
            });
            for text in files.into_iter().chain(plain) {
                if !remarks.iter().any(|known| known.text == text) {
                    remarks.push(Remark { arm: None, text });
                }
            }
        }
    }
    remarks
}

/// Returns the user's compression directive that takes effect for none of these requests, since none accepts it. If the
/// arm itself sets the parameter, its value counts and the result is `None`.
fn unasked<'r>(record: &'r AskedRecord, settings: &Settings) -> Option<&'r SpotRecord> {
    let mut spots = record.requests.iter().map(|request| request.compressed.as_ref());
    let first = spots.next().flatten()?;
    let id = first.name.split(' ').next().unwrap_or_default();
    (spots.all(|spot| spot.is_some()) && !settings.contains_key(id)).then_some(first)
}

/// Adds to the record of each of [`Study::asks`] the names of the loads that send such requests.
fn with_loads(study: &Study, proxy: &ProxySpec, mut records: Vec<AskedRecord>) -> Vec<AskedRecord> {
    let asks = study.asks(proxy);
    let Some(own) = &proxy.configuration else {
        return records;
    };
    for load in &study.loads {
        let asking = load.flows().enumerate().filter(|(_, flow)| !flow.is_held());
        for (place, flow) in asking {
            let ask = AskSpec::of(load, flow, own, &proxy.role);
            let of_ask = asks.iter().position(|known| *known == ask);
            let name = match place {
                0 => load.name.clone(),
                _ => format!("{}, flow {}", load.name, flow.name),
            };
            if let Some(record) = of_ask.and_then(|of_ask| records.get_mut(of_ask)) {
                record.loads.push(name);
            }
        }
    }
    records
}

/// Returns the records of a started arm, each with the names of the loads that send such requests.
pub fn of_started(study: &Study, arm: &Arm, started: &ArmStarted) -> Vec<AskedRecord> {
    let records = started.asked.iter().map(|(_, record)| record.clone());
    with_loads(study, study.proxy_of(arm), records.collect())
}

/// Returns the address at which an arm takes each of [`Study::asks`].
pub fn where_asked(study: &Study, arm: &Arm, started: &ArmStarted) -> Vec<(AskSpec, SocketAddr)> {
    study
        .asks(study.proxy_of(arm))
        .into_iter()
        .zip(started.asked.iter().map(|(at, _)| *at))
        .collect()
}

/// Returns the address among these for each flow of a load; empty if weir wrote the configuration.
pub fn addresses(
    load: &LoadSpec,
    proxy: &ProxySpec,
    asked: &[(AskSpec, SocketAddr)],
) -> Vec<SocketAddr> {
    let Some(configuration) = &proxy.configuration else {
        return Vec::new();
    };
    load.flows()
        .filter_map(|flow| {
            let ask = AskSpec::of(load, flow, configuration, &proxy.role);
            asked.iter().find(|(spec, _)| *spec == ask).map(|(_, at)| *at)
        })
        .collect()
}
