//! The section `proxy`, and settings in all sections.

use std::collections::BTreeMap;
use std::ops::{Range, RangeInclusive};
use std::path::PathBuf;

use weir_model::study::{
    ControllerSpec, ExternalSpec, OwnConfiguration, ProxyKind, ProxyRole, ProxySpec, Settings,
    SysctlMeans, no_server_at,
};
use weir_parameters::{Catalog, LevelKind};

use crate::check::{Checker, Fields, MAX_CONTENT, short};
use crate::machine::CheckContext;
use crate::tree::{Entry, Node, Value};

#[rustfmt::skip]
const KEYS: [&str; 9] = [
    "kind", "role", "stock", "settings", "executable", "configuration", "port", "address", "controller",
];
/// Keys of the proxy of a single arm. Its role is that of all proxies.
#[rustfmt::skip]
const ARM_KEYS: [&str; 7] = [
    "kind", "stock", "settings", "executable", "configuration", "port", "address",
];
const ROLE_WANTED: &str = "`reverse-proxy`, or `static-files: {size: 1KiB}`";

/// A proxy, and the positions of its settings.
#[derive(Debug)]
pub(crate) struct Draft {
    pub(crate) spec: ProxySpec,
    pub(crate) places: Places,
    /// Position to report errors of the whole proxy at.
    pub(crate) span: Range<usize>,
}

/// Positions of settings: parameter id to bytes of the text.
pub(crate) type Places = BTreeMap<String, Range<usize>>;

impl Draft {
    pub(crate) fn serves_files(&self) -> bool {
        matches!(self.spec.role, ProxyRole::StaticFiles { .. })
    }
}

/// Reads the proxy of all arms.
pub(crate) fn read(
    node: &Node,
    catalog: &Catalog,
    context: &CheckContext,
    check: &mut Checker,
) -> Option<Draft> {
    let fields = Fields::known(node, "a proxy", &KEYS, check)?;
    let role = fields.get("role").map_or(Some(ProxyRole::ReverseProxy), |node| role(node, check));
    let reader = Reader { catalog, context, role: role.unwrap_or(ProxyRole::ReverseProxy) };
    Some(reader.read(&fields, check))
}

/// Reads the proxy of one arm: a kind, or a mapping with the keys of the study's proxy except the role.
pub(crate) fn read_for_arm(
    node: &Node,
    role: &ProxyRole,
    catalog: &Catalog,
    context: &CheckContext,
    check: &mut Checker,
) -> Option<Draft> {
    let reader = Reader { catalog, context, role: role.clone() };
    if let Value::Scalar(_) = &node.value {
        let kind = read_kind(node, check)?;
        reader.check_role(kind, node, check);
        if !kind.is_started() {
            check
                .error(node.span.clone(), "an external proxy needs an address")
                .hint("write `{kind: external, address: 192.0.2.7:80}`");
        }
        return Some(Draft {
            spec: reader.spec(kind),
            places: Places::new(),
            span: node.span.clone(),
        });
    }
    let fields = Fields::known(node, "a proxy", &ARM_KEYS, check)?;
    Some(reader.read(&fields, check))
}

fn read_kind(node: &Node, check: &mut Checker) -> Option<ProxyKind> {
    let kinds = ProxyKind::ALL.map(|kind| (kind.name(), kind));
    check.choice(node, &kinds)
}

/// Reader of proxies.
struct Reader<'a> {
    catalog: &'a Catalog,
    context: &'a CheckContext,
    role: ProxyRole,
}

impl Reader<'_> {
    fn levels(&self, kind: ProxyKind) -> Levels<'_> {
        let (catalog, context) = (self.catalog, self.context);
        Levels { kind, catalog, context, proxy_cpus: None }
    }

    /// Returns a proxy of this kind with stock settings only.
    fn spec(&self, kind: ProxyKind) -> ProxySpec {
        ProxySpec {
            kind,
            executable: None,
            role: self.role.clone(),
            settings: self.catalog.stock(kind),
            configuration: None,
            external: None,
            controller: None,
        }
    }

    fn check_role(&self, kind: ProxyKind, node: &Node, check: &mut Checker) {
        let is_able = kind.serves_files() || !kind.is_started();
        if !is_able && matches!(self.role, ProxyRole::StaticFiles { .. }) {
            let message = format!("{} does not serve files", kind.title());
            check
                .error(node.span.clone(), message)
                .hint("leave `role` out, or write `role: reverse-proxy`");
        }
    }

    fn read(&self, fields: &Fields<'_>, check: &mut Checker) -> Draft {
        let kind_node = fields.required("kind", check);
        // Where the kind was refused, the first that there is makes it possible to check the rest.
        let kind = kind_node.and_then(|node| read_kind(node, check)).unwrap_or(ProxyKind::Nginx);
        if let Some(node) = kind_node {
            self.check_role(kind, node, check);
        }
        let configuration = self.configuration(fields, check);
        let stock = fields.get("stock").map_or(Some(true), |node| {
            let stock = check.choice(node, &[("debian", true), ("none", false)]);
            if configuration.is_some() && stock == Some(true) {
                let message = "`stock` has no effect with a `configuration` of your own";
                check.error(node.span.clone(), message).hint("leave `stock` out");
            }
            stock
        });
        let executable = fields.get("executable").and_then(|node| check.text(node));
        let mut spec = self.spec(kind);
        let controller = fields.entry("controller");
        if stock == Some(false) || configuration.is_some() || controller.is_some() {
            spec.settings.clear();
        }
        // Settings of an external proxy are refused as a whole.
        let (settings, places) = fields
            .get("settings")
            .filter(|_| kind.is_started())
            .map(|node| self.levels(kind).settings(node, check))
            .unwrap_or_default();
        spec.settings.extend(settings);
        spec.executable = executable.map(PathBuf::from);
        spec.configuration = configuration;
        spec.controller =
            controller.and_then(|entry| crate::controller::read(&entry.value, kind, check));
        if let (Some(entry), Some(spec)) = (controller, &spec.controller) {
            self.check_nodes(&entry.value, spec, check);
        }
        spec.external = external(kind, fields, check);
        Draft { spec, places, span: fields.span() }
    }

    /// Refuses kernel settings of nodes unless they are allowed.
    fn check_nodes(&self, node: &Node, spec: &ControllerSpec, check: &mut Checker) {
        if spec.sysctls == SysctlMeans::Node && !self.context.node_sysctls {
            let message =
                "the study sets the kernel of the cluster's nodes, for everything that runs there";
            let error = check.error(node.span.clone(), message);
            error.hint("`--node-sysctls` allows it; weir puts the settings back at the end");
        }
    }

    /// Reads the user's own configuration, if there is one.
    fn configuration(&self, fields: &Fields<'_>, check: &mut Checker) -> Option<OwnConfiguration> {
        let port = fields.get("port").and_then(|node| {
            let port = check.whole(node, 1..=u64::from(u16::MAX))?;
            if fields.get("configuration").is_none() {
                let message = "`port` names a listener of a `configuration`, which is missing";
                check.error(node.span.clone(), message);
            }
            u16::try_from(port).ok()
        });
        let node = fields.get("configuration")?;
        check.scalar(node, "the path of the configuration's file")?;
        let file = check.text(node)?;
        // A run that is resumed from another folder must find the same file.
        let file = std::path::absolute(&file).unwrap_or_else(|_| PathBuf::from(file));
        Some(OwnConfiguration { file, port })
    }
}

/// Reads the address of a proxy that weir does not start.
fn external(kind: ProxyKind, fields: &Fields<'_>, check: &mut Checker) -> Option<ExternalSpec> {
    let has_controller = fields.entry("controller").is_some();
    if kind.is_started() && !has_controller {
        if let Some(entry) = fields.entry("address") {
            check
                .error(entry.span.clone(), "`address` is for a proxy that weir does not start")
                .hint("write `kind: external`, name its `controller`, or leave it out");
        }
        return None;
    }
    for key in ["executable", "configuration", "settings", "stock"] {
        if let Some(entry) = fields.entry(key)
            && !(has_controller && key == "settings")
        {
            refuse_started(key, entry.span.clone(), check);
        }
    }
    address(fields.required("address", check)?, check)
}

/// Reads the address of a server that weir does not start.
pub(crate) fn address(node: &Node, check: &mut Checker) -> Option<ExternalSpec> {
    let spec = any_address(node, check)?;
    if let Some(why) = no_server_at(&spec.address) {
        check.error(node.span.clone(), why);
        return None;
    }
    Some(spec)
}

/// The address that a node has, or that its name resolves to.
fn any_address(node: &Node, check: &mut Checker) -> Option<ExternalSpec> {
    let text = check.text(node)?;
    if let Ok(address) = text.parse() {
        return Some(ExternalSpec::at(address));
    }
    let port = text.rsplit_once(':').map(|(_, port)| port.parse::<u16>());
    let message = match port {
        Some(Ok(_)) => match (check.engine.resolve)(&text) {
            Ok(address) => {
                return Some(ExternalSpec { named: Some(text), ..ExternalSpec::at(address) });
            }
            Err(error) => format!("`{}` does not resolve: {error}", short(&text)),
        },
        _ => format!("`{}` is not an address with a port", short(&text)),
    };
    check
        .error(node.span.clone(), message)
        .hint("for example 192.0.2.7:80, [2001:db8::7]:80 or shop.example:80");
    None
}

/// Reports a key that applies only to proxies that weir starts, if this proxy is external.
pub(crate) fn refuse_external(kind: ProxyKind, key: &str, span: Range<usize>, check: &mut Checker) {
    if !kind.is_started() {
        refuse_started(key, span, check);
    }
}

fn refuse_started(key: &str, span: Range<usize>, check: &mut Checker) {
    check
        .error(span, format!("`{key}` is for a proxy that weir starts"))
        .hint(
            "weir changes nothing about a proxy that it did not start, unless a `controller` configures it",
        );
}

fn role(node: &Node, check: &mut Checker) -> Option<ProxyRole> {
    match &node.value {
        Value::Scalar(text) if text == "static-files" => {
            check
                .error(node.span.clone(), "`static-files` needs the size of the file")
                .hint("write `static-files: {size: 1KiB}`");
            None
        }
        Value::Mapping(_) => {
            let fields = Fields::known(node, "a role", &["static-files"], check)?;
            let files = fields.required("static-files", check)?;
            let files = Fields::known(files, "`static-files`", &["size"], check)?;
            let size = files.required("size", check)?;
            let size = check.bytes(size, MAX_CONTENT)?;
            Some(ProxyRole::StaticFiles { size })
        }
        Value::Scalar(text) if text != "reverse-proxy" => {
            let message = format!("`{}` is not {ROLE_WANTED}", short(text));
            let nearest = crate::check::nearest(text, &["reverse-proxy", "static-files"]);
            check.error(node.span.clone(), message).nearest(nearest);
            None
        }
        _ => check.choice(node, &[("reverse-proxy", ProxyRole::ReverseProxy)]),
    }
}

/// Reader of levels of a proxy's parameters.
pub(crate) struct Levels<'a> {
    pub(crate) kind: ProxyKind,
    pub(crate) catalog: &'a Catalog,
    pub(crate) context: &'a CheckContext,
    /// Maximum number of the proxy's CPUs, if known.
    pub(crate) proxy_cpus: Option<u64>,
}

impl Levels<'_> {
    /// Reads a mapping of parameters to levels. Invalid ones are reported and left out.
    pub(crate) fn settings(&self, node: &Node, check: &mut Checker) -> (Settings, Places) {
        let mut settings = Settings::new();
        let mut places = Places::new();
        if matches!(&node.value, Value::Mapping(entries) if entries.is_empty()) {
            return (settings, places);
        }
        for entry in check.entries(node, "a setting such as `gzip: off`").unwrap_or_default() {
            if let Some(level) = self.read(entry, &entry.value, check) {
                settings.insert(entry.key.clone(), level);
                places.insert(entry.key.clone(), entry.span.start..entry.value.span.end);
            }
        }
        (settings, places)
    }

    /// Reads one level of the parameter that `entry` names.
    pub(crate) fn read(&self, entry: &Entry, level: &Node, check: &mut Checker) -> Option<String> {
        let Some(parameter) = self.catalog.get(self.kind, &entry.key) else {
            self.report_unknown(entry, check);
            return None;
        };
        let written = match &level.value {
            Value::Scalar(text) => text,
            Value::Refused => return None,
            other => {
                let message = format!(
                    "`{}` is {}, found {}",
                    entry.key,
                    parameter.level.allowed(),
                    other.words()
                );
                check.error(level.span.clone(), message);
                return None;
            }
        };
        let of_machine = match &parameter.level {
            LevelKind::Integer { min, max, .. } => self.of_machine(written, *min..=*max),
            _ => None,
        };
        match parameter.check(of_machine.as_deref().unwrap_or(written)) {
            Ok(level) => Some(level),
            Err(mut error) => {
                error.level = short(&error.level);
                check
                    .error(level.span.clone(), format!("`{}`: {error}", entry.key))
                    .hint(format!("see {}", parameter.source))
                    .nearest(error.nearest.as_deref());
                None
            }
        }
    }

    /// Returns the level for a word that names a size of the machine, within the bounds of the parameter. `None` for
    /// other words.
    fn of_machine(&self, written: &str, bounds: RangeInclusive<u64>) -> Option<String> {
        let number = self.context.number(written.trim())?;
        Some(number.clamp(*bounds.start(), *bounds.end()).to_string())
    }

    /// Reports a parameter that the catalog does not know.
    pub(crate) fn report_unknown(&self, entry: &Entry, check: &mut Checker) {
        let message = format!("unknown parameter `{}`", short(&entry.key));
        let error = check.error(entry.span.clone(), message);
        match self.catalog.nearest(self.kind, &entry.key) {
            Some(nearest) => error.nearest(Some(nearest)),
            None => error.hint("run `weir parameters` for a list"),
        };
    }
}
