//! Access log that weir has a proxy write to show the parts of its requests' durations: one line for each request, read
//! again and again. Disk space of lines that were read is freed.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;

use rustix::fs::{FallocateFlags, fallocate};

use crate::{Configuration, LoggedRequest, Proxy};

/// Numbers of requests kept from each reading: the slowest, and others that are drawn evenly. High quantiles rest on
/// few requests, and a drawn sample would have none of them.
const SLOWEST: usize = 50;
const DRAWN: usize = 150;

/// Maximum number of bytes per reading, some 100,000 lines. The rest since the last reading is left out.
const MOST: u64 = 16 << 20;
/// Number of bytes read at once.
const AT_ONCE: usize = 1 << 20;

/// Reader of the request log of one arm.
pub struct RequestLog {
    program: Arc<dyn Proxy>,
    path: PathBuf,
    file: Option<File>,
    offset: u64,
    begun: Vec<u8>,
}

impl RequestLog {
    /// Opens the log of a proxy; None if its configuration has none. Lines that are already there are not read.
    pub fn open(program: Arc<dyn Proxy>, configuration: &Configuration) -> Option<RequestLog> {
        let path = configuration.prefix().join(configuration.request_log.as_ref()?);
        let offset = std::fs::metadata(&path).map_or(0, |metadata| metadata.len());
        Some(RequestLog { program, path, file: None, offset, begun: Vec::new() })
    }

    /// Returns a sample of the requests logged since the last reading, and the number of bytes that were left out.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn read(&mut self) -> Result<(Vec<LoggedRequest>, u64), String> {
        let path = self.path.clone();
        let failed = |error: io::Error| format!("cannot read {}: {error}", path.display());
        let file = match self.file.take() {
            Some(file) => file,
            None => match weir_files::open_regular_to_write(&self.path) {
                Ok(file) => file,
                // Without a request there may be none.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    return Ok((Vec::new(), 0));
                }
                Err(error) => return Err(failed(error)),
            },
        };
        let length = file.metadata().map_err(failed)?.len();
        if length < self.offset {
            // The proxy was started anew.
            (self.offset, self.begun) = (0, Vec::new());
        }
        let end = length.min(self.offset + MOST);
        let mut requests = Vec::new();
        while self.offset < end {
            self.read_some(&file, end, &mut requests).map_err(failed)?;
        }
        let too_many = length - self.offset;
        if too_many > 0 {
            (self.offset, self.begun) = (length, Vec::new());
        }
        // The length stays, so nobody who writes is in the way. Where a file system cannot, the log is as long as
        // the run's requests make it.
        let _ = fallocate(
            &file,
            FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE,
            0,
            self.offset.max(1),
        );
        self.file = Some(file);
        Ok((draw_sample(requests), too_many))
    }

    fn read_some(
        &mut self,
        file: &File,
        end: u64,
        found: &mut Vec<LoggedRequest>,
    ) -> io::Result<()> {
        let more = (end - self.offset).min(AT_ONCE as u64) as usize;
        let old_length = self.begun.len();
        self.begun.resize(old_length + more, 0);
        let read = file.read_at(&mut self.begun[old_length..], self.offset)?;
        self.begun.truncate(old_length + read);
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.offset += read as u64;
        let complete = self.begun.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
        let lines = String::from_utf8_lossy(&self.begun[..complete]);
        found.extend(lines.lines().filter_map(|line| self.program.logged(line)));
        self.begun.drain(..complete);
        if self.begun.len() > AT_ONCE {
            self.begun.clear();
        }
        Ok(())
    }
}

/// Returns the slowest requests, each of which represents itself, and an even selection of the others, as many as there
/// is room for.
fn draw_sample(mut all: Vec<LoggedRequest>) -> Vec<LoggedRequest> {
    if all.len() > SLOWEST + DRAWN {
        let split = all.len() - SLOWEST;
        all.select_nth_unstable_by_key(split, |request| request.total_us);
        let slowest = all.split_off(split);
        // In order of time, so that what is drawn is of all of it.
        all.sort_by_key(|request| request.end_us);
        let stands_for = (all.len() as u64 * 1000) / DRAWN as u64;
        let drawn =
            (0..DRAWN).map(|place| LoggedRequest { stands_for, ..all[place * all.len() / DRAWN] });
        all = drawn.chain(slowest).collect();
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_has_the_slowest_and_stands_for_all() {
        let few: Vec<_> = (0..200).map(request_at).collect();
        assert_eq!(draw_sample(few.clone()), few);
        let all: Vec<_> = (0..10_000).map(request_at).collect();
        let mut slowest: Vec<u64> = all.iter().map(|request| request.total_us).collect();
        slowest.sort_unstable();
        let sample = draw_sample(all);
        assert_eq!(sample.len(), SLOWEST + DRAWN);
        let stand_for: u64 = sample.iter().map(|request| request.stands_for).sum();
        assert!((9_990_000..=10_000_000).contains(&stand_for), "{stand_for}");
        for total in &slowest[slowest.len() - SLOWEST..] {
            let matching = sample.iter().filter(|request| request.total_us == *total);
            assert_eq!(matching.map(|request| request.stands_for).max(), Some(1000));
        }
    }

    fn request_at(n: u64) -> LoggedRequest {
        LoggedRequest {
            end_us: n,
            total_us: (n * 7919) % 10_007,
            stands_for: 1000,
            ..LoggedRequest::default()
        }
    }
}
