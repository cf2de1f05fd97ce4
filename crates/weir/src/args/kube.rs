//! Arguments about pods of a Kubernetes cluster.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand};
use weir_host::journal::quoted;

const KUBERNETES: &str = "Kubernetes";

/// Generators in pods.
#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct PodArgs {
    /// Send the load from pods of a cluster, as kubernetes:CONTEXT or kubernetes:CONTEXT/NAMESPACE: a context of your kubectl
    /// configuration (docs/kubernetes.md)
    #[arg(long, value_name = "WHERE", conflicts_with = "place", help_heading = KUBERNETES)]
    pub(crate) on: Option<String>,

    #[command(flatten)]
    pub(crate) wanted: WantedArgs,
}

impl PodArgs {
    /// Returns the given options in shell syntax, each with a space before it. The command that resumes a run needs
    /// them again.
    pub(crate) fn again(&self) -> String {
        let wanted = &self.wanted;
        let single = [
            ("--on", self.on.clone()),
            ("--generators", wanted.generators.map(|count| count.to_string())),
            ("--image", wanted.image.clone()),
            ("--pod-cpus", wanted.pod_cpus.map(|count| count.to_string())),
            ("--pod-memory", wanted.pod_memory.clone()),
            ("--proxy-pods", wanted.proxy_pods.clone()),
            ("--origin-pod", wanted.origin_pod.clone()),
            ("--pods-within", wanted.pods_within.clone()),
        ]
        .into_iter()
        .filter_map(|(option, value)| Some((option, value?)));
        let nodes = wanted.node_selector.iter().map(|value| ("--node-selector", value.clone()));
        let taints = wanted.toleration.iter().map(|value| ("--toleration", value.clone()));
        let options = single.chain(nodes).chain(taints);
        let share = wanted.share_nodes.then(|| " --share-nodes".to_owned());
        options
            .map(|(option, value)| format!(" {option} {}", quoted(&value)))
            .chain(share)
            .collect()
    }
}

/// Properties of the pods.
#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct WantedArgs {
    /// Number of pods that share the load, each on a node of its own; 0: none, the load comes from this host, and the
    /// cluster is that of the study's `controller` [default: 1]
    #[arg(long, value_name = "N", help_heading = KUBERNETES)]
    pub(crate) generators: Option<u32>,

    /// Image of the pods, written by `weir kube image` [default: localhost/weir:VERSION]
    #[arg(long, value_name = "IMAGE", help_heading = KUBERNETES)]
    pub(crate) image: Option<String>,

    /// Whole CPUs of each pod: its request, its limit and its threads [default: 1]
    #[arg(long, value_name = "N", help_heading = KUBERNETES)]
    pub(crate) pod_cpus: Option<u32>,

    /// Memory of each pod: its request and its limit [default: 1GiB]
    #[arg(long, value_name = "SIZE", help_heading = KUBERNETES)]
    pub(crate) pod_memory: Option<String>,

    /// Label that the nodes must have; repeatable
    #[arg(long, value_name = "KEY=VALUE", help_heading = KUBERNETES)]
    pub(crate) node_selector: Vec<String>,

    /// Taint that the pods tolerate; repeatable
    #[arg(long, value_name = "KEY[=VALUE][:EFFECT]", help_heading = KUBERNETES)]
    pub(crate) toleration: Vec<String>,

    /// The proxy's pods, by a label or several (KEY=VALUE,KEY=VALUE): no generator goes to a node that has one of them, and
    /// they are sampled, to find what limits the proxy
    #[arg(long, value_name = "NAMESPACE/KEY=VALUE", help_heading = KUBERNETES)]
    pub(crate) proxy_pods: Option<String>,

    /// Allow generators to share nodes with each other and with the proxy where the cluster has no others; what
    /// shares a node with the proxy takes CPU time from it
    #[arg(long, help_heading = KUBERNETES)]
    pub(crate) share_nodes: bool,

    /// Run an origin server in a pod of its own, `weir origin` with these options, such as '--size 600 --delay 2ms'
    #[arg(long, value_name = "OPTIONS", allow_hyphen_values = true, help_heading = KUBERNETES)]
    pub(crate) origin_pod: Option<String>,

    /// Time that the pods may take until they run [default: 2m]
    #[arg(long, value_name = "TIME", help_heading = KUBERNETES)]
    pub(crate) pods_within: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum KubeArgs {
    /// Write weir's image, an OCI archive of this very program and nothing else, to be pushed where nodes pull it.
    Image(ImageArgs),
    /// Print the objects that `weir run STUDY --on kubernetes` would make, as YAML documents; make nothing.
    Render(RenderArgs),
    /// Print the Roles and RoleBindings that allow a user what weir does in a cluster, as YAML documents.
    Rights(RightsArgs),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ImageArgs {
    /// The archive to write
    #[arg(value_name = "OUT.tar")]
    pub(crate) output: PathBuf,

    /// The image's name in the archive [default: localhost/weir:VERSION]
    #[arg(long, value_name = "IMAGE")]
    pub(crate) name: Option<String>,

    /// A static weir for the machines of the nodes, instead of this program
    #[arg(long, value_name = "FILE")]
    pub(crate) program: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct RenderArgs {
    /// A study file, or the name of a ready-made study
    #[arg(value_name = "STUDY")]
    pub(crate) study: String,

    /// The namespace
    #[arg(long, value_name = "NAMESPACE", default_value = "default")]
    pub(crate) namespace: String,

    #[command(flatten)]
    pub(crate) wanted: WantedArgs,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct RightsArgs {
    /// The user, or system:serviceaccount:NAMESPACE:NAME
    #[arg(value_name = "USER")]
    pub(crate) user: String,

    /// The namespace
    #[arg(long, value_name = "NAMESPACE", default_value = "default")]
    pub(crate) namespace: String,

    /// A study whose proxy has a controller: what changes of its objects need is printed as well
    #[arg(long, value_name = "STUDY")]
    pub(crate) study: Option<String>,

    /// Pods of a proxy: what sampling them needs is printed as well
    #[arg(long, value_name = "NAMESPACE/KEY=VALUE")]
    pub(crate) proxy_pods: Option<String>,

    /// Print as well what `ingress/NAME` in the place of a URL needs
    #[arg(long)]
    pub(crate) ingress: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct SysctlArgs {
    /// Its name, such as net.core.somaxconn
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    /// The value that it must have to be changed
    #[arg(value_name = "FROM", requires = "to")]
    pub(crate) from: Option<String>,

    /// The value to give it
    #[arg(value_name = "TO")]
    pub(crate) to: Option<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct WaitArgs {
    /// End when no other process has been there for this long
    #[arg(long, value_name = "TIME")]
    pub(crate) idle: Option<String>,
}
