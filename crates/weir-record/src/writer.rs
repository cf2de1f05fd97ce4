//! Writer of run folders. Every append reaches the kernel before it returns.

use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::io::{ErrorKind, Seek, SeekFrom, Write};
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use hdrhistogram::Histogram;
use weir_model::record::{Record, RunHeader};
use weir_model::sample::{MissingCounter, SampleRow};

use crate::histogram_log::{Encoder, PREAMBLE};
use crate::samples::{SAMPLES_FOLDER, SampleLogs};
use crate::{
    HEADER_FILE, HISTOGRAMS_FILE, IDENTITY_FILE, RECORDS_FILE, RecordError, Run, STUDY_FILE,
};

/// Writer of one run folder. While it exists, no other process can write to the same run.
pub struct RunWriter {
    dir: PathBuf,
    records: AppendLog,
    histograms: AppendLog,
    samples: SampleLogs,
    encoder: Encoder,
    line: Vec<u8>,
    /// True if the folder was created, and not there before.
    made_folder: bool,
    /// Files and folders that were created in it, by name.
    made: BTreeSet<PathBuf>,
}

impl RunWriter {
    /// Refuses the folder of a run to come in which others could write, or to which a link of another user's leads.
    ///
    /// # Errors
    /// [`RecordError::OpenToOthers`].
    pub fn can_create(dir: &Path) -> Result<(), RecordError> {
        weir_files::only_ours_to_be_made(dir).map_err(RecordError::OpenToOthers)
    }

    /// Makes the folder `dir`, with its parents, and writes what is known before the first trial. All of
    /// it is for its user alone: configurations are in it, with what they hold.
    ///
    /// # Errors
    /// The folder exists and holds something, others could write in it, or the kernel refuses (permission, space).
    pub fn create(
        dir: &Path,
        header: &RunHeader,
        study_text: &str,
    ) -> Result<RunWriter, RecordError> {
        RunWriter::can_create(dir)?;
        let made_folder = !dir.exists();
        weir_files::make_folders(dir).map_err(RecordError::io("create", dir))?;
        // Somebody may have been faster in a folder like /tmp.
        RunWriter::can_create(dir)?;
        let mut entries = fs::read_dir(dir).map_err(RecordError::io("read", dir))?;
        if entries.next().is_some() {
            return Err(RecordError::NotEmpty(dir.to_owned()));
        }
        let mut writer = RunWriter::open(dir)?;
        writer.made_folder = made_folder;
        writer.made = [RECORDS_FILE, HISTOGRAMS_FILE].map(PathBuf::from).into();
        writer.histograms.append(PREAMBLE.as_bytes())?;
        writer.write_file(STUDY_FILE, study_text.as_bytes())?;
        // The header comes last: where it stands, everything else does.
        let mut text = serde_json::to_vec_pretty(header).map_err(unreadable)?;
        text.push(b'\n');
        serde_json::from_slice::<RunHeader>(&text).map_err(unreadable)?;
        writer.write_file(HEADER_FILE, &text)?;
        // But for what tells the header from its copies.
        let identity = header_identity(dir)?;
        writer.write_file(IDENTITY_FILE, identity.as_bytes())?;
        Ok(writer)
    }

    /// Resumes the run in `dir` after its process ended for whatever reason, and returns the records so far.
    /// Half-written last lines are cut off.
    ///
    /// # Errors
    /// There is no run, its format is unknown, a line other than the last is damaged, another process is writing to it,
    /// others could have written it (it names programs to be run), or the kernel refuses.
    pub fn resume(dir: &Path) -> Result<(RunWriter, Run), RecordError> {
        // Read before anything is created, so that a folder that holds no run stays as it is.
        Run::read(dir)?;
        weir_files::only_ours_named(dir)?;
        let real = fs::canonicalize(dir).map_err(RecordError::io("read", dir))?;
        for name in [HEADER_FILE, STUDY_FILE, RECORDS_FILE, HISTOGRAMS_FILE] {
            weir_files::only_ours_file(&real.join(name))?;
        }
        let mut writer = RunWriter::open(dir)?;
        writer.records.cut_half_line()?;
        writer.histograms.cut_half_line()?;
        if writer.histograms.len == 0 {
            writer.histograms.append(PREAMBLE.as_bytes())?;
        }
        // Read again under the lock: another process may have written until a moment ago.
        let run = Run::read(dir)?;
        Ok((writer, run))
    }

    pub(crate) fn open(dir: &Path) -> Result<RunWriter, RecordError> {
        let records = AppendLog::open(dir.join(RECORDS_FILE))?;
        match records.file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(RecordError::Busy(dir.to_owned()));
            }
            Err(TryLockError::Error(error)) => {
                return Err(RecordError::io("lock", &records.path)(error));
            }
        }
        Ok(RunWriter {
            dir: dir.to_owned(),
            histograms: AppendLog::open(dir.join(HISTOGRAMS_FILE))?,
            records,
            samples: SampleLogs::default(),
            encoder: Encoder::new(),
            line: Vec::new(),
            made_folder: false,
            made: BTreeSet::new(),
        })
    }

    /// Redirects the records to the kernel's own full disk from now on (full(4)).
    #[cfg(test)]
    pub(crate) fn fill_the_disk(&mut self) {
        let full = File::options().append(true).open("/dev/full");
        self.records.file = full.expect("every Linux has it");
    }

    /// Discards a run without results: removes everything that was written since [`RunWriter::create`], and the folder
    /// if it was created. Files of others stay, and then the folder too.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn discard(self) -> Result<(), RecordError> {
        for name in &self.made {
            let path = self.dir.join(name);
            if !path.exists() {
                continue;
            }
            let removed =
                if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
            removed.map_err(RecordError::io("remove", &path))?;
        }
        if !self.made_folder {
            return Ok(());
        }
        match fs::remove_dir(&self.dir) {
            Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => Ok(()),
            removed => removed.map_err(RecordError::io("remove", &self.dir)),
        }
    }

    /// Returns the path of the run folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Appends a record. The ends of a load and of the run also wait for the disk: nothing is being
    /// measured then, so the flush disturbs nobody.
    ///
    /// # Errors
    /// The record could not be read back (JSON has no NaN), or the kernel refuses.
    pub fn append(&mut self, record: &Record) -> Result<(), RecordError> {
        self.line.clear();
        serde_json::to_writer(&mut self.line, record).map_err(unreadable)?;
        // A line that no reader accepts would cost the whole run; parsing it takes microseconds.
        serde_json::from_slice::<Record>(&self.line).map_err(unreadable)?;
        self.line.push(b'\n');
        self.records.append(&self.line)?;
        match record {
            Record::LoadEnd(_) | Record::End(_) => {
                self.histograms.sync()?;
                self.records.sync()
            }
            _ => Ok(()),
        }
    }

    /// Appends a histogram of nanoseconds under `tag` (see [`crate::tag`]). Must be called before the record that names
    /// the tag. `start` is relative to the begin of the load's trial.
    ///
    /// # Errors
    /// The tag cannot be written in a log, or the kernel refuses.
    pub fn append_histogram(
        &mut self,
        tag: &str,
        start: Duration,
        length: Duration,
        histogram: &Histogram<u64>,
    ) -> Result<(), RecordError> {
        let line = self.encoder.line(tag, start, length, histogram)?;
        self.histograms.append(line)
    }

    /// Appends samples of a host. Their times are nanoseconds since the run began.
    ///
    /// # Errors
    /// A table is unknown, its file has other columns, or the kernel refuses.
    pub fn append_samples(&mut self, host: &str, rows: &[SampleRow]) -> Result<(), RecordError> {
        self.made.insert(SAMPLES_FOLDER.into());
        self.samples.append(&self.dir, host, rows)
    }

    /// Appends counters of a host that could not be read and the reasons, each once per session.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn append_missing(
        &mut self,
        host: &str,
        missing: &[MissingCounter],
    ) -> Result<(), RecordError> {
        self.made.insert(SAMPLES_FOLDER.into());
        self.samples.miss(&self.dir, host, missing)
    }

    /// Writes a whole file at `relative` inside the run folder, and creates the folders it needs. A reader gets the old
    /// content or the new one, never a mixture.
    ///
    /// # Errors
    /// The path leads out of the folder, or the kernel refuses.
    pub fn write_file(&mut self, relative: &str, contents: &[u8]) -> Result<(), RecordError> {
        if relative.is_empty()
            || !Path::new(relative).components().all(|part| matches!(part, Component::Normal(_)))
        {
            return Err(RecordError::Outside(relative.to_owned()));
        }
        let first = Path::new(relative).iter().next();
        self.made.extend(first.map(PathBuf::from));
        let path = self.dir.join(relative);
        let parent = path.parent().unwrap_or(&self.dir);
        let mut above = parent.ancestors().take_while(|above| *above != self.dir);
        if above.any(Path::is_symlink) {
            return Err(RecordError::Outside(relative.to_owned()));
        }
        weir_files::make_folders(parent).map_err(RecordError::io("create", parent))?;
        weir_files::replace(&path, contents).map_err(RecordError::io("write", &path))?;
        // The new name lives in the folder, so the folder has to reach the disk as well.
        File::open(parent)
            .and_then(|folder| folder.sync_all())
            .map_err(RecordError::io("flush", parent))
    }
}

/// Returns true if the header in `dir` is the file that [`RunWriter::create`] wrote there, and not one that was copied,
/// unpacked or put in its place.
pub fn has_original_header(dir: &Path) -> bool {
    let recorded = weir_files::read_text(&dir.join(IDENTITY_FILE)).ok();
    let present = header_identity(dir).ok().map(String::into_bytes);
    recorded.is_some() && recorded == present
}

fn header_identity(dir: &Path) -> Result<String, RecordError> {
    let path = dir.join(HEADER_FILE);
    weir_files::identity(&path).map_err(RecordError::io("read", &path))
}

fn unreadable(error: serde_json::Error) -> RecordError {
    RecordError::Unreadable(error.to_string())
}

/// A file of lines that only grows.
pub(crate) struct AppendLog {
    path: PathBuf,
    file: File,
    /// Length of the whole lines, bytes.
    pub(crate) len: u64,
}

impl AppendLog {
    pub(crate) fn open(path: PathBuf) -> Result<AppendLog, RecordError> {
        let opened =
            weir_files::append(&path).and_then(|mut file| Ok((file.seek(SeekFrom::End(0))?, file)));
        let (len, file) = opened.map_err(RecordError::io("open", &path))?;
        Ok(AppendLog { path, file, len })
    }

    /// Cuts off everything after the last newline.
    pub(crate) fn cut_half_line(&mut self) -> Result<(), RecordError> {
        let bytes = weir_files::read(&self.path).map_err(RecordError::io("read", &self.path))?;
        self.len = crate::run::whole_lines(&bytes).len() as u64;
        self.file
            .set_len(self.len)
            .map_err(RecordError::io("cut the half-written last line of", &self.path))
    }

    pub(crate) fn append(&mut self, line: &[u8]) -> Result<(), RecordError> {
        if let Err(error) = self.file.write_all(line) {
            // A full disk takes a part of the line; without it the next append starts clean. If
            // this fails too, the half line is found and cut when the run is resumed.
            let _ = self.file.set_len(self.len);
            return Err(RecordError::io("write", &self.path)(error));
        }
        self.len += line.len() as u64;
        Ok(())
    }

    fn sync(&self) -> Result<(), RecordError> {
        self.file.sync_data().map_err(RecordError::io("flush", &self.path))
    }
}
