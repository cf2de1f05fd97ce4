//! References that document the mechanisms.

pub(super) const CORE: &str = "https://nginx.org/en/docs/ngx_core_module.html#worker_connections";
pub(super) const RLIMIT: &str =
    "https://nginx.org/en/docs/ngx_core_module.html#worker_rlimit_nofile";
pub(super) const WORKERS: &str = "https://nginx.org/en/docs/ngx_core_module.html#worker_processes";
pub(super) const ACCEPT_MUTEX: &str = "https://nginx.org/en/docs/ngx_core_module.html#accept_mutex";
pub(super) const LISTEN: &str = "https://nginx.org/en/docs/http/ngx_http_core_module.html#listen";
pub(super) const CLIENT_REQUESTS: &str =
    "https://nginx.org/en/docs/http/ngx_http_core_module.html#keepalive_requests";
pub(super) const CLIENT_TIMEOUT: &str =
    "https://nginx.org/en/docs/http/ngx_http_core_module.html#keepalive_timeout";
pub(super) const ORIGIN_KEEPALIVE: &str =
    "https://nginx.org/en/docs/http/ngx_http_upstream_module.html#keepalive";
pub(super) const GZIP: &str = "https://nginx.org/en/docs/http/ngx_http_gzip_module.html#gzip_types";
pub(super) const ACCESS_LOG: &str =
    "https://nginx.org/en/docs/http/ngx_http_log_module.html#access_log";
pub(super) const IP_SYSCTL: &str = "https://docs.kernel.org/networking/ip-sysctl.html";
pub(super) const FS_SYSCTL: &str = "https://docs.kernel.org/admin-guide/sysctl/fs.html";
pub(super) const CONNTRACK: &str = "https://docs.kernel.org/networking/nf_conntrack-sysctl.html";
pub(super) const LISTEN_2: &str = "https://man7.org/linux/man-pages/man2/listen.2.html";
pub(super) const TCP_7: &str = "https://man7.org/linux/man-pages/man7/tcp.7.html";
pub(super) const LIMITS_CONF: &str = "https://man7.org/linux/man-pages/man5/limits.conf.5.html";
pub(super) const SYSCTL_D: &str =
    "https://www.freedesktop.org/software/systemd/man/latest/sysctl.d.html";
pub(super) const CGROUP: &str = "https://docs.kernel.org/admin-guide/cgroup-v2.html";
pub(super) const POD_QOS: &str = "https://kubernetes.io/docs/concepts/workloads/pods/pod-qos/";
pub(super) const POD_CPU: &str = "https://kubernetes.io/docs/concepts/configuration/manage-resources-containers/#how-pods-with-resource-limits-are-run";
pub(super) const POD_MEMORY: &str =
    "https://kubernetes.io/docs/tasks/configure-pod-container/assign-memory-resource/";
pub(super) const POD_SYSCTLS: &str =
    "https://kubernetes.io/docs/tasks/administer-cluster/sysctl-cluster/";
pub(super) const CPU_MANAGER: &str =
    "https://kubernetes.io/docs/tasks/administer-cluster/cpu-management-policies/";
pub(super) const HPA: &str =
    "https://kubernetes.io/docs/tasks/run-application/horizontal-pod-autoscale/";
pub(super) const VPA: &str =
    "https://kubernetes.io/docs/concepts/workloads/autoscaling/vertical-pod-autoscale/";
pub(super) const DISRUPTIONS: &str =
    "https://kubernetes.io/docs/concepts/workloads/pods/disruptions/";
pub(super) const HOST_NETWORK: &str =
    "https://kubernetes.io/docs/concepts/workloads/pods/advanced-pod-config/";
pub(super) const PROXY_MODES: &str =
    "https://kubernetes.io/docs/reference/networking/virtual-ips/#proxy-modes";
