//! Snapshot tests of terminal and Markdown output.

use weir_report::{markdown, terminal};

use crate::fixture;

#[test]
fn terminal_80() {
    insta::assert_snapshot!(terminal(&fixture::run().input(), false, 80));
}

#[test]
fn terminal_120() {
    insta::assert_snapshot!(terminal(&fixture::run().input(), false, 120));
}

#[test]
fn markdown_whole() {
    insta::assert_snapshot!(markdown(&fixture::run().input()));
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    for width in [80, 100, 120, 200] {
        let text = terminal(&fixture::run().input(), false, width);
        for line in text.lines() {
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
    }
}

#[test]
fn colour_adds_nothing_but_colour() {
    let run = fixture::run();
    let plain = terminal(&run.input(), false, 100);
    let colored = terminal(&run.input(), true, 100);
    assert!(!plain.contains('\x1b'));
    let mut pieces = colored.split("\x1b[");
    let first = pieces.next().unwrap();
    let uncolored = pieces.map(|piece| piece.split_once('m').unwrap().1);
    let stripped: String = std::iter::once(first).chain(uncolored).collect();
    assert!(stripped.lines().map(str::trim_end).eq(plain.lines().map(str::trim_end)));
}

#[test]
fn markdown_tables_are_rectangular() {
    let text = markdown(&fixture::run().input());
    let mut columns = None;
    for line in text.lines() {
        if !line.starts_with('|') {
            columns = None;
            continue;
        }
        let count = line.replace("\\|", "").matches('|').count();
        assert_eq!(*columns.get_or_insert(count), count, "{line}");
    }
}

#[test]
fn the_time_of_interrupts_is_shown_where_it_was_recorded() {
    let mut run = fixture::run();
    assert!(!markdown(&run.input()).contains("interrupts"));
    run.findings.loads[0].arms[0].interrupts = Some(0.0134);
    let text = markdown(&run.input());
    let mut lines = text.lines().skip_while(|line| !line.contains("interrupts"));
    assert!(lines.any(|line| line.contains("| 1.3 % |")), "{text}");
}
