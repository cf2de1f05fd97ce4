//! `--fail-if`: conditions on a result that decide the exit code.

use std::path::Path;

use weir_conditions::{ConditionError, Judged};
use weir_report::secrets::masked;

use crate::failure::Failure;
use crate::terminal;

/// Converts a condition that cannot be read to a failure.
pub(super) fn refused(error: ConditionError) -> Failure {
    let hint = error.hint.clone();
    Failure::input(error).maybe_hint(hint)
}

/// Writes judged conditions as JUnit XML, if a file is named for it.
pub(super) fn keep(file: Option<&Path>, suite: &str, judged: &[Judged]) -> Result<(), Failure> {
    let Some(path) = file else { return Ok(()) };
    let text = weir_conditions::junit(suite, judged);
    weir_files::write_output(path, masked(&text).as_bytes())
        .map_err(|error| Failure::failed(format!("cannot write {}: {error}", path.display())))
}

/// Fails if a condition is true or cannot be judged. Prints a line on standard error about every condition that is
/// false and has a reason to show.
pub(super) fn conclude(judged: &[Judged]) -> Result<(), Failure> {
    for open in judged.iter().filter(|condition| condition.is_true == Some(false)) {
        if let Some(why) = open.why.first() {
            terminal::tell(&format!("--fail-if {}: {why}\n", open.text));
        }
    }
    let all_true: Vec<String> = judged
        .iter()
        .filter(|condition| condition.is_true == Some(true))
        .map(Judged::description)
        .collect();
    if !all_true.is_empty() {
        return Err(Failure::condition(all_true.join("\n")));
    }
    match judged.iter().find(|condition| condition.is_true.is_none()) {
        Some(open) => {
            Err(Failure::failed(format!("{}, so it cannot be judged", open.description())))
        }
        None => Ok(()),
    }
}
