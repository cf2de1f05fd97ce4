//! Tests of the page in a real browser: headless Chromium, at the widths of a desktop and a phone, light and dark.
//!
//! The report is shown in a frame of exactly the requested width, because a window cannot be made as narrow as a phone.
//! A script appended to the report ([`PROBE`]) examines the page from inside and posts its findings to the page around
//! it, whose document Chromium prints. The report keeps its Content-Security-Policy, which is widened for this script
//! alone: an attempt to load anything, or to run anything else, would produce a message on the console, which counts as a
//! fault too.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use weir_model::record::Validity;
use weir_report::html;

use crate::{capacity, extreme, fixture};

const PROBE: &str = include_str!("browser.js");
/// Script that uses the tools of a chart.
const TOOLS: &str = include_str!("tools.js");
const NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];
/// Timeout for one page. It takes a second or two, and longer on a busy machine.
const PATIENCE: Duration = Duration::from_secs(90);

/// Arguments of Chromium. It prints the document after five seconds of virtual time, in which messages can arrive.
const FLAGS: &str = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run \
    --disable-background-networking --disable-component-update --disable-sync --hide-scrollbars \
    --window-size=1400,900 --enable-logging=stderr --virtual-time-budget=5000 --dump-dom";

const DESKTOP: u32 = 1280;
const PHONE: u32 = 390;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Scheme {
    Light,
    Dark,
}

impl Scheme {
    /// Returns Blink's flag for `prefers-color-scheme`: 0 is dark, 1 is light.
    fn flag(self) -> &'static str {
        match self {
            Scheme::Dark => "--blink-settings=preferredColorScheme=0",
            Scheme::Light => "--blink-settings=preferredColorScheme=1",
        }
    }
}

#[derive(Debug, Default)]
struct PageFacts {
    width: u32,
    dark: bool,
    /// Relative luminance (WCAG 2.2) of body text and background.
    ink: f64,
    paper: f64,
    charts: u32,
    faults: Vec<String>,
}

fn chromium() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    NAMES
        .iter()
        .find_map(|name| {
            let mut all = folders.iter().map(|folder| folder.join(name));
            all.find(|file| file.is_file())
        })
        .expect(
            "Chromium is missing, and these tests look at the report in a real browser; \
         run `scripts/setup test` or install the package chromium",
        )
}

fn look(page: &str, width: u32, scheme: Scheme) -> PageFacts {
    let (dom, log) = show(page, width, scheme, PROBE);
    let mut facts = read(&dom, &log);
    let console =
        log.lines().filter(|line| line.contains("CONSOLE")).map(|line| format!("console: {line}"));
    facts.faults.extend(console);
    facts
}

/// Shows a page with a script of the test's, and returns the document around it and the log of the browser.
fn show(page: &str, width: u32, scheme: Scheme, probe: &str) -> (String, String) {
    let folder = Folder::new();
    let script = format!("<script nonce=\"probe\">{probe}</script></body>");
    let probed = page.replacen("</body>", &script, 1).replacen(
        "script-src ",
        "script-src 'nonce-probe' ",
        1,
    );
    assert!(probed.contains(&script), "the page has no end of body for the probe");
    fs::write(folder.path("report.html"), probed).unwrap();
    fs::write(folder.path("around.html"), around(width)).unwrap();
    let (dom, log) = (folder.path("dom"), folder.path("log"));
    let mut command = Command::new(chromium());
    command
        .args(FLAGS.split(' '))
        .arg(scheme.flag())
        .arg(format!("--user-data-dir={}", folder.path("profile").display()))
        .arg(format!("file://{}", folder.path("around.html").display()))
        .stdin(Stdio::null())
        .stdout(File::create(&dom).unwrap())
        .stderr(File::create(&log).unwrap());
    finish(command.spawn().unwrap());
    let log = String::from_utf8_lossy(&fs::read(log).unwrap()).into_owned();
    (fs::read_to_string(dom).unwrap(), log)
}

/// Returns the page around the report. It follows the user's colour scheme, because the frame would always be light
/// otherwise.
fn around(width: u32) -> String {
    format!(
        "<!DOCTYPE html><html><head><meta name=\"color-scheme\" content=\"light dark\"></head>\
         <body><pre id=\"seen\"></pre><script>addEventListener(\"message\", (event) => \
         {{ document.getElementById(\"seen\").textContent = event.data; }});</script>\
         <iframe src=\"report.html\" style=\"border:0;width:{width}px;height:900px\"></iframe>\
         </body></html>"
    )
}

/// Waits for the browser, and kills it after the timeout.
fn finish(mut browser: Child) {
    let begin = Instant::now();
    while browser.try_wait().unwrap().is_none() {
        if begin.elapsed() > PATIENCE {
            browser.kill().unwrap();
            browser.wait().unwrap();
            panic!("Chromium had not shown the page after {PATIENCE:?}");
        }
        sleep(Duration::from_millis(20));
    }
}

/// Returns what the probe posted.
fn posted<'d>(dom: &'d str, log: &str) -> &'d str {
    let (_, text) = dom.split_once("<pre id=\"seen\">").unwrap_or_default();
    let (text, _) = text.split_once("</pre>").unwrap_or_default();
    assert!(!text.is_empty(), "the probe said nothing; Chromium said {log}");
    text
}

fn read(dom: &str, log: &str) -> PageFacts {
    let text = posted(dom, log);
    let mut facts = PageFacts::default();
    for (key, value) in text.lines().filter_map(|line| line.split_once('=')) {
        match key {
            "width" => facts.width = value.parse().unwrap(),
            "dark" => facts.dark = value.parse().unwrap(),
            "ink" => facts.ink = value.parse().unwrap(),
            "paper" => facts.paper = value.parse().unwrap(),
            "charts" => facts.charts = value.parse().unwrap(),
            _ => facts.faults.push(value.to_owned()),
        }
    }
    facts
}

/// A temporary folder for one test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("browser-{}-{number}", std::process::id());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A file of the browser's that is still being written is not worth a failed test.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Examines a page at both widths and in both schemes. None may have faults.
fn flawless(page: &str) -> Vec<PageFacts> {
    let mut all = Vec::new();
    for (width, scheme) in [
        (DESKTOP, Scheme::Light),
        (DESKTOP, Scheme::Dark),
        (PHONE, Scheme::Light),
        (PHONE, Scheme::Dark),
    ] {
        let facts = look(page, width, scheme);
        assert_eq!(facts.faults, [""; 0], "{width} {scheme:?}");
        assert_eq!(facts.width, width);
        assert_eq!(facts.dark, scheme == Scheme::Dark, "the flag has no effect");
        assert_eq!(facts.ink > facts.paper, facts.dark, "{facts:?}");
        all.push(facts);
    }
    all
}

#[test]
fn a_browser_shows_the_report_without_fault() {
    for facts in flawless(&html(&fixture::run().input())) {
        // Two loads: five forests, five close-ups, two percentile plots; eight arms twice each.
        assert_eq!(facts.charts, 12 + 32);
    }
}

#[test]
fn a_browser_shows_capacities() {
    for facts in flawless(&html(&capacity::one().input())) {
        assert_eq!(facts.charts, 2);
    }
    // A forest, the p99 of all, and two charts for each arm.
    for facts in flawless(&html(&capacity::several().input())) {
        assert_eq!(facts.charts, 8);
    }
}

#[test]
fn a_browser_shows_a_load_that_is_not_to_be_used() {
    let mut run = fixture::run();
    run.findings.loads[1].validity = Validity::Invalid;
    let page = html(&run.input());
    let facts = look(&page, PHONE, Scheme::Light);
    assert!(facts.faults.is_empty(), "{:#?}", facts.faults);
}

#[test]
fn a_browser_shows_forty_arms_with_long_names() {
    let page = html(&extreme::crowd().input());
    for width in [DESKTOP, PHONE] {
        let facts = look(&page, width, Scheme::Light);
        assert!(facts.faults.is_empty(), "{width}: {:#?}", facts.faults);
    }
}

#[test]
fn a_browser_zooms_charts_shows_values_and_hides_arms() {
    let page = html(&fixture::run().input());
    for width in [DESKTOP, PHONE] {
        let (dom, log) = show(&page, width, Scheme::Light, TOOLS);
        assert!(!log.contains("CONSOLE"), "{log}");
        insta::assert_snapshot!(format!("tools_{width}"), posted(&dom, &log));
    }
}

/// Checks that nothing is missing where scripts are refused, and that a script which is not ours is.
#[test]
fn a_browser_refuses_other_scripts_and_the_report_is_whole_without() {
    let page = html(&fixture::run().input());
    let changed = page.replacen("<script>", "<script>/* changed */", 1);
    let facts = look(&changed, DESKTOP, Scheme::Light);
    let [fault] = facts.faults.as_slice() else { panic!("{:#?}", facts.faults) };
    assert!(fault.starts_with("console: ") && fault.contains("script-src"), "{fault}");
    assert_eq!(facts.charts, 12 + 32);
}

fn chart(inside: &str) -> String {
    format!("<figure><svg class=\"chart\" width=\"300\" height=\"100\">{inside}</svg></figure>")
}

/// Checks that each fault which the other tests look for is detected.
#[test]
fn the_browser_finds_faults() {
    let page = format!(
        "<!DOCTYPE html><html><head><style>body {{ margin: 0; color: #bbb; background: #fff }}\
         </style></head><body><p class=\"wide\" style=\"width:2000px\">x</p>{}{}{}<figure></figure>\
         <img src=\"http://127.0.0.1:1/\"></body></html>",
        chart("<text x=\"0\" y=\"20\">one</text>"),
        chart(
            "<path class=\"ln\" d=\"M0 0H9\" stroke=\"red\"/><text x=\"5\" y=\"20\">two</text><text y=\"22\">three</text>"
        ),
        chart("<text x=\"290\" y=\"20\">beyond the edge</text>"),
    );
    let policy = "<head><meta http-equiv=\"Content-Security-Policy\" \
         content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'\">";
    let faults = look(&page.replace("<head>", policy), PHONE, Scheme::Light).faults;
    for expected in [
        "the page scrolls sideways",
        "sticks out of the page: p.wide",
        "an empty chart",
        "text over text",
        "text sticks out of its chart",
        "a figure without a chart",
        "text too pale",
        "console: ",
    ] {
        let is_found = faults.iter().any(|fault| fault.starts_with(expected));
        assert!(is_found, "{expected}: {faults:#?}");
    }
    let mut request = look(&page, PHONE, Scheme::Light).faults.into_iter();
    assert!(request.any(|fault| fault.starts_with("a request: ")));
}
