//! `weir ui`: a local web page over runs and studies.

use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;

use weir_files::{keep_to_oneself, only_ours_named};
use weir_parameters::Catalog;
use weir_study::{Scale, StudyErrors};
use weir_ui::{Checked, Identity, Options, Problem, StudyText, Workbench};

use crate::args::{self, UiArgs};
use crate::commands::{studies, study};
use crate::failure::Failure;
use crate::{signals, terminal};

pub(crate) fn run(args: &UiArgs) -> Result<ExitCode, Failure> {
    let folder = args.folder.canonicalize().map_err(|error| {
        Failure::input(format!("cannot read {}: {error}", args.folder.display()))
            .hint("give the folder that has your studies")
    })?;
    must_be_own(&folder)?;
    let identity = read_identity(args)?;
    refuse_clear(args.listen, identity.is_some())?;
    keep_to_oneself();
    let program = std::env::current_exe()
        .map_err(|error| Failure::failed(format!("cannot find the path of weir: {error}")))?;
    let bench =
        Workbench { program, version: args::version(), folder, ready_made: ready_made(), check };
    let options = Options { listen: args.listen, identity, is_read_only: args.read_only };
    let stop = signals::stop_flag()?;
    let served = weir_ui::serve(bench, options, &stop, |url| {
        terminal::tell(&format!(
            "weir ui: open {url}\nWhoever has this URL can use the page. Ctrl-C ends it.\n"
        ));
    });
    served
        .map_err(|error| Failure::failed(error).hint("--listen 127.0.0.1:0 takes a free port"))?;
    Ok(ExitCode::SUCCESS)
}

/// Refuses a folder in which others can write: whoever writes a study chooses programs that are started.
fn must_be_own(folder: &Path) -> Result<(), Failure> {
    only_ours_named(folder).map_err(|why| {
        Failure::input(format!("others could have written {}: {why}", folder.display()))
            .hint("the page starts what the studies of its folder name: use a folder of your own")
    })
}

fn read_identity(args: &UiArgs) -> Result<Option<Identity>, Failure> {
    let Some((certificate, key)) = args.tls_cert.as_deref().zip(args.tls_key.as_deref()) else {
        return Ok(None);
    };
    let identity = Identity::read(certificate, key).map_err(|error| {
        Failure::input(error).hint("both are PEM files: --tls-cert the chain, --tls-key its key")
    })?;
    Ok(Some(identity))
}

/// Refuses to send the token and what runs say over a network in clear.
fn refuse_clear(listen: SocketAddr, is_encrypted: bool) -> Result<(), Failure> {
    if listen.ip().is_loopback() || is_encrypted {
        return Ok(());
    }
    Err(Failure::input(format!("--listen {listen}: others on the network could read the token"))
        .hint("give --tls-cert and --tls-key, or listen on 127.0.0.1 and use `ssh -L`"))
}

fn ready_made() -> Vec<StudyText> {
    weir_study::studies()
        .iter()
        .map(|ready| StudyText { name: ready.name.to_owned(), text: ready.text.to_owned() })
        .collect()
}

/// Checks the text of a study as `weir run --check` does.
fn check(text: &str) -> Checked {
    match study::parse_here(text, "study.yaml", &Catalog::builtin(), Scale::ONE, &study::context())
    {
        Ok(study) => Checked { errors: Vec::new(), plan: studies::describe(&study) },
        Err(errors) => Checked { errors: problems(&errors), plan: String::new() },
    }
}

fn problems(errors: &StudyErrors) -> Vec<Problem> {
    errors
        .errors()
        .iter()
        .map(|error| Problem {
            line: error.line,
            column: error.column,
            length: error.text.chars().count(),
            message: error.message.clone(),
            hint: error.hint.clone(),
        })
        .collect()
}
