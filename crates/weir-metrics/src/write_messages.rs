//! Messages of remote write: `prometheus.WriteRequest` (1.0) and `io.prometheus.write.v2.Request` (2.0), compressed with
//! snappy.

use std::collections::BTreeMap;

use prost::Message;

use crate::families::{Family, Kind};
use crate::histogram::{Distribution, SCHEMA};
use crate::openmetrics::number;
use crate::protobuf::{BucketSpan, ZERO_THRESHOLD};
use crate::remote::Version;
use crate::store::{Labels, Value};

/// A series with a new value.
pub(crate) type Change = (&'static Family, Labels, Value);

/// A request body, and the number of samples in it.
#[derive(Debug)]
pub(crate) struct Encoded {
    /// Compressed message.
    pub(crate) body: Vec<u8>,
    /// Number of samples, a native histogram counting as one.
    pub(crate) samples: u64,
}

/// Makes a request of series that have these values at one time, milliseconds since 1970.
pub(crate) fn encode(changes: &[Change], at_ms: i64, version: Version) -> Encoded {
    let (message, samples) = match version {
        Version::V1 => first(changes, at_ms),
        Version::V2 => second(changes, at_ms),
    };
    let body = snap::raw::Encoder::new().compress_vec(&message).unwrap_or_default();
    Encoded { body, samples }
}

fn first(changes: &[Change], at_ms: i64) -> (Vec<u8>, u64) {
    let mut timeseries = Vec::new();
    for (family, labels, value) in changes {
        let mut values: Vec<(String, Option<String>, f64)> = Vec::new();
        match value {
            Value::Number(value) => values.push((family.sample_name().into_owned(), None, *value)),
            Value::Distribution(times) => {
                let name = &family.name;
                let buckets = times.classic().map(|(bound, count)| (number(bound), count));
                let infinite = ("+Inf".to_owned(), times.count);
                values.extend(
                    buckets.chain([infinite]).map(|(bound, count)| {
                        (format!("{name}_bucket"), Some(bound), count as f64)
                    }),
                );
                values.push((format!("{name}_sum"), None, times.sum));
                values.push((format!("{name}_count"), None, times.count as f64));
            }
        }
        timeseries.extend(values.into_iter().map(|(name, bound, value)| {
            let mut labels: Vec<Label> = named(&name, labels, bound.as_deref())
                .map(|(name, value)| Label { name: name.to_owned(), value: value.to_owned() })
                .collect();
            labels.sort_unstable_by(|a, b| a.name.cmp(&b.name));
            TimeSeries { labels, samples: vec![Sample { value, at_ms }] }
        }));
    }
    let samples = timeseries.len() as u64;
    (WriteRequest { timeseries }.encode_to_vec(), samples)
}

fn second(changes: &[Change], at_ms: i64) -> (Vec<u8>, u64) {
    let mut symbols = Symbols::default();
    let mut timeseries = Vec::new();
    for (family, labels, value) in changes {
        let name = family.sample_name();
        let mut pairs: Vec<(&str, &str)> = named(&name, labels, None).collect();
        pairs.sort_unstable();
        let refs = pairs.iter().flat_map(|(name, value)| [*name, *value]);
        let labels_refs = refs.map(|text| symbols.reference(text)).collect();
        let kind = match family.kind {
            Kind::Counter => 1,
            Kind::Gauge => 2,
            Kind::Histogram => 3,
            Kind::Unknown => 0,
        };
        let metadata = Some(Metadata { kind, help_ref: symbols.reference(&family.help) });
        let (samples, histograms) = match value {
            Value::Number(value) => (vec![Sample { value: *value, at_ms }], Vec::new()),
            Value::Distribution(times) => (Vec::new(), vec![native(times, at_ms)]),
        };
        timeseries.push(TimeSeries2 { labels_refs, samples, histograms, metadata });
    }
    let samples = timeseries.len() as u64;
    (Request2 { symbols: symbols.texts, timeseries }.encode_to_vec(), samples)
}

fn named<'t>(
    name: &'t str,
    labels: &'t Labels,
    bound: Option<&'t str>,
) -> impl Iterator<Item = (&'t str, &'t str)> {
    let pairs = labels.iter().map(|(name, value)| (*name, &**value));
    std::iter::once(("__name__", name)).chain(pairs).chain(bound.map(|bound| ("le", bound)))
}

fn native(times: &Distribution, at_ms: i64) -> NativeHistogram {
    let (spans, positive_deltas) = times.native();
    NativeHistogram {
        count: times.count,
        sum: times.sum,
        schema: SCHEMA,
        zero_threshold: ZERO_THRESHOLD,
        zero_count: times.zero,
        positive_spans: spans
            .iter()
            .map(|span| BucketSpan { offset: span.offset, length: span.length })
            .collect(),
        positive_deltas,
        at_ms,
    }
}

/// Texts of a message, each once. The first one is empty.
struct Symbols {
    texts: Vec<String>,
    places: BTreeMap<String, u32>,
}

impl Default for Symbols {
    fn default() -> Symbols {
        Symbols { texts: vec![String::new()], places: BTreeMap::from([(String::new(), 0)]) }
    }
}

impl Symbols {
    fn reference(&mut self, text: &str) -> u32 {
        if let Some(place) = self.places.get(text) {
            return *place;
        }
        let number = self.texts.len() as u32;
        self.texts.push(text.to_owned());
        self.places.insert(text.to_owned(), number);
        number
    }
}

#[derive(Clone, PartialEq, Message)]
struct WriteRequest {
    #[prost(message, repeated, tag = "1")]
    timeseries: Vec<TimeSeries>,
}

#[derive(Clone, PartialEq, Message)]
struct TimeSeries {
    #[prost(message, repeated, tag = "1")]
    labels: Vec<Label>,
    #[prost(message, repeated, tag = "2")]
    samples: Vec<Sample>,
}

#[derive(Clone, PartialEq, Message)]
struct Label {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    value: String,
}

#[derive(Clone, PartialEq, Message)]
struct Sample {
    #[prost(double, tag = "1")]
    value: f64,
    /// Milliseconds since 1970.
    #[prost(int64, tag = "2")]
    at_ms: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Request2 {
    #[prost(string, repeated, tag = "4")]
    symbols: Vec<String>,
    #[prost(message, repeated, tag = "5")]
    timeseries: Vec<TimeSeries2>,
}

#[derive(Clone, PartialEq, Message)]
struct TimeSeries2 {
    #[prost(uint32, repeated, tag = "1")]
    labels_refs: Vec<u32>,
    #[prost(message, repeated, tag = "2")]
    samples: Vec<Sample>,
    #[prost(message, repeated, tag = "3")]
    histograms: Vec<NativeHistogram>,
    #[prost(message, optional, tag = "5")]
    metadata: Option<Metadata>,
}

#[derive(Clone, PartialEq, Message)]
struct Metadata {
    #[prost(int32, tag = "1")]
    kind: i32,
    #[prost(uint32, tag = "3")]
    help_ref: u32,
}

#[derive(Clone, PartialEq, Message)]
struct NativeHistogram {
    #[prost(uint64, required, tag = "1")]
    count: u64,
    #[prost(double, tag = "3")]
    sum: f64,
    #[prost(sint32, tag = "4")]
    schema: i32,
    #[prost(double, tag = "5")]
    zero_threshold: f64,
    #[prost(uint64, required, tag = "6")]
    zero_count: u64,
    #[prost(message, repeated, tag = "11")]
    positive_spans: Vec<BucketSpan>,
    #[prost(sint64, repeated, tag = "12")]
    positive_deltas: Vec<i64>,
    #[prost(int64, tag = "15")]
    at_ms: i64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Store;

    fn changes() -> Vec<Change> {
        let mut store = Store::new();
        store.set_common(&[("run", "r")]);
        store.add("weir_blocks", &[("arm", "a"), ("load", "l")], 7.0);
        let mut times = hdrhistogram::Histogram::<u64>::new(3).unwrap();
        times.record_n(2_000_000, 5).unwrap();
        store.observe("weir_request_duration_seconds", &[("arm", "a")], &times);
        store.changes(false)
    }

    fn decoded<M: Message + Default>(body: &[u8]) -> M {
        M::decode(&snap::raw::Decoder::new().decompress_vec(body).unwrap()[..]).unwrap()
    }

    #[test]
    fn version_1_has_sorted_labels_and_classic_buckets() {
        let encoded = encode(&changes(), 42, Version::V1);
        let request: WriteRequest = decoded(&encoded.body);
        assert_eq!(request.timeseries.len() as u64, encoded.samples);
        for series in &request.timeseries {
            assert!(series.labels.is_sorted_by(|a, b| a.name < b.name), "{series:?}");
            assert_eq!((&*series.labels[0].name, series.samples[0].at_ms), ("__name__", 42));
        }
        let blocks =
            request.timeseries.iter().find(|series| series.labels[0].value == "weir_blocks_total");
        assert_eq!(blocks.unwrap().samples[0].value, 7.0);
        let infinite = request.timeseries.iter().find(|series| {
            series.labels.iter().any(|label| label.name == "le" && label.value == "+Inf")
        });
        assert_eq!(infinite.unwrap().samples[0].value, 5.0);
    }

    #[test]
    fn version_2_has_symbols_and_native_histograms() {
        let encoded = encode(&changes(), 42, Version::V2);
        let request: Request2 = decoded(&encoded.body);
        assert_eq!((request.symbols[0].as_str(), encoded.samples), ("", 2));
        let labels = |series: &TimeSeries2| -> Vec<&str> {
            series.labels_refs.iter().map(|place| &*request.symbols[*place as usize]).collect()
        };
        let [blocks, times] = &request.timeseries[..] else { panic!("{request:?}") };
        assert_eq!(
            labels(blocks),
            ["__name__", "weir_blocks_total", "arm", "a", "load", "l", "run", "r"]
        );
        assert_eq!(blocks.metadata.as_ref().unwrap().kind, 1);
        assert_eq!(labels(times)[1], "weir_request_duration_seconds");
        let histogram = &times.histograms[0];
        assert_eq!(
            (histogram.count, histogram.at_ms, &histogram.positive_deltas[..]),
            (5, 42, &[5][..])
        );
    }

    #[test]
    fn only_what_has_changed_is_sent_again() {
        let mut store = Store::new();
        store.add("weir_blocks", &[], 1.0);
        store.set("weir_validity", &[], 0.0);
        assert_eq!(store.changes(false).len(), 2);
        assert_eq!(store.changes(false).len(), 0);
        store.add("weir_blocks", &[], 1.0);
        assert_eq!(store.changes(false).len(), 1);
        assert_eq!(store.changes(true).len(), 2);
    }
}
