//! `--time`: the share of a study's time that a run is to take, and what keeps it from that.

use std::time::Duration;

use weir_model::study::Study;
use weir_report::number;

use crate::failure::Failure;

/// Slices are made no shorter than this, the shortest that a pilot chooses.
const SHORTEST_SLICE: Duration = Duration::from_millis(50);
/// How much longer than its share a run may take before that is said.
const CLOSE: f64 = 1.1;

/// Gives all loads this share of their time. What that changes beside their time is said, and so is a run that
/// takes longer than its share all the same, with the reason.
///
/// # Errors
/// The text is no share.
pub(crate) fn shorten(study: &mut Study, text: &str) -> Result<Vec<String>, Failure> {
    let percent: Option<f64> = text.trim_end_matches('%').trim().parse().ok();
    let share = percent
        .filter(|_| text.ends_with('%'))
        .map(|percent| percent / 100.0);
    let Some(share) = share.filter(|share| *share > 0.0 && *share <= 100.0) else {
        return Err(Failure::input(format!(
            "--time: `{text}` is not a share such as 25% or 200%"
        )));
    };
    let wanted = weir_lab::length_of(study).mul_f64(share);
    let slice = study.blocks.slice;
    let loads = study.loads.iter_mut();
    loads.for_each(|load| load.duration = load.duration.mul_f64(share));
    shorten_slice(study);
    let mut said = Vec::new();
    if let (Some(before), Some(now)) = (slice, study.blocks.slice)
        && now < before
    {
        said.push(format!(
            "--time {text}: slices last {} instead of {}, so that each load has its {} blocks",
            number::length(now),
            number::length(before),
            study.blocks.at_least
        ));
    }
    let takes = weir_lab::length_of(study);
    if takes > wanted.mul_f64(CLOSE) {
        said.push(format!(
            "--time {text} would be {}, but the run takes about {}: {}",
            number::length(wanted),
            number::length(takes),
            why_longer(study, share)
        ));
    }
    Ok(said)
}

/// Makes the slices that a study gives as short as its loads need for their blocks. Where what is due repeats
/// with the slices they stay as they are.
fn shorten_slice(study: &mut Study) {
    let Some(slice) = study.blocks.slice else {
        return;
    };
    let longest = study
        .loads
        .iter()
        .map(|load| match weir_lab::repeats(load) {
            true => slice,
            false => weir_lab::longest_slice(study, load),
        });
    let repeats = study.loads.iter().any(weir_lab::repeats);
    let longest = longest.min().filter(|_| !repeats).unwrap_or(slice);
    // Whole milliseconds read better.
    let longest = Duration::from_millis(longest.as_millis() as u64);
    study.blocks.slice = Some(slice.min(longest.max(SHORTEST_SLICE)));
}

/// What keeps a run from a share of its time.
fn why_longer(study: &Study, share: f64) -> String {
    let plan = weir_lab::plan_of(study);
    let planned = study.loads.iter().zip(&plan);
    let raised = planned.filter(|(load, (.., length))| *length > load.duration);
    let least = raised
        .clone()
        .map(|(load, (.., length))| share * length.as_secs_f64() / load.duration.as_secs_f64());
    let Some(least) = least.max_by(f64::total_cmp) else {
        return "starts of proxies, pilots and warm-ups take their time however short the loads are"
            .to_owned();
    };
    let each = raised.map(|(_, (.., length))| *length).max();
    format!(
        "{} at least {} blocks, which take {} with slices of {}. From --time {:.0}% on loads take their share",
        match study.loads.len() {
            1 => "the load has".to_owned(),
            loads => format!("each of the {loads} loads has"),
        },
        study.blocks.at_least,
        number::length(each.unwrap_or_default()),
        number::length(study.blocks.slice.unwrap_or(SHORTEST_SLICE)),
        (least * 100.0).ceil()
    )
}
