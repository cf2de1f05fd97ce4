//! Parquet files, read back.

use std::fs::File;

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::RowAccessor;
use parquet::schema::printer::print_schema;
use weir_analysis::fixture::{Moment, build_header, build_trials, run_with_times, three_arms};
use weir_model::foreign::from_cell;
use weir_notebook::{ParquetTable, parquet_tables};
use weir_record::Run;

fn measured() -> (tempfile::TempDir, Run) {
    let header = build_header(three_arms());
    let trials = build_trials(&header, "open", 12, |_: Moment<'_>| 10_000.0);
    run_with_times(&header, trials, |_, _| (0..200).map(|number| 1_000_000 + number).collect())
}

fn read_back(table: &ParquetTable) -> SerializedFileReader<File> {
    let file = tempfile::tempfile().unwrap();
    table.write(file.try_clone().unwrap()).unwrap();
    SerializedFileReader::new(file).unwrap()
}

#[test]
fn a_parquet_file_has_the_types_and_values_of_the_csv_table_and_its_units() {
    let (_folder, run) = measured();
    let tables = parquet_tables(&run, &weir_analysis::analyze(&run));
    let names: Vec<&str> = tables.iter().map(|table| &*table.name).collect();
    assert_eq!(names, ["verdicts", "trials"]);
    let trials = read_back(&tables[1]);
    let metadata = trials.metadata().file_metadata();
    let mut schema = Vec::new();
    print_schema(&mut schema, metadata.schema());
    insta::assert_snapshot!("trials_schema", String::from_utf8(schema).unwrap());
    let units = metadata.key_value_metadata().unwrap();
    for (column, unit) in
        [("response_time_p99_ns", Some("ns")), ("rate_completed_per_s", Some("1/s")), ("arm", None)]
    {
        let pair = units.iter().find(|pair| pair.key == format!("unit.{column}"));
        assert_eq!(pair.and_then(|pair| pair.value.as_deref()), unit, "{column}");
    }

    let csv = weir_report::csv::trials(&run.records);
    let [arm, block, rate, p99] = ["arm", "block", "rate_completed_per_s", "response_time_p99_ns"]
        .map(|name| csv.columns.iter().position(|column| *column == name).unwrap());
    let rows: Vec<_> = trials.get_row_iter(None).unwrap().map(Result::unwrap).collect();
    assert_eq!(rows.len(), csv.rows.len());
    assert!(rows.len() > 30, "{} rows", rows.len());
    for (row, cells) in rows.iter().zip(&csv.rows) {
        assert_eq!(row.get_string(arm).unwrap(), from_cell(&cells[arm]));
        assert_eq!(row.get_ulong(block).unwrap().to_string(), cells[block]);
        assert_eq!(row.get_double(rate).unwrap(), cells[rate].parse::<f64>().unwrap());
        assert_eq!(row.get_ulong(p99).unwrap().to_string(), cells[p99]);
    }
    // A closed loop has no intended rate; an empty cell is null.
    let verdicts = read_back(&tables[0]);
    let against = weir_report::csv::findings(&weir_analysis::analyze(&run));
    let index = against.columns.iter().position(|column| *column == "against").unwrap();
    let nulls = verdicts.get_row_iter(None).unwrap().map(Result::unwrap);
    let nulls: Vec<bool> = nulls.map(|row| row.get_string(index).is_err()).collect();
    let empty: Vec<bool> = against.rows.iter().map(|cells| cells[index].is_empty()).collect();
    assert_eq!(nulls, empty);
    assert!(empty.contains(&true) && empty.contains(&false));
}
