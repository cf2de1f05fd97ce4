//! Names of arms and their proxies in sentences.

use weir_model::study::{Arm, ArmRole, Metric, ProxyKind, Study};

/// Returns the name of an arm for running text. If it has its proxy's name, the proxy's own spelling is used. If the
/// study has several proxies and the name does not show which, the proxy is appended.
pub(crate) fn arm(study: &Study, name: &str) -> String {
    let Some(arm) = find(study, name) else {
        return name.to_owned();
    };
    let kind = study.proxy_of(arm).kind;
    if name == kind.name() && kind.is_started() {
        return kind.title().to_owned();
    }
    let says_which = name.to_lowercase().contains(kind.name());
    let is_one_of_many = study.proxy_kinds().len() > 1 && kind.is_started();
    if is_one_of_many && !says_which && arm.role != ArmRole::Change {
        format!("{name} ({})", kind.title())
    } else {
        name.to_owned()
    }
}

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

/// Capitalises the first letter, except in names of settings, of proxies and of the study's arms, which have only one
/// spelling.
pub fn capitalized(study: &Study, text: &str) -> String {
    let first = text.split_whitespace().next().unwrap_or_default();
    let word = first.trim_end_matches([',', ';', ':']);
    let mut titles =
        ProxyKind::ALL.iter().filter(|kind| kind.is_started()).map(|kind| kind.title());
    let is_arm = study.arms.iter().any(|arm| {
        text.strip_prefix(&*arm.name).is_some_and(|tail| !tail.starts_with(char::is_alphanumeric))
    });
    if is_arm || titles.any(|title| title == word) || first.contains(['_', '=', '-']) {
        return text.to_owned();
    }
    let mut chars = text.chars();
    match chars.next() {
        Some(first) => first.to_uppercase().chain(chars).collect(),
        None => String::new(),
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

/// Formats an interval of ratios: `1.02 to 1.05`, `0.98 to ∞`.
pub(crate) fn interval((low, high): (f64, f64)) -> String {
    let [low, high] =
        [low, high].map(|end| if end.is_infinite() { "∞".to_owned() } else { format!("{end:.2}") });
    format!("{low} to {high}")
}
#[cfg(test)]
mod tests {
    use weir_model::fixture;

    use super::*;

    #[test]
    fn names_with_one_spelling_keep_it() {
        let arms = ["nolog", "éa b"].map(|name| fixture::arm(name, ArmRole::Change, &[]));
        let study = fixture::study(arms.into());
        #[rustfmt::skip]
        let words = [
            "nginx carries most", "HAProxy, nginx", "gzip=on costs", "one-worker carries",
            "nolog makes", "nolog: better", "éa b makes", "",
        ];
        for text in words {
            assert_eq!(capitalized(&study, text), text);
        }
        assert_eq!(capitalized(&study, "nologs make"), "Nologs make");
        assert_eq!(capitalized(&study, "the proxy"), "The proxy");
    }

    #[test]
    fn names_are_listed_as_one_says_them() {
        let names = ["a", "b", "c"].map(str::to_owned);
        assert_eq!(listed(&names), "a, b and c");
        assert_eq!(listed(&names[..2]), "a and b");
        assert_eq!(listed(&names[..1]), "a");
        assert_eq!(listed(&[]), "");
    }
}
