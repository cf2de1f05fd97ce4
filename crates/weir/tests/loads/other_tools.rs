//! Tests of other load generators' command lines after `weir load` and after `weir`: each works, or gets an answer that
//! names the option and weir's replacement. A replacement that can be typed works as printed.

use std::path::Path;

use weir_testkit::faulty::start_origin;
use weir_testkit::loads::Server;
use weir_testkit::program::{Ended, HasAll, Running, row, weir};

/// Value for a line whose answer can be typed.
const TYPED: bool = true;
/// Value for a line without a replacement: weir has no option of the same meaning.
const IN_WORDS: bool = false;

/// A tool's command line, the words of the answer, and [`TYPED`] or [`IN_WORDS`]. A line without an answer works.
type Line = (&'static str, &'static str, Option<(&'static [&'static str], bool)>);

#[rustfmt::skip]
const LINES: [Line; 62] = [
    ("wrk", "-t1 -c2 -d1 URL", None),
    ("wrk", "-t 1 -c 2 -d 1s --latency URL", None),
    ("wrk", "-t1 -c2 -d1s --timeout 2s -H 'Host: weir.test' URL", None),
    ("wrk", "-t1 -c2 -d1s -s post.lua URL", Some((&["`-s` (wrk, wrk2): weir runs no scripts", "--request-set FILE"], IN_WORDS))),
    ("wrk2", "-t1 -c2 -d1s -R100 URL", None),
    ("wrk2", "-t1 -c2 -d1s --rate 100 -L URL", None),
    ("wrk2", "-t1 -c2 -d1s -R100 -U URL", Some((&["`-U` (wrk2) is not needed: service_time"], TYPED))),
    ("wrk2", "-t1 -c2 -d1s -R100 --u_latency -B URL", Some((&["`--u_latency` (wrk2)", "`-B` (wrk2) is not needed"], TYPED))),
    ("ab", "-n 20 -c 2 URL", None),
    ("ab", "-k -n 20 -c 2 -q URL", None),
    ("ab", "-n 20 -c 2 -H 'Accept-Encoding: gzip' -m HEAD URL", None),
    ("ab", "-n 20 -c 2 -p body.txt -T application/json URL",
     Some((&["`-p body.txt` (ab) is `-m POST --content-file body.txt` of weir load", "'Content-Type: application/json'"], TYPED))),
    ("ab", "-n 20 -c 2 -u body.txt URL", Some((&["-m PUT --content-file body.txt"], TYPED))),
    ("curl", "-u user:word URL", Some((&["`-u` (curl for USER:PASSWORD, ab for a file): a user is", "-m PUT --content-file FILE"], IN_WORDS))),
    ("ab", "-n 20 -c 2 -i URL", Some((&["`-i` (ab) is `-m HEAD`"], TYPED))),
    ("ab", "-n 20 -c 2 -C session=1 URL", Some((&["`-C` (ab): send it as a header: -H 'Cookie"], IN_WORDS))),
    ("ab", "-n 20 -c 2 -A user:word URL", Some((&["`-A` (ab)", "Authorization header, Basic"], IN_WORDS))),
    ("ab", "-n 20 -c 2 -r -l URL", Some((&["`-r` (ab) is not needed", "`-l` (ab) is not needed"], TYPED))),
    ("ab", "-n 20 -c 2 -s 5 URL", Some((&["`-s 5` (ab) is `-T 5`"], TYPED))),
    ("ab", "-n 20 -c 2 -g out.tsv URL", Some((&["`--format hgrm -o out.tsv`"], TYPED))),
    ("ab", "-n 20 -c 2 -B 127.0.0.2 URL", Some((&["`--source 127.0.0.2`"], TYPED))),
    ("ab", "-n 20 -c 2 -X 127.0.0.1:3128 URL", Some((&["`-X` (ab): weir goes through no forward proxy"], IN_WORDS))),
    ("h2load", "--h1 -n20 -c2 -t1 URL", Some((&["`--h1` (h2load) is not needed"], TYPED))),
    ("h2load", "-n 20 -c 2 -t 1 -m 4 URL", Some((&["`-m 4` (h2load) is `--pipeline 4`"], TYPED))),
    ("h2load", "--h1 -D 1 -c2 URL", Some((&["`-D 1` (h2load) is `-d 1`"], TYPED))),
    ("h2load", "--rps 10 -D 1 -c 2 URL", Some((&["`--rps 10` (h2load for each connection, k6 for all) is `-R 10`"], TYPED))),
    ("h2load", "--h1 -r 10 -n 20 -c 2 URL", Some((&["`-r 10` (h2load) is `--connect-rate 10`"], TYPED))),
    ("h2load", "-n 20 -c 2 -d body.txt URL", Some((&["-m POST --content-file body.txt"], TYPED))),
    ("h2load", "-n 20 -c 2 -i urls.txt URL", Some((&["`-i` (h2load): several URLs are --request-set"], IN_WORDS))),
    ("h2load", "--warm-up-time=1 -D 1 -c 2 URL", Some((&["`--warm-up-time 1` (h2load) is `--ramp-up 1`"], TYPED))),
    ("h2load", "-n20 -c2 -p h2c URL", Some((&["`-p` (h2load): weir speaks HTTP/1.1 alone"], IN_WORDS))),
    ("oha", "-n 20 -c 2 URL", None),
    // Standard output, and no file of that name.
    ("oha", "-n 20 -c 2 -q -o - URL", None),
    ("oha", "-n 20 -c 2 --no-tui URL", Some((&["`--no-tui` (oha) is `-q`"], TYPED))),
    ("oha", "-z 300ms -c 2 URL", Some((&["`-z 300ms` (hey, oha) is `-d 300ms`"], TYPED))),
    ("oha", "-z 300ms -q 100 -c 2 --latency-correction URL", Some((&["is `-R 100`", "`--latency-correction` (oha) is not needed"], TYPED))),
    ("oha", "-n 20 -c 2 --disable-keepalive URL", Some((&["is `--connection per-request`"], TYPED))),
    ("oha", "-n 20 -c 2 -t 20s URL", Some((&["`-t 20s` (oha) is `-T 20s`"], TYPED))),
    ("oha", "-n 20 -c 2 -m POST -d '{\"a\":1}' URL", Some((&["(hey, oha) is `-b '{\"a\":1}'`"], TYPED))),
    ("oha", "-n 20 -c 2 --http2 URL", Some((&["`--http2` (oha): weir speaks HTTP/1.1 alone"], IN_WORDS))),
    ("oha", "-n 20 -c 2 --output-format json URL", Some((&["is `--format json`"], TYPED))),
    ("hey", "-n 20 -c 2 -m POST -D body.txt -T text/html URL", Some((&["is `--content-file body.txt`", "'Content-Type: text/html'"], TYPED))),
    ("hey", "-z 300ms -q 50 -c 2 -disable-keepalive URL", Some((&["is `-d 300ms`", "hey for each worker", "is `-R 50`"], TYPED))),
    ("hey", "-n 20 -c 2 -host weir.test -U agent URL", Some((&["`-host weir.test` (hey) is `-H 'Host: weir.test'`", "User-Agent: agent"], TYPED))),
    ("hey", "-n 20 -c 2 -h2 URL", Some((&["`-h2` (hey): weir speaks HTTP/1.1 alone"], IN_WORDS))),
    ("hey", "-n 20 -c 2 -cpus 1 -a user:word URL", Some((&["`-cpus 1` (hey) is `-t 1`", "`-a` (hey, oha)"], IN_WORDS))),
    ("k6", "run --vus 2 --duration 1s script.js", Some((&["`--vus 2` (k6) is `-c 2`", "`script.js` (k6): weir runs no scripts"], IN_WORDS))),
    ("k6", "run -u 2 -i 20 script.js", Some((&["`-u 2` (k6) is `-c 2`", "`-i 20` (k6) is `-n 20`"], IN_WORDS))),
    ("k6", "run --stage 10s:20 script.js", Some((&["`--stage` (k6): a rate that changes is -R"], IN_WORDS))),
    ("k6", "run check.js", Some((&["`check.js` (k6): weir runs no scripts"], TYPED))),
    ("wrk", "-t1 -c2 -d1s -s set.lua URL", Some((&["`set.lua` (wrk, wrk2)", "-m PUT -b '{\"a\":1}' -H 'X-A: b'"], TYPED))),
    ("JMeter", "-n 20 plan.jmx URL", Some((&["`plan.jmx` (JMeter): weir runs no test plans"], IN_WORDS))),
    ("HAR", "-n 20 -c 2 --har session.har URL", Some((&["`--har session.har` (HAR) is `--request-set session.har`"], TYPED))),
    ("curl", "curl -sS -X PUT -H 'Content-Type: a/b' --data-raw '{\"a\":1}' URL -n 20 -c 2",
     Some((&["`-X PUT` (curl) is `-m PUT`", "hint: weir load -q -m PUT -H 'Content-Type: a/b' -b '{\"a\":1}'"], TYPED))),
    ("curl", "'curl -I --http1.1 --max-time 2 URL' -n 20 -c 2", Some((&["`-I` (curl) is `-m HEAD`", "`--max-time 2` (curl) is `-T 2`"], TYPED))),
    ("curl", "-n 20 -c 2 -I --compressed --max-time 2 --http1.1 URL", Some((&["`-I` (curl) is `-m HEAD`", "gzip"], TYPED))),
    ("curl", "-n 20 -c 2 --data-binary a=b -X PUT URL", Some((&["`--data-binary a=b` (curl)", "`-X PUT` (curl) is `-m PUT`"], IN_WORDS))),
    ("curl", "-n 20 -c 2 --data-binary @body.txt -G --resolve a.test:80:127.0.0.1 URL",
     Some((&["--content-file FILE", "`-G` (curl): data", "`--resolve` (curl): --to ADDRESS:PORT"], IN_WORDS))),
    ("curl", "-n 20 -c 2 -x http://127.0.0.1:3128 URL", Some((&["`-x` (hey, oha, curl): weir goes through no forward proxy"], IN_WORDS))),
    ("hyperfine", "-n 20 -c 2 --export-json out.json URL", Some((&["`--export-json out.json` (hyperfine) is `--format json -o out.json`"], TYPED))),
    ("hyperfine", "-n 20 -c 2 --warmup 3 --runs 10 URL", Some((&["`--warmup` (hyperfine): --ramp-up", "`--runs` (hyperfine): -d"], IN_WORDS))),
    ("k6", "run --rps 10 --no-connection-reuse script.js", Some((&["is `-R 10`", "is `--connection per-request`"], IN_WORDS))),
];

fn call(folder: &Path, line: &str) -> Ended {
    let words = shlex::split(line).expect("a line");
    Running::start(weir(words).current_dir(folder)).end()
}

#[test]
fn lines_of_other_tools_work_or_are_answered() {
    let origin = start_origin();
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("body.txt"), "a body").expect("own folder");
    for (name, text) in [
        (
            "check.js",
            "import http from 'k6/http';\nexport const options = { scenarios: { a: { rate: 50, timeUnit: '1s', duration: '1s' } } };\nhttp.get('URL');\n",
        ),
        ("set.lua", "wrk.method = \"PUT\"\nwrk.body = '{\"a\":1}'\nwrk.headers[\"X-A\"] = \"b\"\n"),
        (
            "session.har",
            "{\"log\": {\"entries\": [{\"request\": {\"method\": \"GET\", \"url\": \"URL\"}}]}}",
        ),
    ] {
        std::fs::write(folder.path().join(name), text.replace("URL", &origin.url()))
            .expect("own folder");
    }
    for (tool, line, answer) in LINES {
        let line_here = line.replace("URL", &origin.url());
        row(&format!("{tool} {line_here}"));
        let ended = call(folder.path(), &format!("load {line_here}"));
        match answer {
            None => {
                assert!(!ended.with_code(0).stdout.is_empty());
            }
            Some((words, typed)) => assert_answered(folder.path(), ended, words, typed),
        }
        let bare = call(folder.path(), &line_here);
        match answer {
            Some((words, typed)) => assert_answered(folder.path(), bare, words, typed),
            None => assert_answered(
                folder.path(),
                bare,
                &["which command? `load` puts a URL under load"],
                TYPED,
            ),
        }
    }
    let bare = call(folder.path(), &format!("ab -n 20 -c 2 {}", origin.url()));
    assert_answered(folder.path(), bare, &["which command?"], TYPED);
}

#[test]
fn what_weir_does_not_have_is_answered_with_what_it_has() {
    let folder = tempfile::tempdir().expect("a folder");
    #[rustfmt::skip]
    let rows = [
        ("run http://127.0.0.1:9/ http://127.0.0.1:10/", "`weir run` takes a study, not URLs", "weir compare OLD_URL NEW_URL"),
        ("vs http://127.0.0.1:9/ b", "there is no `weir vs`: `weir compare` compares two servers", "weir compare OLD_URL NEW_URL"),
        ("tune", "there is no `weir tune`: `weir doctor` says which settings limit a load", "weir doctor"),
        ("load --prometheus http://127.0.0.1:9/", "weir serves no metrics; --progress jsonl:FILE", "weir load --help"),
        ("run --prometheus", "weir serves no metrics; --progress jsonl:FILE", "weir run --help"),
    ];
    for (line, words, hint) in rows {
        row(line);
        call(folder.path(), line).did_nothing(2, &[words, "\nhint: ", hint]).is_a_line();
    }
}

/// Checks that the answer is one line and a hint, and that the hint's command works.
#[track_caller]
fn assert_answered(folder: &Path, ended: Ended, words: &[&str], typed: bool) {
    let refused = ended.did_nothing(2, words);
    refused.is_a_line();
    let (_, hint) = refused.stderr.split_once("hint: ").expect("a hint");
    if typed {
        let line = hint.trim().strip_prefix("weir ").expect("weir's own line");
        call(folder, line).with_code(0);
    } else {
        hint.has("weir load --help");
    }
}
