//! Tests of `weir ui`: who may use it, and the page in a real browser.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;
use weir_testkit::program::Running;
use weir_testkit::sandbox::{self, Sandbox};

/// Time that a browser may take for all of its steps.
const BROWSING: Duration = Duration::from_secs(400);
/// Pictures that docs/ui.md shows.
const DOCUMENTED: [&str; 4] =
    ["ui-working.png", "ui-studies-desktop-light.png", "ui-run-phone-dark.png", "report-chart.png"];
const OPEN: &str = "- {name: open, rate: 500, connections: 4, duration: 8s}";

/// A server, and the URL that it printed.
struct Ui {
    running: Running,
    url: String,
}

impl Ui {
    fn start(sandbox: &Sandbox, more: &str) -> Ui {
        let words: Vec<&str> = ["ui"].into_iter().chain(more.split_whitespace()).collect();
        let mut running = Running::start(&mut sandbox.weir(&words));
        running.wait_until("its URL", |running| running.stderr().contains("Ctrl-C ends it"));
        let text = running.stderr();
        let url =
            text.split_whitespace().find(|word| word.contains("://")).expect("a URL").to_owned();
        Ui { running, url }
    }

    fn address(&self) -> &str {
        let host = self.url.split("://").nth(1).expect("a part");
        host.split('/').next().expect("a part")
    }

    fn token(&self) -> &str {
        self.url.split('#').nth(1).expect("a part")
    }

    /// Returns status and body of the answer to a request with these lines of a header.
    fn ask(&self, line: &str, headers: &str, body: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(self.address()).expect("the server listens");
        let length = body.len();
        let text = format!(
            "{line} HTTP/1.1\r\n{headers}Content-Type: application/json\r\nContent-Length: {length}\r\n\
             Connection: close\r\n\r\n{body}"
        );
        stream.write_all(text.as_bytes()).expect("a request");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        for header in ["content-security-policy: default-src 'none'", "nosniff", "no-store"] {
            assert!(head.to_lowercase().contains(header), "{line}: {head}");
        }
        (head.split(' ').nth(1).expect("a part").parse().expect("a status"), body.to_owned())
    }

    /// Asks as the page does.
    fn ask_as_page(&self, line: &str, body: &str) -> (u16, String) {
        self.ask(line, &self.headers(self.address(), self.token(), ""), body)
    }

    /// Checks the text of a study.
    fn check(&self, text: &str) -> Value {
        let body = serde_json::json!({ "text": text }).to_string();
        serde_json::from_str(&self.ask_as_page("POST /api/check", &body).1).expect("JSON")
    }

    fn headers(&self, host: &str, token: &str, more: &str) -> String {
        format!("Host: {host}\r\nAuthorization: Bearer {token}\r\n{more}")
    }

    fn end(self) {
        self.running.signal(Signal::INT);
        self.running.end().with_code(0);
    }
}

#[test]
fn only_its_own_page_with_the_token_is_answered() {
    let sandbox = Sandbox::new();
    let ui = Ui::start(&sandbox, "");
    let (address, token) = (ui.address().to_owned(), ui.token().to_owned());
    let port = address.rsplit(':').next().unwrap();
    let wrong = token.replace(|letter: char| letter != '_', "a");
    let elsewhere = "Origin: http://evil.example\r\n";
    let encrypted = format!("Origin: https://{address}\r\n");
    let from_page = format!("Origin: http://{address}\r\n");
    for (what, host, token, more, status) in [
        ("the page", address.as_str(), token.as_str(), "", 200),
        ("by another name of loopback", &format!("localhost:{port}"), &token, "", 200),
        ("from its own page", &address, &token, from_page.as_str(), 200),
        ("without a token", &address, "", "", 401),
        ("with another token", &address, &wrong, "", 401),
        ("with a part of the token", &address, &token[..20], "", 401),
        ("by a name that was made to lead here", &format!("evil.example:{port}"), &token, "", 421),
        ("without the port", "127.0.0.1", &token, "", 421),
        ("from another page", &address, &token, elsewhere, 403),
        ("from a page of another scheme", &address, &token, encrypted.as_str(), 403),
        ("from a file", &address, &token, "Origin: null\r\n", 403),
    ] {
        let headers = ui.headers(host, token, more);
        assert_eq!(ui.ask("GET /api/runs", &headers, "").0, status, "{what}");
    }
    ui.end();
}

#[test]
fn nothing_beside_the_users_runs_and_studies_is_reached() {
    let sandbox = Sandbox::new();
    sandbox.write("secret.txt", "secret");
    sandbox.write("notes.yaml", "not: a study\n");
    sandbox.write("mine.yaml", &sandbox::study("{kind: nginx}", OPEN, ""));
    let hostile = sandbox.path("runs/<script>alert(1)<");
    std::fs::create_dir_all(&hostile).unwrap();
    std::fs::write(hostile.join("run.json"), "{\"format\": \"\u{1b}[31m").unwrap();
    let ui = Ui::start(&sandbox, "");
    for (line, body, status) in [
        ("GET /api/runs/..%2F..%2Fetc/report", "", 404),
        ("GET /api/runs/../secret.txt", "", 404),
        ("GET /api/runs/%2e%2e/report", "", 404),
        ("GET /api/runs/none/samples/processes", "", 404),
        ("GET /api/compare?old=a&new=..", "", 404),
        ("PUT /api/studies/..%2Fevil", "{\"text\": \"weir: 1\"}", 400),
        ("PUT /api/studies/-o", "{\"text\": \"weir: 1\"}", 400),
        ("POST /api/jobs", "{\"study\": \"/etc/passwd\"}", 404),
        ("POST /api/jobs", "{\"study\": \"--help\"}", 404),
        ("POST /api/jobs", "{\"study\": \"mine\", \"program\": \"/bin/sh\"}", 400),
        ("POST /api/jobs", "{\"resume\": \"..\"}", 404),
        ("POST /api/jobs/1/stop", "{}", 404),
        ("GET /etc/passwd", "", 404),
    ] {
        assert_eq!(ui.ask_as_page(line, body).0, status, "{line} {body}");
    }
    let (status, _) = ui.ask_as_page("POST /api/check", &"x".repeat(3 << 20));
    assert_eq!(status, 413);
    let runs = ui.ask_as_page("GET /api/runs", "").1;
    assert!(runs.contains("<script>alert(1)<") && !runs.contains('\u{1b}'), "{runs}");
    let studies: Value = serde_json::from_str(&ui.ask_as_page("GET /api/studies", "").1).unwrap();
    let names: Vec<_> = studies["own"].as_array().unwrap().iter().map(|one| &one["name"]).collect();
    assert_eq!(names, ["mine"]);
    ui.end();
}

#[test]
fn a_study_is_checked_as_one_types_and_a_reader_changes_nothing() {
    let sandbox = Sandbox::new();
    let text = sandbox::study("{kind: nginx}", OPEN, "");
    sandbox.write("mine.yaml", &text);
    let ui = Ui::start(&sandbox, "--read-only");
    let fine = ui.check(&text);
    assert_eq!(fine["errors"], serde_json::json!([]), "{fine}");
    assert!(fine["plan"].as_str().unwrap().contains("arm"), "{fine}");
    let wrong = ui.check(&text.replace("rate: 500", "rate: five"));
    let expected = sandbox.path("wrong.yaml");
    std::fs::write(&expected, text.replace("rate: 500", "rate: five")).unwrap();
    let printed = sandbox.call("run wrong.yaml --check").with_code(2).stderr;
    let error = &wrong["errors"][0];
    let position = format!("wrong.yaml:{}:{}", error["line"], error["column"]);
    assert!(printed.contains(&position), "{position}: {printed}");
    assert!(printed.contains(error["message"].as_str().unwrap()), "{wrong}: {printed}");
    for (line, body) in [
        ("POST /api/jobs", "{\"study\": \"mine\"}"),
        ("PUT /api/studies/mine", "{\"text\": \"weir: 1\"}"),
        ("POST /api/jobs/1/stop", "{}"),
    ] {
        assert_eq!(ui.ask_as_page(line, body).0, 403, "{line}");
    }
    assert_eq!(std::fs::read_to_string(sandbox.path("mine.yaml")).unwrap(), text);
    ui.end();
}

#[test]
fn other_addresses_need_encryption_and_folders_an_owner() {
    let sandbox = Sandbox::new();
    sandbox
        .call("ui --listen 0.0.0.0:0")
        .refused(&["others on the network could read the token", "--tls-cert"]);
    sandbox.call("ui none").refused(&["cannot read none"]);
    sandbox.call("ui --tls-cert none.pem --tls-key none.pem").refused(&["none.pem"]);
    let holder = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = holder.local_addr().unwrap();
    let ended = sandbox.call(&format!("ui --listen {address}")).with_code(1);
    assert!(ended.stderr.contains("cannot listen on"), "{}", ended.stderr);
}

/// Returns the path of the records of the only run in a folder.
fn records_below(folder: &Path) -> Option<PathBuf> {
    let run = std::fs::read_dir(folder).ok()?.flatten().next()?.path();
    Some(run.join("records.jsonl"))
}

#[test]
fn a_run_goes_on_without_the_page_and_is_interrupted_with_the_server() {
    let sandbox = Sandbox::new();
    let long = OPEN.replace("8s", "2m");
    sandbox.write("mine.yaml", &sandbox::study("{kind: nginx}", &long, ""));
    let mut ui = Ui::start(&sandbox, "");
    assert_eq!(
        ui.ask_as_page("POST /api/jobs", "{\"study\": \"mine\"}"),
        (200, "{\"number\":1}".to_owned())
    );
    let (status, why) = ui.ask_as_page("POST /api/jobs", "{\"study\": \"mine\"}");
    assert!(status == 409 && why.contains("mine still runs"), "{why}");
    let folder = sandbox.path("runs");
    ui.running.wait_until("a trial", |_| {
        let path = records_below(&folder);
        path.is_some_and(|path| {
            std::fs::read_to_string(path).is_ok_and(|text| text.contains("\"trial\""))
        })
    });
    ui.end();
    let text = std::fs::read_to_string(records_below(&folder).unwrap()).unwrap();
    assert!(
        text.lines().last().unwrap().contains("interrupted"),
        "{}",
        text.lines().last().unwrap()
    );
}

/// Returns the folder of the page's sources.
fn web_folder() -> PathBuf {
    let web = Path::new(env!("CARGO_MANIFEST_DIR")).join("../weir-ui/web");
    assert!(web.join("node_modules").is_dir(), "run `scripts/setup test`, which needs npm");
    web
}

#[test]
fn the_page_in_the_program_is_made_of_its_sources() {
    let (web, made) = (web_folder(), tempfile::tempdir().unwrap());
    for words in [
        ["node_modules/typescript/bin/tsc", "--noEmit"],
        ["build.mjs", made.path().to_str().unwrap()],
    ] {
        let mut node = Command::new("node");
        let ended = Running::start(node.args(words).current_dir(&web)).end();
        assert_eq!(ended.code, Some(0), "{words:?}: {}{}", ended.stdout, ended.stderr);
    }
    for name in ["index.html", "report.js", "weir.css", "weir.js"] {
        let read = |folder: &Path| std::fs::read_to_string(folder.join(name)).unwrap();
        let is_same = read(made.path()) == read(&web.join("dist"));
        assert!(
            is_same,
            "{name} is not that of its sources: cd crates/weir-ui/web && npm run build"
        );
    }
}

#[test]
fn people_start_watch_and_compare_runs_in_a_browser() {
    let sandbox = Sandbox::new();
    let arms = "arms:\n  - {name: kept, settings: {origin_keepalive: 64}}\n";
    sandbox.write("quick.yaml", &sandbox::study("{kind: nginx}", OPEN, arms));
    sandbox.call("run quick.yaml --out runs/first -q").with_code(0);
    let mut ui = Ui::start(&sandbox, "");
    let web = web_folder();
    let pictures = sandbox.path("pictures");
    std::fs::create_dir_all(&pictures).unwrap();
    let mut node = Command::new("node");
    node.arg("test/page.mjs").args([Path::new("/usr/bin/chromium"), Path::new(&ui.url), &pictures]);
    let browser = Running::start(node.current_dir(web)).end_within(BROWSING);
    assert_eq!(browser.code, Some(0), "{}{}", browser.stdout, browser.stderr);
    assert!(ui.running.is_alive(), "{}", ui.running.stderr());
    ui.end();
    for name in DOCUMENTED.into_iter().filter(|_| std::env::var_os("WEIR_WRITE_DOCS").is_some()) {
        let image = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/images").join(name);
        std::fs::copy(pictures.join(name), image).unwrap();
    }
}
