//! A report for a terminal: the answer, a verdict table per load, what the A/A arm says, and
//! whether the figures may be believed.
//!
//! Columns adapt to the width that is given: what an arm changes has a column of its own where
//! there is room and a line of its own where there is none. Nothing is cut off: a name too long
//! for its column is wrapped, or takes a line for itself. Widths count characters, one column each.

mod by_rate;
mod matrix;
mod page;
mod pairs;

use std::fmt::Write;

use weir_analysis::findings::Verdict;
use weir_model::record::Validity;
use weir_model::study::{ArmRole, Metric};

use self::page::{
    Cells, NARROWEST, Page, clean, column_widths, pad_left, pad_right, sgr, width_of, wrap,
};
use crate::ReportInput;
use crate::view::{
    LoadView, MetricView, PublishedTable, PublishedView, ReportView, RowView, WhyView, number,
    words,
};

/// Longest name of an arm that shares a line with its figures.
const NAME: usize = 24;
/// The first column is not narrower than this.
const LEAST_NAME: usize = 8;

/// Formats a report for a terminal of `width` columns, with colours if `color` says so. Ends with a
/// line feed. Control characters in names are replaced: a study file cannot steer the terminal.
pub fn terminal(input: &ReportInput<'_>, color: bool, width: usize) -> String {
    let view = ReportView::new(input);
    let mut page = Page {
        out: String::new(),
        color,
        width: width.max(NARROWEST),
        changes_said: false,
    };
    page.head(&view);
    for load in &view.loads {
        page.load(load);
    }
    for group in &view.by_rate {
        page.by_rate(group);
    }
    for matrix in &view.matrices {
        page.matrix(matrix);
    }
    page.inert(&view);
    if let Some(published) = &view.published {
        page.published(published);
    }
    page.out
}

/// Widths of a table.
struct Layout {
    /// The first column.
    name: usize,
    /// What remains for one more column, its gap deducted.
    left: usize,
    /// Between columns.
    gap: &'static str,
    /// The other columns.
    widths: Vec<usize>,
}

impl Page {
    fn head(&mut self, view: &ReportView) {
        self.text(&view.title, sgr::BOLD, 0);
        if !view.question.is_empty() {
            self.text(&view.question, sgr::DIM, 0);
        }
        self.out.push('\n');
        if !view.answer.is_empty() {
            for paragraph in view.answer.lines() {
                self.text(paragraph, sgr::BOLD, 0);
            }
        }
        let judged = format!("judged by {}", view.objective);
        self.badged(view.validity, &judged, sgr::DIM);
        if let Some(incomplete) = &view.incomplete {
            self.text(&format!("note: {incomplete}"), sgr::YELLOW, 6);
        }
        for sentence in &view.left_out {
            self.text(&format!("note: {sentence}"), sgr::YELLOW, 6);
        }
        if view.loads.is_empty() && view.matrices.is_empty() {
            self.text("no load was measured", "", 0);
        }
        for remark in &view.setup.remarks {
            self.text(&format!("remark: {remark}"), sgr::DIM, 8);
        }
        self.about(&view.about);
    }

    fn load(&mut self, load: &LoadView) {
        self.out.push('\n');
        let name = self.paint(&load.name, sgr::BOLD);
        let _ = write!(self.out, "{name}: ");
        self.badged(load.validity, &load.measured, "");
        self.text(&load.summary, sgr::DIM, 0);
        if let Some(connections) = &load.connections {
            for sentence in &connections.sentences {
                self.text(sentence, sgr::DIM, 0);
            }
        }
        if load.validity == Validity::Invalid {
            self.reasons(load);
            self.text("not to be used; the other formats show its figures", "", 0);
            return;
        }
        self.limits(load);
        // CPU per request stands beside the other metrics; alone it has a table of its own.
        let alone = load.metrics.len() == 1;
        let first = load.metrics.first().map(|m| m.metric);
        for metric in &load.metrics {
            let beside = metric.metric == Metric::CpuPerRequest;
            if !beside || alone || first == Some(Metric::CpuPerRequest) {
                self.metric(metric);
            }
        }
        if let Some(pairs) = load.metrics.first().and_then(|first| first.pairs.as_ref()) {
            self.pairs(pairs);
        }
        self.counted(load.counted.as_ref());
        self.reasons(load);
    }

    fn limits(&mut self, load: &LoadView) {
        let Some(first) = load.limits.first() else {
            return;
        };
        self.out.push('\n');
        let head = [first.limit.as_str(), "verdict"];
        let mut rows: Vec<Cells> = vec![head.map(|h| (h.to_owned(), sgr::DIM)).into()];
        rows.extend(load.limits.iter().map(|limit| {
            vec![
                (limit.estimate(), ""),
                (limit.verdict(), verdict_style(limit.like)),
            ]
        }));
        let names = load.limits.iter().map(|limit| limit.arm.as_str());
        let layout = self.layout(names, &rows);
        self.row("arm", sgr::DIM, None, &layout, &rows[0]);
        for (limit, cells) in load.limits.iter().zip(&rows[1..]) {
            self.row(&limit.arm, "", None, &layout, cells);
        }
        for limit in load.limits.iter().filter(|l| l.like != Verdict::Better) {
            let text = format!("{}: {}", limit.arm, limit.because);
            self.text(&text, sgr::DIM, 4);
        }
    }

    fn metric(&mut self, metric: &MetricView) {
        self.out.push('\n');
        if !metric.comparable() {
            let name = words::capital(words::metric(metric.metric));
            self.text(&format!("{name}: nothing could be compared"), "", 0);
            self.why(metric);
            return;
        }
        let mut rows: Vec<Cells> = vec![head(metric)];
        rows.extend(metric.rows.iter().map(cells));
        let names = metric.rows.iter().map(|row| row.arm.as_str());
        let layout = self.layout(names, &rows);
        // Changes go beside when at least a short one fits.
        let beside = (layout.left >= 28).then_some(layout.left.min(48));

        self.row(
            "arm",
            sgr::DIM,
            beside.map(|w| (w, "changes")),
            &layout,
            &rows[0],
        );
        for (row, cells) in metric.rows.iter().zip(&rows[1..]) {
            let changes = beside.map(|w| (w, row.changes.as_str()));
            let style = match row.role {
                ArmRole::Baseline => sgr::BOLD,
                ArmRole::SameAsBaseline => sgr::DIM,
                ArmRole::Change => "",
            };
            self.row(&row.arm, style, changes, &layout, cells);
            // What does not fit beside is said once, in the first table.
            let below = beside.is_none() && !self.changes_said;
            if below && row.role != ArmRole::Baseline && !row.changes.is_empty() {
                let indented = format!("  {}", row.changes);
                for line in wrap(&clean(&indented), self.width, 4) {
                    self.line(&line, sgr::DIM);
                }
            }
        }
        if let Some(step) = metric.rows.iter().find(|row| row.against_step) {
            let with = match metric.by_steps {
                true => "each step is compared with the one before it",
                false => "arms are compared with the one that differs from them in nothing else",
            };
            let note = format!("{with}, {} with {}", step.arm, step.against);
            self.text(&note, sgr::DIM, 0);
        }
        self.text(&format!("A/A: {}", metric.resolution), sgr::DIM, 5);
        self.why(metric);
        if metric.metric != Metric::CpuPerRequest && !self.changes_said {
            self.text(
                "CPU: ratio of the proxy's CPU time per request",
                sgr::DIM,
                5,
            );
        }
        self.changes_said = true;
    }

    /// Why arms have no verdict. What the others rest on stands in the table.
    fn why(&mut self, metric: &MetricView) {
        let without = |why: &&WhyView| why.verdict == Verdict::Invalid || why.inert;
        for why in metric.why.iter().filter(without) {
            let text = format!("{} {}: {} ({})", why.sign, why.word, why.because, why.arms);
            self.text(&text, sgr::DIM, 4);
        }
    }

    /// Lays out a table: the first column gets what the others leave, and no more than the names
    /// need. Where names do not fit, columns move together by one space.
    fn layout<'a>(&self, names: impl Iterator<Item = &'a str>, rows: &[Cells]) -> Layout {
        let widths = column_widths(rows);
        let wanted = names.map(width_of).filter(|width| *width <= NAME).max();
        let wanted = wanted.unwrap_or(0).max(LEAST_NAME);
        let columns: usize = widths.iter().sum();
        let room = |gap: usize| self.width.saturating_sub(columns + gap * widths.len());
        let gap = if room(2) >= wanted { 2 } else { 1 };
        let name = wanted.min(room(gap)).max(LEAST_NAME);
        Layout {
            name,
            left: room(gap).saturating_sub(name + gap),
            gap: &"  "[..gap],
            widths,
        }
    }

    /// One line of a table of figures alone: no column holds a verdict.
    fn plain_row(&mut self, name: &str, style: &str, layout: &Layout, cells: &Cells) {
        let (name, width) = (clean(name), layout.name);
        if width_of(&name) > width {
            self.line(&name, style);
        }
        let shown = if width_of(&name) > width { "" } else { &name };
        let mut line = self.paint(&pad_right(shown, width), style);
        for ((text, style), width) in cells.iter().zip(&layout.widths) {
            line.push_str(layout.gap);
            line.push_str(&self.paint(&pad_left(text, *width), style));
        }
        self.out.push_str(line.trim_end());
        self.out.push('\n');
    }

    /// One line of a table, or more when the name or the changes need them.
    fn row(
        &mut self,
        arm: &str,
        style: &str,
        changes: Option<(usize, &str)>,
        layout: &Layout,
        cells: &Cells,
    ) {
        let Layout { name, gap, .. } = *layout;
        let arm = clean(arm);
        let breaks = |word: &str| width_of(word) + 2 > name;
        let mut names = if width_of(&arm) > name && arm.split_whitespace().any(breaks) {
            self.line(&arm, style);
            Vec::new()
        } else {
            wrap(&arm, name, 2)
        }
        .into_iter();
        let mut line = self.paint(&pad_right(&names.next().unwrap_or_default(), name), style);
        let mut more = Vec::new();
        if let Some((width, text)) = changes {
            let mut lines = wrap(&clean(text), width, 2).into_iter();
            let first = pad_right(&lines.next().unwrap_or_default(), width);
            line.push_str(gap);
            line.push_str(&self.paint(&first, sgr::DIM));
            more.extend(lines);
        }
        let last = cells.len() - 1;
        for (index, ((text, style), width)) in cells.iter().zip(&layout.widths).enumerate() {
            // The verdict begins with a sign, so it stands to the left.
            let padded = match index == VERDICT {
                true if index == last => text.clone(),
                true => pad_right(text, *width),
                false => pad_left(text, *width),
            };
            line.push_str(gap);
            line.push_str(&self.paint(&padded, style));
        }
        self.out.push_str(line.trim_end());
        self.out.push('\n');
        let mut more = more.into_iter();
        loop {
            let (name_rest, changes_rest) = (names.next(), more.next());
            if name_rest.is_none() && changes_rest.is_none() {
                break;
            }
            let padded = pad_right(&name_rest.unwrap_or_default(), name);
            let mut line = self.paint(&padded, style);
            if let Some(rest) = changes_rest {
                line.push_str(gap);
                line.push_str(&self.paint(&rest, sgr::DIM));
            }
            self.out.push_str(line.trim_end());
            self.out.push('\n');
        }
    }

    fn reasons(&mut self, load: &LoadView) {
        if !load.reasons.is_empty() {
            self.out.push('\n');
        }
        for reason in &load.reasons {
            let arms = match reason.arms.as_str() {
                "" => String::new(),
                arms => format!("; {arms}"),
            };
            let text = format!(
                "{} {}: {} ({}{arms})",
                words::validity(reason.validity),
                reason.rule,
                reason.seen,
                reason.how_often
            );
            self.text(&text, "", 4);
        }
    }

    fn published(&mut self, published: &PublishedView) {
        self.out.push('\n');
        self.text("Published beside measured", sgr::BOLD, 0);
        self.text(&format!("published: {}", published.source), sgr::DIM, 11);
        for table in &published.tables {
            self.published_table(table);
        }
        if !published.times.is_empty() {
            self.published_times(&published.times);
        }
        self.gains(&published.gains);
    }

    fn published_table(&mut self, published: &PublishedTable) {
        self.text(&format!("measured:  {}", published.ours), sgr::DIM, 11);
        let head = ["published", "ratio", "here", "verdict"];
        let mut rows: Vec<Cells> = vec![head.map(|h| (h.to_owned(), sgr::DIM)).into()];
        rows.extend(published.rows.iter().map(|row| {
            vec![
                (row.figure.clone(), ""),
                (row.ratio.clone(), ""),
                (row.measured.clone(), ""),
                (row.verdict.map_or("", words::published).to_owned(), ""),
            ]
        }));
        let names = published.rows.iter().map(|row| row.arm.as_str());
        let layout = self.layout(names, &rows);
        self.row("arm", sgr::DIM, None, &layout, &rows[0]);
        for (row, cells) in published.rows.iter().zip(&rows[1..]) {
            self.row(&row.arm, "", None, &layout, cells);
            if !row.because.is_empty() {
                self.text(&format!("  {}", row.because), sgr::DIM, 4);
            }
        }
    }
}

/// Column of the verdict, in both kinds of table.
const VERDICT: usize = 3;

fn head(metric: &MetricView) -> Cells {
    let mut cells = vec![
        (words::metric_head(metric.metric).to_owned(), sgr::DIM),
        (format!("ratio ({})", metric.confidence), sgr::DIM),
        ("p".to_owned(), sgr::DIM),
        ("verdict".to_owned(), sgr::DIM),
    ];
    if metric.metric != Metric::CpuPerRequest {
        cells.push(("CPU".to_owned(), sgr::DIM));
    }
    cells
}

fn cells(row: &RowView) -> Cells {
    let (ratio, p, verdict, cpu) = match row.verdict_words() {
        None => Default::default(),
        Some((sign, word)) => (
            match row.interval.as_str() {
                number::NONE => row.ratio.clone(),
                interval => format!("{} ({interval})", row.ratio),
            },
            row.p.clone(),
            format!("{sign} {word}"),
            row.cpu.clone(),
        ),
    };
    let style = match row.alarming() {
        true => sgr::RED,
        false if row.inert.is_some() => sgr::YELLOW,
        false => row.verdict.map_or("", verdict_style),
    };
    vec![
        (row.value.clone(), ""),
        (ratio, ""),
        (p, sgr::DIM),
        (verdict, style),
        (cpu, ""),
    ]
}

fn verdict_style(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Better => sgr::GREEN,
        Verdict::Worse => sgr::RED,
        Verdict::Equivalent => sgr::CYAN,
        Verdict::Inconclusive => sgr::DIM,
        Verdict::Invalid => sgr::YELLOW,
    }
}
