//! Counts of a slice as they travel between processes. Nothing that records are made from is lost.

use std::borrow::Borrow;
use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer as _, V2Serializer};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use weir_load::{Errors, SliceData};
use weir_model::load::{Censored, ErrorCount};

use super::Bytes;

/// Serializes the counts of a slice.
pub(super) fn serialize<S: Serializer>(
    data: &impl Borrow<SliceData>,
    to: S,
) -> Result<S::Ok, S::Error> {
    counts_of(data.borrow()).serialize(to)
}

/// Deserializes the counts of a slice; fails if its histograms cannot be read.
pub(super) fn deserialize<'de, D: Deserializer<'de>, T: From<Box<SliceData>>>(
    from: D,
) -> Result<T, D::Error> {
    let counts = SliceCounts::deserialize(from)?;
    data_of(&counts)
        .map(|data| T::from(Box::new(data)))
        .ok_or_else(|| D::Error::custom("a slice's counts or histograms cannot be read"))
}

/// The fields of [`SliceData`] that records are made from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct SliceCounts {
    due: u64,
    queued: u64,
    dropped: u64,
    offered: u64,
    completed: u64,
    served_thousandths: u64,
    completed_whole: u64,
    received_bytes: u64,
    content_bytes: u64,
    reconnects: u64,
    lost: u64,
    statuses: BTreeMap<u16, u64>,
    errors: Vec<ErrorCount>,
    censored: Censored,
    cpu_ns: u64,
    switch_late_ns: u64,
    response: Bytes,
    service: Bytes,
    first_byte: Bytes,
    dispatch_lag: Bytes,
    overflow: u64,
}

/// Converts the counts of a slice to their form on the wire.
fn counts_of(data: &SliceData) -> SliceCounts {
    let statuses = (100..).zip(data.statuses.iter().copied());
    SliceCounts {
        due: data.due,
        queued: data.queued,
        dropped: data.dropped,
        offered: data.offered,
        completed: data.completed,
        served_thousandths: data.served_thousandths,
        completed_whole: data.completed_whole,
        received_bytes: data.received_bytes,
        content_bytes: data.content_bytes,
        reconnects: data.reconnects,
        lost: data.lost,
        statuses: statuses.filter(|(_, count)| *count > 0).collect(),
        errors: data.errors.counts(),
        censored: data.censored,
        cpu_ns: data.cpu_ns,
        switch_late_ns: data.switch_late_ns,
        response: histogram(&data.histograms.response),
        service: histogram(&data.histograms.service),
        first_byte: histogram(&data.histograms.first_byte),
        dispatch_lag: histogram(&data.histograms.dispatch_lag),
        overflow: data.histograms.overflow,
    }
}

/// Largest count that is accepted. No slice counts as much, and the sum over all slices of a trial cannot overflow.
const MOST: u64 = 1 << 53;

/// Converts counts from their form on the wire. Returns `None` if a histogram cannot be read or a count is impossible.
fn data_of(counts: &SliceCounts) -> Option<SliceData> {
    let mut data = SliceData::new();
    let mut figures = [
        counts.due,
        counts.queued,
        counts.dropped,
        counts.offered,
        counts.completed,
        counts.served_thousandths,
        counts.completed_whole,
        counts.received_bytes,
        counts.content_bytes,
        counts.reconnects,
        counts.lost,
        counts.cpu_ns,
        counts.switch_late_ns,
        counts.overflow,
    ]
    .into_iter()
    .chain(counts.statuses.values().copied());
    if figures.any(|figure| figure > MOST) {
        return None;
    }
    (data.due, data.queued, data.dropped) = (counts.due, counts.queued, counts.dropped);
    data.offered = counts.offered;
    data.completed = counts.completed;
    data.served_thousandths = counts.served_thousandths;
    data.completed_whole = counts.completed_whole;
    data.received_bytes = counts.received_bytes;
    data.content_bytes = counts.content_bytes;
    (data.reconnects, data.lost) = (counts.reconnects, counts.lost);
    for (status, count) in &counts.statuses {
        let index = usize::from(status.checked_sub(100)?);
        *data.statuses.get_mut(index)? = *count;
    }
    data.errors = Errors::told(&counts.errors);
    data.censored = counts.censored;
    data.cpu_ns = counts.cpu_ns;
    data.switch_late_ns = counts.switch_late_ns;
    let histograms = &mut data.histograms;
    read_into(&mut histograms.response, &counts.response)?;
    read_into(&mut histograms.service, &counts.service)?;
    read_into(&mut histograms.first_byte, &counts.first_byte)?;
    read_into(&mut histograms.dispatch_lag, &counts.dispatch_lag)?;
    histograms.overflow = counts.overflow;
    Some(data)
}

/// Encodes a histogram. An empty one becomes no bytes at all; most histograms that a load does not fill are empty.
fn histogram(histogram: &Histogram<u64>) -> Bytes {
    let mut bytes = Vec::new();
    if !histogram.is_empty() {
        // Writing to memory cannot fail, and the counts are what the format holds.
        let _ = V2Serializer::new().serialize(histogram, &mut bytes);
    }
    Bytes(bytes)
}

fn read_into(histogram: &mut Histogram<u64>, bytes: &Bytes) -> Option<()> {
    if bytes.0.is_empty() {
        return Some(());
    }
    let read = weir_record::decode(&bytes.0).ok()?;
    histogram.add(&read).ok()
}

/// Totals of flows as they travel between processes.
pub(super) mod totals {
    use weir_load::engine::{FlowTotals, TlsCounts};
    use weir_load::ledger::new_histogram;

    use super::*;

    #[derive(Serialize, Deserialize)]
    struct Totals {
        /// Connection counts: wanted, open at the start, open at the end, opened, lost while the arm had no load.
        counts: [u64; 5],
        connect_time: Bytes,
        tls_time: Bytes,
        tls: TlsCounts,
    }

    pub(in super::super) fn serialize<S: Serializer>(
        flows: &[FlowTotals],
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.collect_seq(flows.iter().map(|flow| Totals {
            counts: [
                flow.connections,
                flow.connected,
                flow.open_at_end,
                flow.connects,
                flow.lost_at_rest,
            ],
            connect_time: histogram(&flow.connect_time),
            tls_time: histogram(&flow.tls_time),
            tls: flow.tls.clone(),
        }))
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Vec<FlowTotals>, D::Error> {
        let all = Vec::<Totals>::deserialize(from)?;
        let flows = all.into_iter().map(flow_of).collect::<Option<_>>();
        flows.ok_or_else(|| D::Error::custom("a flow's counts or histograms cannot be read"))
    }

    fn flow_of(totals: Totals) -> Option<FlowTotals> {
        let tls = &totals.tls;
        let named = tls.versions.iter().chain(&tls.ciphers).chain(&tls.groups);
        let handshakes = [tls.handshakes, tls.resumed, tls.early_data];
        let mut counts = handshakes.iter().chain(named).chain(&totals.counts);
        if counts.any(|count| *count > MOST) {
            return None;
        }
        let [connections, connected, open_at_end, connects, lost_at_rest] = totals.counts;
        let [mut connect_time, mut tls_time] = [(); 2].map(|()| new_histogram());
        read_into(&mut connect_time, &totals.connect_time)?;
        read_into(&mut tls_time, &totals.tls_time)?;
        Some(FlowTotals {
            connections,
            connected,
            open_at_end,
            connects,
            lost_at_rest,
            connect_time,
            tls_time,
            tls: totals.tls,
        })
    }
}

#[cfg(test)]
mod tests {
    use weir_model::load::{ErrorCount, ErrorKind};

    use super::*;

    #[test]
    fn nothing_is_lost_on_the_way() {
        let mut data = SliceData::new();
        (data.offered, data.completed, data.completed_whole) = (1, 2, 3);
        (data.received_bytes, data.reconnects, data.cpu_ns) = (4, 5, 6);
        (data.due, data.queued, data.dropped) = (12, 13, 14);
        data.served_thousandths = 15;
        data.switch_late_ns = 16;
        (data.content_bytes, data.lost) = (18, 19);
        (data.statuses[0], data.statuses[499]) = (7, 8);
        data.censored.in_flight = 9;
        let errors = [ErrorCount {
            kind: ErrorKind::Connect,
            words: "too late".to_owned(),
            errno: Some(99),
            count: 10,
        }];
        data.errors = Errors::told(&errors);
        for value in [1, 1_000, 2_000_000, 3_599_999_999_999] {
            data.histograms.response.record(value).unwrap();
        }
        data.histograms.first_byte.record(17).unwrap();
        data.histograms.overflow = 11;

        let counts = counts_of(&data);
        let text = serde_json::to_string(&counts).unwrap();
        let again = data_of(&serde_json::from_str(&text).unwrap()).unwrap();
        assert_eq!(counts_of(&again), counts);
        assert_eq!((again.due, again.queued, again.dropped), (12, 13, 14));
        assert_eq!((again.served_thousandths, again.switch_late_ns), (15, 16));
        assert_eq!((again.content_bytes, again.lost), (18, 19));
        assert_eq!(again.histograms.response, data.histograms.response);
        assert_eq!(again.histograms.first_byte.max(), 17);
        assert_eq!(again.errors.counts(), errors);
        assert_eq!(again.status_classes(), data.status_classes());
    }

    #[test]
    fn what_is_no_histogram_is_refused() {
        let mut counts = counts_of(&SliceData::new());
        // 44 bytes that claim 4 GiB of counts.
        let mut claims = histogram(&{
            let mut recorded = weir_record::empty_histogram();
            recorded.record(1_000).unwrap();
            recorded
        });
        claims.0[4..8].copy_from_slice(&[0xff; 4]);
        claims.0.truncate(44);
        for none in [Bytes(b"no histogram".to_vec()), claims] {
            counts.response = none;
            assert!(data_of(&counts).is_none());
        }
        counts.response = Bytes::default();
        counts.statuses.insert(99, 1);
        assert!(data_of(&counts).is_none());
        counts.statuses.clear();
        assert!(data_of(&counts).is_some());
        // Sums of such would not be any.
        counts.completed = u64::MAX;
        assert!(data_of(&counts).is_none());
    }
}
