//! Users' configurations in the shapes of public ones, each taken through all steps: read, copied, requested, changed,
//! patched, checked by its proxy, and reverted. The table of `docs/corpus.md` lists the steps and the result for each,
//! which must be the actual one.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::thread;

use http::Uri;
use weir_record::Run;
use weir_testkit::own::User;
use weir_testkit::own_cases::check;
use weir_testkit::program::{self, Ended};
use weir_testkit::sandbox::{self, Sandbox, names_in, proxy_of};

/// Configurations to process at the same time: each waits for most of its time.
const AT_ONCE: usize = 3;

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/corpus")
}

fn page() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/corpus.md")
}

/// Begin of the table, which ends the page.
const TABLE: &str = "| proxy | after the shape of | asked | changed | patch | taken back |\n\
                     |---|---|---|---|---|---|\n";

/// Header field that a load balancer before the proxy would add.
const FORWARDED: &str = ", X-Forwarded-Proto: https";

/// Beginning of a message in place of a row.
const BROKEN: &str = "does not go all the way: ";

/// A row of the table: a configuration in the shape of public ones.
struct Shape<'p> {
    /// The row without its last two columns.
    row: &'p str,
    /// The proxy, which is also the name of its folder.
    kind: &'p str,
    /// A file, a folder of files, or a folder with its main file, in the proxy's folder.
    file: &'p str,
    /// URLs that loads request. `https` is a load over TLS; a port is that of the study's `proxy`.
    asked: Vec<Uri>,
    /// Settings of the arm, as in a study.
    setting: &'p str,
}

impl Shape<'_> {
    fn of(line: &str) -> Shape<'_> {
        let (end, _) = line.match_indices(" | ").nth(3).expect("four columns");
        let row = &line[..end];
        let columns: Vec<&str> = row.trim_start_matches("| ").split(" | ").collect();
        let [kind, cell, urls, setting] = columns[..] else {
            panic!("{row}");
        };
        Shape {
            row,
            kind,
            file: cell.split('`').nth(1).expect("a file"),
            asked: urls.split(", ").map(|url| url.parse().expect("a URL")).collect(),
            setting: setting.trim_matches('`'),
        }
    }

    /// Returns more keys of the study's `proxy`, and more fields of its requests.
    fn more(&self) -> [&'static str; 2] {
        match self.file {
            "boilerplate/nginx.conf" => [", role: {static-files: {size: 1KiB}}", ""],
            "members/nginx.conf" => {
                ["", ", Authorization: Basic bWVtYmVyOmEtc2VjcmV0LW9mLXRoZS1ib2FyZA=="]
            }
            "load-balancer.conf" => ["", FORWARDED],
            // Without it too: that row is refused.
            "forwarded.cfg" if self.row.contains("with the header") => ["", FORWARDED],
            _ => ["", ""],
        }
    }
}

#[test]
fn every_configuration_of_the_corpus_is_in_the_table() {
    let text = fs::read_to_string(page()).expect("the page of the corpus");
    for kind in names_in(&data()) {
        for name in names_in(&data().join(&kind)) {
            let begin = format!("| {kind} | `{name}");
            assert!(name == "shared" || text.contains(&begin), "{begin}");
        }
    }
}

/// Compares the results with the table; WEIR_CORPUS=write writes its last two columns anew. Only root can have nginx
/// check listeners at ports such as 80, and has network namespaces, which some refusals are about.
#[test]
fn a_corpus_of_configurations_goes_all_the_way() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root can go all the way");
        return;
    }
    let text = fs::read_to_string(page()).expect("the page of the corpus");
    let (before, rows_of_page) = text.split_once(TABLE).expect("the page has the table");
    let shapes: Vec<Shape<'_>> = rows_of_page.lines().map(Shape::of).collect();
    let (next, rows) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| take_shapes(&shapes, &next, &rows));
        }
    });
    let rows_by_index = rows.into_inner().unwrap_or_else(PoisonError::into_inner);
    let lines: Vec<&str> = rows_by_index.values().map(String::as_str).collect();
    if std::env::var("WEIR_CORPUS").is_ok_and(|mode| mode == "write") {
        let table = lines.join("\n");
        fs::write(page(), format!("{before}{TABLE}{table}\n")).expect("the page");
    } else {
        assert_eq!(lines, rows_of_page.lines().collect::<Vec<_>>());
    }
    let broken: Vec<&&str> = lines.iter().filter(|row| row.starts_with(BROKEN)).collect();
    assert!(broken.is_empty(), "{broken:#?}");
}

fn take_shapes(shapes: &[Shape<'_>], next: &AtomicUsize, rows: &Mutex<BTreeMap<usize, String>>) {
    loop {
        let index = next.fetch_add(1, Ordering::Relaxed);
        let Some(shape) = shapes.get(index) else { return };
        // What went wrong is printed already.
        let row = catch_unwind(AssertUnwindSafe(|| row(shape)))
            .unwrap_or_else(|_| format!("{BROKEN}{}", shape.file));
        rows.lock().unwrap_or_else(PoisonError::into_inner).insert(index, row);
    }
}

/// Returns the row of the table for a shape.
fn row(shape: &Shape<'_>) -> String {
    let [patch, taken_back] = go_all_the_way(shape);
    format!("{} | {patch} | {taken_back} |", shape.row)
}

/// A configuration and the files that it names, in a user's folder.
struct Users {
    sandbox: Sandbox,
    user: User,
    files: Vec<(String, String)>,
    main: PathBuf,
}

impl Users {
    fn of(shape: &Shape<'_>) -> Users {
        let sandbox = Sandbox::new();
        let root = sandbox.path("user").display().to_string();
        let of_kind = data().join(shape.kind);
        let (from, below_name, main) = match shape.file.rsplit_once('/') {
            Some((folder, name)) => (folder, "", name),
            None => (shape.file, shape.file, shape.file),
        };
        let mut files = Vec::new();
        collect_files(&of_kind.join(from), below_name, &mut files);
        if shape.kind == "nginx" {
            collect_files(&of_kind.join("shared"), "", &mut files);
        }
        files.extend(tls_and_pages());
        for (_, text) in &mut files {
            *text = text.replace("ROOT", &root);
        }
        let user = User::new(&sandbox, &pairs(&files));
        let main = user.path(main);
        Users { sandbox, user, files, main }
    }

    /// Checks that the proxy accepts the present files.
    #[track_caller]
    fn assert_accepted(&self, shape: &Shape<'_>) {
        let mut command = check(shape.kind, &self.main);
        if shape.kind == "caddy"
            && self.main.extension().is_none_or(|extension| extension != "json")
        {
            command.args(["--adapter", "caddyfile"]);
        }
        run_successfully(&mut command);
    }

    /// Checks that the files are unchanged.
    #[track_caller]
    fn assert_unchanged(&self) {
        for (name, text) in &self.files {
            let now = fs::read_to_string(self.user.path(name)).expect("it is there");
            assert_eq!(&now, text, "{name}");
        }
    }
}

fn pairs(files: &[(String, String)]) -> Vec<(&str, &str)> {
    files.iter().map(|(name, text)| (&**name, &**text)).collect()
}

/// Adds a file, or all files of a folder, under a name.
fn collect_files(path: &Path, name: &str, files: &mut Vec<(String, String)>) {
    if !path.is_dir() {
        let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{name}: {error}"));
        return files.push((name.to_owned(), text));
    }
    for entry in fs::read_dir(path).expect("a folder").flatten() {
        let name_here = entry.file_name().to_string_lossy().into_owned();
        let inner = match name {
            "" => name_here,
            name => format!("{name}/{name_here}"),
        };
        collect_files(&entry.path(), &inner, files);
    }
}

/// Returns a certificate with its key, apart and together, and pages.
fn tls_and_pages() -> [(String, String); 5] {
    static PEM: LazyLock<[String; 2]> = LazyLock::new(|| {
        let names = vec!["example.org".to_owned()];
        let generated = rcgen::generate_simple_self_signed(names).expect("a certificate");
        [generated.cert.pem(), generated.signing_key.serialize_pem()]
    });
    let [certificate, key] = &*PEM;
    [
        ("tls/site.crt", certificate.clone()),
        ("tls/site.key", key.clone()),
        ("tls/site.pem", format!("{certificate}{key}")),
        ("www/index.html", "<!doctype html>\n".repeat(64)),
        ("www/index.php", "<?php echo 'poems';\n".to_owned()),
    ]
    .map(|(name, text)| (name.to_owned(), text))
}

/// Returns the last two columns: the results of the patch and of its revert, or the reason why there is none.
fn go_all_the_way(shape: &Shape<'_>) -> [String; 2] {
    let users = Users::of(shape);
    let sandbox = &users.sandbox;
    let ended = sandbox.run(&study(shape, &users.main)).end();
    sandbox.assert_clean();
    users.user.assert_untouched();
    if ended.code != Some(0) {
        return [describe_refusal(&users, &ended), "–".to_owned()];
    }
    assert_ran(shape, &sandbox.records());
    // What the files name to write to.
    for folder in ["log", "run"] {
        fs::create_dir_all(users.user.path(folder)).expect("own folder");
    }
    for (name, _) in &users.files {
        let path = users.user.path(name);
        fs::set_permissions(path, Permissions::from_mode(0o644)).expect("own file");
    }
    users.assert_accepted(shape);
    let patch = "patch 'a run' --arm changed";
    let forward = sandbox.call(patch).with_code(0).stdout;
    if forward.is_empty() {
        return ["nothing to change in the file".to_owned(), "–".to_owned()];
    }
    // What a reviewer would see, where the test fails.
    program::row(&forward);
    let diff = sandbox.write("forward.diff", &forward);
    let mut apply = Command::new("patch");
    run_successfully(apply.args(["-p1", "--fuzz=0", "-d", "/", "-i"]).arg(diff));
    users.assert_accepted(shape);
    let backward = sandbox.call(&format!("{patch} --revert")).with_code(0).stdout;
    let diff = sandbox.write("revert.diff", &backward);
    let mut apply = Command::new("git");
    run_successfully(apply.args(["apply", "-p1"]).arg(diff).current_dir("/"));
    users.assert_unchanged();
    let [added, removed] = ["+", "-"].map(|sign| {
        let changes = forward.lines().filter(|line| line.starts_with(sign));
        changes.filter(|line| !line.starts_with(&sign.repeat(3))).count()
    });
    [format!("+{added} −{removed}, accepted"), "byte for byte".to_owned()]
}

fn study(shape: &Shape<'_>, main: &Path) -> String {
    let asked_port = shape.asked.iter().find_map(Uri::port_u16);
    let port = asked_port.map_or(String::new(), |port| format!(", port: {port}"));
    let [proxy, fields] = shape.more();
    let (kind, main) = (shape.kind, main.display());
    let proxy = format!("{{kind: {kind}, configuration: {main}{port}{proxy}}}");
    let loads = shape.asked.iter().enumerate().map(|(number, url)| {
        let tls = url.scheme_str() == Some("https");
        let (host, path) = (url.host().expect("a host"), url.path());
        format!(
            "- {{name: asked-{number}, rate: 400, connections: 2, duration: 1s, timeout: 10s, tls: {tls},\n   \
             request: {{path: {path}, fields: {{Host: {host}{fields}}}}}}}\n"
        )
    });
    let loads: String = loads.collect();
    let arms = format!("- {{name: changed, settings: {{{}}}}}\n", shape.setting);
    let study = sandbox::study(&proxy, loads.trim_end(), &format!("a/a: false\narms:\n{arms}"));
    study.replace("50ms", "20ms")
}

/// Checks that both arms answered as the origin server does under each load, and that only the changed arm ran with the
/// setting.
fn assert_ran(shape: &Shape<'_>, run: &Run) {
    for arm in ["baseline", "changed"] {
        for number in 0..shape.asked.len() {
            let mut classes = [0; 6];
            for trial in run.trials_of(&format!("asked-{number}"), arm) {
                assert!(trial.errors.is_empty(), "{arm}: {:?}", trial.errors);
                classes.iter_mut().zip(trial.status_classes).for_each(|(sum, count)| *sum += count);
            }
            let [.., right, _, _, _] = classes;
            let all: u64 = classes.iter().sum();
            assert!(right > 0 && right == all, "{arm}: {classes:?}");
        }
    }
    let (id, level) = shape.setting.split_once(": ").expect("a setting");
    let [changed, baseline] = ["changed", "baseline"]
        .map(|arm| proxy_of(run, arm).expect("it ran").effective.get(id).map(String::as_str));
    assert_eq!(changed, Some(level));
    assert_ne!(baseline, Some(level));
}

/// Returns the reason why a run did not begin, in weir's words, with `~` for the user's folder.
fn describe_refusal(users: &Users, ended: &Ended) -> String {
    let stderr = &ended.stderr;
    assert!(!stderr.contains("panicked"), "{stderr}");
    assert_eq!(users.sandbox.trials(), 0, "{stderr}");
    let folder = users.user.folder.display().to_string();
    let mut lines = stderr.lines().skip_while(|line| !line.starts_with("weir: "));
    let mut words = lines
        .next()
        .unwrap_or_else(|| panic!("no reason: {ended:?}"))
        .trim_start_matches("weir: ")
        .to_owned();
    if words.ends_with(':') {
        // What the proxy said.
        words = format!("{words} {}", lines.next().unwrap_or_default());
    }
    // An address is of one run.
    let reason = words.split(" (asked ").next().unwrap_or_default();
    format!("refused: {}", reason.replace(&folder, "~").replace('|', "\\|"))
}

#[track_caller]
fn run_successfully(command: &mut Command) {
    let output = command.stdin(Stdio::null()).output().expect("it is installed");
    let output_bytes = [output.stdout, output.stderr].concat();
    let output_text = String::from_utf8_lossy(&output_bytes);
    assert!(output.status.success(), "{command:?}: {}: {output_text}", output.status);
}
