//! The schemas of `docs/schemas/`, generated from the Rust types of the formats.

use std::path::Path;

use schemars::generate::SchemaSettings;
use schemars::transform::{Transform, transform_subschemas};
use schemars::{JsonSchema, Schema};
use serde_json::{Value, json};
use weir_model::record::{Record, RunHeader};
use weir_model::{calibration, load_report, record};

use crate::commands::compare::runs;
use crate::commands::runs as run_list;
use crate::commands::{advise, capacity, config, history, parameters, report, restore, size};

/// A format: its name and version, its description, and the function that makes its schema.
struct Format {
    name: &'static str,
    /// Text after the version in the name of the file.
    part: &'static str,
    is: &'static str,
    /// True if a figure may be unknown or infinite, which is null in JSON.
    may_be_unknown: bool,
    of: fn(&Format) -> Schema,
}

const fn format(
    name: &'static str,
    is: &'static str,
    may_be_unknown: bool,
    of: fn(&Format) -> Schema,
) -> Format {
    let part = "";
    Format { name, part, is, may_be_unknown, of }
}

/// All formats.
#[rustfmt::skip]
const FORMATS: [Format; 17] = [
    format(load_report::FORMAT, "what `weir load --format json` prints", false, build_schema::<weir_report::load::Observed<'_>>),
    format(report::FORMAT, "what `weir run --format json` and `weir report --format json` print", true, build_schema::<report::Document<'_>>),
    format(size::FORMAT, "what `weir size RUN --format json` prints", true, build_schema::<size::Document<'_>>),
    format(runs::FORMAT, "what `weir compare RUN_A RUN_B --format json` prints", true, build_schema::<runs::Document<'_>>),
    format(advise::FORMAT, "what `weir advise WHAT --format json` prints", true, build_schema::<advise::Document<'_>>),
    format(advise::FORMAT_OF_LIST, "what `weir advise --format json` prints", false, build_schema::<advise::Listing<'_>>),
    format(history::FORMAT, "what `weir history --format json` prints", true, build_schema::<history::Document<'_>>),
    format(run_list::FORMAT, "what `weir runs --format json` prints", false, build_schema::<run_list::Document<'_>>),
    format(capacity::FORMAT, "what `weir capacity --format json` prints", true, build_schema::<capacity::Answer<'_>>),
    format(weir_doctor::FORMAT, "what `weir doctor --format json` prints", false, build_schema::<weir_doctor::Examination>),
    format(parameters::FORMAT, "what `weir parameters --format json` prints", false, build_schema::<parameters::Listed<'_>>),
    format(config::FORMAT, "what `weir config --format json` prints", false, build_schema::<config::ConfigListing>),
    format(restore::FORMAT, "what `weir restore --format json` prints", false, build_schema::<restore::Undone>),
    format(restore::FORMAT_OF_CLUSTER, "what `weir restore --on kubernetes --format json` prints", false, build_schema::<restore::Cleared>),
    format(calibration::FORMAT, "what `weir load --calibrate --format json` prints", false, build_schema::<calibration::Calibration>),
    format(record::FORMAT, "run.json in the folder of a run", true, build_schema::<RunHeader>),
    Format { part: "-record", ..format(record::FORMAT, "a line of records.jsonl in the folder of a run", true, build_schema::<Record>) },
];

/// Compares the schemas with the types; `WEIR_WRITE_DOCS=1 cargo test -p weir --bin weir schemas` writes them anew.
#[test]
fn the_schemas_are_those_of_the_types() {
    for format in &FORMATS {
        let name = format.file();
        let schema = serde_json::to_string_pretty(&(format.of)(format)).unwrap() + "\n";
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schemas");
        let path = Path::new(folder).join(&name).with_extension("json");
        if std::env::var_os("WEIR_WRITE_DOCS").is_some() {
            std::fs::write(&path, &schema).unwrap();
            continue;
        }
        let written = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(written == schema, "{name}.json is not that of this weir");
        // What the program has was built in before; a changed file is one of the next build.
        assert_eq!(super::schema(&name).as_deref(), Some(&*schema), "{name}");
    }
}

impl Format {
    fn file(&self) -> String {
        format!("{}{}", self.name.replace('/', "-"), self.part)
    }
}

fn build_schema<T: JsonSchema>(format: &Format) -> Schema {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    Plain(format.may_be_unknown).transform(&mut schema);
    let name = format.name;
    if let Some(Value::Object(stated)) = schema.pointer_mut("/properties/format") {
        stated.insert("const".to_owned(), json!(name));
    }
    schema.insert("title".to_owned(), json!(format.file()));
    let note = "Times are nanoseconds and rates requests per second unless the name says otherwise; shares are 0 to 1. \
                Within a version fields are only ever added: ignore those that you do not know.";
    let unknown =
        if format.may_be_unknown { " A figure that is unknown or infinite is null." } else { "" };
    let description = format!("{name}: {}. {note}{unknown}", format.is);
    schema.insert("description".to_owned(), json!(description));
    schema
}

/// Removes Rust's number formats from a schema, and makes figures nullable if they may be unknown.
struct Plain(bool);

impl Transform for Plain {
    fn transform(&mut self, schema: &mut Schema) {
        transform_subschemas(self, schema);
        let is_figure = schema.remove("format").is_some_and(|format| format == "double");
        if is_figure && self.0 && schema.get("type") == Some(&json!("number")) {
            schema.insert("type".to_owned(), json!(["number", "null"]));
        }
        let text = schema.get("description").and_then(Value::as_str);
        if let Some(text) = text.map(|text| text.replace("[`", "`").replace("`]", "`")) {
            schema.insert("description".to_owned(), json!(text));
        }
    }
}
