//! Verdicts on published figures: figures of each arm here, response times in [`times`], gains in [`gains`].

mod gains;
mod times;

use std::collections::BTreeMap;

use weir_model::study::{Metric, Published, Study};

use crate::findings::{
    Comparison, EffectReason, FigureFindings, FiguresFindings, Findings, InertArm, LoadFindings,
    Measured, PublishedFindings, PublishedVerdict, Verdict,
};

/// Compares everything that was published with the findings; `None` if nothing was published.
pub(crate) fn published(study: &Study, findings: &Findings) -> Option<PublishedFindings> {
    let judge = Judge {
        study,
        published: study.published.as_ref()?,
        loads: &findings.loads,
        inert: &findings.inert,
    };
    Some(PublishedFindings {
        figures: judge.figures(),
        times: judge.times(),
        gains: gains::gains(study, judge.published, judge.loads),
    })
}

/// Judge of published figures.
struct Judge<'a> {
    study: &'a Study,
    published: &'a Published,
    loads: &'a [LoadFindings],
    inert: &'a [InertArm],
}

/// Kind of a published ratio. Intervals of response times are wide: one that contains 1 may still rule out the
/// published size, and that is then the verdict. Intervals of rates are narrow, and one that contains 1 and reaches
/// beyond the band means that there is too little data.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Figure,
    Time,
}

/// Lowest and highest published ratio; equal unless a range was published.
type Ratios = (f64, f64);

impl<'a> Judge<'a> {
    fn figures(&self) -> Vec<FiguresFindings> {
        let (study, published) = (self.study, self.published);
        let mut all: Vec<FiguresFindings> = Vec::new();
        for spec in &study.loads {
            if let Some(figures) = published.by_load.get(&spec.name) {
                let measured = self.loads.iter().find(|load| load.load == spec.name);
                all.push(self.under(figures, measured));
            }
        }
        let nothing_else =
            all.is_empty() && published.times.is_empty() && published.gains.is_empty();
        if let Some(alone) = self.beside_limits() {
            all.push(alone);
        } else if !published.figures.is_empty() || nothing_else {
            let wanted = study.objective.metric;
            let measured = self
                .loads
                .iter()
                .find(|load| load.metrics.contains(&wanted))
                .or_else(|| self.loads.iter().find(|load| !load.metrics.is_empty()));
            all.push(self.under(&published.figures, measured));
        }
        all
    }

    /// Compares the figure published for a single arm with its figures under each load; there is no ratio, but both
    /// have a limit.
    fn beside_limits(&self) -> Option<FiguresFindings> {
        let [alone] = &self.study.arms[..] else {
            return None;
        };
        let figure = *self.published.figures.get(&alone.name)?;
        let rows = self.loads.iter().filter_map(|load| {
            let limit = load.limits.iter().find(|limit| limit.arm == alone.name)?;
            Some(FigureFindings {
                arm: load.load.clone(),
                against: None,
                figure,
                ratio: None,
                measured: Some(Measured { value: limit.value_ns, interval: limit.interval_ns }),
                verdict: None,
                because: None,
            })
        });
        let rows: Vec<FigureFindings> = rows.collect();
        (!rows.is_empty()).then_some(FiguresFindings {
            load: None,
            metric: Some(self.study.objective.metric),
            rows,
        })
    }

    /// Compares published figures with the measurements under a load, if there are any.
    fn under(
        &self,
        figures: &BTreeMap<String, f64>,
        load: Option<&LoadFindings>,
    ) -> FiguresFindings {
        let measured = load.and_then(|load| Some((load, self.metric_of(load)?)));
        let arms = &self.study.arms;
        let baseline = arms.first().map_or("", |arm| &arm.name);
        let here = arms.iter().map(|arm| {
            let against = arms.get(arm.against).map_or("", |arm| &arm.name);
            (&*arm.name, against)
        });
        // Arms of a larger machine: in the order of the numbers in their names.
        let mut elsewhere: Vec<(&str, &str)> = figures
            .keys()
            .filter(|name| arms.iter().all(|arm| arm.name != **name))
            .map(|name| (&**name, baseline))
            .collect();
        elsewhere.sort_by_key(|(name, _)| (name.len(), *name));
        let rows = here.chain(elsewhere).filter_map(|pair| self.row(figures, measured, pair));
        FiguresFindings {
            load: measured.map(|(load, _)| load.load.clone()),
            metric: measured.map(|(_, metric)| metric),
            rows: rows.collect(),
        }
    }

    fn row(
        &self,
        figures: &BTreeMap<String, f64>,
        measured: Option<(&LoadFindings, Metric)>,
        (arm, against): (&str, &str),
    ) -> Option<FigureFindings> {
        let figure = *figures.get(arm)?;
        let against = Some(against).filter(|against| *against != arm);
        let base = against.and_then(|against| figures.get(against));
        let ratio = base.map(|base| figure / base);
        let ours = measured.and_then(|(load, metric)| compared(load, arm, Some(metric)));
        let (verdict, because) =
            ratio.map(|ratio| self.verdict(Kind::Figure, arm, (ratio, ratio), ours)).unzip();
        Some(FigureFindings {
            arm: arm.to_owned(),
            against: against.map(str::to_owned),
            figure,
            ratio,
            measured: ours.map(as_measured),
            verdict,
            because: because.flatten(),
        })
    }

    /// Returns the objective's metric if a load gives it, else the first metric that it gives.
    fn metric_of(&self, load: &LoadFindings) -> Option<Metric> {
        let wanted = self.study.objective.metric;
        load.metrics.contains(&wanted).then_some(wanted).or_else(|| load.metrics.first().copied())
    }

    /// Returns the verdict on the published effect of `arm`. A level that is not in force, and advice that is known to
    /// be dated, outweigh the figures.
    fn verdict(
        &self,
        kind: Kind,
        arm: &str,
        theirs: Ratios,
        ours: Option<&Comparison>,
    ) -> (PublishedVerdict, Option<EffectReason>) {
        if self.inert.iter().any(|inert| inert.arm == arm && inert.whole) {
            return (PublishedVerdict::Inert, Some(EffectReason::Inert));
        }
        let (verdict, because) = compare(kind, theirs, ours, self.study.objective.band);
        match (verdict, self.published.dated.get(arm)) {
            (PublishedVerdict::NoEffectHere, Some(since)) => {
                (PublishedVerdict::Obsolete, Some(EffectReason::Since(since.clone())))
            }
            _ => (verdict, because),
        }
    }
}

/// Returns the comparison of `arm` on `metric` under a load.
fn compared<'a>(
    load: &'a LoadFindings,
    arm: &str,
    metric: Option<Metric>,
) -> Option<&'a Comparison> {
    let mut all = load.comparisons.iter();
    all.find(|c| c.arm == arm && Some(c.metric) == metric)
}

fn as_measured(ours: &Comparison) -> Measured {
    Measured { value: ours.ratio, interval: ours.interval }
}

/// Compares a published ratio with a measured one. Published ratios have the metric's own direction; for the verdict it
/// does not matter if that is good or bad.
fn compare(
    kind: Kind,
    theirs: Ratios,
    ours: Option<&Comparison>,
    band: f64,
) -> (PublishedVerdict, Option<EffectReason>) {
    let measured = ours.filter(|c| c.verdict != Verdict::Invalid && c.ratio.is_finite());
    let Some(ours) = measured else {
        return (PublishedVerdict::NotMeasured, ours.map(|_| EffectReason::Comparison));
    };
    if !theirs.1.is_finite() || theirs.1 <= 0.0 {
        return (PublishedVerdict::Inconclusive, None);
    }
    let log_band = band.ln_1p();
    let they_saw_none = theirs.0.ln() <= log_band && theirs.1.ln() >= -log_band;
    let (low, high) = ours.interval;
    let overlap = low <= theirs.1 && theirs.0 <= high;
    let larger = theirs.0 > 1.0;
    let verdict = match (ours.verdict, they_saw_none) {
        (Verdict::Equivalent, true) => PublishedVerdict::NoneEither,
        (Verdict::Equivalent, false) => PublishedVerdict::NoEffectHere,
        (Verdict::Better | Verdict::Worse, true) => PublishedVerdict::EffectHere,
        (Verdict::Better | Verdict::Worse, false) => {
            if (ours.ratio > 1.0) != larger {
                PublishedVerdict::Opposite
            } else if overlap {
                PublishedVerdict::Confirmed
            } else if (ours.ratio > theirs.1) == larger {
                PublishedVerdict::ConfirmedLarger
            } else {
                PublishedVerdict::ConfirmedSmaller
            }
        }
        (Verdict::Inconclusive, false) if kind == Kind::Time && !overlap => {
            return (PublishedVerdict::NoEffectHere, Some(EffectReason::RuledOut));
        }
        (Verdict::Inconclusive | Verdict::Invalid, _) => PublishedVerdict::Inconclusive,
    };
    (verdict, None)
}

#[cfg(test)]
mod tests;
