//! Names of arms, proxies and metrics in sentences.

use weir_model::study::{Arm, ArmRole, Metric, ProxyKind, Study};

/// Returns the name of an arm for running text. If it has its proxy's name, the proxy's own spelling is used. If the
/// study has several proxies and the name does not show which, the proxy is appended.
pub(crate) fn arm(study: &Study, name: &str) -> String {
    let Some(arm) = find_arm(study, name) else {
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

pub(crate) fn find_arm<'a>(study: &'a Study, name: &str) -> Option<&'a Arm> {
    study.arms.iter().find(|arm| arm.name == name)
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
pub fn join_names(names: &[String]) -> String {
    match names.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => names.concat(),
    }
}

/// Capitalises the first letter, except in names of settings, of proxies and of the study's arms, which have only one
/// spelling.
pub fn capitalize(study: &Study, text: &str) -> String {
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
            assert_eq!(capitalize(&study, text), text);
        }
        assert_eq!(capitalize(&study, "nologs make"), "Nologs make");
        assert_eq!(capitalize(&study, "the proxy"), "The proxy");
    }

    #[test]
    fn names_are_listed_as_one_says_them() {
        let names = ["a", "b", "c"].map(str::to_owned);
        assert_eq!(join_names(&names), "a, b and c");
        assert_eq!(join_names(&names[..2]), "a and b");
        assert_eq!(join_names(&names[..1]), "a");
        assert_eq!(join_names(&[]), "");
    }
}
