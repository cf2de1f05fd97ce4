//! Copies of configurations that users wrote, on the real proxies.

use std::fs;
use std::net::SocketAddr;

use weir_model::study::Settings;
use weir_probe::process::command_line;
use weir_sut::{Configuration, Launch, Own, Proxy, SutError, WorkFolder};

use crate::haproxy::haproxy;
use crate::nginx::nginx;
use crate::setup::{Setup, ask_at, nobody, run, run_with};
use crate::support::{free_address, get, processes, until};

/// An nginx.conf whose listener has `flags`, with `main` on top.
fn nginx_conf(main: &str, flags: &str) -> String {
    format!(
        "{main}\nworker_processes 2;\npid nginx.pid;\nerror_log error.log;\nevents {{ }}\n\
         http {{\n    access_log off;\n    server {{ listen 18080{flags}; return 204; }}\n}}\n"
    )
}

/// Writes a copy of a configuration, asked at `listen`.
fn copy(proxy: &dyn Proxy, folder: &WorkFolder, text: &str, listen: SocketAddr) -> Configuration {
    let file = folder.prefix("user.conf");
    fs::write(&file, text).expect("the work folder can be written");
    let asks = [ask_at(listen)];
    let own = Own {
        file: &file,
        asks: &asks,
    };
    let setup = Setup {
        settings: Settings::new(),
        own: Some(own),
        ..Setup::proxy(proxy.kind(), &[], nobody())
    };
    let written = setup.try_write(folder, listen);
    written.expect("the configuration is understood")
}

#[test]
fn nginx_is_ready_behind_a_launcher_that_stays() {
    let folder = WorkFolder::create().unwrap();
    let configuration = copy(&*nginx(), &folder, &nginx_conf("", ""), free_address());
    let prefix = ["sh", "-c", "\"$@\"; exit", "sh"].map(str::to_owned);
    let launch = Launch {
        prefix: prefix.to_vec(),
        ..Launch::default()
    };
    let mut proxy = run_with(&*nginx(), &configuration, &launch).unwrap();
    proxy.alive().unwrap();
    let title = command_line(proxy.master_pid()).unwrap();
    assert!(title.starts_with("nginx: master process"), "{title}");
    assert_eq!(proxy.worker_pids().len(), 2);
    assert!(get(proxy.address(), "/").starts_with("HTTP/1.1 204"));
    let all = processes(&proxy);
    proxy.stop();
    until("none is left", || {
        !all.iter().any(|process| process.is_alive())
    });
}

/// With SO_REUSEPORT two of them would share the port.
#[test]
fn a_port_that_is_taken_is_not_shared_because_the_user_s_file_would() {
    let text = nginx_conf("", " reuseport");
    let start = |folder: &WorkFolder, listen| {
        let configuration = copy(&*nginx(), folder, &text, listen);
        run(&*nginx(), &configuration)
    };
    let folders = [(); 2].map(|()| WorkFolder::create().unwrap());
    let first = start(&folders[0], free_address()).unwrap();
    let error = start(&folders[1], first.address()).unwrap_err();
    assert!(matches!(error, SutError::PortTaken { .. }), "{error}");
}

/// The number that a user or a group has.
fn number(database: &str, name: &str) -> String {
    let text = fs::read_to_string(database).expect("every system has it");
    let mut entries = text.lines().map(|line| line.split(':'));
    let mut fields = entries
        .find(|fields| fields.clone().next() == Some(name))
        .expect("every system has it");
    fields.nth(2).expect("a number").to_owned()
}

#[test]
fn workers_are_of_the_group_that_the_user_s_file_names() {
    // Who is not root changes no user.
    let is_root = rustix::process::geteuid().is_root();
    let folder = WorkFolder::create().unwrap();
    let written = |proxy: &dyn Proxy, text: &str| {
        let configuration = copy(proxy, &folder, text, free_address());
        proxy.check(&configuration).unwrap();
        configuration.texts().unwrap().remove(0).1
    };
    let text = written(&*nginx(), &nginx_conf("user nobody daemon;", ""));
    assert_eq!(text.contains("user nobody daemon;"), is_root, "{text}");

    let by_number = format!(
        "uid {}\n    gid {}",
        number("/etc/passwd", "nobody"),
        number("/etc/group", "daemon")
    );
    for named in ["user nobody\n    group daemon", &by_number] {
        let text = written(
            &*haproxy(),
            &format!(
                "global\n    {named}\n\
                 defaults\n    mode http\n    timeout connect 1s\n    timeout client 1s\n    timeout server 1s\n\
                 listen web\n    bind :18080\n    server app 192.0.2.1:80\n"
            ),
        );
        for line in ["user nobody\n", "group daemon\n"] {
            assert_eq!(text.contains(line), is_root, "{named}: {text}");
        }
    }
}
