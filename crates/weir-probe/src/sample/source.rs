//! Kernel files that are opened once and read repeatedly.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::process::{Resource, getrlimit};

use super::rows::{Counter, Why};
use super::told::PodFiles;

/// Step of the buffer size in bytes: more than most of these files have. The kernel delivers longer ones in several
/// reads.
const ROOM: usize = 16 << 10;

/// Origin of the files to read.
#[derive(Debug, Clone)]
pub(super) enum Files {
    /// Files of this host.
    Here,
    /// Files of a pod, as printed by its shell.
    PodFiles(PodFiles),
}

impl Files {
    pub(super) fn open(&self, path: impl AsRef<Path>) -> Source {
        let path = path.as_ref().to_owned();
        Source {
            file: match self {
                Files::Here => TextOrigin::Open(
                    File::open(&path).and_then(leaving_room).map_err(|error| unread(&path, &error)),
                ),
                Files::PodFiles(told) => TextOrigin::PodFiles(told.clone()),
            },
            path,
            bytes: Vec::new(),
        }
    }

    pub(super) fn exists(&self, path: &Path) -> bool {
        match self {
            Files::Here => path.exists(),
            Files::PodFiles(told) => told.has(path),
        }
    }
}

/// Returns a file that was opened to be sampled, if it leaves a quarter of the process's descriptors to others: samples
/// may be incomplete, but must not end what is measured. The kernel gives the lowest free number.
pub(super) fn leaving_room<F: AsRawFd>(file: F) -> io::Result<F> {
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    if file.as_raw_fd() as u64 >= limit - limit / 4 {
        return Err(io::Error::other(format!(
            "too many files are sampled for the limit of {limit} descriptors (ulimit -n)"
        )));
    }
    Ok(file)
}

/// A file, or the reason why it cannot be opened.
#[derive(Debug)]
pub(super) struct Source {
    path: PathBuf,
    file: TextOrigin,
    bytes: Vec<u8>,
}

/// Origin of the file's text.
#[derive(Debug)]
enum TextOrigin {
    Open(Result<File, Why>),
    PodFiles(PodFiles),
}

impl Source {
    /// Returns the present text of the file.
    pub(super) fn text(&mut self) -> Result<&str, Why> {
        let length = match &self.file {
            TextOrigin::Open(file) => read_all(file.as_ref().map_err(Why::clone)?, &mut self.bytes)
                .map_err(|error| unread(&self.path, &error))?,
            TextOrigin::PodFiles(told) => {
                told.copy(&self.path, &mut self.bytes).ok_or_else(|| self.not_there())?
            }
        };
        std::str::from_utf8(&self.bytes[..length]).map_err(|_| self.strange())
    }

    fn not_there(&self) -> Why {
        format!("the pod shows no {}", self.path.display()).into()
    }

    /// Returns the numbers after these names, each in its own line, with or without a colon.
    pub(super) fn named<const N: usize>(&mut self, names: [&str; N]) -> [Counter; N] {
        match self.text().map(|text| names.map(|name| named(text, name))) {
            Ok(values) => {
                let mut columns = names.into_iter();
                values.map(|value| {
                    let name = columns.next().unwrap_or_default();
                    value.ok_or_else(|| self.without(name))
                })
            }
            Err(why) => names.map(|_| Err(why.clone())),
        }
    }

    /// Returns the result of parsing the file's text.
    pub(super) fn parsed<T>(&mut self, parse: impl FnOnce(&str) -> Option<T>) -> Result<T, Why> {
        let parsed = parse(self.text()?);
        parsed.ok_or_else(|| self.strange())
    }

    /// Returns the reason that the kernel's file does not contain this name.
    pub(super) fn without(&self, name: &str) -> Why {
        format!("{} has no {name} on this kernel", self.path.display()).into()
    }

    fn strange(&self) -> Why {
        format!("{} does not read as expected", self.path.display()).into()
    }
}

/// Reads a file from its beginning. Returns its length in bytes.
fn read_all(file: &File, bytes: &mut Vec<u8>) -> io::Result<usize> {
    let mut length = 0;
    loop {
        if bytes.len() < length + ROOM {
            bytes.resize(length + ROOM, 0);
        }
        match file.read_at(&mut bytes[length..], length as u64)? {
            0 => return Ok(length),
            more => length += more,
        }
    }
}

/// Returns the reason for a file that could not be opened or read.
pub(super) fn unread(path: &Path, error: &io::Error) -> Why {
    format!("cannot read {}: {error}", path.display()).into()
}

/// Returns the number after a name at the beginning of a line.
pub(super) fn named(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| -> Option<u64> {
        let tail = line.strip_prefix(name)?;
        let value = tail.strip_prefix(':').unwrap_or(tail).strip_prefix([' ', '\t'])?;
        value.split_ascii_whitespace().next()?.parse().ok()
    })
}

/// Returns the number at a position, counted from 0 in words.
pub(super) fn number(text: &str, place: usize) -> Option<u64> {
    text.split_ascii_whitespace().nth(place)?.parse().ok()
}

/// Returns `total` of the line `some` (kernel Documentation/accounting/psi.rst), microseconds.
pub(super) fn pressure(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("some "))?;
    let mut fields = line.split_ascii_whitespace();
    fields.find_map(|field| field.strip_prefix("total="))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_by_whole_names() {
        let text = "MemFree:  7 kB\nnr_throttled 3\nnr_throttled_more 9\nctxt 12\nempty:\n";
        let cases = [
            ("MemFree", Some(7)),
            ("nr_throttled", Some(3)),
            ("ctxt", Some(12)),
            ("Mem", None),
            ("empty", None),
        ];
        for (name, value) in cases {
            assert_eq!(named(text, name), value, "{name}");
        }
        let text = "some avg10=0.00 avg60=0.00 avg300=0.06 total=8027190\nfull avg10=0 total=5\n";
        assert_eq!(pressure(text), Some(8_027_190));
        assert_eq!(pressure("full total=5\n"), None);
    }

    #[test]
    fn what_cannot_be_read_says_why() {
        let mut none = Files::Here.open("/proc/nothing");
        let [value] = none.named(["a"]);
        assert!(value.unwrap_err().contains("No such file"));
        let mut meminfo = Files::Here.open("/proc/meminfo");
        let [free, other] = meminfo.named(["MemAvailable", "NoSuchThing"]);
        assert!(free.unwrap() > 0);
        let why = other.unwrap_err();
        assert!(why.contains("/proc/meminfo has no NoSuchThing"), "{why}");
    }
}
