//! The key `controller` of a proxy: the controller that configures the proxy in a cluster.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use weir_model::study::{BesideSpec, ControllerSpec, InstanceSpec, ProxyKind, SysctlMeans};
use weir_parameters::Controller;
use weir_parameters::controller::{Reads, ReadsCommand, ReadsPort, Restarts};

use crate::check::{Checker, Fields, short};
use crate::tree::Node;

/// Name of the workload, in whose pods the running configuration can be read.
const WORKLOAD: &str = "workload";
/// Keys other than names of objects.
const OWN: [&str; 7] = ["is", "namespace", "read", "restart", "within", "beside", "sysctls"];
/// Allowed range of the time to wait for settings.
const WITHIN: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(3600);

/// Reads the controller of a proxy of this kind.
pub(crate) fn read(node: &Node, kind: ProxyKind, check: &mut Checker) -> Option<ControllerSpec> {
    let mut fields = Fields::open(node, "a controller", &OWN, check)?;
    let is = fields.required("is", check)?;
    let all = Controller::all();
    let names: Vec<(&str, &Controller)> =
        all.iter().map(|controller| (&*controller.name, controller)).collect();
    let controller = check.choice(is, &names)?;
    if controller.proxy != kind {
        let (title, of) = (&controller.title, controller.proxy);
        let message = format!("{title} configures {}, not {}", of.title(), kind.title());
        let error = check.error(is.span.clone(), message);
        error.hint(format!("write `kind: {}`", of.name()));
        return None;
    }
    let required_namespace = fields.required("namespace", check).and_then(|node| check.name(node));
    let first = read_instance(&mut fields, &OWN, controller, check);
    let within = fields.get("within").and_then(|node| check.duration(node, WITHIN));
    let sysctls = fields.get("sysctls").and_then(|node| check.choice(node, &SysctlMeans::NAMES));
    let namespace = required_namespace?;
    let beside = fields
        .get("beside")
        .and_then(|node| check.list(node, "a list of further instances"))
        .unwrap_or_default()
        .iter()
        .filter_map(|node| another(node, &namespace, controller, check))
        .collect();
    Some(ControllerSpec {
        is: controller.name.clone(),
        first: InstanceSpec { namespace, ..first },
        beside,
        within,
        sysctls: sysctls.unwrap_or_default(),
    })
}

/// Reads a further instance of a controller. Its namespace is that of the first by default.
fn another(
    node: &Node,
    namespace: &str,
    controller: &Controller,
    check: &mut Checker,
) -> Option<BesideSpec> {
    let keys = ["address", "namespace", "read", "restart"];
    let mut fields = Fields::open(node, "an instance of a controller", &keys, check)?;
    let at = fields.required("address", check).and_then(|node| crate::proxy::address(node, check));
    let written_namespace = fields.get("namespace").map(|node| check.name(node));
    let instance = read_instance(&mut fields, &keys, controller, check);
    Some(BesideSpec {
        at: at?,
        instance: InstanceSpec {
            namespace: written_namespace.unwrap_or_else(|| Some(namespace.to_owned()))?,
            ..instance
        },
    })
}

/// Reads the objects of an instance and its commands for reading and restarting. The caller sets the namespace.
fn read_instance(
    fields: &mut Fields<'_>,
    keys: &[&str],
    controller: &Controller,
    check: &mut Checker,
) -> InstanceSpec {
    let roles = controller.objects.keys().map(String::as_str);
    let allowed_keys: Vec<&str> = keys.iter().copied().chain(roles).collect();
    fields.refuse_unknown(&allowed_keys, check);
    let read = fields.get("read").map(|node| words(node, check));
    let restart = fields.get("restart").map(|node| words(node, check));
    let objects = read_objects(controller, fields, check);
    let commands = [read.is_some(), restart.is_some()];
    check_reach(controller, &objects, commands, fields, check);
    InstanceSpec {
        namespace: String::new(),
        objects,
        read: read.unwrap_or_default(),
        restart: restart.unwrap_or_default(),
    }
}

/// Reads the named objects, by their name in the controller's file.
fn read_objects(
    controller: &Controller,
    fields: &mut Fields<'_>,
    check: &mut Checker,
) -> BTreeMap<String, String> {
    let mut objects = BTreeMap::new();
    for (role, kinds) in &controller.objects {
        let node = match (fields.get(role), kinds.optional) {
            (Some(node), _) => node,
            (None, true) => continue,
            (None, false) => {
                let span = fields.span();
                let message = format!("a controller needs the key `{role}`, {}", kinds.what);
                check.error(span, message);
                continue;
            }
        };
        let Some(text) = check.text(node) else {
            continue;
        };
        if controller.object(role, &text).is_none() {
            let wanted = kinds.kinds.iter();
            let wanted: Vec<String> =
                wanted.map(|one| format!("`{}/NAME`", one.kind.to_ascii_lowercase())).collect();
            let message = format!("`{}` is not {}", short(&text), wanted.join(" or "));
            let error = check.error(node.span.clone(), message);
            error.hint(format!(
                "`{role}` names {}; `KIND/NAMESPACE/NAME` where it is in another namespace than the others",
                kinds.what
            ));
            continue;
        }
        objects.insert(role.clone(), text);
    }
    objects
}

/// Refuses a controller whose running configuration cannot be read, or that would not notice changed objects. The two
/// flags are true if the study has its own commands for reading and restarting.
fn check_reach(
    controller: &Controller,
    objects: &BTreeMap<String, String>,
    [reads, restarts]: [bool; 2],
    fields: &Fields<'_>,
    check: &mut Checker,
) {
    if !reads && !objects.contains_key(WORKLOAD) {
        let message = "weir could not tell whether a setting is in force";
        let command = match &controller.reads {
            Reads::Command(ReadsCommand { command, .. }) => command.join(", "),
            Reads::Port(ReadsPort { port, paths }) => {
                format!("curl, -s, 'http://127.0.0.1:{port}{}'", paths[0])
            }
        };
        check.error(fields.span(), message).hint(format!(
            "name the `workload`, in whose pods it is read, or a command that prints it: `read: [{command}]`"
        ));
    }
    if let Some(Restarts { after, by }) = &controller.restarts {
        let read_once = after.iter().find(|role| objects.contains_key(*role));
        if let Some(after) = read_once.filter(|_| !restarts)
            && !objects.contains_key(&by.object)
        {
            let title = &controller.title;
            let message = format!("{title} reads the `{after}` at its start only");
            let description = controller.objects.get(&by.object).map_or("", |kinds| &kinds.what);
            check.error(fields.span(), message).hint(format!(
                "add `{}`, {description}, whose pods weir starts anew, or a command that does it: `restart: [...]`",
                by.object
            ));
        }
    }
}

/// Reads the words of a command.
fn words(node: &Node, check: &mut Checker) -> Vec<String> {
    check
        .list(node, "a list of words, such as `[nginx, -T]`")
        .unwrap_or_default()
        .iter()
        .filter_map(|word| check.text(word))
        .collect()
}
