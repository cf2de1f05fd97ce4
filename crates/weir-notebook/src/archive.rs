//! A run as one file: a gzipped tar archive of its folder with a manifest of SHA-256 sums.
//!
//! An archive may come from anybody, so [`unpack`] accepts only what [`pack`] writes: regular files with plain names
//! below one folder, of a bounded number and length, each with its sum in the manifest. Extensions of tar (long names,
//! sparse files) are refused, since a reader has to trust their lengths.

mod mask;
mod unpack;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};
use tar::{Builder, Header};
use weir_record::{IDENTITY_FILE, RecordError, read_header};

use crate::folder::files_in;
use crate::summary::SUMMARY_FILE;

pub use unpack::{ImportLimits, unpack};

/// Name of the manifest in the folder of an archive. `sha256sum --check` reads it.
pub const MANIFEST: &str = "MANIFEST.sha256";

/// Files that are about one folder on one host, and mean nothing elsewhere.
const LEFT_OUT: [&str; 3] = [IDENTITY_FILE, SUMMARY_FILE, MANIFEST];

/// Description of a packed archive.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Packed {
    /// Number of files, without the manifest.
    pub files: usize,
    /// Files in which secrets were masked.
    pub masked: Vec<PathBuf>,
    /// Files that are left out because they are no text, so that nobody can tell whether they have secrets.
    pub left_out: Vec<PathBuf>,
}

/// Error when an archive is packed or unpacked.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The kernel refuses, or the archive ends early.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
    /// The run cannot be read.
    #[error(transparent)]
    Run(#[from] RecordError),
    /// Something in a run folder is no file that an archive can have.
    #[error("{} cannot be packed: {why}", path.display())]
    Unfit {
        /// Path below the run folder.
        path: PathBuf,
        /// Reason.
        why: String,
    },
    /// Something in an archive is not what weir packs.
    #[error("`{name}` in the archive {why}")]
    Refused {
        /// Name in the archive.
        name: String,
        /// Reason.
        why: String,
    },
    /// The archive as a whole is refused.
    #[error("the archive {0}")]
    NotAnArchive(String),
    /// The folder to be made exists.
    #[error("{} exists", .0.display())]
    Exists(PathBuf),
}

fn io_error(path: &Path) -> impl Fn(io::Error) -> ArchiveError + use<'_> {
    move |error| ArchiveError::Io { path: path.to_owned(), error }
}

/// Writes the archive of a run to `output`. Secrets are masked unless `with_secrets` is true.
///
/// # Errors
/// A file is not regular or cannot be masked, or the kernel refuses.
pub fn pack(dir: &Path, output: impl Write, with_secrets: bool) -> Result<Packed, ArchiveError> {
    let header = read_header(dir)?;
    let folder = plain_name(&header.run);
    let mut archive = Builder::new(GzEncoder::new(output, Compression::default()));
    let mut packed = Packed::default();
    let mut sums = BTreeMap::new();
    for file in files_in(dir).map_err(io_error(dir))? {
        if LEFT_OUT.iter().any(|name| file.path == Path::new(name)) {
            continue;
        }
        let unfit =
            |why: &str| ArchiveError::Unfit { path: file.path.clone(), why: why.to_owned() };
        if !file.is_regular {
            return Err(unfit("it is no regular file"));
        }
        let name = file.path.to_str().ok_or_else(|| unfit("its name is not UTF-8"))?;
        let path = dir.join(&file.path);
        let mut bytes = weir_files::read(&path).map_err(io_error(&path))?;
        if !with_secrets && mask::may_have_secrets(&file.path) {
            match mask::masked_file(&file.path, &bytes, &header).map_err(|why| unfit(&why))? {
                mask::Masked::Same => {}
                mask::Masked::Changed(text) => {
                    packed.masked.push(file.path.clone());
                    bytes = text;
                }
                mask::Masked::NotText => {
                    packed.left_out.push(file.path.clone());
                    continue;
                }
            }
        }
        append(&mut archive, &folder, name, &bytes).map_err(|error| unfit(&error.to_string()))?;
        sums.insert(name.to_owned(), sum(&bytes));
        packed.files += 1;
    }
    let manifest: String = sums.iter().map(|(name, sum)| format!("{sum}  {name}\n")).collect();
    let finished = append(&mut archive, &folder, MANIFEST, manifest.as_bytes())
        .and_then(|()| archive.into_inner()?.finish()?.flush());
    finished.map_err(io_error(Path::new("archive")))?;
    Ok(packed)
}

/// Appends a file of the user's own, without a time: the same run gives the same archive.
fn append(
    archive: &mut Builder<impl Write>,
    folder: &str,
    name: &str,
    bytes: &[u8],
) -> io::Result<()> {
    let mut header = Header::new_ustar();
    header.set_path(Path::new(folder).join(name))?;
    header.set_size(bytes.len() as u64);
    header.set_mode(0o600);
    header.set_mtime(0);
    header.set_cksum();
    archive.append(&header, bytes)
}

fn sum(bytes: &[u8]) -> String {
    digits(Sha256::digest(bytes).as_slice())
}

fn digits(hash: &[u8]) -> String {
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns a name of letters, digits and the characters `.`, `-`, `_`, which no shell and no tar takes for anything else.
fn plain_name(name: &str) -> String {
    let plain: String = name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' })
        .take(100)
        .collect();
    match plain.trim_start_matches('.') {
        "" => "run".to_owned(),
        shown => shown.to_owned(),
    }
}
