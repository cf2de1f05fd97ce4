//! Proxies as the tests have them written and started, and the proxy that runs.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use weir_model::study::{AskSpec, ProxyKind, ProxyRole, RequestedSpec, Settings};
use weir_parameters::Catalog;
use weir_sut::{
    Ask, Certificate, Configuration, Effective, Launch, Own, Proxy, RunningProxy, Site, SutError,
    TlsListener, WorkFolder,
};

use crate::secure;
use crate::support::{free_address, get, launcher};

/// Settings by id and level.
pub(crate) type Changes<'a> = &'a [(&'a str, &'a str)];

/// A proxy of this machine. Tests that need it fail without it: to pass would say that something
/// was looked at.
pub(crate) fn program(kind: ProxyKind) -> Arc<dyn Proxy> {
    weir_sut::find(kind, None).unwrap_or_else(|error| panic!("{error}; {:?}", error.hint()))
}

/// The rows of the installed version.
pub(crate) fn catalog(kind: ProxyKind) -> Catalog {
    Catalog::builtin().for_proxy(kind, program(kind).version())
}

/// Where nobody listens.
pub(crate) fn nobody() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 9).into()
}

/// What a load in clear asks that names nothing, at an address.
pub(crate) fn ask_at(at: SocketAddr) -> Ask {
    let requested = RequestedSpec {
        target: "/".to_owned(),
        ..RequestedSpec::default()
    };
    let spec = AskSpec {
        requests: vec![requested],
        ..AskSpec::default()
    };
    Ask { spec, at }
}

/// Debian's settings of a proxy with others on top.
pub(crate) fn stock(kind: ProxyKind, changes: Changes<'_>) -> Settings {
    let mut settings = Catalog::builtin().stock(kind);
    let changes = changes.iter();
    settings.extend(changes.map(|&(id, level)| (id.to_owned(), level.to_owned())));
    settings
}

/// A proxy to be, with what it is to serve.
#[derive(Clone)]
pub(crate) struct Setup<'a> {
    pub(crate) kind: ProxyKind,
    pub(crate) settings: Settings,
    pub(crate) role: ProxyRole,
    pub(crate) origin: Option<SocketAddr>,
    pub(crate) sizes: &'a [u64],
    pub(crate) own: Option<Own<'a>>,
    /// Shown at a listener with TLS, if there is to be one.
    pub(crate) certificate: Option<&'a Certificate>,
    pub(crate) launch: Launch,
}

impl Setup<'_> {
    /// A reverse proxy in clear, with Debian's settings and others on top.
    pub(crate) fn proxy(kind: ProxyKind, changes: Changes<'_>, origin: SocketAddr) -> Self {
        Setup {
            kind,
            settings: stock(kind, changes),
            role: ProxyRole::ReverseProxy,
            origin: Some(origin),
            sizes: &[],
            own: None,
            certificate: None,
            launch: Launch::default(),
        }
    }

    /// The same with a page of `size` bytes instead of an origin server.
    pub(crate) fn files(kind: ProxyKind, changes: Changes<'_>, size: u64) -> Self {
        Setup {
            role: ProxyRole::StaticFiles { size },
            origin: None,
            ..Setup::proxy(kind, changes, nobody())
        }
    }

    pub(crate) fn try_write(
        &self,
        folder: &WorkFolder,
        listen: SocketAddr,
    ) -> Result<Configuration, SutError> {
        let tls = self.certificate.map(|certificate| TlsListener {
            listen: free_address(),
            certificate,
        });
        let site = Site {
            tls,
            sizes: self.sizes,
            own: self.own,
            ..Site::new(&self.role, listen, self.origin)
        };
        let (prefix, catalog) = (folder.prefix("arm"), Catalog::builtin());
        program(self.kind).write(&prefix, &self.settings, &site, &catalog)
    }

    pub(crate) fn write(&self, folder: &WorkFolder) -> Configuration {
        let written = self.try_write(folder, free_address());
        written.expect("the configuration can be written")
    }

    /// Has the program read what is written, and compares the levels that it tells with those asked for.
    pub(crate) fn must_read_back(&self, folder: &WorkFolder) {
        let (kind, settings) = (self.kind, &self.settings);
        let catalog = catalog(kind);
        let effective = program(kind).effective(&self.write(folder), None, &catalog);
        let effective = effective.unwrap_or_else(|error| panic!("{settings:#?}: {error}"));
        let mut expected = catalog.complete(kind, settings);
        // Its default is the process's own limit, and there is no process.
        if !settings.contains_key("worker_rlimit_nofile") {
            expected.remove("worker_rlimit_nofile");
        }
        assert_eq!(effective.levels, expected, "{settings:#?}");
    }

    pub(crate) fn start(&self) -> Arm {
        self.start_in(folder(), None)
    }

    /// Starts it with a listener of either kind.
    pub(crate) fn start_with_tls(&self) -> Arm {
        let folder = folder();
        let certificate = Certificate::make(folder.path(), &[secure::NAME.to_owned()]);
        self.start_in(
            folder,
            Some(certificate.expect("a certificate can be made")),
        )
    }

    /// Ports are picked before they are taken, and the machine may be shared: who is beaten to a port
    /// picks another. The prefix is the same each time: what is there already is no obstacle.
    fn start_in(&self, folder: WorkFolder, certificate: Option<Certificate>) -> Arm {
        let setup = Setup {
            certificate: certificate.as_ref(),
            ..self.clone()
        };
        for attempt in 0.. {
            let configuration = setup.write(&folder);
            match run_with(&*program(self.kind), &configuration, &self.launch) {
                Ok(proxy) => {
                    return Arm {
                        proxy,
                        configuration,
                        certificate,
                        folder,
                    };
                }
                Err(SutError::PortTaken { .. }) if attempt < 3 => {}
                Err(error) => panic!("{error}"),
            }
        }
        unreachable!("every attempt ends in one of three ways")
    }
}

fn folder() -> WorkFolder {
    WorkFolder::create().expect("the folder for temporary files can be written")
}

/// Starts a configuration.
pub(crate) fn run(
    program: &dyn Proxy,
    configuration: &Configuration,
) -> Result<RunningProxy, SutError> {
    run_with(program, configuration, &Launch::default())
}

pub(crate) fn run_with(
    program: &dyn Proxy,
    configuration: &Configuration,
    launch: &Launch,
) -> Result<RunningProxy, SutError> {
    weir_sut::start(program, configuration, &launcher(), launch)
}

/// A proxy and the folder it lives in; the proxy ends first.
pub(crate) struct Arm {
    pub(crate) proxy: RunningProxy,
    pub(crate) configuration: Configuration,
    certificate: Option<Certificate>,
    pub(crate) folder: WorkFolder,
}

impl Arm {
    /// What it answers in clear.
    pub(crate) fn get(&self, target: &str) -> String {
        get(self.proxy.address(), target)
    }

    /// What it answers OpenSSL over TLS, and whether that trusts it.
    pub(crate) fn ask(&self, target: &str, arguments: &[&str]) -> (bool, String) {
        let address = self.configuration.tls_listen();
        let both = self.certificate.as_ref().zip(address);
        let (certificate, address) = both.expect("it listens for TLS");
        secure::ask(certificate, address, target, arguments)
    }

    pub(crate) fn program(&self) -> Arc<dyn Proxy> {
        program(self.configuration.kind())
    }

    pub(crate) fn counters(&self) -> BTreeMap<String, u64> {
        let counters = self.program().counters(&self.configuration);
        counters.expect("it answers")
    }

    pub(crate) fn counter(&self, name: &str) -> u64 {
        let counters = self.counters();
        let found = counters.get(name).copied();
        found.unwrap_or_else(|| panic!("{name} is none of {counters:?}"))
    }

    /// What it says itself that it runs with.
    pub(crate) fn effective(&self) -> Effective {
        let catalog = catalog(self.configuration.kind());
        let effective =
            (self.program()).effective(&self.configuration, Some(&self.proxy), &catalog);
        effective.expect("it answers")
    }

    /// The level of a parameter that it runs with.
    pub(crate) fn level(&self, id: &str) -> Option<String> {
        self.effective().levels.remove(id)
    }
}
