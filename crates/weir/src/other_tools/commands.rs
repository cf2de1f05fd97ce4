//! Commands that weir does not have, and their replacements.

use super::is_url;
use crate::failure::Failure;

/// Names that somebody may try, weir's replacement, and the command to type.
#[rustfmt::skip]
const ROWS: [(&[&str], &str, &str); 4] = [
    (&["diff", "vs"],
     "`weir compare` compares two servers side by side, and `weir run` settings of a proxy",
     "weir compare OLD_URL NEW_URL"),
    (&["tune", "optimize", "optimise"],
     "`weir doctor` says which settings limit a load, `weir run` which are better, and `weir patch` what to change",
     "begin with weir doctor, or with weir run STUDY"),
    (&["bench", "benchmark", "test"], "`weir load` puts a URL under load, and `weir capacity` finds how much it carries",
     "weir load URL, or weir capacity URL"),
    (&["next", "resume", "confirm", "show"],
     "a run ends with what to do next; `weir run` has --resume and --confirm", "weir report RUN shows a run again"),
];

/// Returns a failure for a command that weir does not have, or that takes no URL.
pub(super) fn refused(words: &[String]) -> Option<Failure> {
    let (first, rest) = words.get(1..)?.split_first()?;
    if matches!(&**first, "load" | "run")
        && rest.iter().any(|word| word.starts_with("--prometheus"))
    {
        let message = "--prometheus: weir serves no metrics; --progress jsonl:FILE has figures while it measures";
        return Some(
            Failure::input(message).hint(format!("weir {first} --help lists its options")),
        );
    }
    if first == "run" && rest.iter().any(|word| is_url(word)) {
        let (_, instead, _) = ROWS[0];
        let message = format!("`weir run` takes a study, not URLs: {instead}");
        return Some(Failure::input(message).hint(ROWS[0].2));
    }
    let (_, instead, hint) = ROWS.iter().find(|(names, ..)| names.contains(&&**first))?;
    Some(Failure::input(format!("there is no `weir {first}`: {instead}")).hint(*hint))
}
