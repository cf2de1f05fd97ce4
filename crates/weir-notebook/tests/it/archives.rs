//! Archives of runs: a way there and back, and what is refused on the way back.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::Command;

use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};
use tar::{Builder, EntryType, Header};
use weir_model::record::Outcome;
use weir_notebook::{ArchiveError, ImportLimits, MANIFEST, pack, unpack};
use weir_record::{Run, read_header};

use crate::made::{Notebook, make_header, names_in};

const SECRET: &str = "S3CRETS3CRET";

/// Adds a run with a secret in its header, its study and a configuration.
fn add_with_secrets(notebook: &Notebook) -> std::path::PathBuf {
    let mut header = make_header("run");
    let request = &mut header.study.loads[0].main.requests[0].request;
    request.fields = vec![("X-Session".to_owned(), SECRET.to_owned())];
    let dir = notebook.add_with(&header, Some(Outcome::Complete));
    fs::write(dir.join("study.yaml"), format!("fields: {{X-Session: {SECRET}}}\n")).unwrap();
    fs::create_dir_all(dir.join("arms/stock")).unwrap();
    let conf = format!("proxy_set_header Authorization \"Basic {SECRET}\";\n");
    fs::write(dir.join("arms/stock/nginx.conf"), conf).unwrap();
    fs::write(dir.join("arms/stock/key.der"), b"\xff\xfe").unwrap();
    fs::create_dir(dir.join("samples")).unwrap();
    fs::write(dir.join("samples/host.csv"), "t_s,host,arm\n").unwrap();
    dir
}

fn has_secret(folder: &Path) -> bool {
    let names = names_in(folder).into_iter().map(|name| folder.join(name));
    names.into_iter().any(|path| {
        if path.is_dir() {
            has_secret(&path)
        } else {
            String::from_utf8_lossy(&fs::read(&path).unwrap()).contains(SECRET)
        }
    })
}

#[test]
fn a_run_goes_through_an_archive_with_and_without_its_secrets() {
    let notebook = Notebook::new();
    let dir = add_with_secrets(&notebook);
    let original = Run::read(&dir).unwrap();
    for with_secrets in [true, false] {
        let file = notebook.path(&format!("{with_secrets}.tar.gz"));
        let packed = pack(&dir, File::create(&file).unwrap(), with_secrets).unwrap();
        let into = notebook.path(&format!("into-{with_secrets}"));
        let unpacked = unpack(&file, &into, ImportLimits::default()).unwrap();
        assert_eq!(unpacked, into.join("run"));
        assert_eq!(names_in(&into), ["run"]);
        let run = Run::read(&unpacked).unwrap();
        assert_eq!(run.records, original.records);
        assert_eq!(has_secret(&unpacked), with_secrets);
        assert_eq!(run.header == original.header, with_secrets);
        assert_eq!(unpacked.join("arms/stock/key.der").exists(), with_secrets);
        assert_eq!(packed.masked.len(), if with_secrets { 0 } else { 3 }, "{packed:?}");
        assert_eq!(packed.left_out.len(), usize::from(!with_secrets));
        assert!(!unpacked.join("run.identity").exists());
        // A second one does not touch the first.
        let again = unpack(&file, &into, ImportLimits::default());
        assert!(matches!(again, Err(ArchiveError::Exists(_))), "{again:?}");
        assert_eq!(names_in(&into), ["run"]);
    }
}

#[test]
fn tar_and_sha256sum_read_an_archive() {
    let notebook = Notebook::new();
    let dir = add_with_secrets(&notebook);
    let file = notebook.path("run.tar.gz");
    pack(&dir, File::create(&file).unwrap(), false).unwrap();
    let by_tar = notebook.path("by tar");
    fs::create_dir(&by_tar).unwrap();
    let tar = Command::new("tar").arg("-xzf").arg(&file).arg("-C").arg(&by_tar).status().unwrap();
    assert!(tar.success());
    let mut sums = Command::new("sha256sum");
    sums.args(["--check", "--strict", "--quiet", MANIFEST]).current_dir(by_tar.join("run"));
    assert!(sums.status().unwrap().success());
    assert_eq!(read_header(&by_tar.join("run")).unwrap().run, "run");
}

#[test]
fn what_is_no_regular_file_is_not_packed() {
    let notebook = Notebook::new();
    let dir = notebook.add("run", 1, Some(Outcome::Complete));
    std::os::unix::fs::symlink("/etc/passwd", dir.join("link")).unwrap();
    let refused = pack(&dir, Vec::new(), false).unwrap_err().to_string();
    assert!(refused.contains("link cannot be packed: it is no regular file"), "{refused}");
}

/// An entry of a forged archive.
struct Forged {
    name: &'static str,
    kind: EntryType,
    content: Vec<u8>,
}

fn regular(name: &'static str, content: &[u8]) -> Forged {
    Forged { name, kind: EntryType::Regular, content: content.to_vec() }
}

fn special(name: &'static str, kind: EntryType) -> Forged {
    Forged { name, kind, content: Vec::new() }
}

/// Writes an archive with these entries, whatever their names are, and a manifest of the regular ones.
fn forge(path: &Path, mut entries: Vec<Forged>, has_manifest: bool) {
    let manifest: String = entries
        .iter()
        .filter(|entry| entry.kind == EntryType::Regular)
        .map(|entry| {
            let name = entry.name.split_once('/').map_or(entry.name, |(_, below)| below);
            let sum: String =
                Sha256::digest(&entry.content).iter().map(|byte| format!("{byte:02x}")).collect();
            format!("{sum}  {name}\n")
        })
        .collect();
    if has_manifest {
        entries.push(regular("run/MANIFEST.sha256", manifest.as_bytes()));
    }
    let mut archive =
        Builder::new(GzEncoder::new(File::create(path).unwrap(), Compression::fast()));
    for entry in entries {
        let mut header = Header::new_ustar();
        header.as_mut_bytes()[..entry.name.len()].copy_from_slice(entry.name.as_bytes());
        header.set_entry_type(entry.kind);
        header.set_size(entry.content.len() as u64);
        header.set_cksum();
        archive.append(&header, &entry.content[..]).unwrap();
    }
    archive.into_inner().unwrap().finish().unwrap().flush().unwrap();
}

#[test]
fn a_hostile_archive_is_refused_and_leaves_nothing() {
    let notebook = Notebook::new();
    let file = notebook.path("forged.tar.gz");
    let into = notebook.path("into");
    let other_sum = format!("{}  a\n", "0".repeat(64));
    let rows: Vec<(&str, Vec<Forged>, bool)> = vec![
        ("leads out of its folder", vec![regular("/etc/weir", b"x")], true),
        ("leads out of its folder", vec![regular("run/../../out", b"x")], true),
        ("leads out of its folder", vec![regular("../out", b"x")], true),
        ("is a link", vec![special("run/link", EntryType::Symlink)], true),
        ("is a link", vec![special("run/link", EntryType::Link)], true),
        ("is no regular file", vec![special("run/fifo", EntryType::Fifo)], true),
        ("is no regular file", vec![special("run/device", EntryType::Block)], true),
        ("is no regular file", vec![special("run/long", EntryType::GNULongName)], true),
        ("is no regular file", vec![special("run/pax", EntryType::XHeader)], true),
        ("is no regular file", vec![special("run/sparse", EntryType::GNUSparse)], true),
        ("no plain text", vec![regular("run/\u{1b}[2J", b"x")], true),
        ("is in a hidden folder", vec![regular(".import/run.json", b"x")], true),
        ("is not in the folder of a run", vec![regular("run.json", b"x")], true),
        ("in another folder", vec![regular("run/a", b"x"), regular("other/a", b"x")], true),
        ("is there twice", vec![regular("run/a", b"x"), regular("run/a", b"y")], true),
        ("has more than 100 bytes", vec![regular("run/a", &[0; 200])], true),
        ("has no MANIFEST.sha256", vec![regular("run/a", b"x")], false),
        (
            "does not have the sum",
            vec![regular("run/a", b"x"), regular("run/MANIFEST.sha256", other_sum.as_bytes())],
            false,
        ),
        (
            "is not in MANIFEST.sha256",
            vec![regular("run/a", b"x"), regular("run/MANIFEST.sha256", b"")],
            false,
        ),
        (
            "is in MANIFEST.sha256 and is missing",
            vec![regular("run/MANIFEST.sha256", other_sum.as_bytes())],
            false,
        ),
        ("is not a run folder", vec![regular("run/a", b"x")], true),
        ("has no files", vec![], false),
    ];
    for (why, entries, has_manifest) in rows {
        forge(&file, entries, has_manifest);
        let bytes = if why.contains("100 bytes") { 100 } else { 4096 };
        let refused = unpack(&file, &into, ImportLimits { bytes, files: 3 }).unwrap_err();
        assert!(refused.to_string().contains(why), "{why}: {refused}");
        assert_eq!(names_in(&into), [""; 0], "{why}");
    }
    let four = ["run/a", "run/b", "run/c", "run/d"].map(|name| regular(name, b"x"));
    forge(&file, four.into(), true);
    let refused = unpack(&file, &into, ImportLimits { bytes: 4096, files: 3 }).unwrap_err();
    assert!(refused.to_string().contains("has more than 3 files"), "{refused}");
}

#[test]
fn a_damaged_or_endless_archive_is_refused() {
    let notebook = Notebook::new();
    let dir = notebook.add("run", 1, Some(Outcome::Complete));
    let file = notebook.path("run.tar.gz");
    pack(&dir, File::create(&file).unwrap(), false).unwrap();
    let into = notebook.path("into");
    let archive = fs::read(&file).unwrap();
    let mut flipped = archive.clone();
    // In the checksum of gzip (RFC 1952): the last eight bytes are CRC32 and length.
    let in_checksum = flipped.len() - 6;
    flipped[in_checksum] ^= 1;
    for bytes in
        [&archive[..archive.len() / 2], &archive[..archive.len() - 4], &flipped, b"no gzip", b""]
    {
        fs::write(&file, bytes).unwrap();
        assert!(unpack(&file, &into, ImportLimits::default()).is_err(), "{} bytes", bytes.len());
        assert_eq!(names_in(&into), [""; 0]);
    }
    // A few kilobytes of zeros after the end of the archive would otherwise become gigabytes.
    let mut bomb = GzEncoder::new(File::create(&file).unwrap(), Compression::best());
    for _ in 0..64 {
        bomb.write_all(&[0; 1 << 16]).unwrap();
    }
    bomb.finish().unwrap();
    let refused = unpack(&file, &into, ImportLimits { bytes: 4096, files: 3 }).unwrap_err();
    assert!(refused.to_string().contains("has more than 4096 bytes"), "{refused}");
}
