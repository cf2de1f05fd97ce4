//! Samples in a run folder: `samples/TABLE.csv`, a row for each moment and key, and `samples/missing.csv`.
//!
//! The files are CSV as in RFC 4180, with a header line, so that any program can read them. The first three columns are
//! the lab's: `t_s` (seconds since the run began, by the clock of this host), `host` and `arm`. An empty cell is a
//! value that could not be read. As with records, lines end with a newline and are appended whole.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::Path;

use weir_model::foreign::{as_cell, from_cell};
use weir_model::sample::{Counters, MissingCounter, SampleRow, Table};

use crate::RecordError;
use crate::writer::AppendLog;

/// Name of the folder of samples in a run folder.
pub const SAMPLES_FOLDER: &str = "samples";

const LINE_END: [char; 2] = ['\r', '\n'];

/// Name, without extension, of the file that lists counters that could not be read.
const MISSING: &str = "missing";

/// Header line of that file.
const MISSING_COLUMNS: &str = "host,table,column,role,why\n";

/// A sample that was read back.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sample {
    /// Name of the sampled host.
    pub host: String,
    /// The row; its time is nanoseconds since the run began.
    pub row: SampleRow,
}

/// All samples of a run; empty if the run has none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Samples {
    /// Rows in the order of their tables, each table in the order of its file.
    pub rows: Vec<Sample>,
    /// Counters that could not be read, with their host.
    pub missing: Vec<(String, MissingCounter)>,
    /// Settings of a proxy that weir did not start, by ids of the catalog. A run has them in its records instead.
    pub settings: BTreeMap<String, String>,
    /// CPUs that this proxy's processes may use; empty if unknown.
    pub cpus: Vec<u64>,
}

/// Files that samples are appended to.
#[derive(Default)]
pub(crate) struct SampleLogs {
    logs: BTreeMap<String, AppendLog>,
    missing: BTreeSet<(String, MissingCounter)>,
}

impl SampleLogs {
    /// Appends rows of a host; their time is nanoseconds since the run began.
    pub(crate) fn append(
        &mut self,
        dir: &Path,
        host: &str,
        rows: &[SampleRow],
    ) -> Result<(), RecordError> {
        let mut lines: BTreeMap<&str, String> = BTreeMap::new();
        for row in rows {
            let text = lines.entry(&row.table).or_default();
            let at = row.at_ns / 1000;
            text.push_str(&format!("{}.{:06}", at / 1_000_000, at % 1_000_000));
            for word in [host, &row.arm].into_iter().chain(row.keys.iter().map(|key| &**key)) {
                text.push(',');
                push_quoted(text, word);
            }
            for value in &row.values {
                text.push(',');
                value.iter().for_each(|value| text.push_str(&value.to_string()));
            }
            text.push('\n');
        }
        for (name, text) in lines {
            let Some(table) = Counters::builtin().table(name) else {
                let unknown = format!("samples of a table `{name}`, which there is not");
                return Err(RecordError::Unreadable(unknown));
            };
            self.log(dir, name, &header(table))?.append(text.as_bytes())?;
        }
        Ok(())
    }

    /// Appends counters that could not be read, each only once.
    pub(crate) fn miss(
        &mut self,
        dir: &Path,
        host: &str,
        missing: &[MissingCounter],
    ) -> Result<(), RecordError> {
        for one in missing {
            if !self.missing.insert((host.to_owned(), one.clone())) {
                continue;
            }
            let mut text = String::new();
            for (place, word) in
                [host, &one.table, &one.column, &one.role, &one.why].iter().enumerate()
            {
                text.push_str(if place > 0 { "," } else { "" });
                push_quoted(&mut text, word);
            }
            text.push('\n');
            self.log(dir, MISSING, MISSING_COLUMNS)?.append(text.as_bytes())?;
        }
        Ok(())
    }

    /// Opens the file of a table, which an earlier session may have created.
    fn log(&mut self, dir: &Path, name: &str, header: &str) -> Result<&mut AppendLog, RecordError> {
        if !self.logs.contains_key(name) {
            let folder = dir.join(SAMPLES_FOLDER);
            if folder.is_symlink() {
                return Err(RecordError::Outside(SAMPLES_FOLDER.to_owned()));
            }
            weir_files::make_folders(&folder).map_err(RecordError::io("create", &folder))?;
            let path = folder.join(format!("{name}.csv"));
            let mut log = AppendLog::open(path.clone())?;
            weir_files::only_ours_file(&path)?;
            log.cut_half_line()?;
            if log.len == 0 {
                log.append(header.as_bytes())?;
            }
            let text = weir_files::read(&path).map_err(RecordError::io("read", &path))?;
            if !text.starts_with(header.as_bytes()) {
                return Err(corrupt(
                    &path,
                    1,
                    "another weir wrote it with other columns; go on with that one, or with `--samples off`",
                ));
            }
            self.logs.insert(name.to_owned(), log);
        }
        self.logs.get_mut(name).ok_or_else(|| RecordError::Outside(name.to_owned()))
    }
}

/// Reads the samples of the run in `dir`.
///
/// # Errors
/// A file cannot be read, or a line other than the last is not a row of its table.
pub(crate) fn read_samples(dir: &Path) -> Result<Samples, RecordError> {
    let mut samples = Samples::default();
    for table in &Counters::builtin().tables {
        each_line(dir, &table.name, |columns, cells| {
            samples.rows.push(parse(table, columns, cells)?);
            Some(())
        })?;
    }
    each_line(dir, MISSING, |_, cells| {
        let [host, table, column, role, why] = <[String; 5]>::try_from(cells.to_vec()).ok()?;
        let missing = MissingCounter { table, column, role, why };
        samples.missing.push((host, missing));
        Some(())
    })?;
    Ok(samples)
}

/// Passes the lines of a file to `take`, after the names of the columns, until it refuses one. A missing file has no
/// lines.
fn each_line(
    dir: &Path,
    name: &str,
    mut take: impl FnMut(&[String], &[String]) -> Option<()>,
) -> Result<(), RecordError> {
    let path = dir.join(SAMPLES_FOLDER).join(format!("{name}.csv"));
    let bytes = match weir_files::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(RecordError::io("read", &path)(error)),
    };
    let mut lines = crate::run::whole_lines(&bytes)
        .split_inclusive(|byte| *byte == b'\n')
        .map(String::from_utf8_lossy)
        .enumerate();
    let columns: Vec<String> =
        lines.next().map_or_else(Vec::new, |(_, line)| cells(line.trim_end_matches(LINE_END)));
    for (number, line) in lines {
        take(&columns, &cells(line.trim_end_matches(LINE_END)))
            .ok_or_else(|| corrupt(&path, number + 1, "this is no row of samples"))?;
    }
    Ok(())
}

/// Parses a row by the names of its columns. A column that the file lacks is unknown.
fn parse(table: &Table, columns: &[String], cells: &[String]) -> Option<Sample> {
    if columns.len() != cells.len() {
        return None;
    }
    let cell = |name: &str| {
        let index = columns.iter().position(|column| column == name)?;
        cells.get(index).map(|cell| &**cell)
    };
    let (seconds, fraction) = cell("t_s")?.split_once('.')?;
    let micros: u64 = fraction.parse().ok().filter(|_| fraction.len() == 6)?;
    let at_ns = seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000)?;
    Some(Sample {
        host: cell("host")?.to_owned(),
        row: SampleRow {
            table: table.name.clone(),
            at_ns: at_ns.checked_add(micros * 1000)?,
            arm: cell("arm")?.to_owned(),
            keys: table.keys().map(|key| Some(cell(key)?.to_owned())).collect::<Option<_>>()?,
            values: table
                .values()
                .map(|name| match cell(name) {
                    None | Some("") => Some(None),
                    Some(value) => value.parse().ok().map(Some),
                })
                .collect::<Option<_>>()?,
        },
    })
}

fn header(table: &Table) -> String {
    let columns = table.columns.iter().map(|column| &*column.name);
    let all: Vec<&str> = ["t_s", "host", "arm"].into_iter().chain(columns).collect();
    all.join(",") + "\n"
}

fn corrupt(path: &Path, line: usize, message: &str) -> RecordError {
    RecordError::Corrupt { path: path.to_owned(), line, message: message.to_owned() }
}

/// Appends a word, in quotes if necessary. Process names and reasons are foreign text, so control characters such as
/// line ends become blanks.
fn push_quoted(text: &mut String, word: &str) {
    let word = as_cell(word);
    if !word.contains([',', '"']) && !word.contains(char::is_control) {
        return text.push_str(&word);
    }
    text.push('"');
    for character in word.chars() {
        match character {
            '"' => text.push_str("\"\""),
            character if character.is_control() => text.push(' '),
            character => text.push(character),
        }
    }
    text.push('"');
}

/// Splits a line into its cells.
fn cells(line: &str) -> Vec<String> {
    let (mut cells, mut is_quoted) = (vec![String::new()], false);
    let mut characters = line.chars().peekable();
    while let Some(character) = characters.next() {
        let Some(cell) = cells.last_mut() else { break };
        match character {
            '"' if is_quoted && characters.peek() == Some(&'"') => {
                characters.next();
                cell.push('"');
            }
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => cells.push(String::new()),
            character => cell.push(character),
        }
    }
    cells.iter().map(|cell| from_cell(cell).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn row(table: &str, at_ns: u64, keys: &[&str], values: &[Option<u64>]) -> SampleRow {
        SampleRow {
            table: table.to_owned(),
            at_ns,
            arm: "stock".to_owned(),
            keys: keys.iter().map(|key| (*key).to_owned()).collect(),
            values: values.to_vec(),
        }
    }

    #[test]
    fn samples_are_read_back_as_they_were_after_a_crash_too() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path();
        let none = Samples::default();
        assert_eq!(read_samples(dir).unwrap(), none, "an old run has none");
        let rows = [
            row("proxy", 1_500_000_000, &["=a, \"b\""], &[Some(7)]),
            row("proxy", 2_000_001_000, &["x"], &[Some(u64::MAX)]),
            row("listeners", 2_000_000_000, &["proxy", "80"], &[Some(1), Some(2), None, None]),
        ];
        SampleLogs::default().append(dir, "here", &rows[..1]).unwrap();
        let file = dir.join("samples/proxy.csv");
        let text = fs::read_to_string(&file).unwrap();
        let line = "1.500000,here,stock,\"'=a, \"\"b\"\"\",7\n";
        assert_eq!(text, format!("t_s,host,arm,counter,value\n{line}"));
        // Killed in the middle of a line; the next session goes on behind the last whole one.
        fs::write(&file, text + "1.6,he").unwrap();
        SampleLogs::default().append(dir, "here", &rows[1..]).unwrap();
        let read = read_samples(dir).unwrap();
        let read: Vec<SampleRow> = read.rows.into_iter().map(|sample| sample.row).collect();
        assert_eq!(read, [rows[2].clone(), rows[0].clone(), rows[1].clone()]);
        let broken = fs::read_to_string(&file).unwrap() + "nonsense\n";
        fs::write(&file, broken).unwrap();
        let error = read_samples(dir).unwrap_err().to_string();
        assert!(error.contains("proxy.csv:4: this is no row"), "{error}");
        // Endless, though in a folder of one's own.
        fs::remove_file(&file).unwrap();
        std::os::unix::fs::symlink("/dev/zero", &file).unwrap();
        let error = read_samples(dir).unwrap_err().to_string();
        assert!(error.ends_with("not a regular file"), "{error}");
    }

    #[test]
    fn other_columns_are_not_mixed_and_unknown_tables_not_written() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path();
        let mut logs = SampleLogs::default();
        let outside = [row("../../x", 0, &[], &[])];
        assert!(logs.append(dir, "here", &outside).is_err());
        fs::create_dir(dir.join("samples")).unwrap();
        fs::write(dir.join("samples/proxy.csv"), "t_s,host,arm,counter\n0.000000,a,b,c\n").unwrap();
        let rows = [row("proxy", 0, &["x"], &[None])];
        let error = logs.append(dir, "here", &rows).unwrap_err().to_string();
        assert!(error.contains("other columns"), "{error}");
        let read = read_samples(dir).unwrap();
        assert_eq!(read.rows[0].row.values, [None], "what the file lacks is unknown");
    }

    #[test]
    fn what_is_missing_is_said_once_for_each_host() {
        let dir = tempfile::tempdir().unwrap();
        let missing = MissingCounter {
            table: "host".to_owned(),
            column: "files".to_owned(),
            role: String::new(),
            why: "no, \u{1b}none".to_owned(),
        };
        let mut logs = SampleLogs::default();
        for host in ["a", "a", "b"] {
            logs.miss(dir.path(), host, std::slice::from_ref(&missing)).unwrap();
        }
        let text = fs::read_to_string(dir.path().join("samples/missing.csv")).unwrap();
        let lines = ["a,host,files,,\"no,  none\"\n", "b,host,files,,\"no,  none\"\n"].concat();
        assert_eq!(text, format!("{MISSING_COLUMNS}{lines}"));
    }
}
