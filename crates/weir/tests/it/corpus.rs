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

use crate::place::{self, Place, proxy_of};
use crate::program::{self, Ended};
use crate::run_own::User;
use crate::run_own_cases::check;

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
        let [kind, what, asked, setting] = columns[..] else {
            panic!("{row}");
        };
        let asked = asked.split(", ").map(|url| url.parse().expect("a URL"));
        Shape {
            row,
            kind,
            file: what.split('`').nth(1).expect("a file"),
            asked: asked.collect(),
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
    let names = |folder: &Path| {
        fs::read_dir(folder)
            .expect("a folder")
            .flatten()
            .map(|entry| entry.file_name().into_string().expect("UTF-8"))
            .collect::<Vec<_>>()
    };
    for kind in names(&data()) {
        for name in names(&data().join(&kind)) {
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
    let (before, told) = text.split_once(TABLE).expect("the page has the table");
    let shapes: Vec<Shape<'_>> = told.lines().map(Shape::of).collect();
    let (next, rows) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    let next_of = || {
        let index = next.fetch_add(1, Ordering::Relaxed);
        Some((index, shapes.get(index)?))
    };
    let take = || {
        while let Some((index, shape)) = next_of() {
            let row = catch_unwind(AssertUnwindSafe(|| row(shape)));
            // What went wrong is printed already.
            let row = row.unwrap_or_else(|_| format!("{BROKEN}{}", shape.file));
            let mut rows = rows.lock().unwrap_or_else(PoisonError::into_inner);
            rows.insert(index, row);
        }
    };
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(take);
        }
    });
    let rows = rows.into_inner().unwrap_or_else(PoisonError::into_inner);
    let seen: Vec<&str> = rows.values().map(String::as_str).collect();
    if std::env::var("WEIR_CORPUS").is_ok_and(|it| it == "write") {
        let table = seen.join("\n");
        fs::write(page(), format!("{before}{TABLE}{table}\n")).expect("the page");
    } else {
        assert_eq!(seen, told.lines().collect::<Vec<_>>());
    }
    let broken: Vec<&&str> = seen.iter().filter(|row| row.starts_with(BROKEN)).collect();
    assert!(broken.is_empty(), "{broken:#?}");
}

/// Returns the row of the table for a shape.
fn row(shape: &Shape<'_>) -> String {
    let [patch, taken_back] = all_the_way(shape);
    format!("{} | {patch} | {taken_back} |", shape.row)
}

/// A configuration and the files that it names, in a user's folder.
struct Users {
    place: Place,
    user: User,
    files: Vec<(String, String)>,
    main: PathBuf,
}

impl Users {
    fn of(shape: &Shape<'_>) -> Users {
        let place = Place::new();
        let root = place.path("user").display().to_string();
        let data = data().join(shape.kind);
        let (from, below_name, main) = match shape.file.rsplit_once('/') {
            Some((folder, name)) => (folder, "", name),
            None => (shape.file, shape.file, shape.file),
        };
        let mut files = Vec::new();
        below(&data.join(from), below_name, &mut files);
        if shape.kind == "nginx" {
            below(&data.join("shared"), "", &mut files);
        }
        files.extend(tls_and_pages());
        for (_, text) in &mut files {
            *text = text.replace("ROOT", &root);
        }
        let user = User::new(&place, &pairs(&files));
        let main = user.path(main);
        Users { place, user, files, main }
    }

    /// Checks that the proxy accepts the present files.
    #[track_caller]
    fn accepted(&self, shape: &Shape<'_>) {
        let mut check = check(shape.kind, &self.main);
        if shape.kind == "caddy" && self.main.extension().is_none_or(|it| it != "json") {
            check.args(["--adapter", "caddyfile"]);
        }
        succeeds(&mut check);
    }

    /// Checks that the files are unchanged.
    #[track_caller]
    fn unchanged(&self) {
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
fn below(path: &Path, name: &str, files: &mut Vec<(String, String)>) {
    if !path.is_dir() {
        let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{name}: {error}"));
        return files.push((name.to_owned(), text));
    }
    for entry in fs::read_dir(path).expect("a folder").flatten() {
        let own = entry.file_name().to_string_lossy().into_owned();
        let inner = match name {
            "" => own,
            name => format!("{name}/{own}"),
        };
        below(&entry.path(), &inner, files);
    }
}

/// Returns a certificate with its key, apart and together, and pages.
fn tls_and_pages() -> [(String, String); 5] {
    static PEM: LazyLock<[String; 2]> = LazyLock::new(|| {
        let names = vec!["example.org".to_owned()];
        let made = rcgen::generate_simple_self_signed(names).expect("a certificate");
        [made.cert.pem(), made.signing_key.serialize_pem()]
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
fn all_the_way(shape: &Shape<'_>) -> [String; 2] {
    let users = Users::of(shape);
    let place = &users.place;
    let ended = place.run(&study(shape, &users.main)).end();
    place.assert_clean();
    users.user.assert_untouched();
    if ended.code != Some(0) {
        return [refusal(&users, &ended), "–".to_owned()];
    }
    ran(shape, &place.records());
    // What the files name to write to.
    for folder in ["log", "run"] {
        fs::create_dir_all(users.user.path(folder)).expect("own folder");
    }
    for (name, _) in &users.files {
        let path = users.user.path(name);
        fs::set_permissions(path, Permissions::from_mode(0o644)).expect("own file");
    }
    users.accepted(shape);
    let patch = |more: &str| {
        let said = place.ends(&format!("patch 'a run' --arm changed {more}"));
        said.with_code(0).stdout
    };
    let forward = patch("");
    if forward.is_empty() {
        return ["nothing to change in the file".to_owned(), "–".to_owned()];
    }
    // What a reviewer would see, where the test fails.
    program::row(&forward);
    let diff = place.write("forward.diff", &forward);
    let mut apply = Command::new("patch");
    succeeds(apply.args(["-p1", "--fuzz=0", "-d", "/", "-i"]).arg(diff));
    users.accepted(shape);
    let diff = place.write("revert.diff", &patch("--revert"));
    let mut apply = Command::new("git");
    succeeds(apply.args(["apply", "-p1"]).arg(diff).current_dir("/"));
    users.unchanged();
    let count = |sign: &str| {
        let is_name = |line: &str| line.starts_with(&sign.repeat(3));
        forward.lines().filter(|line| line.starts_with(sign)).filter(|line| !is_name(line)).count()
    };
    let patch = format!("+{} −{}, accepted", count("+"), count("-"));
    [patch, "byte for byte".to_owned()]
}

fn study(shape: &Shape<'_>, main: &Path) -> String {
    let port = shape.asked.iter().find_map(Uri::port_u16);
    let port = port.map_or(String::new(), |port| format!(", port: {port}"));
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
    let study = place::study(&proxy, loads.trim_end(), &format!("a/a: false\narms:\n{arms}"));
    study.replace("50ms", "20ms")
}

/// Checks that both arms answered as the origin server does under each load, and that only the changed arm ran with the
/// setting.
fn ran(shape: &Shape<'_>, run: &Run) {
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
    let effective = |arm| proxy_of(run, arm).expect("it ran").effective.get(id);
    assert_eq!(effective("changed").map(String::as_str), Some(level));
    assert_ne!(effective("baseline").map(String::as_str), Some(level));
}

/// Returns the reason why a run did not begin, in weir's words, with `~` for the user's folder.
fn refusal(users: &Users, ended: &Ended) -> String {
    let said = &ended.stderr;
    assert!(!said.contains("panicked"), "{said}");
    assert_eq!(users.place.trials(), 0, "{said}");
    let folder = users.user.folder.display().to_string();
    let mut lines = said.lines().skip_while(|line| !line.starts_with("weir: "));
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
    let words = words.split(" (asked ").next().unwrap_or_default();
    format!("refused: {}", words.replace(&folder, "~").replace('|', "\\|"))
}

#[track_caller]
fn succeeds(command: &mut Command) {
    let output = command.stdin(Stdio::null()).output().expect("it is installed");
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(output.status.success(), "{command:?}: {}: {said}", output.status);
}
