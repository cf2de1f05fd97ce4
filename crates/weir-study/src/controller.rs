//! `controller` of a proxy: what configures it in a cluster.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use weir_model::study::{BesideSpec, ControllerSpec, ProxyKind};
use weir_parameters::Controller;

use crate::check::{Checker, Fields, short};
use crate::tree::Node;

/// What pods belong to, which therefore can be asked what they run with.
const WORKLOAD: &str = "workload";
/// Keys beside the names of objects.
const OWN: [&str; 5] = ["is", "namespace", "read", "within", "beside"];
/// How long settings may be waited for.
const WITHIN: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(3600);

/// Reads what configures a proxy of this kind.
pub(crate) fn read(node: &Node, kind: ProxyKind, check: &mut Checker) -> Option<ControllerSpec> {
    let mut fields = Fields::open(node, "a controller", &OWN, check)?;
    let is = fields.required("is", check)?;
    let all = Controller::all();
    let names: Vec<(&str, &Controller)> = all.iter().map(|one| (&*one.name, one)).collect();
    let controller = check.choice(is, &names)?;
    if controller.proxy != kind {
        let (title, of) = (&controller.title, controller.proxy);
        let message = format!("{title} configures {}, not {}", of.title(), kind.title());
        let error = check.error(is.span.clone(), message);
        error.hint(format!("write `kind: {}`", of.name()));
        return None;
    }
    let namespace = fields.required("namespace", check);
    let namespace = namespace.and_then(|node| check.name(node));
    let (objects, read) = instance(&mut fields, &OWN, controller, check);
    let within = fields.get("within");
    let within = within.and_then(|node| check.duration(node, WITHIN));
    let namespace = namespace?;
    let beside = fields.get("beside");
    let beside = beside.and_then(|node| check.list(node, "a list of further instances"));
    let beside = beside.unwrap_or_default().iter();
    let beside = beside.filter_map(|node| another(node, &namespace, controller, check));
    let beside = beside.collect();
    Some(ControllerSpec {
        is: controller.name.clone(),
        namespace,
        objects,
        read,
        beside,
        within,
    })
}

/// One more instance of a controller, in the same namespace if nothing else is said.
fn another(
    node: &Node,
    namespace: &str,
    controller: &Controller,
    check: &mut Checker,
) -> Option<BesideSpec> {
    let own = ["address", "namespace", "read"];
    let mut fields = Fields::open(node, "an instance of a controller", &own, check)?;
    let at = fields.required("address", check);
    let at = at.and_then(|node| crate::proxy::address(node, check));
    let other = fields.get("namespace").map(|node| check.name(node));
    let (objects, read) = instance(&mut fields, &own, controller, check);
    Some(BesideSpec {
        at: at?,
        namespace: other.unwrap_or_else(|| Some(namespace.to_owned()))?,
        objects,
        read,
    })
}

/// The objects of an instance, by what its controller's file calls them, and how it is read.
fn instance(
    fields: &mut Fields<'_>,
    own: &[&str],
    controller: &Controller,
    check: &mut Checker,
) -> (BTreeMap<String, String>, Vec<String>) {
    let roles = controller.objects.keys().map(String::as_str);
    let known: Vec<&str> = own.iter().copied().chain(roles).collect();
    fields.refuse_unknown(&known, check);
    let read = fields.get("read").map(|node| words(node, check));
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
        let named = text.split_once('/').filter(|(_, name)| is_name(name));
        let kind = named.and_then(|(kind, _)| {
            let mut kinds = kinds.kinds.iter();
            kinds.find(|one| one.kind.eq_ignore_ascii_case(kind))
        });
        if kind.is_none() {
            let wanted = kinds.kinds.iter();
            let wanted: Vec<String> = wanted
                .map(|one| format!("`{}/NAME`", one.kind.to_ascii_lowercase()))
                .collect();
            let message = format!("`{}` is not {}", short(&text), wanted.join(" or "));
            let error = check.error(node.span.clone(), message);
            error.hint(format!("`{role}` names {}", kinds.what));
            continue;
        }
        objects.insert(role.clone(), text);
    }
    if read.is_none() && !objects.contains_key(WORKLOAD) {
        let message = "weir could not tell whether a setting is in force";
        check.error(fields.span(), message).hint(
            "name the `workload`, in whose pods it is read, or a command that prints it: `read: [nginx, -T]`",
        );
    }
    (objects, read.unwrap_or_default())
}

/// The words of a command.
fn words(node: &Node, check: &mut Checker) -> Vec<String> {
    let items = check.list(node, "a list of words, such as `[nginx, -T]`");
    let items = items.unwrap_or_default().iter();
    items.filter_map(|word| check.text(word)).collect()
}

/// Whether a text can be the name of an object (RFC 1123 subdomain).
fn is_name(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c);
    !text.is_empty() && text.len() <= 253 && text.chars().all(fits)
}
