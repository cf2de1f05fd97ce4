//! From a finished block to records.

use std::time::Duration;

use weir_load::SliceData;
use weir_model::record::{QuantileSummary, Record, RunHeader, TrialRecord};
use weir_model::study::{LoadSpec, StudyArrivals};
use weir_record::{HistogramKind, RecordError, RunWriter, summarize, tag};

use crate::assembly::{ArmBlock, FinishedBlock};

/// Where records go and what they belong to.
pub(crate) struct Recorder<'a> {
    pub(crate) writer: &'a mut RunWriter,
    pub(crate) header: &'a RunHeader,
    pub(crate) load: &'a LoadSpec,
    pub(crate) session: u32,
    /// Rate of the open loop.
    pub(crate) rate: Option<f64>,
}

impl Recorder<'_> {
    /// Appends a block: histograms first, then a record for each arm.
    pub(crate) fn block(&mut self, block: &FinishedBlock) -> Result<Vec<TrialRecord>, RecordError> {
        let mut trials = Vec::with_capacity(block.arms.len());
        for arm in &block.arms {
            trials.push(self.trial(block.block, arm)?);
        }
        for trial in &trials {
            self.writer
                .append(&Record::Trial(Box::new(trial.clone())))?;
        }
        Ok(trials)
    }

    fn trial(&mut self, block: u32, arm: &ArmBlock) -> Result<TrialRecord, RecordError> {
        let data = &arm.data;
        let name = &self.header.study.arms[arm.arm].name;
        let [response_time, service_time, dispatch_lag] = self.histograms(block, name, arm)?;
        let mut trial = TrialRecord {
            session: self.session,
            load: self.load.name.clone(),
            arm: name.clone(),
            block,
            slices: arm.slices.clone(),
            errors: data.errors.counts(),
            status_classes: data.status_classes(),
            censored: data.censored,
            response_time,
            service_time,
            dispatch_lag,
            validity: Vec::new(),
        };
        trial.validity = weir_analysis::validity(&trial, self.header, self.rate);
        Ok(trial)
    }

    fn histograms(
        &mut self,
        block: u32,
        name: &str,
        arm: &ArmBlock,
    ) -> Result<[QuantileSummary; 3], RecordError> {
        let data: &SliceData = &arm.data;
        let overflow = data.histograms.overflow;
        let start = Duration::from_nanos(arm.slices.first().map_or(0, |slice| slice.start_ns));
        let end = arm
            .slices
            .last()
            .map_or(0, |slice| slice.start_ns + slice.measured_ns);
        let length = Duration::from_nanos(end).saturating_sub(start);
        let all = [
            (HistogramKind::ResponseTime, &data.histograms.response),
            (HistogramKind::ServiceTime, &data.histograms.service),
            (HistogramKind::DispatchLag, &data.histograms.dispatch_lag),
        ];
        let mut summaries: [QuantileSummary; 3] = Default::default();
        for (summary, (kind, histogram)) in summaries.iter_mut().zip(all) {
            // In a closed loop the service time is the response time: one of them is enough.
            let same =
                self.load.arrivals == StudyArrivals::Closed && kind == HistogramKind::ServiceTime;
            let tag = if same {
                String::new()
            } else {
                tag(&self.load.name, name, block, kind)
            };
            if !tag.is_empty() {
                self.writer
                    .append_histogram(&tag, start, length, histogram)?;
            }
            *summary = summarize(&tag, histogram, overflow);
        }
        Ok(summaries)
    }
}
