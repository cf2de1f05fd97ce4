//! Growth of a metric with a numeric factor: the answer, its levels, the forms, and the curve.

use weir_analysis::findings::{
    ScalingAnswer, ScalingCurve, ScalingFactor, ScalingFindings, ScalingForm, ScalingLevel,
    ScalingResponse,
};
use weir_model::study::Metric;
use weir_sentences::{scaling, with_unit};
use weir_stats::scaling::{Form, Parameter, Scaling};

use crate::number;
use crate::tree::{
    Block, Cell, Chart, Column, Heading, Kind, Multiple, Outputs, Row, Style, Table, figure, text,
};

/// Number of steps of the curve in a chart.
const STEPS: u32 = 24;

/// Returns one section for all growths. Empty if the study has no numeric factor.
pub(super) fn section(found: &[ScalingFindings]) -> Vec<Block> {
    if found.is_empty() {
        return Vec::new();
    }
    let heading = Heading::section("scaling", "How does it grow?");
    let mut blocks = vec![Block::Heading(heading.remark("by the levels of one number"))];
    for one in found {
        if found.len() > 1 {
            blocks.push(Block::Heading(Heading::part(title(one))));
        }
        blocks.push(text(Style::Plain, scaling::describe(one)));
        blocks.extend(chart(one));
        blocks.push(levels(one, &one.measured, true));
        blocks.extend(forms(one, &one.measured, true));
        if let (Some(curve), Some(sentence)) = (&one.published, scaling::describe_published(one)) {
            blocks.push(text(Style::Plain, sentence));
            let details = [Some(levels(one, curve, false)), forms(one, curve, false)];
            blocks.push(Block::Only(Outputs::FILES, details.into_iter().flatten().collect()));
        }
    }
    if found.iter().any(|one| has_form(one, Form::Universal)) {
        blocks.push(text(Style::Soft, scaling::SIGMA_AND_KAPPA));
    }
    blocks
}

fn has_form(found: &ScalingFindings, form: Form) -> bool {
    found.measured.forms.iter().any(|one| one.form == form)
}

/// Formats load and factor, with the settings of the stratum.
fn title(found: &ScalingFindings) -> String {
    let factor = match &found.factor {
        ScalingFactor::Parameter { id } => id.clone(),
        ScalingFactor::Connections { arm } => format!("connections of {arm}"),
    };
    let stratum = found.stratum.iter().map(|(id, level)| format!(", {id}={level}"));
    match found.load.as_str() {
        "" => format!("{factor}{}", stratum.collect::<String>()),
        load => format!("{load}: {factor}{}", stratum.collect::<String>()),
    }
}

fn is_bytes(found: &ScalingFindings) -> bool {
    found.response == ScalingResponse::Metric(Metric::ReceivedBytes)
}

fn levels(found: &ScalingFindings, curve: &ScalingCurve, is_ours: bool) -> Block {
    let format = match (is_ours, is_bytes(found)) {
        (true, true) => number::bytes_per_second,
        (true, false) => number::rate,
        (false, _) => plain,
    };
    let rows = curve.levels.iter().map(|level| {
        let interval = level.interval.map_or_else(
            || number::NONE.to_owned(),
            |(low, high)| format!("{} to {}", format(low), format(high)),
        );
        let fitted = level.fitted.map_or_else(|| number::NONE.to_owned(), format);
        let replicates = level.responses.len().to_string();
        let cells = [format(level.value), interval, fitted, residual(level), replicates];
        Row::new(&*level.name, cells.map(Cell::from))
    });
    let columns = [
        Column::new(if is_ours { "measured" } else { "published" }),
        Column::new("interval"),
        Column::new("fitted"),
        Column::new("residual"),
        Column::new("replicates").only(Outputs::FILES),
    ];
    let title = format!("Levels of {}", title(found));
    Block::Table(Table::new(Kind::Plain, title, "level").columns(columns).rows(rows))
}

/// Formats a published figure, whose unit its source names.
fn plain(value: f64) -> String {
    with_unit(value, "")
}

fn residual(level: &ScalingLevel) -> String {
    level.residual().map_or_else(|| number::NONE.to_owned(), |share| number::change(1.0 + share))
}

fn forms(found: &ScalingFindings, curve: &ScalingCurve, is_ours: bool) -> Option<Block> {
    let rows = curve.forms.iter().map(|form| {
        let delta = form.delta_aicc.map_or_else(|| "too few levels".to_owned(), number::tenths);
        let lack = form.lack_of_fit.map_or_else(|| number::NONE.to_owned(), number::p_value);
        let parameters = scaling::describe_parameters(found, form, is_ours);
        let cells = [answered(curve, form), delta, number::percent(form.rmse), lack, parameters];
        Row::new(scaling::name_form(form.form), cells.map(Cell::from))
    });
    let columns = [
        Column::left("answer"),
        Column::new("ΔAICc"),
        Column::new("off by"),
        Column::new("lack of fit, p").only(Outputs::FILES),
        Column::left("parameters").below(),
    ];
    let title = format!("Forms fitted to {}", title(found));
    let table = Table::new(Kind::Plain, title, "form").columns(columns).rows(rows);
    (!table.rows.is_empty()).then_some(Block::Table(table))
}

/// Returns what the answer says of a form.
fn answered(curve: &ScalingCurve, form: &ScalingForm) -> String {
    match &curve.answer {
        ScalingAnswer::Named(named) if *named == form.form => "this".to_owned(),
        ScalingAnswer::Undecided { forms, .. } if forms.contains(&form.form) => {
            "possible".to_owned()
        }
        _ => "no".to_owned(),
    }
}

/// Draws the levels with their intervals, the curve with its band up to twice the highest level, and the knee.
fn chart(found: &ScalingFindings) -> Option<Block> {
    let scaling = found.scaling().ok()?;
    let best = found.measured.best()?;
    let farthest = scaling.farthest();
    let (line, around) = curve(&scaling, found.measured.levels.first()?.x);
    let at = [Parameter::Knee, Parameter::Peak];
    let bend = at.iter().find_map(|wanted| {
        let parameter = best.parameter(*wanted)?;
        let ends = (parameter.low?, parameter.high?.min(farthest));
        parameter.value.filter(|value| *value <= farthest).map(|value| (value, ends))
    });
    let whiskers = found.measured.levels.iter().filter_map(|one| Some((one.x, one.interval?)));
    let chart = Multiple {
        name: title(found),
        said: scaling::describe(found),
        unit: if is_bytes(found) { "bytes/s" } else { "/s" }.to_owned(),
        across: ((0.0, farthest), ("0".to_owned(), with_unit(farthest, ""))),
        dots: found.measured.levels.iter().map(|level| (level.x, level.value)).collect(),
        whiskers: whiskers.collect(),
        line,
        around,
        bend,
    };
    let caption = "A point for each level with its interval, and the curve with a band for its doubt, up to twice the \
                   highest level. A bar with a band marks the knee or the peak.";
    Some(Block::Only(Outputs::HTML, vec![figure(caption, Chart::Multiples(vec![chart]))]))
}

/// Points of a curve, and of the band around it.
type Curve = (Vec<(f64, f64)>, Vec<(f64, (f64, f64))>);

fn curve(scaling: &Scaling, lowest: f64) -> Curve {
    let farthest = scaling.farthest();
    (0..=STEPS)
        .map(|step| lowest + (farthest - lowest) * f64::from(step) / f64::from(STEPS))
        .filter_map(|x| scaling.predict(x).ok())
        .map(|predicted| {
            let response = predicted.response;
            ((predicted.x, response.value), (predicted.x, (response.low, response.high)))
        })
        .unzip()
}
