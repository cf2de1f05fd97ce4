//! The schemas that the program prints.

use weir_testkit::program::run;
use weir_testkit::schema::path;

/// Checks the printed text only: a test of `weir/src/schemas/` compares the schemas with the types.
#[test]
fn the_program_prints_the_schemas_of_docs_and_all_are_listed() {
    let index = std::fs::read_to_string(path("README").with_extension("md")).expect("an index");
    let names = run("generate schema").with_code(0).stdout;
    assert!(names.lines().count() >= 10, "{names}");
    for name in names.lines() {
        let schema = run(&format!("generate schema {name}")).with_code(0).stdout;
        let written = std::fs::read_to_string(path(name)).unwrap_or_default();
        assert!(schema == written, "{name} is not that of this weir");
        assert!(index.contains(&format!("({name}.json)")), "{name} is not in the index");
    }
    run("generate schema weir-nothing-1").refused_in_a_line(&["no schema called `weir-nothing-1`"]);
}
