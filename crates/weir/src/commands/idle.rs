//! Detection of options of `weir run` that have no effect with the study at hand.

use std::time::Duration;

use weir_model::study::{LoadSpec, Study, SysctlMeans};
use weir_parameters::Catalog;
use weir_study::{CheckContext, Scale};

use crate::args::RunArgs;
use crate::commands::study::{self, StudyFile};

/// Returns a study's loads with their durations, which `--time` changes, set to zero.
fn without_times(study: &Study) -> Vec<LoadSpec> {
    let mut loads = study.loads.clone();
    loads.iter_mut().for_each(|load| load.duration = Duration::ZERO);
    loads
}

/// Returns a sentence for each option without effect.
pub(crate) fn options(
    args: &RunArgs,
    read: &StudyFile,
    catalog: &Catalog,
    machine: &CheckContext,
) -> Vec<String> {
    let mut remarks = Vec::new();
    let mut say = |option: &str, why: &str| remarks.push(format!("{option} has no effect: {why}"));
    if args.lab.allow_host_settings && weir_lab::of_host(&read.study, catalog).is_empty() {
        say("--allow-host-settings", "no arm changes a setting of the whole host");
    }
    let controller = read.study.controlled();
    if args.lab.node_sysctls && controller.is_none_or(|(_, spec)| spec.sysctls != SysctlMeans::Node)
    {
        say("--node-sysctls", "the study has no controller with `sysctls: node`");
    }
    if args.lab.place.is_empty() {
        if !args.lab.ssh.ssh_option.is_empty() {
            say("--ssh-option", "no --place names another host");
        }
        if args.lab.ssh.agent.is_some() {
            say("--agent", "no --place names another host");
        }
    }
    if let (Some(name), Some(scale)) = (&args.study, read.study.scale) {
        // One that only its scale makes fit this machine is changed by it.
        let unscaled = study::read(name, catalog, Scale::ONE, machine).ok();
        if unscaled
            .is_some_and(|unscaled| without_times(&unscaled.study) == without_times(&read.study))
        {
            let why = "no load has connections or a rate that it would change";
            say(&format!("--scale {}%", scale * 100.0), why);
        }
    }
    remarks
}
