//! Names of arms and their proxies in sentences.

use weir_model::study::{Arm, Metric, Study};

pub(crate) fn find<'a>(study: &'a Study, name: &str) -> Option<&'a Arm> {
    study.arms.iter().find(|arm| arm.name == name)
}

/// Returns true if two arms are different systems, so that one does not "make" the other carry more: another program,
/// another executable of it, another address, or another configuration of the user's.
pub fn are_different_proxies(study: &Study, a: &str, b: &str) -> bool {
    let [first, second] = [a, b].map(|name| {
        let proxy = study.proxy_of(find(study, name)?);
        let configuration = proxy.configuration.as_ref();
        Some((proxy.kind, &proxy.executable, configuration, proxy.external.as_ref()))
    });
    first != second
}

/// Returns true if the arms that are compared with another than the baseline are steps, each compared with the one
/// before it. If false, each is compared with the one of its stratum.
pub fn are_steps(study: &Study) -> bool {
    let mut arms = study.arms.iter().enumerate();
    arms.all(|(index, arm)| arm.against == 0 || index.checked_sub(1) == Some(arm.against))
}

/// Returns the name of a metric in running text: `completed rate`.
pub fn metric_words(metric: Metric) -> &'static str {
    match metric {
        Metric::Rate => "completed rate",
        Metric::ReceivedBytes => "throughput",
        Metric::CpuPerRequest => "proxy CPU per request",
        Metric::ResponseP50 => "median response time",
        Metric::ResponseP99 => "response time at quantile 0.99",
    }
}

/// Joins names: `a`, `a and b`, `a, b and c`.
pub fn listed(names: &[String]) -> String {
    match names.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => names.concat(),
    }
}

/// Formats requests per second: `4,310`, `84.2`.
pub(crate) fn rate(value: f64) -> String {
    if value < 99.95 {
        return format!("{value:.1}").trim_end_matches(".0").to_owned();
    }
    grouped(&format!("{value:.0}"))
}

/// Formats a count: `12,310`.
pub(crate) fn count(value: u64) -> String {
    grouped(&value.to_string())
}

/// Formats milliseconds with about three significant digits: `30`, `2.1`, `0.094`.
pub(crate) fn ms(ns: f64) -> String {
    let ms = ns / 1e6;
    let text = match ms {
        ms if ms >= 100.0 => return format!("{ms:.0}"),
        ms if ms >= 10.0 => format!("{ms:.1}"),
        ms if ms >= 1.0 => format!("{ms:.2}"),
        ms => format!("{ms:.3}"),
    };
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Formats a time given in nanoseconds with about three digits: `58 µs`, `2.34 ms`, `1,134 ms`.
pub(crate) fn time(ns: f64) -> String {
    match ns.max(0.0) {
        ns if ns < 1e6 => format!("{:.0} µs", ns / 1e3),
        ns if ns < 99.5e6 => format!("{} ms", ms(ns)),
        ns => format!("{} ms", grouped(&format!("{:.0}", ns / 1e6))),
    }
}

fn grouped(digits: &str) -> String {
    let (mut text, count) = (String::new(), digits.len());
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (count - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_listed_as_one_says_them() {
        let names = ["a", "b", "c"].map(str::to_owned);
        assert_eq!(listed(&names), "a, b and c");
        assert_eq!(listed(&names[..2]), "a and b");
        assert_eq!(listed(&names[..1]), "a");
        assert_eq!(listed(&[]), "");
    }
}
