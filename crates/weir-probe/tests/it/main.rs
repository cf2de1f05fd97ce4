//! The readers, tested on the present kernel.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::Command;

use weir_probe::{
    CpuTimesReader, ProbeError, ProcessCpu, ProcessId, ThreadCpu, allowed_cpus, environment,
    free_disk_bytes, host, port_is_free, process,
};

/// Keeps the calling thread busy until the kernel reports this much CPU time.
fn burn(thread: &mut ThreadCpu, ns: u64) {
    let mut now = || thread.read_ns().expect("the thread is this one");
    let begin = now();
    while now() < begin + ns {
        std::hint::black_box((0..10_000).fold(0_u64, |sum, n| sum ^ std::hint::black_box(n)));
    }
}

#[test]
fn time_on_a_cpu_is_counted_for_the_thread_and_for_its_process() {
    let burnt = std::thread::spawn(|| {
        let id = rustix::thread::gettid().as_raw_nonzero().get();
        let mut thread = ThreadCpu::of_own_thread(id.unsigned_abs()).unwrap();
        burn(&mut thread, 20_000_000);
        let thread_ns = thread.read_ns().unwrap();
        let mut process = ProcessCpu::open(std::process::id()).unwrap();
        (thread_ns, process.read_ns(), thread)
    });
    let (thread_ns, process_ns, mut thread) = burnt.join().unwrap();
    assert!(thread_ns >= 20_000_000, "{thread_ns}");
    assert!(process_ns >= thread_ns, "{process_ns} {thread_ns}");
    // The thread has ended: its figure stays.
    assert!(thread.read_ns().unwrap() >= thread_ns);
}

#[test]
fn a_process_that_ended_keeps_its_figure_and_is_not_alive() {
    let mut child = Command::new("sleep").arg("60").spawn().unwrap();
    let mut cpu = ProcessCpu::open(child.id()).unwrap();
    let id = ProcessId::of(child.id()).unwrap();
    assert!(id.is_alive());
    let before = cpu.read_ns();
    child.kill().unwrap();
    let exited = child.wait();
    assert!(!exited.unwrap().success());
    assert!(!id.is_alive());
    assert!(cpu.read_ns() >= before);
    let answers = [
        ProcessCpu::open(child.id()).map(drop),
        process::nofile(child.id()).map(drop),
        process::children(child.id()).map(drop),
    ];
    for answer in answers {
        assert!(matches!(answer, Err(ProbeError::Gone { .. })), "{answer:?}");
    }
}

#[test]
fn another_process_with_the_same_number_is_not_the_same() {
    let process_id = ProcessId::own().unwrap();
    let other_id = ProcessId { start_ticks: process_id.start_ticks + 1, ..process_id };
    assert!(process_id.is_alive());
    assert!(!other_id.is_alive());
}

#[test]
fn command_lines_and_limits_of_a_child_are_as_they_were_given() {
    let mut child =
        Command::new("sh").args(["-c", "ulimit -S -n 77; exec sleep 61"]).spawn().unwrap();
    // The shell needs a moment until it is `sleep`.
    let line = loop {
        let line = process::command_line(child.id()).unwrap();
        if line.starts_with("sleep") {
            break line;
        }
        std::thread::yield_now();
    };
    let (soft, hard) = process::nofile(child.id()).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(line, "sleep 61");
    assert_eq!(soft, 77);
    assert_eq!(hard, host::own_nofile().1);
}

#[test]
fn time_passes_on_every_cpu() {
    let cpus = allowed_cpus().unwrap();
    let mut reader = CpuTimesReader::open(&cpus).unwrap();
    let before = reader.read().unwrap();
    let begin = std::time::Instant::now();
    // Ends as soon as anything is counted at all; a counter that stood still would end at the guard.
    while total_ns(reader.read().unwrap() - before) == 0 {
        assert!(begin.elapsed().as_secs() < 20, "no tick in 20 s");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

fn total_ns(times: weir_probe::CpuTimes) -> u64 {
    times.busy_ns + times.idle_ns + times.steal_ns
}

#[test]
fn a_cpu_that_does_not_exist_is_refused_at_once() {
    let cpus = "1023".parse().unwrap();
    let error = CpuTimesReader::open(&cpus).unwrap_err();
    let named = matches!(error, ProbeError::CpuOffline { cpu: 1023 });
    assert!(named, "{error}");
}

#[test]
fn the_environment_says_what_other_sources_say() {
    let description = environment();
    let uname = Command::new("uname").arg("-rv").output().unwrap();
    assert_eq!(description.kernel, String::from_utf8_lossy(&uname.stdout).trim());
    let somaxconn = std::fs::read_to_string("/proc/sys/net/core/somaxconn").unwrap();
    assert_eq!(description.sysctls["net.core.somaxconn"], somaxconn.trim());
    // The kernel separates the two by a tab, which has no place in a table.
    assert!(!description.sysctls["net.ipv4.ip_local_port_range"].contains('\t'));
    assert!(description.memory_bytes > 1 << 20);
    assert!(!description.cpu_model.is_empty() && !description.distribution.is_empty());
    assert_eq!(description.cpus, allowed_cpus().unwrap().to_string());
    let (online, allowed) = (host::online_cpus().unwrap(), allowed_cpus().unwrap());
    assert!(allowed.cpus().iter().all(|cpu| online.cpus().contains(cpu)));
}

#[test]
fn a_port_is_taken_while_somebody_listens() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    assert!(!port_is_free(address).unwrap());
    drop(listener);
    // A test beside this one that starts a process holds a copy of every descriptor for a moment.
    let begin = std::time::Instant::now();
    while !port_is_free(address).unwrap() {
        assert!(begin.elapsed().as_secs() < 20, "{address} stays taken");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    // TEST-NET-1 (RFC 5737) is nobody's.
    let foreign: SocketAddr = "192.0.2.1:8080".parse().unwrap();
    assert!(port_is_free(foreign).is_err());
}

#[test]
fn free_disk_is_asked_of_a_path_that_exists() {
    assert!(free_disk_bytes(&std::env::temp_dir()).unwrap() > 0);
    assert!(free_disk_bytes(Path::new("/nonexistent/weir")).is_err());
}
