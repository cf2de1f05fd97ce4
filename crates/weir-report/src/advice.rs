//! Published recommendations: the list of them, and what was found out about them.

use weir_advice::{AdviceFinding, AdviceFindings, AdviceVerdict, Recommendation, Standing};
use weir_model::record::Validity;
use weir_sentences::advice::{
    describe_advice, describe_advised_changes, describe_in_force, describe_standing,
    explain_advice, name_advice_verdict, name_subject,
};
use weir_sentences::limiter::limiter_name;

use crate::number;
use crate::render;
use crate::tree::{
    Block, Callout, Cell, Code, Column, Document, Heading, Kind, Outputs, Role, Row, Style, Table,
    Text, Tone, fact, text,
};

/// Recommendations, or findings about them, to be shown.
#[derive(Debug, Clone, Copy)]
pub enum Advice<'a> {
    /// Recommendations, each with its standing on this host.
    List(&'a [(Recommendation, Standing)]),
    /// Findings, and commands to go on with, each with its purpose.
    Findings(&'a AdviceFindings, &'a [(String, String)]),
}

impl Advice<'_> {
    /// Formats it for a terminal of `width` columns, with colours if `color` says so.
    pub fn terminal(self, color: bool, width: usize) -> String {
        render::terminal(&self.document(), color, width)
    }

    /// Formats it as Markdown.
    pub fn markdown(self) -> String {
        render::markdown(&self.document())
    }

    /// Formats it as one self-contained HTML page.
    pub fn html(self) -> String {
        render::html(&self.document())
    }

    fn document(self) -> Document {
        match self {
            Advice::List(all) => list(all),
            Advice::Findings(found, commands) => findings(found, commands),
        }
    }
}

fn list(all: &[(Recommendation, Standing)]) -> Document {
    let rows = all.iter().map(|(advice, standing)| {
        let cells = [
            describe_standing(standing),
            name_source(advice),
            describe_advised_changes(advice),
            advice.claim.clone(),
            describe_source(advice),
        ];
        Row::new(advice.id.clone(), cells.map(Cell::from).to_vec())
    });
    let columns = vec![
        Column::left("applies here"),
        Column::left("source").only(Outputs::TERMINALS),
        Column::left("what").below(),
        Column::left("claim").below(),
        Column::left("source").only(Outputs::FILES),
    ];
    let table = Table::new(Kind::Prose, "Published recommendations", "recommendation")
        .columns(columns)
        .rows(rows);
    Document {
        title: "Published recommendations".to_owned(),
        blocks: vec![
            Block::Table(table),
            text(
                Style::Soft,
                "weir advise A..E replays those of five published studies, weir advise NAME,NAME these, and weir advise \
                 FILE tries all that apply to your own configuration.",
            ),
        ],
        ..Document::default()
    }
}

/// Names a source: `D, Project Contour`.
fn name_source(advice: &Recommendation) -> String {
    let study = advice.study.map(|letter| format!("{letter}, ")).unwrap_or_default();
    format!("{study}{}", advice.source.author)
}

/// Describes a source: `Project Contour, contour-perf`, with its date and address.
fn describe_source(advice: &Recommendation) -> String {
    let source = &advice.source;
    let study = advice.study.map(|letter| format!("study {letter}: ")).unwrap_or_default();
    let date = source.date.as_ref().map(|date| format!(", {date}")).unwrap_or_default();
    format!("{study}{}, {}{date}, {}", source.author, source.title, source.link)
}

fn findings(found: &AdviceFindings, commands: &[(String, String)]) -> Document {
    let mut blocks = vec![
        Block::Callout(Callout {
            label: "Answer",
            badge: if found.complete { Validity::Valid } else { Validity::Suspect },
            paragraphs: vec![describe_advice(found)],
            basis: format!(
                "{} in {}, {} CPUs, Linux {}",
                number::length(std::time::Duration::from_secs(found.took_s.round() as u64)),
                match found.runs.len() {
                    1 => "one run".to_owned(),
                    runs => format!("{runs} runs"),
                },
                found.cpus,
                found.kernel
            ),
        }),
        Block::Heading(Heading::section("recommendations", "Recommendations")),
        Block::Table(results(found)),
        Block::Heading(Heading::section("runs", "Runs")),
        Block::Table(runs(found)),
    ];
    if !commands.is_empty() {
        blocks.push(Block::Heading(Heading::section("apply", "Apply what was confirmed")));
        let lines = commands.iter().map(|(command, purpose)| format!("# {purpose}\n{command}\n"));
        blocks.push(Block::Code(Code { language: "sh", text: lines.collect() }));
    }
    let details = found.found.iter().flat_map(describe_recommendation);
    blocks.push(Block::Only(Outputs::FILES, details.collect()));
    let programs: Vec<&str> = found.programs.values().map(String::as_str).collect();
    let on = match &found.configuration {
        Some(file) => format!("on {file}"),
        None => "on the distribution's configuration".to_owned(),
    };
    Document {
        title: format!("Published recommendations, tried {on}"),
        source: found.started_at.clone(),
        footer: programs.join(", "),
        blocks,
    }
}

/// Returns the table of verdicts.
fn results(found: &AdviceFindings) -> Table {
    let rows = found.found.iter().map(|one| {
        let ratio = match (one.ratio, one.interval) {
            (Some(ratio), Some((low, high))) => {
                format!("{} ({}–{})", number::ratio(ratio), number::ratio(low), number::ratio(high))
            }
            _ => number::NONE.to_owned(),
        };
        let verdict = Text::of(Role::Tone(tone(one.verdict)), name_advice_verdict(one.verdict));
        let cells = [
            Cell { text: verdict, ..Cell::default() },
            Cell::from(ratio),
            Cell::from(describe_advised_changes(&one.recommendation)),
            Cell::from(explain_advice(one)),
        ];
        Row::new(one.recommendation.id.clone(), cells)
    });
    let columns = vec![
        Column::left("verdict"),
        Column::left("ratio"),
        Column::left("what").below(),
        Column::left("why").below(),
    ];
    Table::new(Kind::Prose, "Verdicts on recommendations", "recommendation")
        .columns(columns)
        .rows(rows)
}

fn tone(verdict: AdviceVerdict) -> Tone {
    match verdict {
        AdviceVerdict::Confirmed | AdviceVerdict::Smaller => Tone::Better,
        AdviceVerdict::Harmful => Tone::Worse,
        AdviceVerdict::NoEffect | AdviceVerdict::Obsolete => Tone::Equivalent,
        AdviceVerdict::Inert => Tone::Inert,
        AdviceVerdict::NotTried | AdviceVerdict::Undecided => Tone::Inconclusive,
    }
}

/// Returns the table of runs.
fn runs(found: &AdviceFindings) -> Table {
    let rows = found.runs.iter().map(|run| {
        let limiter = run.limiter.as_deref().map_or_else(|| "not shown".to_owned(), limiter_name);
        let cells = [run.title.clone(), limiter, run.folder.clone()];
        Row::new(run.name.clone(), cells.map(Cell::from).to_vec())
    });
    let columns = ["load", "limiter of the unchanged proxy", "report"].map(Column::left);
    Table::new(Kind::Prose, "Runs", "run").columns(columns).rows(rows)
}

/// Describes a recommendation with its evidence.
fn describe_recommendation(one: &AdviceFinding) -> [Block; 2] {
    let advice = &one.recommendation;
    let heading = format!("{}: {}", advice.id, name_advice_verdict(one.verdict));
    let mut facts = vec![
        fact("claim", advice.claim.clone()),
        fact("source", describe_source(advice)),
        fact("written for", format!("{} ({})", advice.written_for, name_subject(advice.about))),
        fact("changes", describe_advised_changes(advice)),
        fact("mechanism", advice.mechanism.clone()),
        fact("found", explain_advice(one)),
    ];
    let optional = [
        ("published", advice.says.clone().unwrap_or_default()),
        ("in force", describe_in_force(one)),
        ("known harm", advice.harmful_because.clone().unwrap_or_default()),
    ];
    facts.extend(
        optional
            .into_iter()
            .filter(|(_, text)| !text.is_empty())
            .map(|(name, text)| fact(name, text)),
    );
    [Block::Heading(Heading::part(heading)), Block::Facts(facts)]
}
