//! Conversion of finished blocks and ended trials to records.

use std::collections::BTreeMap;
use std::time::Duration;

use weir_load::SliceData;
use weir_model::record::{
    ArmConnections, PartRecord, Phase, QuantileSummary, RunHeader, TrialRecord,
};
use weir_model::study::{Arm, StudyArrivals};
use weir_proposers::{Block, Cell};
use weir_record::{HistogramKind, RecordError, RunWriter, summarize, tag};

use crate::assembly::{ArmBlock, FinishedBlock};
use crate::trial::TrialEnd;

/// Header, cell, arms and session that records belong to.
#[derive(Clone, Copy)]
pub(crate) struct Recorder<'a> {
    pub(crate) header: &'a RunHeader,
    pub(crate) cell: &'a Cell,
    /// Arms of the cell, in its order.
    pub(crate) arms: &'a [Arm],
    pub(crate) session: u32,
}

impl Recorder<'_> {
    /// Returns a record for each arm of a block, after writing the histograms.
    pub(crate) fn block(
        &self,
        block: &FinishedBlock,
        writer: &mut RunWriter,
    ) -> Result<Block, RecordError> {
        block.arms.iter().map(|arm| self.trial(block.block, arm, writer)).collect()
    }

    fn trial(
        &self,
        block: u32,
        arm: &ArmBlock,
        writer: &mut RunWriter,
    ) -> Result<TrialRecord, RecordError> {
        let (data, cell) = (&arm.data, self.cell);
        let name = &self.arms[arm.arm].name;
        let in_cell = (block - cell.first_block) as usize;
        let (load, number) = cell.block_of(in_cell);
        let [response_time, service_time, dispatch_lag] =
            self.histograms((load, number), arm, writer)?;
        let rate_intended = cell.rates.of(in_cell, arm.arm);
        let mut trial = TrialRecord {
            session: self.session,
            load: load.to_owned(),
            arm: name.clone(),
            block: number,
            phase: cell.phase,
            rate_intended,
            slices: arm.slices.clone(),
            errors: data.errors.counts(),
            status_classes: data.status_classes(),
            censored: data.censored,
            response_time,
            service_time,
            first_byte: summarize("", &data.histograms.first_byte, 0),
            dispatch_lag,
            bad: Vec::new(),
            generators: arm.generators.clone(),
            validity: Vec::new(),
        };
        let buckets = data
            .histograms
            .response
            .iter_recorded()
            .map(|bucket| (bucket.value_iterated_to(), bucket.count_at_value()));
        trial.bad = weir_analysis::bad_shares(&trial, buckets.collect(), &self.header.study);
        trial.validity = weir_analysis::validity(&trial, self.header);
        Ok(trial)
    }

    fn histograms(
        &self,
        (load, block): (&str, u32),
        arm: &ArmBlock,
        writer: &mut RunWriter,
    ) -> Result<[QuantileSummary; 3], RecordError> {
        let data: &SliceData = &arm.data;
        let overflow = data.histograms.overflow;
        let start = Duration::from_nanos(arm.slices.first().map_or(0, |slice| slice.start_ns));
        let last = arm.slices.last();
        let end = last.map_or(0, |slice| slice.start_ns + slice.measured_ns);
        let length = Duration::from_nanos(end).saturating_sub(start);
        let all = [
            (HistogramKind::ResponseTime, &data.histograms.response),
            (HistogramKind::ServiceTime, &data.histograms.service),
            (HistogramKind::DispatchLag, &data.histograms.dispatch_lag),
        ];
        let mut summaries: [QuantileSummary; 3] = Default::default();
        for (summary, (kind, histogram)) in summaries.iter_mut().zip(all) {
            let tag = if self.is_kept(kind) {
                tag(load, &self.arms[arm.arm].name, block, kind)
            } else {
                String::new()
            };
            if !tag.is_empty() {
                writer.append_histogram(&tag, start, length, histogram)?;
            }
            *summary = summarize(&tag, histogram, overflow);
        }
        let kind = HistogramKind::Undisturbed;
        if let Some(undisturbed) = arm.undisturbed.as_ref().filter(|_| self.is_kept(kind)) {
            let name = tag(load, &self.arms[arm.arm].name, block, kind);
            writer.append_histogram(&name, start, length, undisturbed)?;
        }
        Ok(summaries)
    }

    /// Returns true if a histogram is recorded. A pilot's times are not needed later; in a closed loop the service time
    /// is the response time.
    fn is_kept(&self, kind: HistogramKind) -> bool {
        let is_closed = self.cell.load.arrivals == StudyArrivals::Closed;
        self.cell.phase != Phase::Pilot && !(is_closed && kind == HistogramKind::ServiceTime)
    }

    /// Returns the data of an ended trial that belong to none of its blocks: connections, handshakes, memory, the
    /// generator's own troubles. There is one record for each load of the trial, all with the same counts.
    pub(crate) fn parts(&self, blocks: usize, end: TrialEnd) -> Vec<PartRecord> {
        let measured = self.cell.measured(blocks);
        let part = self.part(end);
        measured
            .iter()
            .map(|own| PartRecord {
                load: own.load.clone(),
                first_block: own.first_block,
                blocks: own.blocks,
                with: measured.iter().filter(|with| *with != own).cloned().collect(),
                ..part.clone()
            })
            .collect()
    }

    fn part(&self, end: TrialEnd) -> PartRecord {
        let TrialEnd {
            load,
            watch,
            answered,
            clocks,
            starts,
            samples_at_ns,
            samples_cpu_ns,
            lost_nodes,
        } = end;
        let arms = load.arms.into_iter().enumerate();
        PartRecord {
            session: self.session,
            phase: self.cell.phase,
            threads: load.threads,
            io: load.io,
            starved: load.starved,
            listen_overflows: watch.listen_overflows,
            late_ns: watch.late_ns,
            clocks,
            starts,
            samples_at_ns,
            samples_cpu_ns,
            lost_nodes,
            errors: load.errors,
            arms: arms
                .map(|(place, flow)| ArmConnections {
                    arm: self.arms[place].name.clone(),
                    answered: answered.get(place).copied().unwrap_or(0),
                    asking: flow.asking,
                    held: flow.held,
                    tls: flow.tls,
                    listen_overflows: watch.arm_overflows.get(place).copied(),
                    proxy_memory_bytes: watch.memory.get(place).copied().unwrap_or(0),
                })
                .collect(),
            ..PartRecord::default()
        }
    }
}

/// Counters that a proxy keeps of itself, by its own names.
pub(crate) type Counted = BTreeMap<String, u64>;

/// Returns the increase of a proxy's counters between two readings. A counter that is missing in the first began at 0.
pub(crate) fn counted(before: &Counted, after: &Counted) -> Counted {
    after
        .iter()
        .map(|(name, now)| {
            let then = before.get(name).copied().unwrap_or(0);
            (name.clone(), now.saturating_sub(then))
        })
        .collect()
}
