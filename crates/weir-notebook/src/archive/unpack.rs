//! Reading an archive that anybody may have written.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Component, Path, PathBuf};

use flate2::read::GzDecoder;
use sha2::{Digest, Sha256};
use tar::{Archive, Entry, EntryType};
use weir_record::Run;

use super::{ArchiveError, MANIFEST, digits, io_error};

/// Maximum length of the manifest, bytes.
const LONGEST_MANIFEST: u64 = 4 << 20;
/// Maximum number of parts of a name.
const MOST_PARTS: usize = 10;
/// Bytes of headers and padding for each file, at most (ustar: blocks of 512 bytes).
const TAR_OVERHEAD: u64 = 1024;

/// Limits for an archive.
#[derive(Debug, Clone, Copy)]
pub struct ImportLimits {
    /// Maximum length of all files together, bytes.
    pub bytes: u64,
    /// Maximum number of files.
    pub files: usize,
}

impl Default for ImportLimits {
    fn default() -> ImportLimits {
        ImportLimits { bytes: 4 << 30, files: 10_000 }
    }
}

/// Unpacks the archive of a run, without its manifest, as a folder below `above`, and returns its path. Either the whole run is there
/// afterwards, checked, or nothing.
///
/// # Errors
/// The archive has anything that [`super::pack`] does not write, is longer than the limits, has files with other sums
/// than its manifest, or holds no run that can be read; or the folder exists.
pub fn unpack(archive: &Path, above: &Path, limits: ImportLimits) -> Result<PathBuf, ArchiveError> {
    weir_files::make_folders(above).map_err(io_error(above))?;
    // A level deeper than lists of runs look, so that a half-unpacked folder is never taken for a run.
    let hidden = above.join(format!(".import-{}", std::process::id()));
    weir_files::make_folder(&hidden).map_err(io_error(&hidden))?;
    let unpacked = unpack_into(archive, &hidden, limits).and_then(|name| {
        Run::read(&hidden.join(&name))?;
        let target = above.join(&name);
        // A folder without files would be replaced.
        if target.symlink_metadata().is_ok() {
            return Err(ArchiveError::Exists(target));
        }
        fs::rename(hidden.join(&name), &target).map_err(io_error(&target))?;
        Ok(target)
    });
    let removed = fs::remove_dir_all(&hidden).map_err(io_error(&hidden));
    let target = unpacked?;
    removed.map(|()| target)
}

/// Unpacks all files, checks their sums, and returns the name of their folder.
fn unpack_into(
    archive: &Path,
    folder: &Path,
    limits: ImportLimits,
) -> Result<PathBuf, ArchiveError> {
    let fails = io_error(archive);
    let file = weir_files::open_regular(archive).map_err(&fails)?;
    let longest = limits.bytes.saturating_add(TAR_OVERHEAD.saturating_mul(limits.files as u64 + 2));
    let mut tar = Archive::new(GzDecoder::new(io::BufReader::new(file)).take(longest));
    let mut unpacking = Unpacking { folder, limits, name: None, sums: BTreeMap::new(), bytes: 0 };
    // Raw: extensions are entries of their own, which are refused.
    for entry in tar.entries().map_err(&fails)?.raw(true) {
        unpacking.add(entry.map_err(&fails)?)?;
    }
    // To the end, where gzip has its checksum.
    let mut unpacked = tar.into_inner();
    io::copy(&mut unpacked, &mut io::sink()).map_err(&fails)?;
    if unpacked.limit() == 0 {
        return Err(too_long(limits));
    }
    let Some(name) = unpacking.name.clone() else {
        return Err(ArchiveError::NotAnArchive("has no files".to_owned()));
    };
    unpacking.check_sums(&name)?;
    Ok(name)
}

fn refuse(name: &str, why: &str) -> ArchiveError {
    ArchiveError::Refused { name: name.to_owned(), why: why.to_owned() }
}

fn too_long(limits: ImportLimits) -> ArchiveError {
    ArchiveError::NotAnArchive(format!("has more than {} bytes of files", limits.bytes))
}

/// State of unpacking.
struct Unpacking<'a> {
    folder: &'a Path,
    limits: ImportLimits,
    /// Name of the folder that all files are in.
    name: Option<PathBuf>,
    /// Sum of each file, by its path below that folder.
    sums: BTreeMap<String, String>,
    bytes: u64,
}

impl Unpacking<'_> {
    fn add(&mut self, mut entry: Entry<'_, impl Read>) -> Result<(), ArchiveError> {
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        match entry.header().entry_type() {
            EntryType::Regular | EntryType::Continuous => {}
            EntryType::Directory => return Ok(()),
            EntryType::Symlink | EntryType::Link => return Err(refuse(&name, "is a link")),
            _ => return Err(refuse(&name, "is no regular file")),
        }
        let (folder, below) = split(&name).map_err(|why| refuse(&name, why))?;
        if self.name.get_or_insert_with(|| folder.clone()) != &folder {
            return Err(refuse(&name, "is in another folder than the files before it"));
        }
        let length =
            entry.header().entry_size().map_err(|error| refuse(&name, &error.to_string()))?;
        self.bytes = self.bytes.saturating_add(length);
        if self.bytes > self.limits.bytes {
            return Err(too_long(self.limits));
        }
        if self.sums.len() >= self.limits.files {
            let files = self.limits.files;
            return Err(ArchiveError::NotAnArchive(format!("has more than {files} files")));
        }
        let path = self.folder.join(&folder).join(&below);
        let parent = path.parent().unwrap_or(self.folder);
        weir_files::make_folders(parent).map_err(io_error(parent))?;
        let mut file = weir_files::create_new(&path).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => refuse(&name, "is there twice"),
            _ => io_error(&path)(error),
        })?;
        let (copied, sum) = copy(&mut entry, &mut file).map_err(io_error(&path))?;
        if copied != length {
            return Err(refuse(&name, "ends early"));
        }
        self.sums.insert(below, sum);
        Ok(())
    }

    /// Compares the sums of all files with the manifest, and removes it: pages of the run are written again later.
    fn check_sums(&mut self, name: &Path) -> Result<(), ArchiveError> {
        let path = self.folder.join(name).join(MANIFEST);
        if self.sums.remove(MANIFEST).is_none() {
            return Err(ArchiveError::NotAnArchive(format!("has no {MANIFEST}")));
        }
        if path.metadata().is_ok_and(|metadata| metadata.len() > LONGEST_MANIFEST) {
            return Err(ArchiveError::NotAnArchive(format!("has too long a {MANIFEST}")));
        }
        let bytes = weir_files::read_text(&path).map_err(io_error(&path))?;
        let manifest = String::from_utf8_lossy(&bytes);
        let mut listed: BTreeMap<&str, &str> = BTreeMap::new();
        for line in manifest.lines() {
            let (sum, file) = line.split_once("  ").ok_or_else(|| {
                ArchiveError::NotAnArchive(format!("has a {MANIFEST} that is no list of sums"))
            })?;
            listed.insert(file, sum);
        }
        for (file, sum) in &self.sums {
            let why = match listed.remove(file.as_str()) {
                Some(listed_sum) if listed_sum == sum => continue,
                Some(_) => format!("does not have the sum that {MANIFEST} states"),
                None => format!("is not in {MANIFEST}"),
            };
            return Err(refuse(file, &why));
        }
        if let Some((file, _)) = listed.first_key_value() {
            let why = format!("is in {MANIFEST} and is missing");
            return Err(refuse(file, &why));
        }
        fs::remove_file(&path).map_err(io_error(&path))
    }
}

/// Splits a name into the folder of the run and the path below it.
fn split(name: &str) -> Result<(PathBuf, String), &'static str> {
    if name.contains('\u{fffd}') || name.chars().any(char::is_control) {
        return Err("has a name that is no plain text");
    }
    let parts: Vec<Component<'_>> = Path::new(name).components().collect();
    if parts.iter().any(|part| !matches!(part, Component::Normal(_))) {
        return Err("has a path that leads out of its folder");
    }
    if !(2..=MOST_PARTS).contains(&parts.len()) {
        return Err("is not in the folder of a run");
    }
    let folder = PathBuf::from(parts[0].as_os_str());
    if folder.as_os_str().as_encoded_bytes().starts_with(b".") {
        return Err("is in a hidden folder");
    }
    let below: PathBuf = parts[1..].iter().collect();
    Ok((folder, below.to_string_lossy().into_owned()))
}

/// Copies bytes, and returns their number and their sum.
fn copy(from: &mut impl Read, to: &mut impl Write) -> io::Result<(u64, String)> {
    let (mut hash, mut copied, mut buffer) = (Sha256::new(), 0, vec![0; 64 << 10]);
    loop {
        let read = from.read(&mut buffer)?;
        if read == 0 {
            return Ok((copied, digits(hash.finalize().as_slice())));
        }
        hash.update(&buffer[..read]);
        to.write_all(&buffer[..read])?;
        copied += read as u64;
    }
}
