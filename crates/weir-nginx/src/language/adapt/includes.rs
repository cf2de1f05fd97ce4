//! `include` in a copy: one that stood for several files names the copied files one by one.

use std::path::{Component, Path, PathBuf};

use super::Adaptation;
use crate::language::syntax::{Directive, quoted};
use crate::language::view::is_include;

impl Adaptation<'_> {
    /// Adapts the includes of a file, with those among the entries of blocks.
    pub(super) fn includes(&mut self, file: usize, directives: &[Directive], names: &[PathBuf]) {
        for directive in directives {
            if is_include(directive) {
                self.include(file, directive, names);
            } else if !directive.is("split_clients") {
                self.includes(file, directive.children(), names);
            }
        }
    }

    fn include(&mut self, file: usize, directive: &Directive, names: &[PathBuf]) {
        let argument = directive.argument(0).unwrap_or_default();
        let files = self.source.includes.get(argument);
        let folder = names[0].parent().unwrap_or(Path::new(""));
        let includes: Vec<String> = files
            .map_or(&[][..], |files| files)
            .iter()
            .map(|&file| relative(folder, &names[file]))
            .map(|path| format!("include {};", quoted(&path.to_string_lossy())))
            .collect();
        if includes.is_empty() {
            self.remove(file, directive);
            return;
        }
        let span = directive.span();
        let lines = self.source.files[file].text[span.clone()].matches('\n');
        let text = includes.join(" ") + &"\n".repeat(lines.count());
        self.put(file, span.start, span.end, text);
    }
}

/// Returns the relative path from a folder to a file, both below one common folder.
fn relative(folder: &Path, file: &Path) -> PathBuf {
    let shared = folder.components().zip(file.components()).take_while(|(a, b)| a == b).count();
    folder
        .components()
        .skip(shared)
        .map(|_| Component::ParentDir)
        .chain(file.components().skip(shared))
        .collect()
}
