//! weir's image: its static program and nothing else, as an OCI archive.
//!
//! The archive is a tar file with the layout of the OCI image specification (image-layout.md): one layer, its
//! configuration, a manifest, an index. The same program yields the same bytes on every machine. containerd, Podman,
//! skopeo and Docker (from version 25 on) accept it as it is.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::objects::{PROGRAM, USER};

/// A file of the image.
#[derive(Debug, Clone)]
pub struct ImageFile {
    /// Path, without a leading slash.
    pub path: String,
    /// Content; `None`: a folder.
    pub content: Option<Vec<u8>>,
    /// Permission bits.
    pub mode: u32,
}

/// Reason why a program cannot be put into an image.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ImageError {
    /// The file is not a program, or one for a machine that weir does not know.
    #[error("it is not an ELF program for x86_64 or aarch64")]
    NotElf,
    /// The program needs shared libraries.
    #[error("it needs libraries, and the image has none")]
    Dynamic,
}

/// Returns the machine that a program is for, as image configurations name it, and true if it loads shared libraries;
/// `None` if it is not a known ELF program (ELF-64, System V ABI chapter 4 and 5).
fn inspect_program(program: &[u8]) -> Option<(&'static str, bool)> {
    // Of 64 bits, and the least significant byte first.
    program.starts_with(b"\x7fELF\x02\x01").then_some(())?;
    let machine = match read_number(program, 18, 2)? {
        0x3e => "amd64",
        0xb7 => "arm64",
        _ => return None,
    };
    let first = read_number(program, 32, 8)?;
    let (size, count) = (read_number(program, 54, 2)?, read_number(program, 56, 2)?);
    const INTERPRETER: u64 = 3;
    let mut kinds = (0..count).map(|index| {
        let at = first.checked_add(index.checked_mul(size)?)?;
        read_number(program, usize::try_from(at).ok()?, 4)
    });
    Some((machine, kinds.any(|kind| kind == Some(INTERPRETER))))
}

fn read_number(program: &[u8], at: usize, length: usize) -> Option<u64> {
    let bytes = program.get(at..at.checked_add(length)?)?;
    Some(bytes.iter().rev().fold(0u64, |all, byte| all << 8 | u64::from(*byte)))
}

/// Builds the image of a static program.
///
/// # Errors
/// The file is not a program, or needs shared libraries.
pub fn of_program(name: &str, program: Vec<u8>) -> Result<Vec<u8>, ImageError> {
    match inspect_program(&program) {
        None => Err(ImageError::NotElf),
        Some((_, true)) => Err(ImageError::Dynamic),
        Some((_, false)) => with(name, program, Vec::new()),
    }
}

/// Builds the image of a program with additional files, such as the libraries of a program that is not static.
///
/// # Errors
/// The file is not a program.
pub fn with(name: &str, program: Vec<u8>, more: Vec<ImageFile>) -> Result<Vec<u8>, ImageError> {
    let (machine, _) = inspect_program(&program).ok_or(ImageError::NotElf)?;
    let mut files = vec![ImageFile { path: "tmp".to_owned(), content: None, mode: 0o1777 }];
    files.push(ImageFile {
        path: PROGRAM.trim_start_matches('/').to_owned(),
        content: Some(program),
        mode: 0o755,
    });
    files.extend(more);
    let layer = tar(&files);
    let configuration = json!({
        "architecture": machine,
        "os": "linux",
        "config": {
            "User": format!("{USER}:{USER}"),
            "Env": ["PATH=/"],
            "Entrypoint": [PROGRAM],
            "Cmd": ["wait"],
        },
        "rootfs": {"type": "layers", "diff_ids": [digest(&layer)]},
        "history": [{"created_by": "weir kube image"}],
    });
    Ok(archive(name, layer, &configuration))
}

const MEDIA_TYPE: &str = "application/vnd.oci.image";

fn archive(name: &str, layer: Vec<u8>, configuration: &Value) -> Vec<u8> {
    let mut blobs = Vec::new();
    let layer = push_blob(&mut blobs, "layer.v1.tar", layer);
    let configuration =
        push_blob(&mut blobs, "config.v1+json", configuration.to_string().into_bytes());
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": format!("{MEDIA_TYPE}.manifest.v1+json"),
        "config": configuration,
        "layers": [layer],
    });
    let mut manifest = push_blob(&mut blobs, "manifest.v1+json", manifest.to_string().into_bytes());
    // The first is what containerd names an imported image, the second what other programs do.
    manifest["annotations"] = json!({
        "io.containerd.image.name": name,
        "org.opencontainers.image.ref.name": name,
    });
    let index = json!({
        "schemaVersion": 2,
        "mediaType": format!("{MEDIA_TYPE}.index.v1+json"),
        "manifests": [manifest],
    });
    let mut files = vec![
        json_file("oci-layout", &json!({"imageLayoutVersion": "1.0.0"})),
        json_file("index.json", &index),
    ];
    files.extend(blobs);
    tar(&files)
}

/// Adds a blob, and returns its descriptor.
fn push_blob(blobs: &mut Vec<ImageFile>, kind: &str, content: Vec<u8>) -> Value {
    let descriptor = json!({
        "mediaType": format!("{MEDIA_TYPE}.{kind}"),
        "digest": digest(&content),
        "size": content.len(),
    });
    blobs.push(ImageFile {
        path: format!("blobs/{}", digest(&content).replace(':', "/")),
        content: Some(content),
        mode: 0o644,
    });
    descriptor
}

fn json_file(path: &str, content: &Value) -> ImageFile {
    ImageFile {
        path: path.to_owned(),
        content: Some(content.to_string().into_bytes()),
        mode: 0o644,
    }
}

/// Returns the digest of some content in the form of descriptors.
fn digest(content: &[u8]) -> String {
    let hash = Sha256::digest(content);
    let digits: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{digits}")
}

/// Builds a tar file (ustar, POSIX.1-1988). All files belong to root and are dated 1970, so the same files yield the
/// same bytes.
fn tar(files: &[ImageFile]) -> Vec<u8> {
    let mut archive = Vec::new();
    for file in files {
        let content = file.content.as_deref();
        archive.extend_from_slice(&header(file));
        archive.extend_from_slice(content.unwrap_or_default());
        archive.resize(archive.len().next_multiple_of(BLOCK), 0);
    }
    // Two blocks of zeros are the end.
    archive.resize(archive.len() + 2 * BLOCK, 0);
    archive
}

const BLOCK: usize = 512;

fn header(file: &ImageFile) -> [u8; BLOCK] {
    let mut header = [0; BLOCK];
    let path = match file.content {
        Some(_) => file.path.clone(),
        None => format!("{}/", file.path),
    };
    let size = file.content.as_ref().map_or(0, Vec::len);
    let kind = if file.content.is_some() { "0" } else { "5" };
    put(&mut header, 0, &path);
    put(&mut header, 100, &format!("{:07o}", file.mode));
    put(&mut header, 108, "0000000");
    put(&mut header, 116, "0000000");
    put(&mut header, 124, &format!("{size:011o}"));
    put(&mut header, 136, "00000000000");
    // While the sum is formed, spaces stand in its place.
    put(&mut header, 148, "        ");
    put(&mut header, 156, kind);
    put(&mut header, 257, "ustar\x0000");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    put(&mut header, 148, &format!("{sum:06o}\0 "));
    header
}

fn put(header: &mut [u8; BLOCK], at: usize, text: &str) {
    header[at..at + text.len()].copy_from_slice(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn read_text(header: &[u8], from: usize, length: usize) -> String {
        let field = &header[from..from + length];
        let end = field.iter().position(|byte| *byte == 0).unwrap_or(length);
        String::from_utf8(field[..end].to_vec()).unwrap()
    }

    /// Reads the files of a tar file; headers are checked as far as a usual reader does.
    fn read(mut archive: &[u8]) -> BTreeMap<String, Vec<u8>> {
        let mut files = BTreeMap::new();
        while archive[0] != 0 {
            let (header, rest) = archive.split_at(BLOCK);
            let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
            let sum_field: u32 = header[148..156].iter().map(|byte| u32::from(*byte)).sum();
            let checksum = u32::from_str_radix(&read_text(header, 148, 6), 8).unwrap();
            assert_eq!(checksum, sum - sum_field + 8 * u32::from(b' '), "the header's sum");
            let size = usize::from_str_radix(&read_text(header, 124, 11), 8).unwrap();
            files.insert(read_text(header, 0, 100), rest[..size].to_vec());
            archive = &rest[size.next_multiple_of(BLOCK)..];
        }
        assert!(archive.len() >= 2 * BLOCK && archive.iter().all(|byte| *byte == 0));
        files
    }

    /// Builds the head of a program for x86_64 with one program header of a kind.
    fn program(kind: u8) -> Vec<u8> {
        let mut program = vec![0; 64 + 56];
        program[..6].copy_from_slice(b"\x7fELF\x02\x01");
        (program[18], program[32], program[54], program[56], program[64]) = (0x3e, 64, 56, 1, kind);
        program
    }

    fn parse_json(bytes: &[u8]) -> Value {
        serde_json::from_slice(bytes).unwrap()
    }

    /// Returns the blob of a descriptor, after comparing the two.
    fn checked_blob<'f>(files: &'f BTreeMap<String, Vec<u8>>, descriptor: &Value) -> &'f [u8] {
        let digest = descriptor["digest"].as_str().unwrap();
        let content = &files[&format!("blobs/{}", digest.replace(':', "/"))];
        assert_eq!(super::digest(content), digest);
        assert_eq!(descriptor["size"], content.len());
        content
    }

    #[test]
    fn every_digest_is_that_of_its_bytes() {
        let archive = of_program("localhost/weir:1", program(1)).unwrap();
        assert_eq!(
            archive,
            of_program("localhost/weir:1", program(1)).unwrap(),
            "the same bytes again"
        );
        let files = read(&archive);
        assert_eq!(parse_json(&files["oci-layout"])["imageLayoutVersion"], "1.0.0");
        let index = parse_json(&files["index.json"]);
        let manifest = parse_json(checked_blob(&files, &index["manifests"][0]));
        let configuration = parse_json(checked_blob(&files, &manifest["config"]));
        let layer = checked_blob(&files, &manifest["layers"][0]);
        assert_eq!(configuration["rootfs"]["diff_ids"][0], super::digest(layer));
        assert_eq!(configuration["architecture"], "amd64");
        assert_eq!(configuration["config"]["Cmd"], json!(["wait"]));
        let inside = read(layer);
        assert_eq!(inside["weir"], program(1));
        assert_eq!(inside.keys().collect::<Vec<_>>(), ["tmp/", "weir"], "nothing else");
    }

    #[test]
    fn a_program_that_needs_libraries_is_refused() {
        assert_eq!(of_program("x", program(3)).unwrap_err(), ImageError::Dynamic);
        for other in [b"#!/bin/sh\n".to_vec(), Vec::new(), program(1)[..40].to_vec()] {
            assert_eq!(of_program("x", other).unwrap_err(), ImageError::NotElf);
        }
    }
}
