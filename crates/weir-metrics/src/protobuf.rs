//! Prometheus' own protobuf format (`io.prometheus.client.MetricFamily`, client_model/metrics.proto), in which native
//! histograms are scraped. Written by hand: their few fields need no compiler of protobuf.

use prost::Message;

use crate::families::{Family, Kind};
use crate::histogram::{Distribution, SCHEMA};
use crate::store::{Labels, Store, Value};

/// Values up to this are counted as zero, as in Prometheus' own client.
pub const ZERO_THRESHOLD: f64 = 2.938_735_877_055_719e-39;

/// Returns the latest value of every series: messages, each after its length.
pub fn delimited(store: &Store) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (family, series) in store.read() {
        let metric = series.map(|(labels, value)| metric(family, labels, value)).collect();
        let message = MetricFamily {
            name: family.sample_name().into_owned(),
            help: family.help.clone().into_owned(),
            kind: kind_number(family.kind),
            metric,
            unit: family.unit().map(str::to_owned),
        };
        bytes.extend(message.encode_length_delimited_to_vec());
    }
    bytes
}

fn kind_number(kind: Kind) -> i32 {
    match kind {
        Kind::Counter => 0,
        Kind::Gauge => 1,
        Kind::Unknown => 3,
        Kind::Histogram => 4,
    }
}

fn metric(family: &Family, labels: &Labels, value: &Value) -> Metric {
    let label = labels
        .iter()
        .map(|(name, value)| LabelPair { name: (*name).to_owned(), value: value.clone() })
        .collect();
    let metric = Metric { label, ..Metric::default() };
    match (family.kind, value) {
        (_, Value::Distribution(times)) => Metric { histogram: Some(histogram(times)), ..metric },
        (Kind::Counter, Value::Number(value)) => {
            Metric { counter: Some(Number { value: *value }), ..metric }
        }
        (Kind::Unknown, Value::Number(value)) => {
            Metric { untyped: Some(Number { value: *value }), ..metric }
        }
        (_, Value::Number(value)) => Metric { gauge: Some(Number { value: *value }), ..metric },
    }
}

fn histogram(times: &Distribution) -> Histogram {
    let (spans, positive_delta) = times.native();
    let mut positive_span: Vec<BucketSpan> =
        spans.iter().map(|span| BucketSpan { offset: span.offset, length: span.length }).collect();
    if positive_span.is_empty() {
        // Without a span an empty histogram would be taken for a classic one.
        positive_span.push(BucketSpan { offset: 0, length: 0 });
    }
    let bucket = times
        .classic()
        .map(|(upper_bound, cumulative_count)| Bucket { cumulative_count, upper_bound })
        .collect();
    Histogram {
        sample_count: times.count,
        sample_sum: times.sum,
        bucket,
        schema: SCHEMA,
        zero_threshold: ZERO_THRESHOLD,
        zero_count: times.zero,
        positive_span,
        positive_delta,
    }
}

#[derive(Clone, PartialEq, Message)]
struct MetricFamily {
    #[prost(string, required, tag = "1")]
    name: String,
    #[prost(string, required, tag = "2")]
    help: String,
    #[prost(int32, required, tag = "3")]
    kind: i32,
    #[prost(message, repeated, tag = "4")]
    metric: Vec<Metric>,
    #[prost(string, optional, tag = "5")]
    unit: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
struct Metric {
    #[prost(message, repeated, tag = "1")]
    label: Vec<LabelPair>,
    #[prost(message, optional, tag = "2")]
    gauge: Option<Number>,
    #[prost(message, optional, tag = "3")]
    counter: Option<Number>,
    #[prost(message, optional, tag = "5")]
    untyped: Option<Number>,
    #[prost(message, optional, tag = "7")]
    histogram: Option<Histogram>,
}

#[derive(Clone, PartialEq, Message)]
struct LabelPair {
    #[prost(string, required, tag = "1")]
    name: String,
    #[prost(string, required, tag = "2")]
    value: String,
}

/// A counter, a gauge, or a value of unknown kind: their messages are alike.
#[derive(Clone, PartialEq, Message)]
struct Number {
    #[prost(double, required, tag = "1")]
    value: f64,
}

#[derive(Clone, PartialEq, Message)]
struct Histogram {
    #[prost(uint64, required, tag = "1")]
    sample_count: u64,
    #[prost(double, required, tag = "2")]
    sample_sum: f64,
    #[prost(message, repeated, tag = "3")]
    bucket: Vec<Bucket>,
    #[prost(sint32, required, tag = "5")]
    schema: i32,
    #[prost(double, required, tag = "6")]
    zero_threshold: f64,
    #[prost(uint64, required, tag = "7")]
    zero_count: u64,
    #[prost(message, repeated, tag = "12")]
    positive_span: Vec<BucketSpan>,
    #[prost(sint64, repeated, packed = "false", tag = "13")]
    positive_delta: Vec<i64>,
}

#[derive(Clone, PartialEq, Message)]
struct Bucket {
    #[prost(uint64, required, tag = "1")]
    cumulative_count: u64,
    #[prost(double, required, tag = "2")]
    upper_bound: f64,
}

/// A run of native buckets without a gap, in scrapes and in remote write.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct BucketSpan {
    #[prost(sint32, required, tag = "1")]
    pub(crate) offset: i32,
    #[prost(uint32, required, tag = "2")]
    pub(crate) length: u32,
}
