//! Arguments of `weir scale`.

use clap::Args as ClapArgs;

use super::RunArgs;

#[derive(Debug, ClapArgs)]
#[command(
    mut_arg("study", |arg| arg.value_name("STUDY | RUN").help(
        "A study file or the name of a ready-made study, of which one number has at least three levels; or the folder of a \
         run, which is only analysed",
    )),
    after_help = "The options are those of `weir run`. A run that exists takes --format, --full and -o.

Exit codes: 0 done, 1 failed, or too little is known to judge --fail-if, 2 bad input, 3 a --fail-if condition is true, \
130 interrupted.

docs/scale.md explains the answer, with examples."
)]
pub(crate) struct ScaleArgs {
    #[command(flatten)]
    pub(crate) run: RunArgs,
}

impl ScaleArgs {
    /// Returns the first given option that has no effect on a run that exists.
    pub(crate) fn said_of_new_run(&self) -> Option<&'static str> {
        let run = &self.run;
        let all = [
            (run.check, "--check"),
            (run.check_alone, "--check-alone"),
            (run.time.is_some(), "--time"),
            (run.until.is_some(), "--until"),
            (run.budget.is_some(), "--budget"),
            (run.scale.is_some(), "--scale"),
            (!run.fail_if.is_empty(), "--fail-if"),
            (run.lab.out.is_some(), "--out"),
            (run.lab.confirm, "--confirm"),
            (!run.lab.place.is_empty(), "--place"),
            (run.lab.pods.on.is_some(), "--on"),
        ];
        all.into_iter().find(|(is_given, _)| *is_given).map(|(_, option)| option)
    }
}
