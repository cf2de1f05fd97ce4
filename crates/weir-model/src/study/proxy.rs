//! The proxy under test: which program, doing what, configured and started how.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Settings, Study};

/// Which proxy, doing what, with which settings before any arm changes them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProxySpec {
    /// Which program.
    pub kind: ProxyKind,
    /// Path of its executable, when it is not the one found on PATH.
    pub executable: Option<PathBuf>,
    /// What it does.
    pub role: ProxyRole,
    /// Settings of the baseline: the packaged defaults with the study's own on top. With a
    /// configuration of the user's: what is changed in it in every arm.
    pub settings: Settings,
    /// The user's own configuration, which arms are copies of; `None`: weir writes one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configuration: Option<OwnConfiguration>,
    /// Where it is, when weir is not to start one: it is of [`ProxyKind::External`], or has a controller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external: Option<ExternalSpec>,
    /// What configures it in a cluster, where weir is to change that; then it has an address as well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controller: Option<ControllerSpec>,
}

impl ProxySpec {
    /// Whether weir starts it.
    pub fn is_started(&self) -> bool {
        self.kind.is_started() && self.external.is_none()
    }
}

impl Study {
    /// The proxy, and the controller of a cluster that configures it.
    pub fn controlled(&self) -> Option<(&ProxySpec, &ControllerSpec)> {
        Some((&self.proxy, self.proxy.controller.as_ref()?))
    }

    /// Whether all arms have one proxy, which a controller configures, one after the other.
    pub fn is_in_turn(&self) -> bool {
        let controlled = self.controlled();
        controlled.is_some_and(|(_, controller)| controller.beside.is_empty())
    }
}

impl ControllerSpec {
    /// All its instances, the first one first.
    pub fn instances(&self) -> impl Iterator<Item = &InstanceSpec> {
        std::iter::once(&self.first).chain(self.beside.iter().map(|one| &one.instance))
    }
}

/// A controller in a Kubernetes cluster, which configures a proxy by what objects say. weir changes those for an arm, and
/// puts them back.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ControllerSpec {
    /// Which: the name of a file of `controllers/`.
    pub is: String,
    /// The instance that the study names first.
    #[serde(flatten)]
    pub first: InstanceSpec,
    /// More instances of it, each with a proxy of its own: arms run side by side, each on one of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<BesideSpec>,
    /// How long a setting may take until it is in force; `None`: as long as that controller takes at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<Duration>,
    /// How its pods get settings of the kernel.
    #[serde(default, skip_serializing_if = "SysctlMeans::is_pods")]
    pub sysctls: SysctlMeans,
}

/// An instance of a controller: where its settings stand, and how it is asked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InstanceSpec {
    /// The namespace of its objects that name none.
    pub namespace: String,
    /// Its objects, `configmap/NAME` or `configmap/NAMESPACE/NAME`, by what the file of `controllers/` calls them.
    pub objects: BTreeMap<String, String>,
    /// A command on the host that weir runs on, which prints what its proxy runs with; empty: it is asked in its pods.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<String>,
    /// A command on the same host, which starts it anew where it reads an object at its start only; empty: its pods are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub restart: Vec<String>,
}

/// How pods get settings of the kernel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum SysctlMeans {
    /// The securityContext of the pods names them, and the kubelet sets those that it allows.
    #[default]
    Pods,
    /// A privileged init container of the pods sets them in the pods' network namespace.
    InitContainer,
    /// They are set on the nodes of the pods, for all that runs there.
    Node,
}

impl SysctlMeans {
    /// All of them, by the names that studies have for them.
    pub const NAMES: [(&str, SysctlMeans); 3] = [
        ("pods", SysctlMeans::Pods),
        ("init-container", SysctlMeans::InitContainer),
        ("node", SysctlMeans::Node),
    ];

    /// Whether it is the usual one.
    pub fn is_pods(&self) -> bool {
        *self == SysctlMeans::Pods
    }
}

/// One more instance of a controller, with a proxy of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BesideSpec {
    /// Where its proxy is asked.
    pub at: ExternalSpec,
    /// The instance.
    #[serde(flatten)]
    pub instance: InstanceSpec,
}

/// A configuration that the user wrote. It is read on the proxies' host and never written to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OwnConfiguration {
    /// Its main file.
    pub file: PathBuf,
    /// The port of the listener that is asked, by the configuration; `None`: the first in clear.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
}

/// A proxy that runs without weir, which asks it and touches nothing of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExternalSpec {
    /// Where it is asked, in clear or over TLS as the load says.
    pub address: SocketAddr,
    /// Further addresses of it: connections go to all of them in turn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<SocketAddr>,
    /// What its user calls it, where that is more than an address: a URL, or a name and a port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub named: Option<String>,
}

impl ExternalSpec {
    /// One that is known by its address alone.
    pub fn at(address: SocketAddr) -> ExternalSpec {
        ExternalSpec {
            address,
            also: Vec::new(),
            named: None,
        }
    }

    /// All its addresses, the first one first.
    pub fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        std::iter::once(self.address).chain(self.also.iter().copied())
    }
}

/// Why no server can be at an address; `None`: there can.
pub fn no_server_at(address: &SocketAddr) -> Option<String> {
    let ip = address.ip().to_canonical();
    if address.port() == 0 {
        Some(format!("{address} has port 0, which no server has"))
    } else if ip.is_multicast() {
        Some(format!("{ip} is a multicast address, which no server has"))
    } else if ip == Ipv4Addr::BROADCAST {
        Some(format!(
            "{ip} is the broadcast address, which no server has"
        ))
    } else {
        None
    }
}

impl fmt::Display for ExternalSpec {
    /// `https://shop.example/ (192.0.2.7:443)`, or the address alone.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let addresses: Vec<String> = self.addresses().map(|one| one.to_string()).collect();
        let addresses = addresses.join(", ");
        match &self.named {
            Some(named) => write!(f, "{named} ({addresses})"),
            None => f.write_str(&addresses),
        }
    }
}

/// A way to start a proxy's process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LauncherSpec {
    /// Program and arguments that the proxy's command line is put behind: `onload
    /// --profile=latency`. Empty: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prefix: Vec<String>,
    /// Variables of the environment.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Libraries that the dynamic linker loads before all others (LD_PRELOAD in ld.so(8)), in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub preload: Vec<PathBuf>,
}

/// The one list of the proxies that weir starts: variant, name, title, and whether it can answer from
/// files of its own. The name is the one in studies and in files; the proxy's module in `weir-sut` and
/// its file of rows in `parameters/` have it too. `$each` is a macro that takes the whole list.
#[macro_export]
macro_rules! proxies {
    ($each:ident) => {
        $each! {
            Nginx nginx "nginx" true;
            Haproxy haproxy "HAProxy" false;
            Envoy envoy "Envoy" false;
            Caddy caddy "Caddy" true;
            Httpd httpd "Apache httpd" true;
        }
    };
}

macro_rules! kinds {
    ($($variant:ident $name:ident $title:literal $files:literal;)*) => {
        /// A proxy that weir knows how to run.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(rename_all = "snake_case")]
        pub enum ProxyKind {
            $(#[doc = $title] $variant,)*
            /// One that runs without weir.
            External,
        }

        impl ProxyKind {
    /// Kind of a proxy by the name of its process (comm, proc_pid_comm(5)); Debian calls httpd apache2.
    pub fn of_process(name: &str) -> Option<ProxyKind> {
        let name = if name == "apache2" { "httpd" } else { name };
        ProxyKind::started().find(|kind| kind.name() == name)
    }

            /// All of them.
            pub const ALL: [ProxyKind; [$($title),*].len() + 1] =
                [$(ProxyKind::$variant,)* ProxyKind::External];

            /// Its name in studies and files: `haproxy`.
            pub fn name(self) -> &'static str {
                match self {
                    $(ProxyKind::$variant => stringify!($name),)*
                    ProxyKind::External => "external",
                }
            }

            /// Its name in sentences: `HAProxy`.
            pub fn title(self) -> &'static str {
                match self {
                    $(ProxyKind::$variant => $title,)*
                    ProxyKind::External => "the proxy",
                }
            }

            /// Whether it can answer from files of its own.
            pub fn serves_files(self) -> bool {
                match self {
                    $(ProxyKind::$variant => $files,)*
                    ProxyKind::External => false,
                }
            }
        }
    };
}

proxies!(kinds);

impl ProxyKind {
    /// Those that weir starts.
    pub fn started() -> impl Iterator<Item = ProxyKind> {
        ProxyKind::ALL.into_iter().filter(|kind| kind.is_started())
    }

    /// Whether weir starts it.
    pub fn is_started(self) -> bool {
        self != ProxyKind::External
    }
}

/// What the proxy does with a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ProxyRole {
    /// It asks the origin server.
    ReverseProxy,
    /// It answers from files of its own.
    StaticFiles {
        /// Size of the file in bytes.
        size: u64,
    },
}
