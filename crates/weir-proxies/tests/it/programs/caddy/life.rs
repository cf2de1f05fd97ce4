//! Tests of start and end that are specific to Caddy.

use std::fs;
use std::net::{SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};

use weir_parameters::Catalog;
use weir_sut::{Certificate, Configuration, Site, SutError, TlsListener, WorkFolder};

use super::{caddy, files};
use crate::programs::gate::Client;
use crate::programs::setup::run;
use crate::programs::support::free_address;

fn write(prefix: &Path, listen: SocketAddr, tls: Option<TlsListener<'_>>) -> Configuration {
    let setup = files(&[]);
    let site = Site { tls, ..Site::new(&setup.role, listen, None) };
    caddy()
        .write(prefix, &setup.settings, &site, &Catalog::builtin())
        .expect("the configuration can be written")
}

#[test]
fn clients_that_are_connected_are_let_go_in_order() {
    let stopped = files(&[]).start();
    let dropped = files(&[]).start();
    let mut clients = [&stopped, &dropped].map(|arm| Client::connect(arm.proxy.address()));
    for client in &mut clients {
        client.get("/").unwrap();
    }
    stopped.proxy.stop();
    drop(dropped.proxy);
    assert!(clients.iter_mut().all(Client::reads_to_the_end));
}

#[test]
fn a_port_for_tls_that_is_taken_is_said_whoever_has_it() {
    let folder = WorkFolder::create().unwrap();
    // One that would share it, as Caddy would, too: half the connections would go astray.
    let first = files(&[]).start();
    let address = first.proxy.address();
    let certificate = Certificate::make(folder.path(), &["weir.test".to_owned()]).unwrap();
    let configuration = write(
        &folder.prefix("c"),
        free_address(),
        Some(TlsListener { listen: address, certificate: &certificate }),
    );
    let error = run(&*caddy(), &configuration).unwrap_err();
    assert!(
        matches!(&error, SutError::PortTaken { address: taken, .. } if *taken == address),
        "{error}"
    );

    // Of HTTP/3, which nobody but Caddy looks at: its own words. The port's TCP may be another test's.
    let mut words = (0..10).map(|_| {
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        let listen = udp.local_addr().unwrap();
        let tls = TlsListener { listen, certificate: &certificate };
        let configuration = write(&folder.prefix("d"), free_address(), Some(tls));
        match run(&*caddy(), &configuration).unwrap_err() {
            SutError::PortTaken { words, .. } => words,
            other => panic!("{other}"),
        }
    });
    let is_own = words.any(|words| words.contains("bind: address already in use"));
    assert!(is_own, "in its own words");
}

#[test]
fn a_prefix_longer_than_an_address_of_a_socket_is_fine() {
    let folder = WorkFolder::create().unwrap();
    let mut parent: PathBuf = folder.prefix("long");
    while parent.as_os_str().len() < 200 {
        parent = parent.join("a-folder-with-a-name-that-is-rather-long");
    }
    fs::create_dir_all(&parent).unwrap();
    let configuration = write(&parent.join("arm"), free_address(), None);
    let proxy = run(&*caddy(), &configuration).unwrap();
    let effective = caddy().effective(&configuration, Some(&proxy), &Catalog::builtin());
    assert!(effective.is_ok());
}
