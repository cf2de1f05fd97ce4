//! `make sbom`: prints weir's bill of materials.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let bom = weir_supply::metadata(&root)
        .and_then(|metadata| weir_supply::bom(&metadata, &weir_supply::built(&root)?));
    let (mut out, mut words) = (std::io::stdout(), std::io::stderr());
    let written = match bom {
        Ok(bom) => writeln!(out, "{bom:#}"),
        Err(error) => {
            // Nobody is left to be told if this fails.
            let _ = writeln!(words, "weir-supply: {error}");
            return ExitCode::FAILURE;
        }
    };
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
