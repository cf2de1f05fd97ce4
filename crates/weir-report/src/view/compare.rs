//! Comparison of all arms on one metric: ratios, verdicts and their reasons.

use weir_analysis::are_steps;
use weir_analysis::findings::{ArmFindings, Comparison, LoadFindings, Verdict};
use weir_model::study::{Arm, ArmRole, Metric, Study};
use weir_sentences::explain_verdict;

use super::{about, tones};
use crate::input::ReportInput;
use crate::tree::{
    Block, Cell, Chart, Column, Effect, Forest, ForestRow, Heading, Kind, Outputs, Part, Role, Row,
    Style, Table, Text, Tone, clause, figure, labelled, list,
};
use crate::{number, words};

/// An arm and its comparison on one metric.
pub(super) struct Compared<'a> {
    pub(super) arm: &'a ArmFindings,
    /// Changes of the arm, in words.
    changes: String,
    /// Arm that this one is compared with, if it is not the baseline.
    step: Option<&'a str>,
    /// Figure of the arm on the metric.
    value: String,
    pub(super) found: Option<&'a Comparison>,
    /// Comparison on the CPU time per request.
    cpu: Option<&'a Comparison>,
    /// Word for an arm whose changes are inert or took no effect. `None` if the verdict is better or worse all the
    /// same.
    inert: Option<&'static str>,
    because: String,
    /// Requested confidence of the intervals.
    confidence: f64,
}

impl Compared<'_> {
    /// Returns sign, word and tone of the verdict. `None` if nothing was compared. An A/A arm is neither better nor
    /// worse: it [differs](words::DIFFERS), and then the lab is at fault.
    fn verdict(&self) -> Option<(&'static str, &'static str, Tone)> {
        let verdict = self.found?.verdict;
        let sign = words::verdict_sign(verdict);
        let is_same = self.arm.role == ArmRole::SameAsBaseline;
        Some(match (self.inert, verdict) {
            (Some(word), _) => (words::INERT_SIGN, word, Tone::Inert),
            (_, Verdict::Better | Verdict::Worse) if is_same => {
                (sign, words::DIFFERS, Tone::Differs)
            }
            _ => (sign, verdict.word(), tones::tone(verdict)),
        })
    }

    fn ratio(&self) -> String {
        self.found.map_or_else(none, |found| number::ratio(found.ratio))
    }

    fn interval(&self) -> String {
        self.found.map_or_else(none, |found| words::interval(found, self.confidence))
    }

    /// Formats the ratio with its interval.
    fn figures(&self) -> String {
        match self.interval().as_str() {
            number::NONE => self.ratio(),
            interval => format!("{} ({interval})", self.ratio()),
        }
    }

    /// Returns three cells: the figure, the ratio with its interval, and the verdict.
    pub(super) fn short(&self) -> [Cell; 3] {
        let verdict = self.verdict().map_or(Cell::default(), |(sign, word, tone)| {
            Cell::tone(tone, format!("{sign} {word}"))
        });
        let ratio = self.found.map_or(String::new(), |_| self.figures());
        [self.value.as_str().into(), ratio.into(), verdict]
    }

    /// Returns a cell with the sign of the verdict and the ratio, or with the figure if nothing was compared.
    pub(super) fn mark(&self) -> Cell {
        match self.verdict() {
            Some((sign, _, tone)) => Cell::tone(tone, format!("{sign} {}", self.ratio())),
            None => Cell::from(self.value.as_str()),
        }
    }

    /// Returns a row of a table without cells: the name and the changes.
    pub(super) fn named(&self) -> Row {
        let against = self.step.map_or(String::new(), |step| format!(" (against {step})"));
        Row::new(&*self.arm.arm, []).part(self.part()).about(format!("{}{against}", self.changes))
    }

    /// Returns true if the arm is neither the baseline nor an A/A arm.
    pub(super) fn is_change(&self) -> bool {
        self.arm.role == ArmRole::Change
    }

    fn part(&self) -> Part {
        match self.arm.role {
            ArmRole::Baseline => Part::Baseline,
            ArmRole::SameAsBaseline => Part::Control,
            ArmRole::Change => Part::Plain,
        }
    }
}

fn none() -> String {
    number::NONE.to_owned()
}

/// Returns all arms of a load: baseline and A/A first, then the changes in the order of the study.
pub(super) fn compared<'a>(
    input: &'a ReportInput<'_>,
    load: &'a LoadFindings,
    metric: Metric,
) -> Vec<Compared<'a>> {
    let mut rows: Vec<Compared<'_>> =
        load.arms.iter().map(|arm| one(input, load, arm, metric)).collect();
    rows.sort_by_key(|row| (row.arm.role != ArmRole::Baseline, row.arm.role == ArmRole::Change));
    rows
}

fn one<'a>(
    input: &'a ReportInput<'_>,
    load: &'a LoadFindings,
    arm: &'a ArmFindings,
    metric: Metric,
) -> Compared<'a> {
    let study = &input.header.study;
    let planned = study.arms.iter().find(|planned| planned.name == arm.arm);
    let comparison = load.comparison(&arm.arm, metric);
    let baseline = study.arms.first().map_or("", |arm| arm.name.as_str());
    // One that differs all the same is no less better or worse, and the section on inert levels says the rest.
    let has_no_effect = comparison
        .is_some_and(|c| matches!(c.verdict, Verdict::Equivalent | Verdict::Inconclusive));
    let inert = input.findings.inert.iter().find(|inert| inert.arm == arm.arm && has_no_effect);
    let levels = inert.map(|inert| {
        inert
            .levels
            .iter()
            .map(|level| format!("{} = {}: {}", level.id, level.requested, level.why))
            .collect::<Vec<_>>()
            .join("; ")
    });
    let counted: Vec<String> = load
        .ineffective_of(&arm.arm)
        .filter(|_| has_no_effect)
        .map(|setting| {
            let why = weir_sentences::explain_ineffective(setting);
            format!("{} = {}: {why}", setting.id, setting.level)
        })
        .collect();
    let word = match inert {
        _ if !counted.is_empty() => Some(words::WITHOUT_EFFECT),
        Some(inert) if inert.whole => Some(words::INERT),
        inert => inert.map(|_| words::PARTLY_INERT),
    };
    let counted = Some(counted.join("; ")).filter(|counted| !counted.is_empty());
    Compared {
        arm,
        changes: changes(study, planned, arm.role),
        step: comparison.map(|c| c.against.as_str()).filter(|against| *against != baseline),
        value: metric_value(arm, metric),
        found: comparison,
        cpu: load.comparison(&arm.arm, Metric::CpuPerRequest),
        inert: word,
        because: counted
            .or(levels)
            .or_else(|| comparison.map(|found| explain_verdict(found, &study.objective)))
            .unwrap_or_default(),
        confidence: study.objective.confidence,
    }
}

/// Returns the comparison on one metric. `is_said` is true if the changes of the arms were shown before.
pub(super) fn blocks(
    input: &ReportInput<'_>,
    load: &LoadFindings,
    metric: Metric,
    is_said: bool,
) -> Vec<Block> {
    let study = &input.header.study;
    let rows = compared(input, load, metric);
    let name = words::capital(words::metric(metric));
    let heading = Block::Heading(
        Heading::part(format!("{name} ({})", words::direction(metric))).badge(load.validity),
    );
    let mut blocks = vec![Block::Only(Outputs::FILES, vec![heading])];
    let is_comparable = rows.iter().filter_map(|row| row.found);
    if !is_comparable.clone().any(|found| found.verdict != Verdict::Invalid) {
        let nothing = format!("{}: nothing could be compared", words::metric(metric));
        blocks.push(clause(Style::Plain, nothing));
        blocks.extend(why(&rows));
        return blocks;
    }
    blocks.push(Block::Table(table(study, &rows, metric, is_said)));
    blocks.push(Block::Only(Outputs::TERMINAL, steps(study, &rows)));
    blocks.push(labelled("A/A", Style::Soft, resolution(load, metric)));
    blocks.extend(why(&rows));
    if metric != Metric::CpuPerRequest && !is_said {
        let cpu = "ratio of the proxy's CPU time per request";
        let cpu = labelled("CPU", Style::Soft, cpu);
        blocks.push(Block::Only(Outputs::TERMINAL, vec![cpu]));
    }
    blocks
}

fn table(study: &Study, rows: &[Compared<'_>], metric: Metric, is_said: bool) -> Table {
    let level = number::level(study.objective.confidence);
    let p = "exact sign-flip test; corrected for the number of comparisons, uncorrected beside it";
    let detectable = "smallest change that this comparison would have shown four times out of five";
    let is_cpu = metric == Metric::CpuPerRequest;
    let ratio = Column::new("ratio").short(format!("ratio ({level})"));
    let mut columns = vec![
        Column::new(words::metric_head(metric)),
        ratio.small(format!("{level} interval")).whole(),
        Column::new("p (Holm)").short("p").small("uncorrected").minor(p),
        Column::left("verdict"),
    ];
    let cpu = Column::new("CPU/request").short("CPU").small("ratio and interval");
    columns.extend((!is_cpu).then_some(cpu));
    let detectable = Column::new("detectable").small("replicates").minor(detectable);
    columns.push(detectable.only(Outputs::FILES));
    let label = format!("Comparison of arms: {}", words::metric(metric));
    Table {
        about: "changes",
        about_again: is_said,
        ..Table::new(Kind::Compare, label, "arm")
            .columns(columns)
            .rows(rows.iter().map(|row| table_row(row, is_cpu)))
    }
}

fn table_row(row: &Compared<'_>, is_cpu: bool) -> Row {
    let mut cells = vec![Cell::from(row.value.as_str())];
    match (row.found, row.verdict()) {
        (Some(found), Some((sign, word, tone))) => {
            cells.push(Cell::from(row.ratio()).small(row.interval()));
            cells.push(Cell::from(number::p_value(found.p_holm)).small(number::p_value(found.p)));
            cells.push(Cell::tone(tone, format!("{sign} {word}")));
            let cpu = row.cpu.map_or_else(none, |cpu| number::ratio(cpu.ratio));
            let small = row.cpu.map_or(String::new(), |cpu| words::interval(cpu, row.confidence));
            cells.extend((!is_cpu).then(|| Cell::from(cpu).small(small)));
            let least = number::percent(found.minimum_detectable);
            cells.push(Cell::from(least).small(replicates(found)));
        }
        _ => cells.resize(if is_cpu { 5 } else { 6 }, Cell::default()),
    }
    Row { cells, ..row.named() }
}

/// Explains by an example which arms are compared with another arm than the baseline.
fn steps(study: &Study, rows: &[Compared<'_>]) -> Vec<Block> {
    let step = rows.iter().find_map(|row| Some((&row.arm.arm, row.step?)));
    let with = if are_steps(study) {
        "each step is compared with the one before it"
    } else {
        "arms are compared with the one that differs from them in nothing else"
    };
    let note = step.map(|(arm, against)| format!("{with}, {arm} with {against}"));
    note.into_iter().map(|note| clause(Style::Soft, note)).collect()
}

/// Lists the reasons for verdicts, each once, clear verdicts first. Terminals list only the reasons for missing
/// verdicts, because the table shows the basis of the others.
pub(super) fn why(rows: &[Compared<'_>]) -> Vec<Block> {
    let mut all: Vec<(&Compared<'_>, &'static str, Vec<&str>)> = Vec::new();
    for row in rows.iter().filter(|row| !row.because.is_empty()) {
        let Some((_, word, _)) = row.verdict() else {
            continue;
        };
        let mut same = all.iter_mut();
        match same.find(|(other, known, _)| *known == word && other.because == row.because) {
            Some((_, _, arms)) => arms.push(&row.arm.arm),
            None => all.push((row, word, vec![&row.arm.arm])),
        }
    }
    all.sort_by_key(|(row, ..)| row.found.map(|found| words::verdict_rank(found.verdict)));
    let is_alone = all.len() == 1;
    let (mut items, mut without_verdict) = (Vec::new(), Vec::new());
    for (row, word, arms) in &all {
        let Some((sign, _, tone)) = row.verdict() else {
            continue;
        };
        let arms = if is_alone && arms.len() > 1 { "all".to_owned() } else { arms.join(", ") };
        let item = Text::of(Role::Tone(tone), format!("{sign} {word}"))
            .plain(format!(": {} ", row.because))
            .and(Role::Soft, format!("({arms})"));
        if row.inert.is_some() || row.found.is_some_and(|found| found.verdict == Verdict::Invalid) {
            without_verdict.push(item.clone());
        }
        items.push(item);
    }
    vec![
        Block::Only(Outputs::TERMINALS, list(without_verdict, true).into_iter().collect()),
        Block::Only(Outputs::FILES, list(items, true).into_iter().collect()),
    ]
}

/// Draws the ratios as a chart, and a close-up of those near 1, for which large effects leave no space.
pub(super) fn forests(input: &ReportInput<'_>, load: &LoadFindings, metric: Metric) -> Vec<Block> {
    let objective = &input.header.study.objective;
    let arms = compared(input, load, metric);
    let rows = arms.iter().filter_map(|row| {
        let (_, word, tone) = row.verdict()?;
        Some(ForestRow {
            label: label(row),
            part: row.part(),
            mark: tones::mark(row.found?.verdict),
            tone,
            word,
            ratio: row.ratio(),
            figures: row.figures(),
            because: row.because.clone(),
            effect: row.found.and_then(effect),
        })
    });
    let forest = Forest {
        title: format!("Effect of each arm on the {}: ratio and interval", words::metric(metric)),
        band: objective.band,
        sides: if metric.higher_is_better() { ["worse", "better"] } else { ["better", "worse"] },
        close_up: false,
        rows: rows.collect(),
    };
    let close_up = Forest { close_up: true, ..forest.clone() };
    let caption = format!(
        " Effect on the {}: ratio and {} interval, logarithmic axis. Within the shaded band of ±{} arms count as \
         equivalent.",
        words::metric(metric),
        number::level(objective.confidence),
        number::level(objective.band)
    );
    let near_caption = " The same near 1. Arrows lead to effects beyond this axis.";
    [(&*caption, forest), (near_caption, close_up)]
        .map(|(caption, forest)| {
            figure(Text::validity(load.validity).plain(caption), Chart::Forest(forest))
        })
        .into()
}

/// Returns the arm's name. An A/A arm is marked as one, whatever its name.
fn label(row: &Compared<'_>) -> String {
    match row.arm.role {
        ArmRole::SameAsBaseline if !row.arm.arm.contains("A/A") => format!("{} (A/A)", row.arm.arm),
        _ => row.arm.arm.clone(),
    }
}

/// Returns the drawable values of a comparison. `None` if there is no estimate.
fn effect(comparison: &Comparison) -> Option<Effect> {
    let (ratio, (low, high)) = (comparison.ratio, comparison.interval);
    let drawable = comparison.verdict != Verdict::Invalid
        && ratio.is_finite()
        && ratio > 0.0
        && comparison.confidence >= words::LEAST_CONFIDENCE
        && !low.is_nan()
        && !high.is_nan();
    drawable.then_some(Effect { ratio, low, high })
}

fn replicates(comparison: &Comparison) -> String {
    match (comparison.n, comparison.merged) {
        (0, _) => String::new(),
        (n, 0 | 1) => format!("n = {}", number::count(u64::from(n))),
        (n, merged) => format!("n = {}, each of {merged} blocks", number::count(u64::from(n))),
    }
}

/// Describes the changes of an arm relative to the arm that it is compared with: `gzip: off → on`.
pub(super) fn changes(study: &Study, arm: Option<&Arm>, role: ArmRole) -> String {
    match role {
        ArmRole::Baseline => return about::baseline(study),
        ArmRole::SameAsBaseline => return "A/A: the baseline again".to_owned(),
        ArmRole::Change => {}
    }
    let Some(arm) = arm else {
        return String::new();
    };
    if let Some(text) = about::other_proxy(study, arm) {
        return text;
    }
    let before = study.arms.get(arm.against).map(|arm| &arm.settings);
    let changes =
        arm.changes.iter().map(|(id, level)| match before.and_then(|settings| settings.get(id)) {
            _ if about::is_launcher(id) => about::launcher_words(study, level),
            Some(from) if from != level => format!("{id}: {from} → {level}"),
            _ => format!("{id}: {level}"),
        });
    changes.collect::<Vec<_>>().join(", ")
}

fn metric_value(arm: &ArmFindings, metric: Metric) -> String {
    match metric {
        Metric::Rate => number::rate(arm.rate_completed),
        Metric::ReceivedBytes => number::gigabits(arm.received_per_second.unwrap_or(f64::NAN)),
        Metric::CpuPerRequest => number::time(arm.cpu_per_request_ns.unwrap_or(f64::NAN)),
        Metric::ResponseP50 => number::quantiles(&arm.response_ns, arm.samples)[0].clone(),
        Metric::ResponseP99 => number::quantiles(&arm.response_ns, arm.samples)[2].clone(),
    }
}

/// Largest half-width of an interval that is formatted as plus or minus a percentage.
const WIDEST_AS_PERCENT: f64 = 0.5;

/// Describes the result of the A/A arm, which shows how small an effect can be believed.
pub(super) fn resolution(load: &LoadFindings, metric: Metric) -> String {
    let same = load
        .arms
        .iter()
        .filter(|arm| arm.role == ArmRole::SameAsBaseline)
        .find_map(|arm| load.comparison(&arm.arm, metric));
    let Some(same) = same else {
        return "no A/A arm: how much two equal arms differ here is not known".to_owned();
    };
    let (low, high) = same.interval;
    if same.verdict == Verdict::Invalid
        || effect(same).is_none()
        || low <= 0.0
        || high.is_infinite()
    {
        return "the A/A arm has no valid figures: how much two equal arms differ here is not known"
            .to_owned();
    }
    let half_width = ((high.ln() - low.ln()) / 2.0).exp() - 1.0;
    // "±461 %" would say less than the two ends do.
    let interval = if half_width <= WIDEST_AS_PERCENT {
        format!("±{}", number::percent(half_width))
    } else {
        format!("{} to {}", number::ratio(low), number::ratio(high))
    };
    let difference = format!(
        "two equal arms differed by {}, interval {interval}",
        number::percent((same.ratio - 1.0).abs()),
    );
    let detectable = match same.minimum_detectable {
        least if least.is_finite() => {
            format!("; a change of this arm would show from {} on", number::percent(least))
        }
        _ => String::new(),
    };
    match same.verdict {
        Verdict::Better | Verdict::Worse => format!(
            "{difference}, which is more than chance explains: do not believe other effects of that \
             size here"
        ),
        _ => format!("{difference}{detectable}"),
    }
}
