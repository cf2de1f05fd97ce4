//! Tests of every kind of block in every output, and of hostile names.

use weir_model::record::Validity;

use super::{html, markdown, terminal};
use crate::tree::*;

fn make_document(blocks: Vec<Block>) -> Document {
    Document { title: "T".to_owned(), source: "run".to_owned(), footer: "weir".to_owned(), blocks }
}

/// Renders a block in each output: for a terminal of 60 columns, as Markdown, and as HTML.
fn drawn(block: Block) -> [String; 3] {
    let document = make_document(vec![block]);
    let page = html(&document);
    let body = page.split("<h1>T</h1>\n").nth(1).unwrap().split("<nav").next().unwrap();
    [
        terminal(&document, false, 60)[1..].trim().to_owned(),
        markdown(&document)[3..].trim().to_owned(),
        body.trim().to_owned(),
    ]
}

fn table() -> Table {
    let toned = Cell::tone(Tone::Worse, "▼ worse").detail("because");
    let cells = [Cell::from("2").small("1–2"), toned, "aside".into()];
    Table { about: "changes", ..Table::new(Kind::Compare, "What it shows", "arm") }
        .columns([
            Column::new("ratio").small("interval").short("r").whole(),
            Column::left("verdict"),
            Column::new("only files").only(Outputs::FILES).minor("why"),
        ])
        .rows([
            Row::new("a", [Cell::from("1")]).part(Part::Baseline),
            Row::new("b", cells).about("gzip: on").part(Part::Control),
        ])
}

fn pairs() -> Table {
    let cell = Cell::tone(Tone::Better, "▲ 2×").small("1–3").title("b against a");
    Table::new(Kind::Pairs, "Pairs", "row")
        .columns(["a", "b"].map(Column::new))
        .rows(["a", "b"].map(|name| Row::new(name, [cell.clone(), cell.clone()])))
}

fn heat() -> Table {
    let shaded = Cell { shade: Some(3), ..Cell::from("7") };
    let group = Row { badge: Some(Validity::Suspect), ..Row::new("g", []).part(Part::Group) };
    Table { caption: "in ms".to_owned(), ..Table::new(Kind::Heat, "Heat", "c") }
        .columns([Column::new("100"), Column::left("lines").below()])
        .rows([group, Row::new("1", [shaded, Cell::lines(["x", "y"].map(str::to_owned))])])
}

fn make_figure() -> Figure {
    let line = Line {
        name: "a".to_owned(),
        tooltip: String::new(),
        class: "s0 d0".to_owned(),
        series: 0,
        front: true,
        points: vec![(1.0, 5.0), (2.0, 6.0)],
    };
    Figure {
        caption: "a caption".into(),
        chart: Chart::Lines(Lines {
            title: "t".to_owned(),
            each: "arm",
            axis: Axis::Nines,
            extent: Extent::of([&line]),
            lines: vec![line],
            marks: None,
        }),
    }
}

fn every_block() -> [(&'static str, Block); 16] {
    let code = Text::from("see ").and(Role::Code, "x");
    let item = Text::validity(Validity::Invalid).plain(" ").and(Role::Strong, "rule");
    let list = List { items: vec![item.plain(": seen").and(Role::Soft, " (a)")], attached: true };
    let facts = vec![
        ("CPU".to_owned(), vec!["one".into(), "two".into()]),
        fact("mode", Text::of(Role::Code, "on")),
    ];
    let yaml = Code { language: "yaml", text: "a: 1\n\tb: <c>\n".to_owned() };
    let callout = Callout {
        label: "Answer",
        badge: Validity::Valid,
        paragraphs: vec!["One.".to_owned(), "Two.".to_owned()],
        basis: "judged by n = 3".to_owned(),
    };
    let fold = Fold {
        summary: "More".to_owned(),
        unusable: true,
        blocks: vec![text(Style::Plain, "inside")],
    };
    let part = Heading::part("Part").badge(Validity::Suspect);
    [
        ("heading", Block::Heading(part.remark("so far"))),
        ("callout", Block::Callout(callout)),
        ("clause", clause(Style::Soft, code)),
        ("warning", clause(Style::Warning, "5 % lost")),
        ("lead", text(Style::Lead, "why?")),
        ("strong", text(Style::Strong, "A.")),
        ("label", labelled("remark", Style::Plain, "nginx is")),
        ("list", Block::List(list)),
        ("facts", Block::Facts(facts)),
        ("code", Block::Code(yaml)),
        ("fold", Block::Fold(fold)),
        ("Markdown alone", Block::Only(Outputs::MARKDOWN, vec![text(Style::Plain, "x")])),
        ("table", Block::Table(table())),
        ("pairs", Block::Table(pairs())),
        ("heat", Block::Table(heat())),
        ("figure", Block::Figure(make_figure())),
    ]
}

#[test]
fn every_block_is_drawn_by_every_output() {
    let mut all = String::new();
    for (name, block) in every_block() {
        for (output, text) in ["terminal", "markdown", "html"].iter().zip(drawn(block)) {
            all += &format!("── {name}, {output} ──\n{text}\n");
        }
    }
    insta::assert_snapshot!(all);
}

#[test]
fn sections_are_linked_and_their_heads_carry_the_validity() {
    let heading = Heading::section("one", "One").badge(Validity::Invalid).remark("a clause");
    let document = make_document(vec![Block::Only(Outputs::ALL, vec![Block::Heading(heading)])]);
    assert_eq!(terminal(&document, false, 80), "T\n\nOne: INVALID, a clause\n");
    assert_eq!(markdown(&document), "# T\n\n## One, INVALID\n\nA clause.\n");
    let page = html(&document);
    for expected in [
        "<nav aria-label=\"Sections\">\n<a href=\"#one\">One</a>\n</nav>\n</header>\n\n<section>\n<h2 id=\"one\">One <span",
        "</section>\n<footer>weir</footer>",
    ] {
        assert!(page.contains(expected), "{expected} is not in\n{page}");
    }
}

#[test]
fn colours_are_for_roles() {
    let toned = Text::of(Role::Tone(Tone::Better), "up").plain(" and ").and(Role::Soft, "down");
    let document = make_document(vec![clause(Style::Plain, toned)]);
    let colored = terminal(&document, true, 80);
    assert_eq!(colored, "\x1b[1mT\x1b[0m\n\x1b[32mup \x1b[0mand \x1b[2mdown\x1b[0m\n");
}

/// Returns a document with `name` in every place for a name.
fn everywhere(name: &str) -> Document {
    let owned = name.to_owned();
    let words =
        || Text::from(name).and(Role::Code, name).and(Role::Strong, name).and(Role::Soft, name);
    let cell = Cell {
        shade: None,
        text: words(),
        ..Cell::lines([owned.clone(), owned.clone()]).small(name).detail(name).title(name)
    };
    let table = |kind| {
        let table =
            Table { caption: owned.clone(), about: "about", ..Table::new(kind, name, name) };
        let columns = [Column::new(name).small(name).whole(), Column::left(name).below()];
        let row = Row::new(name, [cell.clone(), cell.clone()]).about(words());
        Block::Table(table.columns(columns).rows([row]))
    };
    let mut figure = make_figure();
    figure.caption = words();
    if let Chart::Lines(lines) = &mut figure.chart {
        lines.title = owned.clone();
        lines.lines[0].name = owned.clone();
        lines.lines[0].tooltip = owned.clone();
    }
    let mut document = make_document(vec![
        Block::Heading(Heading::section("id", name).remark(name)),
        Block::Callout(Callout {
            label: "Answer",
            badge: Validity::Valid,
            paragraphs: vec![owned.clone()],
            basis: owned.clone(),
        }),
        clause(Style::Plain, words()),
        Block::List(List { items: vec![words()], attached: false }),
        Block::Facts(vec![(owned.clone(), vec![words()])]),
        Block::Code(Code { language: "yaml", text: owned.clone() }),
        table(Kind::Compare),
        table(Kind::Pairs),
        table(Kind::Heat),
        Block::Figure(figure),
    ]);
    document.title = owned.clone();
    document.source = owned.clone();
    document.footer = owned.clone();
    document
}

#[test]
fn no_name_breaks_an_output() {
    let ours = everywhere("plain");
    let (tags, bars) = (html(&ours).matches('<').count(), cells(&markdown(&ours)));
    for name in [
        "</title></script><script>alert(1)</script>",
        "\"' onload='x' <b>&amp;",
        "a|b`c`|*d*[x](y)",
        "# a\n\n> b\r\n- c\n1. d\n<!--",
        "\x1b[2J\x1b]0;x\x07\u{9b}31m\0",
        "`````",
        "_a_ ~~b~~ ![c](d) \\",
    ] {
        let document = everywhere(name);
        let page = html(&document);
        assert_eq!(page.matches('<').count(), tags, "markup of {name:?} in\n{page}");
        assert_eq!(page.matches("<script").count(), 1, "{name:?}");
        for output in [&terminal(&document, false, 80), &page] {
            let has_control = output.contains(|c: char| c.is_control() && c != '\n');
            assert!(!has_control, "{name:?} in {output:?}");
        }
        let text = markdown(&document);
        assert_eq!(cells(&text), bars, "columns of {name:?} in\n{text}");
        assert_eq!(text.matches("yaml\n").count(), 1, "{name:?}");
        let (before, _) = text.split_once("yaml\n").unwrap();
        for markup in ["](y)", "<script", "<b>", "\n> b", "\n- c", "<!--"] {
            let escaped = before.matches(&format!("\\{markup}")).count();
            let inside_code = before.matches(&format!("`{markup}")).count();
            let all = before.matches(markup).count();
            assert!(
                all == escaped + inside_code || markup_in_code(before, markup),
                "{markup} of {name:?} in\n{before}"
            );
        }
    }
}

/// Returns true if markup is only in code spans, in which it has no effect.
fn markup_in_code(text: &str, markup: &str) -> bool {
    let outside = text.lines().map(|line| {
        line.split('`').step_by(2).collect::<Vec<_>>().join(" ").replace(&format!("\\{markup}"), "")
    });
    outside.into_iter().all(|line| !line.contains(markup))
}

/// Counts the bars that divide cells, line by line.
fn cells(text: &str) -> Vec<usize> {
    text.lines()
        .filter(|line| line.starts_with("| "))
        .map(|line| line.replace("\\|", "").matches('|').count())
        .collect()
}
