//! Tests of bad input and of failures: one clear line, the right exit code, and nothing is sent.

use std::net::TcpListener;
use std::process::Command;
use std::thread;
use std::time::Duration;

use rustix::process::Signal;
use weir_testkit::loads::Server;
use weir_testkit::program::{Ended, HasAll, Running, behind, row, run, weir};
use weir_testkit::{faulty, origin};

/// Command lines with their exit codes and messages, including the hint.
#[rustfmt::skip]
const LINES: [(&str, i32, &str); 66] = [
    ("load 127.0.0.1:8080", 2, "`127.0.0.1:8080` has no scheme; is it http://127.0.0.1:8080?"),
    ("load ftp://127.0.0.1/", 2, "has the scheme ftp"),
    ("load http:///index.html", 2, "is not a URL"),
    ("load http://127.0.0.1:99999/", 2, "has no port `99999`"),
    ("load http://[::1]:99999/", 2, "has no port `99999`"),
    ("load", 2, "where are requests to be sent?; weir load http"),
    ("load http://NOBODY/", 1, "Connection refused (os error 111); is a server listening there?"),
    // A label of 64 letters is none (RFC 1035 §2.3.4), so no name server has to be asked.
    ("load http://xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx.test/", 1, "the name does not resolve; an address does not"),
    ("load -k https://ORIGIN/", 1, "the server does not speak TLS on this port; ask it in clear: http://"),
    ("load --to 127.0.0.1 http://ORIGIN/", 2, "--to 127.0.0.1: `127.0.0.1` is not an address with a port; for example"),
    ("load --source 127.0.0.1-127.0.0.355 http://ORIGIN/", 2, "`127.0.0.1-127.0.0.355` is not an address; for example --source"),
    ("load --source 192.0.2.1 http://ORIGIN/", 2, "--source 192.0.2.1: Cannot assign requested address (os error 99); an own address"),
    ("load -d 1m30 http://ORIGIN/", 2, "-d: `1m30` is not a duration such as 250us, 100ms, 10s, 1m30s or 1h"),
    ("load -R 10k/m http://ORIGIN/", 2, "-R: `10k/m` is not a rate in requests per second such as 500"),
    ("load -H Transfer-Encoding:chunked http://ORIGIN/", 2, "field transfer-encoding says `chunked`, but the body is sent as it is; leave it out"),
    ("load -b x -H Transfer-Encoding:chunked http://ORIGIN/", 2, "field transfer-encoding says `chunked`; leave it out"),
    ("load --fail-if p99>30 http://ORIGIN/", 2, "--fail-if `p99>30`: give a time; write --fail-if 'p99 > 30ms'"),
    ("load --fail-if p(95)<500 http://ORIGIN/", 2, "can have a bound; k6's `p(95)<500` says what must hold, and a condition here what must not: --fail-if 'p95 > 500ms'"),
    ("load --fail-if bad http://ORIGIN/", 2, "--fail-if `bad`: `bad` is none of invalid, suspect"),
    ("load --place proxy=a http://ORIGIN/", 2, "proxy=HOST is the server's host for --observe, which is not given; add --observe"),
    ("load --place generator=a,b --io epoll http://ORIGIN/", 2, "--io: not with generators on other hosts"),
    ("load --place generator=a,b --source 127.0.0.2 http://ORIGIN/", 2, "--source: generators on other hosts send from"),
    ("load --place generator=a,a http://ORIGIN/", 2, "`generator=a,a` is not understood: it names a host twice"),
    ("load http://192.0.2.7/", 2, "192.0.2.7:80 is a public address, and this sends it more than 100 requests/s, requests at once, connections, or new connections/s; add --yes-this-is-mine"),
    ("load http://192.0.2.7/ -R 101 -d 1s", 2, "192.0.2.7:80 is a public address; add --yes-this-is-mine"),
    ("load http://192.0.2.7/ -R 50 -c 5000 -d 1s", 2, "192.0.2.7:80 is a public address; add --yes-this-is-mine"),
    ("load http://192.0.2.7/ -R 50 -d 100s --arrivals burst:3000", 2, "192.0.2.7:80 is a public address; add --yes-this-is-mine"),
    ("load http://192.0.2.7/ -c 3000 --connection hold -d 1s", 2, "192.0.2.7:80 is a public address; add --yes-this-is-mine"),
    ("load http://192.0.2.7/ -c 100 -R 1 --connection 1ms -d 1s", 2, "192.0.2.7:80 is a public address; add --yes-this-is-mine"),
    ("load http://192.0.2.7/ -c 60 -R 1 -d 1s --flow x:-c60", 2, "192.0.2.7:80 is a public address; add --yes-this-is-mine"),
    ("load http://255.255.255.255:8000/", 2, "255.255.255.255 is the broadcast address, which no server has"),
    ("load http://224.0.0.1:8000/", 2, "224.0.0.1 is a multicast address, which no server has"),
    ("load --to [ff02::1]:80 http://ORIGIN/", 2, "ff02::1 is a multicast address, which no server has"),
    ("load http://127.0.0.1:0/", 2, "has no port `0`: they go from 1 to 65535"),
    ("load http://[fe80::1%lo]:8000/", 2, "has a zone in its address, and weir supports none; use an address"),
    ("load http://münchen.example/", 2, "invalid uri character; write the host in its ASCII form (xn--…)"),
    ("load localhost:8000/x", 2, "`localhost:8000/x` has no scheme; is it http://localhost:8000/x?"),
    ("load example.com/path?u=http://x", 2, "has no scheme; is it http://example.com/path?"),
    ("load //127.0.0.1:8000/", 2, "has no scheme; is it http://127.0.0.1:8000/?"),
    ("load http://ORIGIN/ --to 192.0.2.7:80 -n 101", 2, "192.0.2.7:80 is a public address; add --yes-this-is-mine"),
    ("load http://ORIGIN/ -R 500 -d 2s --arrivals burst:4294967295", 2, "--arrivals burst:4294967295: the load has 1,000 requests, so not one burst is whole; smaller bursts"),
    ("load --flow x http://ORIGIN/", 2, "--flow `x`: has no name; a flow is a name, a colon and options"),
    ("load --request-set /nonexistent http://ORIGIN/", 2, "/nonexistent"),
    ("load --expect nothing http://ORIGIN/", 2, "--expect: "),
    ("capacity http://NOBODY/", 1, "Connection refused (os error 111); is a server listening there?"),
    ("capacity -q http://ORIGIN/nothing -e status=404", 1, "answers with status 200, which is an error: 404 is expected; if that is right"),
    ("capacity", 2, "which server, or which study?; weir capacity http://"),
    ("capacity localhost", 2, "localhost; is it a URL? weir capacity http://localhost/"),
    ("capacity http://ORIGIN/ -O p99<30", 2, "--objective: \"p99<30\" is no objective: give a time"),
    ("run stock-reverse", 2, "there is no study called `stock-reverse`; did you mean `stock-reverse-proxy`?"),
    ("run same-twise --check", 2, "there is no study called `same-twise`; did you mean `same-twice`?"),
    ("run nothing.yaml", 2, "cannot read nothing.yaml: No such file"),
    ("run same-twice --time fast", 2, "--time: `fast` is not a share such as 25%"),
    ("run same-twice --budget soon", 2, "--budget: `soon` is not a duration"),
    ("run same-twice --scale big", 2, "--scale: "),
    ("run same-twice --fail-if slow", 2, "--fail-if `slow`: `slow` is none of worse, inconclusive, invalid, suspect; write"),
    ("run same-twice --place moon=a", 2, "moon"),
    ("run --resume nodir", 2, "cannot read nodir/run.json: No such file; a run's folder is"),
    ("report nodir", 2, "cannot read nodir/run.json: No such file; a run's folder is"),
    ("parameters worker_proces", 2, "there is no parameter called `worker_proces`; did you mean `worker_processes`?"),
    ("patch nodir", 2, "nodir"),
    ("studies same-twise", 2, "did you mean `same-twice`?"),
    ("origin --size big", 2, "--size: `big` is not a size such as 600"),
    ("origin --delay slowly", 2, "--delay"),
    ("origin --listen nowhere", 2, "nowhere"),
    ("doctor -R fast", 2, "fast"),
];

#[test]
fn each_bad_line_is_answered_by_one() {
    let origin = faulty::start_origin();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let nobody = listener.local_addr().unwrap().to_string();
    drop(listener);
    let folder = tempfile::tempdir().expect("a folder");
    for (line, code, messages) in LINES {
        row(line);
        let line =
            line.replace("NOBODY", &nobody).replace("ORIGIN", &origin.addresses()[0].to_string());
        let mut command = weir(line.split_whitespace());
        let ended = Running::start(command.current_dir(folder.path())).end();
        let words: Vec<&str> = messages.split("; ").collect();
        ended.did_nothing(code, &words).is_a_line();
        let runs = std::fs::read_dir(folder.path().join("runs"));
        assert_eq!(runs.into_iter().flatten().count(), 0);
    }
    let ended = Running::start(&mut weir(["load", "http://127.0.0.1/a b"])).end();
    ended.refused_in_a_line(&["invalid uri character\nhint: write %20 for a space"]);
    run("load http://user:secret@127.0.0.1/")
        .refused_in_a_line(&["has a user name in it", "\nhint: "]);
    for line in [
        "load http://user:S3CRET@127.0.0.1/",
        "load user:S3CRET@127.0.0.1",
        "load ftp://127.0.0.1/?token=S3CRET",
        "load http://127.0.0.1:x/?token=S3CRET",
        "load -H S3CRET http://127.0.0.1/",
        "load --flow x:-HS3CRET http://127.0.0.1/",
    ] {
        row(line);
        let stderr = run(line).refused(&["weir: "]).stderr;
        assert!(!stderr.contains("S3CRET"), "{stderr}");
    }
    assert!(origin.counters(0).requests < 10, "the first answer of a search alone");
}

#[test]
fn everything_that_is_wrong_with_a_load_is_said_at_once() {
    let ended = run("load -c 0 -R fast -T soon http://127.0.0.1:9/").refused(&[
        "weir: -c: `0`",
        "weir: -R: `fast`",
        "weir: -T: `soon`",
    ]);
    assert_eq!(ended.stderr.matches("weir: ").count(), 3, "{}", ended.stderr);
}

/// Tests a closed standard output, which Rust replaces by /dev/null. A reader that stops early is no error.
#[test]
fn a_result_that_nobody_can_read_is_an_error() {
    let origin = faulty::start_origin();
    let line = format!("load -q -n 10 -c 1 {}", origin.url());
    for line in [&line, "studies", "run same-twice --check", "help", "--version"] {
        row(line);
        run_to(">&-", line).failed_in_a_line(&["standard output is closed"]);
    }
    assert_eq!(origin.counters(0).requests, 0);
    for line in [&line, "--help", "--version"] {
        row(line);
        run_to(">/dev/full", line)
            .with_code(1)
            .says(&["cannot write to standard output: No space left"]);
    }
    run_to(">&-", &format!("{line} -o /dev/null")).with_code(0);
    run_to("| true", &line).with_code(0);
}

fn run_to(redirection: &str, line: &str) -> Ended {
    let line = format!("{} {line} {redirection}", env!("CARGO_BIN_EXE_weir"));
    Running::start(Command::new("sh").args(["-c", &line])).end()
}

/// Checks that SIGUSR1 ends nothing, and that progress can be written to pipes beside the result.
#[test]
fn questions_and_pipes_end_nothing() {
    let (mut server, _) = origin::start("");
    server.signal(Signal::USR1);
    thread::sleep(Duration::from_millis(300));
    assert!(server.is_alive(), "a question ended it");

    let origin = faulty::start_origin();
    let folder = tempfile::tempdir().expect("a folder");
    let pipe = folder.path().join("pipe");
    let mkfifo = Command::new("mkfifo").arg(&pipe).status();
    assert!(mkfifo.is_ok_and(|ended| ended.success()), "mkfifo");
    let pipe_name = pipe.display();
    origin
        .load(&format!("-n 10 -c 1 --progress jsonl:{pipe_name}"))
        .refused_in_a_line(&["it is a pipe, and nobody reads it"]);
    // Somebody may come to read the result.
    let ended = origin.load(&format!("-q -n 10 -c 1 -o {pipe_name}")).with_code(1);
    ended.stderr.has("it is a pipe, and nobody reads it");
    ended.stdout.has("10");
    origin
        .load("-n 10 -c 1 --progress jsonl:/dev/full")
        .with_code(0)
        .says(&["weir: progress cannot be written: No space left on device"]);
    let file = folder.path().join("both");
    let both = file.display();
    origin
        .load(&format!("-n 10 -c 1 -o {both} --progress jsonl:{both}"))
        .refused_in_a_line(&["are the same file"]);
}

#[test]
fn values_that_cannot_be() {
    let origin = faulty::start_origin();
    #[rustfmt::skip]
    let rows = [
        ("-c 0", "-c: `0` is not a whole number of at least 1"),
        ("-c 2 -t 3", "-c 2: fewer connections than threads\nhint: use -t 2"),
        ("-t 0", "-t 0: at least one thread"),
        ("-c 10000 -t 10000", "-t 10000: more threads than are of use on this host\nhint: use -t "),
        ("-c 4294967295 -t 1", "\nhint: 64 threads have room for "),
        ("-R 0", "-R: `0` is out of range"),
        ("-R 99999999999999999999", "out of range: a rate must be from 0.000001 to 1000000000"),
        ("--trace a.log --trace-speed 1e300", "the speed of a trace must be from 0.000001 to 1000000"),
        ("-R 100 --trace-speed 2", "--trace-speed: only a trace has a speed"),
        ("-m POST -b @body.json", "-b: the text itself is sent, so that `@` begins no file's name\nhint: --content-file body.json"),
        ("-R 1,000", "-R: `1,000` is not a rate: write 1000 without commas"),
        ("-R fast", "-R: `fast` is not a rate"),
        ("-R -5", "-R: `-5` is out of range: it must not be negative"),
        ("-d nonsense", "-d: `nonsense` is not a duration such as"),
        ("-d 0", "-d 0: at least 1ms"),
        ("-n 0", "-n: `0` is not a whole number of at least 1"),
        ("-T 0", "-T: `0` is not a duration of at least 1ms"),
        ("-T soon", "-T: `soon` is not a duration"),
        ("--ramp-up soon", "--ramp-up: `soon` is not a duration"),
        ("--ramp-up 87000h", "--ramp-up: `87000h` is out of range: at most 168h, a week"),
        ("-d 169h", "-d: `169h` is out of range: at most 168h"),
        ("-T 87000h", "-T: `87000h` is out of range: at most 168h"),
        ("-R 10@87000h", "-R: `87000h` is out of range: at most 168h"),
        ("--connection 87000h", "--connection: `87000h` is out of range: at most 168h"),
        ("--connection hold:87000h", "--connection: `87000h` is out of range: at most 168h"),
        ("--every 87000h", "--every: `87000h` is out of range: at most 168h"),
        ("-R 10 --spin 2s", "--spin: `2s` is out of range: it is longer than 1s"),
        ("--cpus 0-", "--cpus: `0-` is not a list of CPUs"),
        ("--cpus 900", "CPU 900 is not one that weir may use\nhint: "),
        ("-H nocolon", "-H (7 characters): a header is a name, a colon and a value\nhint: "),
        ("-H :value", "field name"),
        ("-m G(T", "method `G(T` is not a token"),
        ("--content-file /nonexistent", "--content-file /nonexistent: No such file"),
        ("-o /nonexistent/result", "-o /nonexistent/result: No such file"),
        ("-o /", "-o /: Is a directory"),
    ];
    for (flags, words) in rows {
        origin.load(flags).refused_in_a_line(&[words]);
    }
    assert_eq!(origin.counters(0).requests, 0);
}

#[test]
fn more_connections_than_descriptors() {
    let origin = faulty::start_origin();
    let line = format!("load -c 100 {}", origin.url());
    Running::start(&mut behind("ulimit -n 64", &line)).end().refused_in_a_line(&[
        "-c 100: a thread needs 1",
        "open descriptors, and may have 64",
        "\nhint: raise the limit: ulimit -n ",
    ]);
    assert_eq!(origin.counters(0).connections, 0);
}

#[test]
fn the_soft_limit_of_descriptors_is_no_obstacle() {
    let origin = faulty::start_origin();
    let line = format!("load -q -n 100 -c 100 {}", origin.url());
    Running::start(&mut behind("ulimit -S -n 64", &line)).end().with_code(0);
    assert_eq!(origin.counters(0).requests, 100);
}

#[test]
fn flags_that_do_not_exist_get_the_nearest_one() {
    run("load --conections 5 http://127.0.0.1/").refused(&["--conections", "'--connections'"]);
    run("laod http://127.0.0.1/").refused(&["laod", "'load'"]);
    run("load --format jsn http://127.0.0.1/").refused(&["jsn", "'json'"]);
    run("load -n 1e2 http://127.0.0.1/")
        .refused(&["`1e2` is not a whole number such as 50, 2k or 1M"]);
    run("load -c 5000M http://127.0.0.1/").refused(&["`5000M` is"]);
    run("load -b x --content-file y http://127.0.0.1/").refused(&["cannot be used with"]);
}

#[test]
fn help_and_version_are_no_errors() {
    let help = run("load --help").with_code(0);
    for flag in ["-c", "-R", "--ramp-up", "--content-file"] {
        assert!(help.stdout.contains(flag), "{flag}");
    }
    let version = Running::start(&mut weir(["--version"])).end().with_code(0);
    assert!(version.stdout.starts_with("weir 0."), "{}", version.stdout);
}

/// Runs all cases at once: each has to wait.
#[test]
fn a_pipe_that_nobody_writes_to_is_given_up_and_one_with_a_writer_is_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let fifo = folder.path().join("fifo");
    let mkfifo = Command::new("mkfifo").arg(&fifo).status();
    assert!(mkfifo.expect("coreutils").success());
    let name = fifo.to_str().expect("UTF-8");
    #[rustfmt::skip]
    let lines = [
        "run FIFO --check", "load --request-set FIFO http://127.0.0.1:1/", "load --trace FIFO http://127.0.0.1:1/",
        "load --content-file FIFO http://127.0.0.1:1/", "load --ca FIFO https://127.0.0.1:1/", "origin --file FIFO",
    ];
    let all: Vec<Running> = lines.iter().map(|line| start_with_fifo(line, name)).collect();
    for (line, running) in lines.into_iter().zip(all) {
        row(line);
        running.end().refused(&["a pipe, and nobody writes to it"]);
    }
    let reads = start_with_fifo("load -n 1 --request-set FIFO http://127.0.0.1:1/", name);
    thread::sleep(Duration::from_millis(300));
    std::fs::write(&fifo, "requests: [{pth: /}]").expect("it is read");
    reads.end().refused(&["did you mean `path`?"]);
}

fn start_with_fifo(line: &str, fifo: &str) -> Running {
    let words = line.split(' ').map(|word| if word == "FIFO" { fifo } else { word });
    Running::start(&mut weir(words))
}
