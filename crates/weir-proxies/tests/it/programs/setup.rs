//! Proxies as the tests configure, write and start them.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use weir_model::study::{AskSpec, ProxyKind, ProxyRole, RequestedSpec, Settings};
use weir_parameters::Catalog;
use weir_sut::{
    Ask, Certificate, Configuration, Effective, Launch, Proxy, RunningProxy, Site, SutError,
    TlsListener, UserConfiguration, WorkFolder,
};

use crate::programs::secure;
use crate::programs::support::{free_address, get, launcher};

/// Settings as pairs of id and level.
pub(crate) type Changes<'a> = &'a [(&'a str, &'a str)];

/// Returns a proxy of this machine. Tests that need it fail without it, since a pass would suggest that something was
/// checked.
pub(crate) fn program(kind: ProxyKind) -> Arc<dyn Proxy> {
    weir_proxies::find(kind, None).unwrap_or_else(|error| panic!("{error}; {:?}", error.hint()))
}

/// Returns the catalog for the installed version.
pub(crate) fn catalog_of(kind: ProxyKind) -> Catalog {
    Catalog::builtin().for_proxy(kind, program(kind).version())
}

pub(crate) fn nobody() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 9).into()
}

/// Returns an ask in clear that names no host, for an address.
pub(crate) fn ask_at(at: SocketAddr) -> Ask {
    let requested = RequestedSpec { target: "/".to_owned(), ..RequestedSpec::default() };
    let spec = AskSpec { requests: vec![requested], ..AskSpec::default() };
    Ask { spec, at }
}

/// Returns Debian's settings of a proxy with `changes` on top.
pub(crate) fn stock(kind: ProxyKind, changes: Changes<'_>) -> Settings {
    let mut settings = Catalog::builtin().stock(kind);
    settings.extend(changes.iter().map(|&(id, level)| (id.to_owned(), level.to_owned())));
    settings
}

/// A proxy to be started, with its settings and content.
#[derive(Clone)]
pub(crate) struct Setup<'a> {
    pub(crate) kind: ProxyKind,
    pub(crate) settings: Settings,
    pub(crate) role: ProxyRole,
    pub(crate) origin: Option<SocketAddr>,
    pub(crate) sizes: &'a [u64],
    pub(crate) own: Option<UserConfiguration<'a>>,
    /// Certificate of the listener with TLS; None for no such listener.
    pub(crate) certificate: Option<&'a Certificate>,
    pub(crate) launch: Launch,
}

impl Setup<'_> {
    /// Creates a reverse proxy in clear, with Debian's settings and `changes` on top.
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

    /// Creates a proxy that serves a page of `size` bytes instead, with the same settings.
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
        let tls =
            self.certificate.map(|certificate| TlsListener { listen: free_address(), certificate });
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

    /// Lets the program read the written configuration, and compares the levels that it reports with the expected ones.
    pub(crate) fn must_read_back(&self, folder: &WorkFolder) {
        let (kind, settings) = (self.kind, &self.settings);
        let catalog = catalog_of(kind);
        let effective = program(kind)
            .effective(&self.write(folder), None, &catalog)
            .unwrap_or_else(|error| panic!("{settings:#?}: {error}"));
        let mut expected = catalog.complete(kind, settings);
        // Its default is the process's own limit, and there is no process.
        if !settings.contains_key("worker_rlimit_nofile") {
            expected.remove("worker_rlimit_nofile");
        }
        if kind == ProxyKind::Nginx {
            // A limit that is no parameter: weir's own configurations have none.
            expected.insert("limit_req_rate".to_owned(), "0".to_owned());
        }
        assert_eq!(effective.levels, expected, "{settings:#?}");
    }

    pub(crate) fn start(&self) -> Arm {
        self.start_in(folder(), None)
    }

    /// Starts the proxy with a listener in clear and one with TLS.
    pub(crate) fn start_with_tls(&self) -> Arm {
        let work_folder = folder();
        let certificate = Certificate::make(work_folder.path(), &[secure::NAME.to_owned()]);
        self.start_in(work_folder, Some(certificate.expect("a certificate can be made")))
    }

    /// Starts the proxy. Ports are picked before they are taken, and the machine may be shared, so if a port has been
    /// taken meanwhile another one is picked. The prefix is the same each time; what is already there does no harm.
    fn start_in(&self, folder: WorkFolder, certificate: Option<Certificate>) -> Arm {
        let setup = Setup { certificate: certificate.as_ref(), ..self.clone() };
        for attempt in 0.. {
            let configuration = setup.write(&folder);
            match run_with(&*program(self.kind), &configuration, &self.launch) {
                Ok(proxy) => {
                    return Arm { proxy, configuration, certificate, folder };
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

/// A proxy and its folder; the proxy ends first.
pub(crate) struct Arm {
    pub(crate) proxy: RunningProxy,
    pub(crate) configuration: Configuration,
    certificate: Option<Certificate>,
    pub(crate) folder: WorkFolder,
}

impl Arm {
    /// Returns the answer in clear.
    pub(crate) fn get(&self, target: &str) -> String {
        get(self.proxy.address(), target)
    }

    /// Returns the answer to OpenSSL over TLS, and true if OpenSSL trusts the certificate.
    pub(crate) fn ask(&self, target: &str, arguments: &[&str]) -> (bool, String) {
        let address = self.configuration.tls_listen();
        let (certificate, address) =
            self.certificate.as_ref().zip(address).expect("it listens for TLS");
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
        counters.get(name).copied().unwrap_or_else(|| panic!("{name} is none of {counters:?}"))
    }

    /// Returns the configuration that the running proxy reports.
    pub(crate) fn effective(&self) -> Effective {
        let catalog = catalog_of(self.configuration.kind());
        let effective =
            (self.program()).effective(&self.configuration, Some(&self.proxy), &catalog);
        effective.expect("it answers")
    }

    pub(crate) fn level(&self, id: &str) -> Option<String> {
        self.effective().levels.remove(id)
    }
}
