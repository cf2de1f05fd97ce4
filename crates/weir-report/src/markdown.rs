//! A report as Markdown (CommonMark with GitHub's tables), for issues, wikis and mails.

mod by_rate;
mod matrix;
mod pairs;

use std::fmt::Write;

use weir_analysis::findings::PublishedVerdict;
use weir_model::study::Metric;

use crate::ReportInput;
use crate::view::{
    ConnectionsView, Fact, LoadView, MetricView, PublishedTable, PublishedView, ReportView,
    RowView, SettingsView, words,
};

/// Formats a report as Markdown. Ends with a line feed. Names are escaped, so none can become
/// markup, a link or a cell of its own.
pub fn markdown(input: &ReportInput<'_>) -> String {
    let view = ReportView::new(input);
    let mut out = String::new();
    head(&mut out, &view);
    about(&mut out, &view);
    for load in &view.loads {
        one_load(&mut out, load);
    }
    for group in &view.by_rate {
        by_rate::by_rate(&mut out, group);
    }
    for one in &view.matrices {
        matrix::matrix(&mut out, one);
    }
    inert(&mut out, &view);
    if let Some(published) = &view.published {
        published_beside_measured(&mut out, published);
    }
    environment(&mut out, &view);
    settings(&mut out, &view.settings);
    study(&mut out, &view);
    out
}

// Writing to a String cannot fail, so the results of writeln! are dropped throughout.

fn head(out: &mut String, view: &ReportView) {
    let _ = writeln!(out, "# {}\n", escape(&view.title));
    if !view.question.is_empty() {
        let _ = writeln!(out, "**Question.** {}\n", escape(&view.question));
    }
    let validity = words::validity(view.validity);
    let answer: Vec<String> = view.answer.lines().map(escape).collect();
    let _ = writeln!(out, "**Answer** ({validity}). {}\n", answer.join("\n\n"));
    if let Some(incomplete) = &view.incomplete {
        let _ = writeln!(out, "> **Note:** {}\n", escape(incomplete));
    }
    for sentence in &view.left_out {
        let sentence = escape(&words::capital(sentence));
        let _ = writeln!(out, "> **Note:** {sentence}.\n");
    }
    if view.loads.is_empty() && view.matrices.is_empty() {
        let _ = writeln!(out, "No load was measured.\n");
    }
    let _ = writeln!(
        out,
        "Objective: {}. Run `{}`, {}.\n",
        escape(&view.objective),
        code(&view.run),
        escape(&view.started_at)
    );
}

/// What each arm is, where that is more than a change of settings.
fn about(out: &mut String, view: &ReportView) {
    if view.about.is_empty() {
        return;
    }
    let _ = writeln!(out, "| arm | proxy | what else it is |");
    let _ = writeln!(out, "|---|---|---|");
    for arm in &view.about {
        let clauses = escape(&arm.clauses.join("; "));
        let (name, proxy) = (escape(&arm.arm), escape(&arm.proxy));
        let _ = writeln!(out, "| {name} | {proxy} | {clauses} |");
    }
    out.push('\n');
}

fn one_load(out: &mut String, load: &LoadView) {
    let _ = writeln!(out, "## Load: {}\n", escape(&load.name));
    let _ = writeln!(
        out,
        "{}. **{}**: {}.\n",
        escape(&words::capital(&load.summary)),
        words::validity(load.validity),
        escape(&load.measured)
    );
    for reason in &load.reasons {
        let arms = match reason.arms.as_str() {
            "" => String::new(),
            arms => format!("; {}", escape(arms)),
        };
        let _ = writeln!(
            out,
            "- {} `{}`: {} ({}{arms})",
            words::validity(reason.validity),
            code(&reason.rule),
            escape(&reason.seen),
            reason.how_often
        );
    }
    if !load.reasons.is_empty() {
        out.push('\n');
    }
    limits(out, load);
    for metric in &load.metrics {
        comparisons(out, load, metric);
    }
    for sentence in load.counted.iter().flat_map(|counted| &counted.telling) {
        let _ = writeln!(out, "> **Note:** {}.\n", escape(sentence));
    }
    arms(out, load);
}

fn limits(out: &mut String, load: &LoadView) {
    let Some(first) = load.limits.first() else {
        return;
    };
    let validity = words::validity(load.validity);
    let limit = words::capital(&first.limit);
    let _ = writeln!(out, "### {limit}, {validity}\n");
    let _ = writeln!(out, "| arm | estimate | interval | verdict | why |");
    let _ = writeln!(out, "|---|--:|--:|---|---|");
    for limit in &load.limits {
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} |",
            escape(&limit.arm),
            limit.value,
            limit.interval,
            limit.verdict(),
            escape(&limit.because)
        );
    }
    out.push('\n');
}

fn comparisons(out: &mut String, load: &LoadView, metric: &MetricView) {
    let _ = writeln!(
        out,
        "### {} ({}), {}\n",
        words::capital(words::metric(metric.metric)),
        words::direction(metric.metric),
        words::validity(load.validity)
    );
    if !metric.comparable() {
        let _ = writeln!(out, "Nothing could be compared.\n");
        why(out, metric);
        return;
    }
    let cpu = metric.metric != Metric::CpuPerRequest;
    let cpu_head = if cpu { " CPU/request |" } else { "" };
    let _ = writeln!(
        out,
        "| arm | changes | {} | ratio | {} | p (Holm) | verdict |{cpu_head} detectable |",
        words::metric_head(metric.metric),
        metric.interval_head
    );
    let _ = writeln!(
        out,
        "|---|---|--:|--:|--:|--:|---|{}--:|",
        if cpu { "--:|" } else { "" }
    );
    for row in &metric.rows {
        comparison(out, row, cpu);
    }
    let _ = writeln!(out, "\nA/A: {}.\n", escape(&metric.resolution));
    why(out, metric);
    if let Some(all) = &metric.pairs {
        pairs::pairs(out, all);
    }
}

fn why(out: &mut String, metric: &MetricView) {
    for why in &metric.why {
        let (because, arms) = (escape(&why.because), escape(&why.arms));
        let _ = writeln!(out, "- {} {}: {because} ({arms})", why.sign, why.word);
    }
    if !metric.why.is_empty() {
        out.push('\n');
    }
}

fn comparison(out: &mut String, row: &RowView, cpu: bool) {
    let verdict = match row.verdict_words() {
        Some((sign, word)) => format!("{sign} {word}"),
        None => String::new(),
    };
    let compared = |text: &str| match row.verdict {
        Some(_) => text.to_owned(),
        None => String::new(),
    };
    let against = match row.against_step {
        true => format!(" (against {})", escape(&row.against)),
        false => String::new(),
    };
    let cpu = match cpu {
        true => format!(" {} |", compared(&row.cpu)),
        false => String::new(),
    };
    let _ = writeln!(
        out,
        "| {} | {}{against} | {} | {} | {} | {} | {verdict} |{cpu} {} |",
        escape(&row.arm),
        escape(&row.changes),
        row.value,
        compared(&row.ratio),
        compared(&row.interval),
        compared(&row.p),
        compared(&row.detectable)
    );
}

fn arms(out: &mut String, load: &LoadView) {
    let _ = writeln!(
        out,
        "### Figures of each arm, {}\n",
        words::validity(load.validity)
    );
    let _ = writeln!(
        out,
        "| arm | completed/s | response p50 | p90 | p99 | p99.9 | max | service p50 | p99 | lag p99 | requests | failures | never ended | origin connects/request |"
    );
    let _ = writeln!(
        out,
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
    );
    for arm in &load.arms {
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            escape(&arm.name),
            arm.rate_completed,
            arm.response.join(" | "),
            arm.service[0],
            arm.service[2],
            arm.lag[2],
            arm.samples,
            arm.failures,
            format_args!("{} | {}", arm.censored, arm.origin_connects),
        );
    }
    out.push('\n');
    if let Some(all) = &load.connections {
        connections(out, all);
    }
}

fn connections(out: &mut String, connections: &ConnectionsView) {
    let (held, tls) = (connections.held, connections.tls);
    let mut head = vec!["arm", "connections opened", "per request"];
    head.extend(if held {
        &["held at begin", "at end", "opened again"][..]
    } else {
        &[]
    });
    head.extend(if tls {
        &["handshakes", "resumed"][..]
    } else {
        &[]
    });
    head.extend(connections.listen_overflows.then_some("listen queue full"));
    head.push("proxy memory");
    let _ = writeln!(out, "| {} |", head.join(" | "));
    let _ = writeln!(out, "|---|{}", "--:|".repeat(head.len() - 1));
    for row in &connections.rows {
        let arm = escape(&row.arm);
        let mut cells = vec![&*arm, &row.opened, &row.per_request];
        if held {
            cells.extend([&*row.held_at_start, &row.held_at_end, &row.held_again]);
        }
        if tls {
            cells.extend([&*row.handshakes, &row.resumed]);
        }
        cells.extend(
            connections
                .listen_overflows
                .then_some(&*row.listen_overflows),
        );
        cells.push(&row.memory);
        let _ = writeln!(out, "| {} |", cells.join(" | "));
    }
    out.push('\n');
    for note in connections.notes() {
        let _ = writeln!(out, "{}\n", escape(&note));
    }
}

fn published_beside_measured(out: &mut String, published: &PublishedView) {
    let _ = writeln!(out, "## Published beside measured\n");
    for table in &published.tables {
        let _ = writeln!(
            out,
            "Published: {} ({}). Measured: {}.\n",
            escape(&published.source),
            escape(&published.metric),
            escape(&table.ours)
        );
        published_table(out, table);
    }
    if !published.times.is_empty() {
        matrix::published_times(out, published);
    }
    if !published.gains.is_empty() {
        pairs::gains(out, published);
    }
}

/// Levels that were asked for and are not in force.
fn inert(out: &mut String, view: &ReportView) {
    if view.inert.is_empty() {
        return;
    }
    let _ = writeln!(out, "## Levels that are not in force\n");
    let _ = writeln!(out, "| arm | parameter | asked for | in force | why |");
    let _ = writeln!(out, "|---|---|--:|---|---|");
    for level in &view.inert {
        let _ = writeln!(
            out,
            "| {} | `{}` | {} | {} | {} |",
            escape(&level.arm),
            code(&level.id),
            escape(&level.requested),
            escape(&level.effective),
            escape(&level.why)
        );
    }
    out.push('\n');
}

fn published_table(out: &mut String, published: &PublishedTable) {
    let _ = writeln!(
        out,
        "| arm | published | published ratio | measured ratio | interval | verdict |"
    );
    let _ = writeln!(out, "|---|--:|--:|--:|--:|---|");
    for row in &published.rows {
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} |",
            escape(&row.arm),
            row.figure,
            row.ratio,
            row.measured,
            row.interval,
            said(row.verdict, &row.because)
        );
    }
    out.push('\n');
}

/// A verdict and, where there is more to say, why.
fn said(verdict: Option<PublishedVerdict>, because: &str) -> String {
    let words = verdict.map_or("", words::published);
    match because {
        "" => words.to_owned(),
        because => format!("{words}: {}", escape(because)),
    }
}

fn environment(out: &mut String, view: &ReportView) {
    let _ = writeln!(out, "## Environment\n");
    for remark in &view.setup.remarks {
        let _ = writeln!(out, "- **Remark:** {}", escape(remark));
    }
    facts(out, &view.setup.machine, "");
    facts(out, &view.setup.cpus, "CPUs of the ");
    facts(out, &view.setup.programs, "");
    for fact in &view.setup.sysctls {
        let _ = writeln!(out, "- `{}` = `{}`", code(&fact.name), code(&fact.value));
    }
    out.push('\n');
}

fn facts(out: &mut String, facts: &[Fact], prefix: &str) {
    for fact in facts {
        let _ = writeln!(
            out,
            "- {prefix}{}: {}",
            escape(&fact.name),
            escape(&fact.value)
        );
    }
}

fn settings(out: &mut String, settings: &SettingsView) {
    let _ = writeln!(out, "## Effective settings, as read back\n");
    if !settings.baseline.is_empty() {
        let all: Vec<String> = settings
            .baseline
            .iter()
            .map(|fact| format!("`{}` = `{}`", code(&fact.name), code(&fact.value)))
            .collect();
        let _ = writeln!(out, "Baseline: {}.\n", all.join(", "));
    }
    for arm in &settings.arms {
        let mut rows: Vec<String> = arm
            .rows
            .iter()
            .map(|row| {
                format!(
                    "`{}`: `{}` → `{}`",
                    code(&row.id),
                    code(&row.baseline),
                    code(&row.value)
                )
            })
            .collect();
        rows.extend(arm.own.iter().map(|fact| {
            let (id, level) = (code(&fact.name), code(&fact.value));
            format!("`{id}` = `{level}`")
        }));
        if !arm.note.is_empty() {
            rows.push(escape(&arm.note));
        }
        let _ = writeln!(out, "- {}: {}", escape(&arm.arm), rows.join(", "));
    }
    out.push('\n');
}

fn study(out: &mut String, view: &ReportView) {
    let repeat = &view.repeat;
    let _ = writeln!(
        out,
        "## How to repeat it\n\nSave the study below as `study.yaml`, then `{}`. It was weir {}, \
         seed {}, format `{}`.\n",
        repeat.command,
        escape(&repeat.weir_version),
        repeat.seed,
        code(&repeat.format)
    );
    let fence = fence(&view.study_text);
    let _ = writeln!(out, "{fence}yaml\n{}\n{fence}", view.study_text.trim_end());
}

/// A fence longer than any run of backticks in the text (CommonMark §4.5).
fn fence(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    "`".repeat((longest + 1).max(3))
}

/// Text for a code span: backticks and bars would end the span or the cell.
fn code(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '`' => '\'',
            '|' => '¦',
            c if c.is_control() => ' ',
            c => c,
        })
        .collect()
}

/// Escapes what Markdown would take for markup (CommonMark §2.4), also inside a table's cell.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut previous = ' ';
    for (index, c) in text.char_indices() {
        match c {
            // Between letters and digits an underscore is none (keepalive_requests).
            '_' if previous.is_alphanumeric()
                && text[index + 1..].starts_with(char::is_alphanumeric) => {}
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '|' | '#' | '~' | '&' | '!' => {
                out.push('\\');
            }
            _ => {}
        }
        out.push(if c.is_control() { ' ' } else { c });
        previous = c;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_become_markup() {
        assert_eq!(escape("a|b\nc"), "a\\|b c");
        assert_eq!(escape("[x](y) <b> *z*"), "\\[x\\](y) \\<b\\> \\*z\\*");
        assert_eq!(escape("keepalive_requests"), "keepalive_requests");
        assert_eq!(escape("_lead and trail_"), "\\_lead and trail\\_");
        assert_eq!(code("a`b|c"), "a'b¦c");
    }

    #[test]
    fn a_fence_is_longer_than_any_in_the_text() {
        assert_eq!(fence("no ticks"), "```");
        assert_eq!(fence("a ```` b"), "`````");
    }
}
