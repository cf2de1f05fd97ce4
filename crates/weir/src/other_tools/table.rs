//! Options of other load generators, a row each.

use super::{Replacement, Row, Takes};
use Replacement::{Always, Is, Words};
use Takes::{Address, File, Has, Nothing, Number, Text, Time};

pub(super) const SCRIPTS: &str = "weir runs no scripts: say what is sent with -m, -b, -H and slots such as {{random:1..9}}, or with \
                       --request-set FILE, and what is right with -e";
const HTTP2: &str =
    "weir speaks HTTP/1.1 alone; --pipeline N has N requests in flight on a connection";
const PROXY: &str =
    "weir goes through no forward proxy; --to ADDRESS:PORT connects elsewhere than the URL says";
const USER_OR_FILE: &str = "a user is an Authorization header, Basic, with the base64 of USER:PASSWORD; a file is \
    -m PUT --content-file FILE";
const PASSWORD: &str =
    "send it as a header: an Authorization header, Basic, with the base64 of USER:PASSWORD";
pub(super) const URLS: &str =
    "several URLs are --request-set FILE, or slots: http://HOST/{{line:FILE}}";
const REDIRECTS: &str = "weir follows no redirect";
const FAMILY: &str = "--to ADDRESS:PORT says which address is asked";
const BURSTS: &str = "-R RATE --arrivals burst:N has N requests due at a time";
const STAGES: &str = "a rate that changes is -R 0..100 (it grows) or -R 100@10s,200@20s (steps)";
const SUMMARY: &str = "--format json, wrk2 or hgrm, and -o FILE";
pub(super) const FORM_TYPE: &str = "Content-Type: application/x-www-form-urlencoded";
const FORM: &str = "-H 'Content-Type: application/x-www-form-urlencoded' -m POST -b {}";
const FORM_WORDS: &str = "a form is -m POST -b BODY -H 'Content-Type: …'";
const BODY_FILE: &str = "a file is -m POST --content-file FILE";
const QUERY: &str = "data of a GET is written in the URL: 'http://HOST/?NAME=VALUE'";
const HOST: &str = "-H 'Host: {}'";
const AGENT: &str = "-H 'User-Agent: {}'";

/// Options of other tools. If several tools have an option, the first row that fits its value applies. Options that
/// weir has too are listed only with values that weir would refuse.
#[rustfmt::skip]
pub(super) const ROWS: &[Row] = &[
    // How long, how many, how fast.
    ("-z", "hey, oha", Text, Is("-d {}")),
    ("-D", "h2load", Number, Is("-d {}")),
    ("-D", "h2load", Time, Is("-d {}")),
    ("-q", "hey for each worker, oha for all", Number, Is("-R {}")),
    ("--rps", "h2load for each connection, k6 for all", Number, Is("-R {}")),
    ("--vus", "k6", Number, Is("-c {}")),
    ("-u", "k6", Number, Is("-c {}")),
    ("--clients", "h2load", Number, Is("-c {}")),
    ("--iterations", "k6", Number, Is("-n {}")),
    ("-i", "k6", Number, Is("-n {}")),
    ("-r", "h2load", Number, Is("--connect-rate {}")),
    ("-cpus", "hey", Number, Is("-t {}")),
    ("--stage", "k6", Text, Words(STAGES)),
    ("-s", "k6", Has(":"), Words(STAGES)),
    ("--burst-rate", "oha", Text, Words(BURSTS)),
    ("--burst-delay", "oha", Text, Words(BURSTS)),
    ("--latency-correction", "oha", Nothing, Always("with -R a response time runs from when the request was due")),
    ("--warm-up-time", "h2load", Text, Is("--ramp-up {}")),
    ("--warmup", "hyperfine", Number, Words("--ramp-up TIME lets the load grow before anything is measured")),
    ("--runs", "hyperfine", Number, Words("-d TIME says how long; `weir run STUDY` measures again and again, and compares")),
    ("--timing-script-file", "h2load", Text, Words("--trace FILE repeats the arrivals of a log")),
    ("-t", "oha", Time, Is("-T {}")),
    ("-s", "ab", Number, Is("-T {}")),
    ("-N", "h2load", Text, Is("-T {}")),
    ("--connection-inactivity-timeout", "h2load", Text, Is("-T {}")),
    ("--connection-active-timeout", "h2load", Text, Is("--connection {}")),
    // What is sent.
    ("-s", "wrk, wrk2", Text, Words(SCRIPTS)),
    ("--script", "wrk, wrk2", Text, Words(SCRIPTS)),
    ("--har", "HAR", Text, Is("--request-set {}")),
    ("-p", "oha", Number, Words(HTTP2)),
    ("-p", "h2load", Has("http/1.1"), Always("weir speaks HTTP/1.1")),
    ("-p", "h2load", Has("h2c"), Words(HTTP2)),
    ("-p", "ab", Text, Is("-m POST --content-file {}")),
    ("-u", "curl for USER:PASSWORD, ab for a file", Has(":"), Words(USER_OR_FILE)),
    ("-u", "ab", Text, Is("-m PUT --content-file {}")),
    ("-d", "hey, oha", Has("{"), Is("-b {}")),
    ("-d", "hey, oha", Has("="), Is("-b {}")),
    ("-d", "h2load", File, Is("-m POST --content-file {}")),
    ("--data", "h2load", Text, Is("-m POST --content-file {}")),
    ("-D", "hey, oha", Text, Is("--content-file {}")),
    ("-T", "ab, hey, oha", Has("/"), Is("-H 'Content-Type: {}'")),
    ("-F", "oha", Text, Words(FORM_WORDS)),
    ("-C", "ab", Text, Words("send it as a header: -H 'Cookie: NAME=VALUE'")),
    ("-A", "ab", Has(":"), Words(PASSWORD)),
    ("-A", "hey", Text, Is("-H 'Accept: {}'")),
    ("-a", "hey, oha", Text, Words(PASSWORD)),
    ("-P", "ab", Text, Words(PROXY)),
    ("-U", "hey", Text, Is(AGENT)),
    ("--user-agent", "k6", Text, Is(AGENT)),
    ("-host", "hey", Text, Is(HOST)),
    ("--host", "oha", Text, Is(HOST)),
    ("-i", "h2load", File, Words(URLS)),
    ("-i", "ab", Nothing, Is("-m HEAD")),
    ("--input-file", "h2load", Text, Words(URLS)),
    ("--base-uri", "h2load", Text, Words(URLS)),
    ("--rand-regex-url", "oha", Nothing, Words(URLS)),
    ("--urls-from-file", "oha", Nothing, Words(URLS)),
    ("--disable-compression", "oha", Nothing, Always("weir asks for no compression")),
    ("-disable-compression", "hey", Nothing, Always("weir asks for no compression")),
    ("--redirect", "oha", Number, Always(REDIRECTS)),
    ("--max-redirects", "k6", Number, Always(REDIRECTS)),
    ("-disable-redirects", "hey", Nothing, Always(REDIRECTS)),
    ("-l", "ab", Nothing, Always("a response of another length is no error; -e size=1KiB makes it one")),
    ("-r", "ab", Nothing, Always("weir goes on after errors")),
    // Connections.
    ("-m", "h2load", Number, Is("--pipeline {}")),
    ("--max-concurrent-streams", "h2load", Number, Is("--pipeline {}")),
    ("-disable-keepalive", "hey", Nothing, Is("--connection per-request")),
    ("--disable-keepalive", "oha", Nothing, Is("--connection per-request")),
    ("--no-connection-reuse", "k6", Nothing, Is("--connection per-request")),
    ("--no-vu-connection-reuse", "k6", Nothing, Is("--connection per-request")),
    ("-B", "ab", Text, Is("--source {}")),
    ("-B", "wrk2", Nothing, Always("every response has a time of its own")),
    ("--connect-to", "h2load, oha", Text, Words(FAMILY)),
    ("--ipv4", "oha", Nothing, Words(FAMILY)),
    ("--ipv6", "oha", Nothing, Words(FAMILY)),
    ("--unix-socket", "oha", Text, Words("weir speaks TCP alone")),
    ("-x", "hey, oha, curl", Address, Words(PROXY)),
    ("-X", "ab", Has(":"), Words(PROXY)),
    ("--h1", "h2load", Nothing, Always("weir speaks HTTP/1.1")),
    ("-h2", "hey", Nothing, Words(HTTP2)),
    ("--http2", "oha", Nothing, Words(HTTP2)),
    ("--http-version", "oha", Has("1.1"), Always("weir speaks HTTP/1.1")),
    ("--http-version", "oha", Text, Words(HTTP2)),
    ("-w", "h2load", Number, Words(HTTP2)),
    ("-W", "h2load", Number, Words(HTTP2)),
    // TLS.
    ("--cacert", "oha", Text, Is("--ca {}")),
    ("--insecure-skip-tls-verify", "k6", Nothing, Is("-k")),
    ("--tls13-ciphers", "h2load", Text, Is("--ciphers {}")),
    ("-Z", "ab", Text, Is("--ciphers {}")),
    ("-f", "ab", Text, Words("--tls 1.2 or --tls 1.3")),
    ("-E", "ab", Text, Words("--cert FILE and --key FILE")),
    ("--alpn-list", "h2load", Text, Is("--alpn {}")),
    ("--npn-list", "h2load", Text, Is("--alpn {}")),
    // What is shown.
    ("--u_latency", "wrk2", Nothing, Always("service_time is always shown")),
    ("-U", "wrk2", Nothing, Always("service_time is always shown")),
    ("--no-tui", "oha", Nothing, Is("-q")),
    ("--json", "oha", Nothing, Is("--format json")),
    ("-j", "oha", Nothing, Is("--format json")),
    ("--output-format", "oha", Has("json"), Is("--format json")),
    ("--output-format", "oha", Text, Words(SUMMARY)),
    ("--summary-export", "k6", Text, Is("--format json -o {}")),
    ("--export-json", "hyperfine", Text, Is("--format json -o {}")),
    ("--export-csv", "hyperfine", Text, Is("--format csv -o {}")),
    ("--out", "k6", Text, Words(SUMMARY)),
    ("--log-file", "h2load", Text, Words(SUMMARY)),
    ("-g", "ab", Text, Is("--format hgrm -o {}")),
    ("-e", "ab", Has(".csv"), Words(SUMMARY)),
    ("-w", "ab", Nothing, Words(SUMMARY)),
    ("-v", "wrk", Nothing, Words("weir --version")),
    ("--stats-success-breakdown", "oha", Nothing, Always("statuses are always counted")),
    ("--disable-color", "oha", Nothing, Words("NO_COLOR=1 in the environment")),
    ("--no-color", "oha, k6", Nothing, Words("NO_COLOR=1 in the environment")),
    ("--debug", "oha", Nothing, Words("-n 1 -c 1 sends one request")),
    ("--http-debug", "k6", Nothing, Words("-n 1 -c 1 sends one request")),
];

/// Options of curl whose name or meaning is not weir's. Those that weir lacks are answered also where nobody says `curl`.
#[rustfmt::skip]
pub(super) const CURL: &[Row] = &[
    ("-X", "curl", Text, Is("-m {}")),
    ("-A", "curl", Text, Is(AGENT)),
    ("-b", "curl", Text, Is("-H 'Cookie: {}'")),
    ("-u", "curl", Text, Words(PASSWORD)),
    ("--request", "curl", Text, Is("-m {}")),
    ("-d", "curl", Has("@"), Words(BODY_FILE)),
    ("-d", "curl", Text, Is(FORM)),
    ("--data", "curl", Has("@"), Words(BODY_FILE)),
    ("--data", "curl", Text, Is(FORM)),
    ("--data-binary", "curl", Has("@"), Words(BODY_FILE)),
    ("--data-binary", "curl", Text, Is(FORM)),
    ("--data-urlencode", "curl", Text, Words("a body is written as it is sent: -b 'NAME=a%20b'")),
    ("--data-raw", "curl", Text, Is(FORM)),
    ("--json", "curl", Text, Is("-H 'Content-Type: application/json' -m POST -b {}")),
    ("-F", "curl", Text, Words(FORM_WORDS)),
    ("--form", "curl", Text, Words(FORM_WORDS)),
    ("-G", "curl", Nothing, Words(QUERY)),
    ("--get", "curl", Nothing, Words(QUERY)),
    ("-I", "curl", Nothing, Is("-m HEAD")),
    ("--head", "curl", Nothing, Is("-m HEAD")),
    ("-m", "curl", Number, Is("-T {}")),
    ("--max-time", "curl", Number, Is("-T {}")),
    ("--connect-timeout", "curl", Number, Is("-T {}")),
    ("--resolve", "curl", Text, Words(FAMILY)),
    ("--connect-to", "curl", Text, Words(FAMILY)),
    ("-x", "curl", Address, Words(PROXY)),
    ("--proxy", "curl", Address, Words(PROXY)),
    ("--http1.1", "curl", Nothing, Always("weir speaks HTTP/1.1")),
    ("--http2", "curl", Nothing, Words(HTTP2)),
    ("--fail", "curl", Nothing, Always("a response of status 400 or above counts as failed")),
    ("--cookie", "curl", Text, Is("-H 'Cookie: {}'")),
    ("--user-agent", "curl", Text, Is(AGENT)),
    ("--user", "curl", Text, Words(PASSWORD)),
    ("--location", "curl", Nothing, Always(REDIRECTS)),
    ("--silent", "curl", Nothing, Is("-q")),
    ("-o", "curl", Text, Always("no response is kept")),
    ("-L", "curl", Nothing, Always(REDIRECTS)),
    ("-s", "curl", Nothing, Is("-q")),
    ("-sS", "curl", Nothing, Is("-q")),
    ("-i", "curl", Nothing, Always("no response is shown")),
    ("--compressed", "curl", Nothing, Is("-H 'Accept-Encoding: gzip'")),
];
