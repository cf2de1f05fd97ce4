//! `--time` and `--budget`: the time of a run, as a share of the study's time or as a duration, and the reasons why it
//! may take longer.

use std::time::Duration;

use weir_model::quantity::parse_duration;
use weir_model::study::Study;
use weir_report::number;

use crate::failure::Failure;

/// Shortest slice that is set here, which is also the shortest that a pilot chooses.
const SHORTEST_SLICE: Duration = Duration::from_millis(50);
/// Ratio of a run's time to its share above which a remark is made.
const CLOSE: f64 = 1.1;

/// Gives all loads this share of their time. Returns sentences about other changes that this causes, and about a run
/// that still takes longer than its share, with the reason.
///
/// # Errors
/// The text is not a share.
pub(crate) fn shorten(study: &mut Study, text: &str) -> Result<Vec<String>, Failure> {
    let percent: Option<f64> = text.trim_end_matches('%').trim().parse().ok();
    let share = percent.filter(|_| text.ends_with('%')).map(|percent| percent / 100.0);
    let Some(share) = share.filter(|share| *share > 0.0 && *share <= 100.0) else {
        return Err(Failure::input(format!("--time: `{text}` is not a share such as 25% or 200%")));
    };
    let wanted = length_of(study).mul_f64(share);
    let slice = study.blocks.slice;
    multiply(study, share);
    let mut remarks = Vec::new();
    if let (Some(before), Some(now)) = (slice, study.blocks.slice)
        && now < before
    {
        remarks.push(format!(
            "--time {text}: slices last {} instead of {}, so that each load has its {} blocks",
            number::length(now),
            number::length(before),
            study.blocks.at_least
        ));
    }
    let takes = length_of(study);
    if takes > wanted.mul_f64(CLOSE) {
        remarks.push(format!(
            "--time {text} would be {}, but the run takes about {}: {}",
            number::length(wanted),
            number::length(takes),
            why_longer(study, share)
        ));
    }
    Ok(remarks)
}

fn multiply(study: &mut Study, share: f64) {
    study.loads.iter_mut().for_each(|load| load.duration = load.duration.mul_f64(share));
    shorten_slice(study);
}

/// Reads the budget.
///
/// # Errors
/// The text is not a time, or is zero.
pub(crate) fn budget(text: &str) -> Result<Duration, Failure> {
    let budget =
        parse_duration(text).map_err(|error| Failure::input(format!("--budget: {error}")))?;
    match budget {
        Duration::ZERO => Err(Failure::input("--budget: nothing can be measured in no time")),
        budget => Ok(budget),
    }
}

/// Returns a remark if a search for capacities cannot hold a rate within the study's budget.
///
/// # Errors
/// The budget is too short to try any rate; the error says how much suffices.
pub(crate) fn fit_search(study: &Study) -> Result<Option<String>, Failure> {
    let Some(budget) = study.budget else {
        return Ok(None);
    };
    let (least, claiming) =
        (weir_proposers::least_search(study), weir_proposers::claiming_search(study));
    let hold = number::length(study.search.hold);
    let suffices_s = claiming.as_secs() + 1;
    if budget < least {
        let message = format!(
            "a budget of {} is too short for any result: with what comes before, the first rates take about {}",
            number::length(budget),
            number::length(Duration::from_secs(least.as_secs() + 1)),
        );
        return Err(Failure::input(message).hint(format!(
            "use --budget {}s, or {suffices_s}s if a rate is to be held for {hold}",
            least.as_secs() + 1
        )));
    }
    Ok((budget < claiming).then(|| {
        format!(
            "A budget of {} has no time to hold a rate for {hold}: the answer will be rates that were carried for some \
             seconds. --budget {suffices_s}s has",
            number::length(budget)
        )
    }))
}

/// Returns the approximate length of a run, including the time before its first load and the stretches after its plan.
fn length_of(study: &Study) -> Duration {
    weir_proposers::budget::LOOK
        + weir_proposers::budget::length_of(study)
        + weir_proposers::length_of_stretches(study)
}

/// Lengthens or shortens all loads to fit the study's budget, including a check of its arms one at a time if there is
/// one. Returns a sentence that says by how much. Every load keeps the blocks without which nothing can be claimed and,
/// if the budget allows it, those needed for the study's quantile.
///
/// # Errors
/// The budget is too short for the necessary blocks.
pub(crate) fn fit(study: &mut Study, check_alone: bool) -> Result<Option<String>, Failure> {
    let Some(budget) = study.budget else {
        return Ok(None);
    };
    if !study.capacity.is_empty() {
        return fit_search(study);
    }
    study.blocks.at_least = weir_proposers::budget::least_blocks(study);
    let (mut low, mut high) = (1e-6_f64, 1e6_f64);
    let keeps_quantiles = multiply_copy(study, low, true, check_alone).1 <= budget;
    let multiplied = |share: f64| multiply_copy(study, share, keeps_quantiles, check_alone);
    let (_, least) = multiplied(low);
    if least > budget {
        let suffices = Duration::from_secs(least.as_secs() + 1);
        return Err(Failure::input(format!(
            "a budget of {} is too short for any result: {} needs {} blocks, and with them the whole run takes about {}\n\
             hint: use --budget {}s",
            number::length(budget),
            match study.loads.len() {
                1 => "the load".to_owned(),
                loads => format!("each of the {loads} loads"),
            },
            study.blocks.at_least,
            number::length(suffices),
            suffices.as_secs()
        )));
    }
    for _ in 0..40 {
        let middle = (low * high).sqrt();
        if multiplied(middle).1 <= budget {
            low = middle;
        } else {
            high = middle;
        }
    }
    *study = multiplied(low).0;
    Ok(Some(format!(
        "the budget of {} has time for {} of the study's loads",
        number::length(budget),
        match low {
            low if low >= 2.0 => format!("{low:.1} times the duration"),
            low => format!("{:.0} % of the duration", low * 100.0),
        }
    )))
}

/// Returns the shortest budget in which anything of the study can be decided.
pub(crate) fn least_budget(study: &Study) -> Duration {
    let mut study = study.clone();
    study.blocks.at_least = weir_proposers::budget::least_blocks(&study);
    multiply_copy(&study, 1e-6, false, false).1 + Duration::from_secs(1)
}

/// Returns a copy of the study whose loads last `share` of their time, and the budget that it needs.
fn multiply_copy(
    study: &Study,
    share: f64,
    keeps_quantiles: bool,
    check_alone: bool,
) -> (Study, Duration) {
    let mut scaled = study.clone();
    multiply(&mut scaled, share);
    if keeps_quantiles {
        weir_proposers::keep_quantiles(&mut scaled);
    }
    let check =
        if check_alone { weir_proposers::alone::length_of_check(&scaled) } else { Duration::ZERO };
    let takes = length_of(&scaled) + check;
    (scaled, weir_proposers::budget::budget_of(takes))
}

/// Shortens the study's slices to what its loads need for their blocks. Slices stay unchanged if arrivals repeat with
/// them.
fn shorten_slice(study: &mut Study) {
    let Some(slice) = study.blocks.slice else {
        return;
    };
    let lengths = study.loads.iter().map(|load| {
        if weir_proposers::budget::repeats(load) {
            slice
        } else {
            weir_proposers::budget::longest_slice(study, load)
        }
    });
    let repeats = study.loads.iter().any(weir_proposers::budget::repeats);
    let longest = lengths.min().filter(|_| !repeats).unwrap_or(slice);
    // Whole milliseconds read better.
    let longest = Duration::from_millis(longest.as_millis() as u64);
    study.blocks.slice = Some(slice.min(longest.max(SHORTEST_SLICE)));
}

/// Returns the reason why a run takes longer than its share of time.
fn why_longer(study: &Study, share: f64) -> String {
    let plan = weir_proposers::budget::plan_of(study);
    let raised =
        study.loads.iter().zip(&plan).filter(|(load, (.., length))| *length > load.duration);
    let least = raised
        .clone()
        .map(|(load, (.., length))| share * length.as_secs_f64() / load.duration.as_secs_f64());
    let Some(least) = least.max_by(f64::total_cmp) else {
        return "starts of proxies, pilots and warm-ups take their time however short the loads are"
            .to_owned();
    };
    let longest = raised.map(|(_, (.., length))| *length).max();
    format!(
        "{} at least {} blocks, which take {} with slices of {}. From --time {:.0}% on loads take their share",
        match study.loads.len() {
            1 => "the load has".to_owned(),
            loads => format!("each of the {loads} loads has"),
        },
        study.blocks.at_least,
        number::length(longest.unwrap_or_default()),
        number::length(study.blocks.slice.unwrap_or(SHORTEST_SLICE)),
        (least * 100.0).ceil()
    )
}
