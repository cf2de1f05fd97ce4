//! The table of all sentences, `sentences.md`: each section is a list of findings and what is said of them. To see what
//! a change does to the texts, write the table anew (`WEIR_WRITE_DOCS=1 cargo test -p weir-sentences`) and look at the
//! difference.

mod answer;
mod comparison;
mod limits;
mod published;
mod ranking;

/// A case, and what a user reads in it.
type Row = (&'static str, String);
/// A title, and the rows below it.
type Section = (&'static str, fn() -> Vec<Row>);

const SECTIONS: [Section; 5] = [
    ("The answer of a comparison", answer::rows),
    ("The reason for a verdict", comparison::rows),
    ("The reason for a verdict on a limit", limits::rows),
    ("A ranking", ranking::rows),
    ("The reason for a verdict on a published result", published::rows),
];

const HEAD: &str = "# All sentences\n\nWhat weir says of its findings. Made by `tests/it/table`; a test compares the two.\n";

#[test]
fn sentences_are_those_of_the_table() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/sentences.md");
    let sections = SECTIONS.map(|(title, rows)| {
        let rows = rows().into_iter().map(|(case, text)| {
            let lines = text.lines().map(|line| format!("  > {line}\n"));
            format!("* {case}\n{}", lines.collect::<String>())
        });
        format!("\n## {title}\n\n{}", rows.collect::<String>())
    });
    let table = format!("{HEAD}{}", sections.concat());
    if std::env::var_os("WEIR_WRITE_DOCS").is_some() {
        std::fs::write(path, &table).unwrap();
    }
    let committed = std::fs::read_to_string(path).unwrap();
    assert_eq!(committed, table, "write the table anew with WEIR_WRITE_DOCS=1");
}
