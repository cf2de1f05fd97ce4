//! A load in progress: its flows, the requests they send in a slice, and the fate of their connections.

use weir_agent::Part;
use weir_agent::message::{FlowEnd, LoadEnd, LoadJob};
use weir_load::Slice;
use weir_load::schedule::Schedule;
use weir_model::load::Lifetime;

use crate::slice::Sender;

/// Callback for the messages about a load.
pub(crate) type ToLoad = Box<dyn FnMut(Part<LoadJob>)>;

/// A load that one generator carries out.
pub(crate) struct Load {
    pub(crate) id: u64,
    pub(crate) job: LoadJob,
    /// Schedule of the requests of each flow; `None` for a closed loop.
    schedules: Vec<Option<Schedule>>,
    pub(crate) to: ToLoad,
    pub(crate) has_told: bool,
    pub(crate) is_stopped: bool,
}

impl Load {
    pub(crate) fn new(id: u64, job: LoadJob, to: ToLoad) -> Load {
        let end = job.slices.last().map_or(0, |slice| slice.end);
        let schedules = job.flows.iter().map(|flow| match flow.every_ns {
            Some(every) => Schedule::new(&flow.arrivals.clone().repeated(every, end), 0),
            None => Schedule::new(&flow.arrivals, 0),
        });
        Load { id, schedules: schedules.collect(), job, to, has_told: false, is_stopped: false }
    }

    /// Returns the senders of a slice: the flows of its arm that do not only hold connections.
    pub(crate) fn senders(&mut self, slice: Slice) -> Vec<Sender> {
        let deal = self.job.deal();
        let sender = self
            .job
            .flows
            .iter()
            .zip(&mut self.schedules)
            .filter(|(flow, _)| flow.arm == slice.arm && !flow.spec.is_held())
            .map(|(flow, schedule)| Sender {
                connections: deal.part(flow.spec.connections.into()) as u32,
                timeout_ns: flow.spec.timeout.as_nanos() as u64,
                due: schedule.as_mut().map(|schedule| {
                    schedule.prepare(slice.end);
                    let numbers =
                        schedule.count_before(slice.start)..schedule.count_before(slice.end);
                    numbers
                        .filter(|number| deal.has(*number))
                        .map(|number| schedule.time_of(number))
                        .collect()
                }),
            });
        sender.collect()
    }

    /// Counts the connections of all flows to each arm. All wanted connections are opened and stay open.
    pub(crate) fn end(&self) -> LoadEnd {
        let mut arms: Vec<(usize, FlowEnd)> = Vec::new();
        for flow in &self.job.flows {
            let index = arms.iter().position(|(arm, _)| *arm == flow.arm).unwrap_or_else(|| {
                arms.push((flow.arm, FlowEnd::default()));
                arms.len() - 1
            });
            let counts = if flow.spec.is_held() {
                &mut arms[index].1.held
            } else {
                &mut arms[index].1.asking
            };
            let wanted = self.job.deal().part(flow.spec.connections.into());
            let open = match flow.spec.lifetime {
                Lifetime::Request => 0,
                _ => wanted,
            };
            counts.wanted += wanted;
            counts.open_at_start += open;
            counts.open_at_end += open;
            counts.opened += wanted;
        }
        LoadEnd {
            arms: arms.into_iter().map(|(_, end)| end).collect(),
            errors: Vec::new(),
            threads: self.job.threads.len() as u32,
            starved: 0,
            io: "simulated".to_owned(),
            whole: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::net::{Ipv4Addr, SocketAddr};
    use std::rc::Rc;
    use std::time::Duration;

    use weir_agent::message::{FlowJob, LoadEvent, SliceJob};
    use weir_load::SliceData;
    use weir_model::flow::{ArrivalsSpec, FlowSpec};
    use weir_model::spin::Spin;

    use super::*;
    use crate::{ArmModel, Distribution, Model, World};

    const SECOND: u64 = 1_000_000_000;

    /// Runs such flows for a second against one arm, whose only worker takes half a millisecond per request.
    fn carried(flows: &[FlowSpec]) -> (SliceData, LoadEnd) {
        let job = LoadJob {
            flows: flows
                .iter()
                .map(|spec| FlowJob {
                    arm: 0,
                    peer: SocketAddr::from((Ipv4Addr::LOCALHOST, 9)),
                    also: Vec::new(),
                    host: "a".to_owned(),
                    trust: String::new(),
                    spec: spec.clone(),
                    arrivals: spec.resolved(None),
                    every_ns: None,
                    trace: None,
                    sources: Vec::new(),
                    keeps_content: false,
                })
                .collect(),
            slices: vec![SliceJob { arm: 0, start: 0, measure_from: 0, end: SECOND }],
            drain: Duration::ZERO,
            spin: Spin::OFF,
            threads: vec![None],
            descriptors: 64,
            ..LoadJob::default()
        };
        let model = Model {
            others: ArmModel { service: Distribution::Fixed(500e3), ..ArmModel::default() },
            ..Model::default()
        };
        let mut world = World::new(&model);
        let arm = world.instance("a").unwrap();
        world.arms.insert(0, arm);
        let results = Rc::new(RefCell::new((None, None)));
        let to = Rc::clone(&results);
        world.begin_load(
            job,
            Box::new(move |part| match part {
                Part::Event(LoadEvent::Slice { data, .. }) => to.borrow_mut().0 = Some(*data),
                Part::Event(LoadEvent::Ready | LoadEvent::Started { .. }) => {}
                Part::End(end) => to.borrow_mut().1 = Some(end.unwrap()),
            }),
        );
        while world.advance() {}
        let (data, end) = results.take();
        (data.unwrap(), end.unwrap())
    }

    fn failures(data: &SliceData) -> u64 {
        data.errors.counts().iter().map(|error| error.count).sum()
    }

    #[test]
    fn all_flows_of_an_arm_ask_and_share_its_workers() {
        let main = FlowSpec::new(4, ArrivalsSpec::Constant(500.0));
        // Due whenever the main flow is, and in the middle between.
        let often = FlowSpec::new(2, ArrivalsSpec::Constant(1000.0));
        let impatient = FlowSpec { timeout: Duration::from_micros(700), ..often.clone() };
        let closed = FlowSpec::new(2, ArrivalsSpec::Closed);
        let [alone, own] = [&main, &often].map(|flow| carried(std::slice::from_ref(flow)).0);
        assert!(alone.offered.abs_diff(500) < 2 && own.offered.abs_diff(1000) < 2);
        // The other flow; requests that are sent, and failures.
        let both = alone.offered + own.offered;
        for (beside, offered, failed) in [
            (often, both, 0),
            (impatient, both, alone.offered),
            // What the worker has time for, and what waits at the end.
            (closed, 2000, 0),
        ] {
            let flows = [main.clone(), beside, FlowSpec::held(7)];
            let (data, end) = carried(&flows);
            assert!(data.offered.abs_diff(offered) <= 3, "{}", data.offered);
            assert_eq!(failures(&data), failed);
            assert!(slowest_ns(&alone) < 600_000 && slowest_ns(&own) < 600_000);
            assert!(slowest_ns(&data) > 900_000 || failed > 0);
            let [arm] = &end.arms[..] else { panic!("{end:?}") };
            assert_eq!((arm.asking.wanted, arm.held.opened), (6, 7));
        }
    }

    fn slowest_ns(data: &SliceData) -> u64 {
        data.histograms.response.max()
    }

    #[test]
    fn connections_for_one_request_are_not_open_when_nothing_is_asked() {
        let brief = FlowSpec {
            lifetime: Lifetime::Request,
            ..FlowSpec::new(3, ArrivalsSpec::Constant(10.0))
        };
        let (_, end) = carried(&[FlowSpec::held(1), brief, FlowSpec::new(5, ArrivalsSpec::Closed)]);
        let asking = end.arms[0].asking;
        assert_eq!((asking.wanted, asking.open_at_start, asking.open_at_end), (8, 5, 5));
    }
}
