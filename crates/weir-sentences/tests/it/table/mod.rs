//! The table of all sentences, `sentences.md`: each section is a list of findings and what is said of them. To see what
//! a change does to the texts, write the table anew (`WEIR_WRITE_DOCS=1 cargo test -p weir-sentences`) and look at the
//! difference.

mod advice;
mod alone;
mod answer;
mod arms;
mod capacity;
mod comparison;
mod doctor;
mod evidence;
mod example;
mod folder;
mod frontier;
mod growth;
mod headline;
mod history;
mod limiter;
mod limits;
mod published;
mod ranking;
mod runs;
mod scaling;
mod size;
mod surroundings;
mod validity;

/// A case, and what a user reads in it.
type Row = (&'static str, String);

/// The title of a section, and the function that makes its rows.
type Section = (&'static str, fn() -> Vec<Row>);

const SECTIONS: &[Section] = &[
    ("The answer of a comparison", answer::rows),
    ("One arm at a time", alone::rows),
    ("What arms did", arms::rows),
    ("Remarks on the network and the hosts", surroundings::rows),
    ("The answer of a search for capacities", capacity::answer_rows),
    ("The capacity of an arm", capacity::claimed_rows),
    ("A capacity that is not claimed", capacity::unclaimed_rows),
    ("An objective that holds at no rate", capacity::never_rows),
    ("What else is said of a capacity", capacity::detail_rows),
    ("Reasons for verdicts on capacities", capacity::reason_rows),
    ("The answer of a search with a limiter", limiter::capacity_rows),
    ("What limits an arm", limiter::rows),
    ("What limits an arm, after a trial of it", limiter::confirmation_rows),
    ("What limits an arm, if too little could be read", limiter::unjudged_rows),
    ("The evidence about a limiter", evidence::rows),
    ("Why a quantity is unknown", evidence::missing_rows),
    ("How resources grow with the load", growth::rows),
    ("How a metric grows with a number", scaling::rows),
    ("Why an answer is not VALID", headline::rows),
    ("What speaks against a measurement", validity::rows),
    ("An examination by `weir doctor`", doctor::examination),
    ("What an examination has looked at", doctor::readings),
    ("The doctor on workers and their limits", doctor::limits),
    ("The doctor on ports, queues and tables", doctor::queues_and_tables),
    ("The doctor on configurations of nginx", doctor::configurations),
    ("The doctor on sysctl files", doctor::sysctls),
    ("The doctor on clusters", doctor::cluster),
    ("Evidence of the doctor, from files", doctor::of_files),
    ("Evidence of the doctor, from the kernel", doctor::of_hosts),
    ("Evidence of the doctor, calculated", doctor::calculations),
    ("Evidence of the doctor, from clusters", doctor::cluster_evidence),
    ("The reason for a verdict", comparison::rows),
    ("The reason for a verdict on a limit", limits::rows),
    ("A ranking", ranking::rows),
    ("The reason for a verdict on a published result", published::rows),
    ("A run and those before it", runs::rows),
    ("What arms carry for what they cost", frontier::rows),
    ("The machines that a workload needs", size::rows),
    ("Published recommendations", advice::rows),
    ("Runs over time, and a baseline", history::rows),
    ("The page of a run folder", folder::rows),
    ("A verdict in a few words", folder::brief_rows),
];

const HEAD: &str = "# All sentences\n\nWhat weir says of its findings. Made by `tests/it/table`; a test compares the two.\n";

#[test]
fn sentences_are_those_of_the_table() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/sentences.md");
    let sections = SECTIONS.iter().map(|(title, rows)| {
        let entries = rows().into_iter().map(|(case, text)| {
            let lines = text.lines().map(|line| format!("  > {line}\n"));
            format!("* {case}\n{}", lines.collect::<String>())
        });
        format!("\n## {title}\n\n{}", entries.collect::<String>())
    });
    let table = format!("{HEAD}{}", sections.collect::<String>());
    if std::env::var_os("WEIR_WRITE_DOCS").is_some() {
        std::fs::write(path, &table).unwrap();
    }
    let committed = std::fs::read_to_string(path).unwrap();
    assert_eq!(committed, table, "write the table anew with WEIR_WRITE_DOCS=1");
}
