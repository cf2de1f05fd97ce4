//! Tests of the HTML page.

use weir_report::html;

use crate::fixture;
use crate::markup::{self};

#[test]
fn the_page_is_well_formed_and_loads_nothing() {
    let page = html(&fixture::run().input());
    markup::keep("report.html", &page);
    let tags = markup::check(&page);
    let addresses = ["http://", "https://", "url(", "@import", "@font-face"];
    markup::has_none(&page, &addresses);
    let policy = tags
        .iter()
        .find(|tag| tag.get("http-equiv") == Some("Content-Security-Policy"))
        .and_then(|tag| tag.get("content"));
    assert!(policy.unwrap().starts_with("default-src 'none'"));
    markup::has_none(&page, &["NaN", "inf\""]);
}

#[test]
fn a_report_of_a_hundred_cells_is_below_five_megabytes() {
    let mut run = fixture::run();
    let load = run.findings.loads[0].clone();
    run.findings.loads = vec![load; 13];
    let cells: usize = run.findings.loads.iter().map(|load| load.arms.len()).sum();
    let page = html(&run.input());
    assert!(cells >= 100, "{cells}");
    assert!(page.len() < 5_000_000, "{} bytes", page.len());
    assert!(page.matches("class=\"plot\"").count() >= 2 * 13, "charts of every load");
}

#[test]
fn everything_that_was_asked_for_is_there() {
    let run = fixture::run();
    // No-break spaces are for the eye.
    let page = html(&run.input()).replace('\u{a0}', " ");
    #[rustfmt::skip]
    let expected = [
        "Which well-known settings make a stock nginx",
        "Keepalive to the origin carries 2.61 times as much", "2.61×<small>2.58–2.65</small>",
        "upstream_keepalive: 0 → 64", "two equal arms differed by 0.4 %, interval ±1.3 %",
        "a change of this arm would show from 1.9 % on", "generator-busy",
        "the worst of 41 of 480 trials", "no effect here",
        "reads back the same as the baseline, although the study asks for proxy_buffering: on → off",
        "generator and origin share CPU 1", "net.ipv4.tcp_tw_reuse", "weir run study.yaml",
        "0.1.0 (d878f56)", "weir-run/4", "one_at_a_time:",
    ];
    markup::has_all(&page, &expected);
}

#[test]
fn every_chart_says_what_it_shows_and_has_both_widths() {
    let run = fixture::run();
    let tags = markup::check(&html(&run.input()));
    let charts = tags
        .iter()
        .filter_map(|tag| Some((tag, tag.get("class")?)))
        .filter(|(_, class)| class.starts_with("chart "));
    let charts: Vec<_> = charts.collect();
    for (tag, _) in &charts {
        assert_eq!(tag.get("role"), Some("img"));
        assert!(tag.get("aria-labelledby").is_some());
    }
    let [wide, narrow, panels] = ["wide", "narrow", "panel"]
        .map(|kind| charts.iter().filter(|(_, class)| class.contains(kind)).count());
    // Two forests and three, a close-up of each, and a percentile plot for each load.
    assert_eq!((wide, narrow), (12, 12));
    // Eight arms, two figures over time, two loads.
    assert_eq!(panels, 32);
}

#[test]
fn every_group_of_figures_has_its_validity() {
    let run = fixture::run();
    let page = html(&run.input());
    let open =
        page.split("id=\"load-2\"").nth(1).unwrap().split("id=\"published\"").next().unwrap();
    for part in open.split("<h3>").skip(1) {
        let heading = part.split("</h3>").next().unwrap();
        assert!(heading.contains("SUSPECT"), "{heading} has no validity");
    }
    assert!(open.split("<h3>").count() > 6);
}

#[test]
fn the_same_run_gives_the_same_page() {
    let run = fixture::run();
    assert_eq!(html(&run.input()), html(&run.input()));
}
