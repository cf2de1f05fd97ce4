//! Loads that are too short for the quantile that a study asks for, and the time or rate that would suffice.

use std::time::Duration;

use weir_analysis::{samples_needed, samples_wanted};
use weir_model::quantity::format_duration;
use weir_model::study::{LoadSpec, Study};
use weir_stats::least_replicates;

use crate::{arrivals, budget};

/// Open loop that gives an arm too few requests to compare the quantile.
struct ShortLoad<'a> {
    load: &'a LoadSpec,
    /// Requests in a replicate; `None` if the rate is a share of one that has not been measured.
    requests: Option<u64>,
    /// Duration of the load that would give a replicate enough requests; `None` as for `requests`.
    suffices: Option<Duration>,
    /// Requests per second that would suffice in the load's own time.
    rate: f64,
}

/// Returns the minimum number of replicates that can show a difference among the study's comparisons. A single arm is
/// compared with a limit, so all its requests count together.
fn replicates(study: &Study) -> u32 {
    match study.arms.len() {
        1 => 1,
        _ => least_replicates(study.questions().len(), study.objective.confidence) as u32,
    }
}

/// Returns the requests of an arm in a block at one request per second.
fn share_of_block(study: &Study, load: &LoadSpec) -> f64 {
    let slice = budget::planned_slice(study, load).as_secs_f64();
    2.0 * slice * (1.0 - load.discard(&study.blocks))
}

/// Returns the time that a load needs for the quantile that the study asks for; `None` if the study asks for none of
/// this load, or the load's rate is not known before the run.
fn time_for_quantile(study: &Study, load: &LoadSpec) -> Option<Duration> {
    let is_asked = study.capacity.is_empty() && load.is_open();
    let wanted = samples_wanted(study.objective.metric);
    if !is_asked || wanted == 0 {
        return None;
    }
    // A trace that cannot be read is an error where it is read to be sent.
    let rate = arrivals::rate(load, &study.blocks, None).ok()??;
    let per_block = (rate * share_of_block(study, load)).max(1e-3);
    let merged = (wanted as f64 / per_block).ceil().max(1.0);
    let block = budget::planned_slice(study, load) * 2 * study.arms.len() as u32;
    let seconds = block.as_secs_f64() * merged * f64::from(replicates(study));
    Some(Duration::from_secs(seconds.ceil() as u64))
}

/// Extends loads to the time needed for the quantile that the study asks for.
pub fn keep_quantiles(study: &mut Study) {
    let times: Vec<Option<Duration>> =
        study.loads.iter().map(|load| time_for_quantile(study, load)).collect();
    for (load, needed) in study.loads.iter_mut().zip(times) {
        load.duration = load.duration.max(needed.unwrap_or_default());
    }
}

/// Describes the loads of a study that are too short for the quantile that it asks for, in one sentence without a full
/// stop; `None` if there are none.
pub fn short_loads(study: &Study) -> Option<String> {
    let wanted = samples_wanted(study.objective.metric);
    if !study.capacity.is_empty() || wanted == 0 {
        return None;
    }
    let short: Vec<ShortLoad<'_>> = study
        .loads
        .iter()
        .filter(|load| load.is_open())
        .filter_map(|load| short_load(study, load))
        .collect();
    // What is enough for the shortest is enough for all.
    let worst = short.iter().max_by(|a, b| a.rate.total_cmp(&b.rate))?;
    let quantile = study.objective.metric.response_quantile()? * 100.0;
    let more_loads = match short.len() {
        1 => String::new(),
        more => format!(" (and {} other loads)", more - 1),
    };
    let name = &worst.load.name;
    let (replicates, rate) = (replicates(study), (worst.rate / 10.0).ceil() * 10.0);
    let Some((requests, suffices)) = worst.requests.zip(worst.suffices) else {
        return Some(format!(
            "load `{name}`{more_loads} has a rate that is not known yet: below {rate} requests/s, {} are short for the p{quantile} that \
             the study asks for",
            format_duration(worst.load.duration)
        ));
    };
    let consequence = if requests < samples_needed(study.objective.metric) {
        "nothing will be claimed from it"
    } else {
        "its interval will be wider than it could be"
    };
    let suffices = match study.budget {
        Some(budget) => {
            let times = suffices.as_secs_f64() / worst.load.duration.as_secs_f64();
            format!("--budget {}s", budget.mul_f64(times).as_secs() + 1)
        }
        None => format!("`duration: {}s`", suffices.as_secs()),
    };
    let by_replicate = match replicates {
        1 => String::new(),
        count => format!(" in each of {count} replicates"),
    };
    Some(format!(
        "load `{name}`{more_loads} is too short for the p{quantile} that the study asks for: an arm gets about {requests} \
         requests{by_replicate}, and {wanted} are wanted, so {consequence}. {suffices} or {rate} requests/s would do"
    ))
}

fn short_load<'a>(study: &Study, load: &'a LoadSpec) -> Option<ShortLoad<'a>> {
    let blocks = budget::count_blocks(study, load, budget::planned_slice(study, load));
    let share = share_of_block(study, load) * f64::from((blocks / replicates(study)).max(1));
    let rate = samples_wanted(study.objective.metric) as f64 / share;
    let short = ShortLoad { load, requests: None, suffices: None, rate };
    match arrivals::rate(load, &study.blocks, None).ok()? {
        None => Some(short),
        Some(offered) if offered >= rate => None,
        Some(offered) => Some(ShortLoad {
            requests: Some((offered * share) as u64),
            suffices: time_for_quantile(study, load),
            ..short
        }),
    }
}

#[cfg(test)]
mod tests {
    use weir_model::fixture;
    use weir_model::study::{ArmRole, Metric, StudyArrivals};

    use super::*;

    fn asking(rate: StudyArrivals, seconds: u64) -> Study {
        let roles = [ArmRole::Baseline, ArmRole::SameAsBaseline, ArmRole::Change];
        let arms = roles.map(|role| fixture::arm(&format!("{role:?}"), role, &[]));
        let mut study = fixture::study(arms.to_vec());
        study.loads = vec![fixture::load("open", rate)];
        study.loads[0].duration = Duration::from_secs(seconds);
        study.objective.metric = Metric::ResponseP99;
        study
    }

    #[test]
    fn a_short_load_is_named_with_the_time_and_the_rate_that_do() {
        use StudyArrivals::{Closed, Constant, ShareOfSlowest};
        // Blocks of three arms take 600 ms, 160 of which are measured of each arm; six replicates.
        for (arrivals, seconds, words) in [
            (
                Constant(500.0),
                30,
                "about 640 requests in each of 6 replicates, and 1000 are wanted",
            ),
            (Constant(500.0), 30, "`duration: 47s` or 790 requests/s would do"),
            (Constant(60.0), 30, "nothing will be claimed from it"),
            (ShareOfSlowest(0.6), 30, "below 790 requests/s, 30s are short for the p99"),
            (Constant(800.0), 30, ""),
            (Constant(500.0), 47, ""),
            (Closed, 30, ""),
        ] {
            let sentence = short_loads(&asking(arrivals, seconds)).unwrap_or_default();
            assert!(sentence.contains(words), "{words}: {sentence}");
            assert_eq!(sentence.is_empty(), words.is_empty(), "{sentence}");
        }
        let mut alone = asking(Constant(60.0), 10);
        alone.arms.truncate(1);
        let sentence = short_loads(&alone).unwrap();
        let words = "an arm gets about 480 requests, and 1000 are wanted";
        assert!(sentence.contains(words), "{sentence}");
        let mut budgeted = asking(Constant(500.0), 30);
        budgeted.budget = Some(Duration::from_secs(60));
        let sentence = short_loads(&budgeted).unwrap();
        assert!(sentence.contains("--budget 95s or"), "{sentence}");
        budgeted.objective.metric = Metric::Rate;
        assert_eq!(short_loads(&budgeted), None, "nobody asks");
        assert_eq!(time_for_quantile(&budgeted, &budgeted.loads[0]), None);
    }
    #[test]
    fn loads_that_are_too_short_are_made_long_enough_and_no_others() {
        use StudyArrivals::{Closed, Constant, ShareOfSlowest};
        for (arrivals, seconds, kept) in [
            (Constant(500.0), 30, 47),
            (Constant(500.0), 60, 60),
            (Constant(5_000.0), 30, 30),
            (ShareOfSlowest(0.6), 30, 30),
            (Closed, 30, 30),
        ] {
            let mut study = asking(arrivals.clone(), seconds);
            keep_quantiles(&mut study);
            let duration = Duration::from_secs(kept);
            assert_eq!(study.loads[0].duration, duration, "{arrivals:?}");
            let is_known = !matches!(arrivals, ShareOfSlowest(_));
            assert!(!is_known || short_loads(&study).is_none(), "{arrivals:?}");
        }
    }
}
