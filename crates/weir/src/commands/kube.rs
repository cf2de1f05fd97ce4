//! `weir kube`, and the options about pods of other commands.

use std::fs;
use std::process::ExitCode;
use std::str::FromStr;
use std::time::Duration;

use clap::Parser;
use weir_hosts::{PlaceSpec, Pods};
use weir_kube::{Cluster, KubeError, PodRequest, ProxyPods, Target, Unclear, image as archive};
use weir_model::quantity::{parse_bytes, parse_time};
use weir_model::study::{Arm, Study, SysctlMeans, Until};
use weir_parameters::Catalog;
use weir_study::Scale;

use crate::args::{
    Args, Command, ImageArgs, KubeArgs, PodArgs, RenderArgs, RightsArgs, WantedArgs,
};
use crate::commands::{flag, study};
use crate::failure::Failure;
use crate::terminal;

/// Default time for pods to start: an image has to be pulled.
const WITHIN: Duration = Duration::from_secs(120);
/// Default memory of a generator, MiB.
const MEMORY_MIB: u32 = 1024;
/// Name of the run in objects that are only printed.
const RUN: &str = "weir-00000000";

pub(crate) fn run(args: &KubeArgs) -> Result<ExitCode, Failure> {
    match args {
        KubeArgs::Image(args) => write_image(args)?,
        KubeArgs::Render(args) => render(args)?,
        KubeArgs::Rights(args) => {
            let RightsArgs { user, namespace, study, proxy_pods, ingress } = args;
            let mut text = weir_kube::manifest(namespace, user);
            if *ingress {
                text += &weir_kube::manifest_of_ingress(namespace, user);
            }
            if let Some(pods) = proxy_pods {
                let pods = read("--proxy-pods", pods)?;
                text += &weir_kube::manifest_of_samples(&pods, user);
            }
            if let Some(study) = study {
                let read = study::read(study, &Catalog::builtin(), Scale::ONE, &study::context())?;
                text += &weir_lab::rights_of(&read.study, &Catalog::builtin(), user);
            }
            terminal::print(&text)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the default name of the image.
fn image_name() -> String {
    format!("localhost/weir:{}", env!("CARGO_PKG_VERSION"))
}

fn write_image(args: &ImageArgs) -> Result<(), Failure> {
    let own_program = "/proc/self/exe".into();
    let path = args.program.as_ref().unwrap_or(&own_program);
    let program =
        fs::read(path).map_err(|error| Failure::input(format!("{}: {error}", path.display())))?;
    let name = args.name.clone().unwrap_or_else(image_name);
    let archive = archive::of_program(&name, program).map_err(|error| {
        let message = match &args.program {
            Some(path) => format!("{}: {error}", path.display()),
            None => format!("this weir cannot be an image: {error}"),
        };
        Failure::input(message)
            .hint("`make static` builds a weir that needs no libraries; --program names it")
    })?;
    let output = args.output.display();
    weir_files::write_output(&args.output, &archive)
        .map_err(|error| Failure::failed(format!("cannot write {output}: {error}")))?;
    terminal::print(&format!("{output}: {name}, {} MiB\n", archive.len().div_ceil(1 << 20)))
}

fn render(args: &RenderArgs) -> Result<(), Failure> {
    // What cannot be run is not rendered either.
    let machine = study::context();
    let read = study::read(&args.study, &Catalog::builtin(), Scale::ONE, &machine)?;
    can_be_sent_to(&read.study)?;
    let wanted = read_wanted(&args.wanted)?;
    let mut text = weir_kube::render(&wanted, &args.namespace, RUN);
    let controller = read.study.controlled();
    if controller.is_some_and(|(_, spec)| spec.sysctls == SysctlMeans::Node) {
        let run_and_node = (RUN, "NODE");
        text += &weir_kube::render_for_node(&wanted.image, &args.namespace, run_and_node);
    }
    for arm in &read.study.arms {
        text += &changes(&read.study, arm);
    }
    terminal::print(&text)
}

/// Describes an arm's changes to existing objects of the cluster, as comments: `kubectl apply` must not make them.
fn changes(study: &Study, arm: &Arm) -> String {
    let changes = weir_lab::changes_of(study, &Catalog::builtin(), arm);
    let Some(_) = study.controlled() else {
        return String::new();
    };
    let lines: String = changes
        .iter()
        .map(|(object, at, value)| {
            if value.is_null() {
                format!("#   {object}: {at} = nothing\n")
            } else {
                format!("#   {object}: {at} = {value}\n")
            }
        })
        .collect();
    let effect =
        if changes.is_empty() { "changes nothing" } else { "changes, while it is measured" };
    format!("# arm {} {effect}\n{lines}", arm.name)
}

/// Refuses a study with a controller if its loads, its arms or the run's places do not allow that, and `--generators 0`
/// without a purpose.
pub(super) fn can_be_controlled(study: &Study, places: &PlaceSpec) -> Result<(), Failure> {
    if study.controlled().is_none() {
        let is_idle = places.has_cluster() && places.sends_from_here() && !places.has_proxy_pods();
        return if is_idle {
            Err(Failure::input(
                "--generators 0 is for a study whose proxy has a `controller`: nothing of this one is in a cluster",
            )
            .hint("name the pods of its proxy, if it has some: --proxy-pods NAMESPACE/KEY=VALUE"))
        } else {
            Ok(())
        };
    }
    if study.until == Until::Decided && study.is_in_turn() {
        return Err(Failure::input(
            "`until: decided` is not for arms that are measured in turn: leave it out, and give the loads a duration",
        ));
    }
    if !study.capacity.is_empty() && !study.is_in_turn() {
        return Err(Failure::input(
            "a search for a capacity has no place for `beside`: it would search each arm on an instance of its own, and what the \
             instances differ by would be part of their ratio",
        )
        .hint("leave `beside` out: the arms are searched one after the other, on the same instance"));
    }
    if places.has_cluster() {
        Ok(())
    } else {
        Err(Failure::input("the study changes objects of a cluster, and none is named").hint(
            "name it: --on kubernetes:CONTEXT, with --generators 0 to send the load from this host",
        ))
    }
}

/// Refuses a study of which weir would start a proxy on this host, where pods cannot reach it.
pub(super) fn can_be_sent_to(study: &Study) -> Result<(), Failure> {
    let Some(arm) = study.arms.iter().find(|arm| study.proxy_of(arm).is_started()) else {
        return Ok(());
    };
    let message = format!(
        "the load comes from pods, but weir would start the proxy of arm `{}` on this host",
        arm.name
    );
    Err(Failure::input(message).hint(
        "name a proxy that runs in the cluster, such as `proxy: {kind: external, address: '10.96.7.7:80'}`",
    ))
}

/// Returns the image of weir for the pods.
pub(super) fn image(args: &WantedArgs) -> String {
    args.image.clone().unwrap_or_else(image_name)
}

/// Adds the cluster of `--on` and its pods to the places of a run. `has_others`: other pods than generators may be
/// made.
pub(super) fn places(
    args: &PodArgs,
    places: PlaceSpec,
    has_others: bool,
) -> Result<PlaceSpec, Failure> {
    let Some(on) = &args.on else {
        return match idle(&args.wanted) {
            Some(option) => {
                Err(Failure::input(format!("{option} is about pods, and no --on names a cluster")))
            }
            None => Ok(places),
        };
    };
    if args.wanted.generators == Some(0) {
        let other_args = WantedArgs {
            generators: None,
            image: args.wanted.image.clone().filter(|_| !has_others),
            proxy_pods: None,
            ..args.wanted.clone()
        };
        return match idle(&other_args) {
            Some(option) => Err(Failure::input(format!(
                "{option} is about pods, and --generators 0 makes none"
            ))),
            None => Ok(places.of_proxy(proxy_pods(&args.wanted)?).in_cluster(connect(on)?)),
        };
    }
    let wanted = read_wanted(&args.wanted)?;
    let cluster = connect(on)?;
    Ok(places
        .of_proxy(wanted.proxy.clone())
        .in_cluster(cluster.clone())
        .with_pods(Pods::new(cluster, wanted)))
}

/// Connects to the cluster that `--on` names.
pub(crate) fn connect(on: &str) -> Result<Cluster, Failure> {
    let target: Target = read("--on", on)?;
    // Somebody who sees it can stop it.
    let may_guess = terminal::can_draw();
    let cluster = Cluster::connect(None, &target, may_guess).map_err(refused)?;
    if !target.has_context() {
        let (context, namespace) = (cluster.context(), cluster.namespace());
        terminal::tell(&format!("Cluster: context {context}, namespace {namespace}\n"));
    }
    Ok(cluster)
}

/// Converts an error about a cluster to a failure: bad input or failed.
pub(crate) fn refused(error: KubeError) -> Failure {
    let hint = error.hint();
    let failure = if error.is_input() { Failure::input(error) } else { Failure::failed(error) };
    failure.maybe_hint(hint)
}

pub(super) fn read<T: FromStr<Err = Unclear>>(option: &str, text: &str) -> Result<T, Failure> {
    text.parse().map_err(|error| Failure::input(format!("{option}: {error}")))
}

fn read_all<T: FromStr<Err = Unclear>>(option: &str, texts: &[String]) -> Result<Vec<T>, Failure> {
    texts.iter().map(|text| read(option, text)).collect()
}

/// Reads `--proxy-pods`.
fn proxy_pods(args: &WantedArgs) -> Result<Option<ProxyPods>, Failure> {
    let text = args.proxy_pods.as_deref();
    text.map(|text| read("--proxy-pods", text)).transpose()
}

fn read_wanted(args: &WantedArgs) -> Result<PodRequest, Failure> {
    let memory = args.pod_memory.as_deref().map(|text| flag("--pod-memory", parse_bytes(text)));
    let within = args.pods_within.as_deref().map(|text| flag("--pods-within", parse_time(text)));
    Ok(PodRequest {
        generators: check_count("--generators", args.generators)?,
        image: image(args),
        cpus: check_count("--pod-cpus", args.pod_cpus)?,
        memory_mib: memory
            .transpose()?
            .map_or(MEMORY_MIB, |bytes| u32::try_from(bytes.div_ceil(1 << 20)).unwrap_or(u32::MAX)),
        nodes: read_all("--node-selector", &args.node_selector)?,
        tolerations: read_all("--toleration", &args.toleration)?,
        proxy: proxy_pods(args)?,
        share_nodes: args.share_nodes,
        origin: args.origin_pod.as_deref().map(origin_options).transpose()?,
        within: within.transpose()?.unwrap_or(WITHIN),
    })
}

fn check_count(option: &str, count: Option<u32>) -> Result<u32, Failure> {
    match count.unwrap_or(1) {
        0 => Err(Failure::input(format!("{option} 0: at least one is needed"))),
        count => Ok(count),
    }
}

/// Reads the options of an origin server as `weir origin` does, and refuses those that a pod cannot have, such as its
/// address.
fn origin_options(text: &str) -> Result<Vec<String>, Failure> {
    let wrong =
        |why: String| Failure::input(format!("--origin-pod: `{text}` is not understood: {why}"));
    let words = shlex::split(text).ok_or_else(|| wrong("a quote is not closed".to_owned()))?;
    let line = ["weir", "origin"].into_iter().map(str::to_owned).chain(words.clone());
    let command = match Args::try_parse_from(line).map_err(|error| error.kind()) {
        Ok(args) => args.command,
        Err(kind) => return Err(wrong(kind.to_string())),
    };
    let Command::Origin(origin) = command else {
        return Err(wrong("it is another command".to_owned()));
    };
    if origin.listen == ["127.0.0.1:8000"] && origin.file.is_none() {
        Ok(words)
    } else {
        Err(wrong("--listen and --file are not for a pod".to_owned()))
    }
}

/// Returns the first given option about pods.
fn idle(args: &WantedArgs) -> Option<&'static str> {
    let all = [
        (args.generators.is_some(), "--generators"),
        (args.image.is_some(), "--image"),
        (args.pod_cpus.is_some(), "--pod-cpus"),
        (args.pod_memory.is_some(), "--pod-memory"),
        (!args.node_selector.is_empty(), "--node-selector"),
        (!args.toleration.is_empty(), "--toleration"),
        (args.proxy_pods.is_some(), "--proxy-pods"),
        (args.share_nodes, "--share-nodes"),
        (args.origin_pod.is_some(), "--origin-pod"),
        (args.pods_within.is_some(), "--pods-within"),
    ];
    all.into_iter().find(|(is_given, _)| *is_given).map(|(_, option)| option)
}
