//! Judged conditions as JUnit XML, which CI servers show as test results (the schema of Apache Ant's `junitreport`).

use weir_report::secrets::visible;

use crate::Judged;

/// Formats conditions as a suite of tests: one that is true is a failure, one that cannot be judged an error.
pub fn junit(suite: &str, judged: &[Judged]) -> String {
    let failures = judged.iter().filter(|one| one.is_true == Some(true)).count();
    let errors = judged.iter().filter(|one| one.is_true.is_none()).count();
    let cases: String = judged.iter().map(|one| case(suite, one)).collect();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <testsuite name=\"{}\" tests=\"{}\" failures=\"{failures}\" errors=\"{errors}\">\n{cases}</testsuite>\n",
        escaped(suite),
        judged.len()
    )
}

fn case(suite: &str, judged: &Judged) -> String {
    let why = escaped(&judged.why.join("; "));
    let inner = match judged.is_true {
        Some(true) => format!("<failure message=\"{why}\"/>"),
        None => format!("<error message=\"{why}\"/>"),
        Some(false) if why.is_empty() => String::new(),
        Some(false) => format!("<system-out>{why}</system-out>"),
    };
    format!(
        "  <testcase classname=\"{}\" name=\"not {}\">{inner}</testcase>\n",
        escaped(suite),
        escaped(&judged.text)
    )
}

/// Escapes text for XML 1.0, in which most control characters cannot occur at all.
fn escaped(text: &str) -> String {
    visible(text)
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('\n', "&#10;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(text: &str, is_true: Option<bool>, why: &str) -> Judged {
        let why = if why.is_empty() { Vec::new() } else { vec![why.to_owned()] };
        Judged { text: text.to_owned(), is_true, why }
    }

    #[test]
    fn what_is_true_fails_and_what_is_unknown_is_an_error() {
        let text = junit(
            "a & b",
            &[
                judged("p99 > +3%", Some(true), "p99 is \"<slow>\"\u{7}"),
                judged("worse", None, "nothing was measured"),
                judged("errors > 1%", Some(false), ""),
                judged("rate < -3%", Some(false), "not excluded"),
            ],
        );
        let wanted = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
            <testsuite name=\"a &amp; b\" tests=\"4\" failures=\"1\" errors=\"1\">\n  \
            <testcase classname=\"a &amp; b\" name=\"not p99 &gt; +3%\"><failure message=\"p99 is \
            &quot;&lt;slow&gt;&quot;\\u0007\"/></testcase>\n  \
            <testcase classname=\"a &amp; b\" name=\"not worse\"><error message=\"nothing was measured\"/></testcase>\n  \
            <testcase classname=\"a &amp; b\" name=\"not errors &gt; 1%\"></testcase>\n  \
            <testcase classname=\"a &amp; b\" name=\"not rate &lt; -3%\"><system-out>not excluded</system-out></testcase>\n\
            </testsuite>\n";
        assert_eq!(text, wanted);
    }
}
