//! The section `proxy`, and settings wherever they stand.

use std::collections::BTreeMap;
use std::ops::{Range, RangeInclusive};
use std::path::PathBuf;

use weir_model::study::{ProxyKind, ProxyRole, ProxySpec, Settings};
use weir_parameters::{Catalog, LevelKind};

use crate::check::{Checker, Fields, short};
use crate::machine::CheckContext;
use crate::plan::MAX_CONTENT;
use crate::tree::{Entry, Node, Value};

const KEYS: [&str; 5] = ["kind", "role", "stock", "settings", "executable"];
const ROLE_WANTED: &str = "`reverse-proxy`, or `static-files: {size: 1KiB}`";

/// The proxy, and where its settings stand.
#[derive(Debug)]
pub(crate) struct Draft {
    pub(crate) spec: ProxySpec,
    pub(crate) places: Places,
    /// Where to point when the whole is meant.
    pub(crate) span: Range<usize>,
}

/// Where settings stand: parameter id to bytes of the text.
pub(crate) type Places = BTreeMap<String, Range<usize>>;

impl Draft {
    pub(crate) fn serves_files(&self) -> bool {
        matches!(self.spec.role, ProxyRole::StaticFiles { .. })
    }
}

pub(crate) fn read(
    node: &Node,
    catalog: &Catalog,
    context: &CheckContext,
    check: &mut Checker,
) -> Option<Draft> {
    let fields = Fields::known(node, "a proxy", &KEYS, check)?;
    let kind = fields
        .required("kind", check)
        .and_then(|node| check.choice(node, &[("nginx", ProxyKind::Nginx)]));
    let role = fields
        .get("role")
        .map_or(Some(ProxyRole::ReverseProxy), |node| role(node, check));
    let stock = fields.get("stock").map_or(Some(true), |node| {
        check.choice(node, &[("debian", true), ("none", false)])
    });
    let executable = fields.get("executable").and_then(|node| check.text(node));

    // Where the kind was refused, the only one there is makes it possible to check the rest.
    let kind = kind.unwrap_or(ProxyKind::Nginx);
    let mut settings = match stock {
        Some(false) => Settings::new(),
        _ => catalog.stock(kind),
    };
    let (own, places) = fields
        .get("settings")
        .map(|node| read_settings(node, kind, catalog, context, check))
        .unwrap_or_default();
    settings.extend(own);
    Some(Draft {
        spec: ProxySpec {
            kind,
            executable: executable.map(PathBuf::from),
            role: role.unwrap_or(ProxyRole::ReverseProxy),
            settings,
        },
        places,
        span: fields.span(),
    })
}

fn role(node: &Node, check: &mut Checker) -> Option<ProxyRole> {
    match &node.value {
        Value::Scalar(text) if text == "static-files" => {
            check
                .error(
                    node.span.clone(),
                    "`static-files` needs the size of the file",
                )
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

/// Reads a mapping of parameters to levels. What is wrong is reported and left out.
pub(crate) fn read_settings(
    node: &Node,
    kind: ProxyKind,
    catalog: &Catalog,
    context: &CheckContext,
    check: &mut Checker,
) -> (Settings, Places) {
    let mut settings = Settings::new();
    let mut places = Places::new();
    if matches!(&node.value, Value::Mapping(entries) if entries.is_empty()) {
        return (settings, places);
    }
    for entry in check
        .entries(node, "a setting such as `gzip: off`")
        .unwrap_or_default()
    {
        if let Some(level) = read_level(entry, &entry.value, kind, catalog, context, check) {
            settings.insert(entry.key.clone(), level);
            places.insert(entry.key.clone(), entry.span.start..entry.value.span.end);
        }
    }
    (settings, places)
}

/// Reads one level of the parameter that `entry` names.
pub(crate) fn read_level(
    entry: &Entry,
    level: &Node,
    kind: ProxyKind,
    catalog: &Catalog,
    context: &CheckContext,
    check: &mut Checker,
) -> Option<String> {
    let Some(parameter) = catalog.get(kind, &entry.key) else {
        report_unknown(entry, kind, catalog, check);
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
        LevelKind::Integer { min, max, .. } => of_machine(written, *min..=*max, context),
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

/// The level behind a word that stands for a size of the machine, as far as the parameter goes.
fn of_machine(
    written: &str,
    bounds: RangeInclusive<u64>,
    context: &CheckContext,
) -> Option<String> {
    let number = context.number(written.trim())?;
    Some(number.clamp(*bounds.start(), *bounds.end()).to_string())
}

/// Reports a parameter that the catalog does not know.
pub(crate) fn report_unknown(
    entry: &Entry,
    kind: ProxyKind,
    catalog: &Catalog,
    check: &mut Checker,
) {
    let message = format!("unknown parameter `{}`", short(&entry.key));
    let error = check.error(entry.span.clone(), message);
    match catalog.nearest(kind, &entry.key) {
        Some(nearest) => error.nearest(Some(nearest)),
        None => error.hint("`weir parameters` lists those that there are"),
    };
}
