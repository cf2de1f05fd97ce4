//! Formats an examination by `weir doctor` for a terminal.

use weir_doctor::{Examination, Finding, Severity};
use weir_model::foreign::{in_a_line, visible};
use weir_sentences::doctor::{demand, evidence, mechanism, reading, room, title, verdict};

/// Colours of the terminal, if enabled.
struct Paint {
    on: bool,
}

impl Paint {
    fn severity(&self, severity: Severity) -> String {
        let (code, word) = match severity {
            Severity::Error => ("1;31", "ERROR"),
            Severity::Warning => ("1;33", "WARNING"),
            Severity::Note => ("1;36", "NOTE"),
        };
        self.with(code, word)
    }

    fn dim(&self, text: &str) -> String {
        self.with("2", text)
    }

    fn with(&self, code: &str, text: &str) -> String {
        if self.on { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// Formats an examination, at most `width` columns wide if words allow it. Commands and evidence are not wrapped, so
/// that they can be copied. Text from files and processes cannot control the terminal or begin a line of its own.
pub fn text(examination: &Examination, width: usize, color: bool) -> String {
    let paint = Paint { on: color };
    let mut text = format!("load      {}\n", demand(examination.asked));
    text.push_str(&format!("verdict   {}\n", verdict(examination)));
    for finding in &examination.findings {
        text.push('\n');
        text.push_str(&described(finding, width, &paint));
    }
    if !examination.room.is_empty() {
        text.push_str("\nroom with these settings\n");
        for one in &examination.room {
            text.push_str(&format!("  {}\n", in_a_line(&room(one))));
        }
    }
    text.push('\n');
    let readings: Vec<String> = examination.looked_at.iter().map(reading).collect();
    text.push_str(&wrapped("looked at: ", "  ", &readings.join("; "), width));
    for unread in &examination.unread {
        let line = format!("{}: {}", unread.what, unread.why);
        text.push_str(&wrapped("not known: ", "  ", &line, width));
    }
    text.push_str("nothing was changed\n");
    text
}

fn described(finding: &Finding, width: usize, paint: &Paint) -> String {
    let title = in_a_line(&title(&finding.problem));
    let mut text = format!("{}  {title}", paint.severity(finding.severity));
    text.push_str(&format!("  {}\n", paint.dim(&format!("[{}]", finding.problem.id()))));
    for one in &finding.evidence {
        text.push_str(&format!("    {}\n", in_a_line(&evidence(one))));
    }
    text.push_str(&wrapped("  why: ", "    ", &mechanism(&finding.problem), width));
    for (label, commands) in [("now", &finding.change), ("for good", &finding.persist)] {
        for (at, command) in commands.iter().enumerate() {
            let label = match at {
                0 => format!("{label}:"),
                _ => String::new(),
            };
            text.push_str(&format!("  {label:9} {}\n", in_a_line(command)));
        }
    }
    text.push_str(&format!("  {}\n", paint.dim(finding.source)));
    text
}

/// Breaks text between words.
fn wrapped(first: &str, indent: &str, text: &str, width: usize) -> String {
    let mut out = String::new();
    let mut line = first.to_owned();
    let mut empty = true;
    for word in visible(text).split_ascii_whitespace() {
        if !empty && line.chars().count() + 1 + word.chars().count() > width {
            out.push_str(line.trim_end());
            out.push('\n');
            line = indent.to_owned();
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line.push_str(word);
        empty = false;
    }
    out + line.trim_end() + "\n"
}

#[cfg(test)]
mod tests {
    use weir_doctor::{Facts, Reading, SysctlLine, Unread, examine};

    use super::*;

    #[test]
    fn lines_end_between_words_and_a_long_word_stands_alone() {
        assert_eq!(wrapped("a: ", "  ", "bb cc dd", 8), "a: bb cc\n  dd\n");
        assert_eq!(wrapped("", "  ", "longer-than-that x", 4), "longer-than-that\n  x\n");
    }

    /// Paths, directives and values come from others and cannot be trusted.
    #[test]
    fn nothing_foreign_commands_a_terminal_or_begins_a_line() {
        let foreign = "/etc/\x1b[8m\x1b]0;t\x07\u{9b}2J\nnothing was changed";
        let line = SysctlLine {
            file: foreign.to_owned(),
            line: 1,
            key: foreign.to_owned(),
            value: foreign.to_owned(),
            applied: true,
            exists: false,
        };
        let facts = Facts {
            sysctl_lines: vec![line],
            looked_at: vec![Reading::Unit { name: foreign.to_owned() }],
            unread: vec![Unread { what: foreign.to_owned(), why: foreign.to_owned() }],
            ..Facts::default()
        };
        let examination = examine(&facts);
        for color in [false, true] {
            let output = text(&examination, 1000, color);
            // The key in the title; file, key and value as evidence; the file in a command; what was read, and what not.
            assert_eq!(output.matches("\\u001b[8m\\u001b]0;t\\u0007").count(), 8, "{output}");
            let plain =
                output.replace("\x1b[1;33m", "").replace("\x1b[2m", "").replace("\x1b[0m", "");
            let commands = plain.chars().filter(|&c| c.is_control() && c != '\n');
            assert_eq!(commands.count(), 0, "{plain:?}");
            assert_eq!(output.matches("\nnothing was changed").count(), 1, "{output}");
        }
    }
}
