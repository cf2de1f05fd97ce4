//! Tables of a run as Parquet files: typed columns, their units in the metadata of the file.
//!
//! Text columns are UTF-8 strings, counts are unsigned 64-bit integers, and everything else is a double. A column may be
//! empty in any row. The unit of a column is in the file's metadata under `unit.COLUMN`, since only readers of Arrow's
//! own schemas know metadata of columns.

use std::io::Write;
use std::sync::Arc;

use parquet::basic::{LogicalType, Repetition, Type as PhysicalType};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;
use weir_analysis::findings::Findings;
use weir_model::foreign::from_cell;
use weir_model::sample::Counters;
use weir_record::Run;
use weir_report::csv::{self, CsvTable};
use weir_report::secrets::masked;

/// Maximum number of rows in a group, which a writer keeps in memory.
const GROUP_ROWS: usize = 1 << 16;

/// Columns of words in the tables of verdicts and trials.
const TEXT_COLUMNS: [&str; 10] = [
    "load",
    "load_validity",
    "arm",
    "metric",
    "against",
    "verdict",
    "validity",
    "claimed",
    "objective",
    "phase",
];

/// Columns of whole numbers in these tables, apart from those of nanoseconds and `status_…`.
const COUNT_COLUMNS: [&str; 13] = [
    "session",
    "block",
    "blocks_used",
    "connections",
    "due",
    "offered",
    "sent",
    "queued",
    "dropped",
    "completed",
    "errors",
    "unanswered",
    "response_time_count",
];

/// Kind of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ColumnKind {
    Text,
    Count,
    Number,
}

/// A column with its values, as text.
#[derive(Debug)]
struct Column {
    name: String,
    unit: &'static str,
    kind: ColumnKind,
    /// Value of each row; `None` if there is none.
    cells: Vec<Option<String>>,
}

/// A table to be written.
#[derive(Debug)]
pub struct ParquetTable {
    /// Name of the table.
    pub name: String,
    columns: Vec<Column>,
}

/// Returns the tables of a run: `verdicts`, `trials`, and `samples-NAME` for each table of samples that has rows.
pub fn tables(run: &Run, findings: &Findings) -> Vec<ParquetTable> {
    let mut tables = vec![
        from_csv("verdicts", &csv::findings(findings)),
        from_csv("trials", &csv::trials(&run.records)),
    ];
    tables.extend(sample_tables(run));
    tables
}

fn from_csv(name: &str, table: &CsvTable) -> ParquetTable {
    let columns = table.columns.iter().enumerate().map(|(index, column)| Column {
        name: (*column).to_owned(),
        unit: unit_of(column),
        kind: kind_of(column),
        cells: table
            .rows
            .iter()
            .map(|row| row.get(index).filter(|cell| !cell.is_empty()))
            .map(|cell| cell.map(|cell| masked(from_cell(cell)).into_owned()))
            .collect(),
    });
    ParquetTable { name: name.to_owned(), columns: columns.collect() }
}

fn kind_of(column: &str) -> ColumnKind {
    let is_time = column.ends_with("_ns") && !column.ends_with("_mean_ns");
    if TEXT_COLUMNS.contains(&column) {
        ColumnKind::Text
    } else if is_time || COUNT_COLUMNS.contains(&column) || column.starts_with("status_") {
        ColumnKind::Count
    } else {
        ColumnKind::Number
    }
}

/// Returns the unit that a column's name ends in; empty for counts, shares and words.
fn unit_of(column: &str) -> &'static str {
    [("_bytes_per_s", "bytes/s"), ("_per_s", "1/s"), ("_bytes", "bytes")]
        .into_iter()
        .chain([("_ns", "ns"), ("_us", "us"), ("_ms", "ms"), ("_s", "s"), ("_kib", "KiB")])
        .find(|(ending, _)| column.ends_with(ending))
        .map_or("", |(_, unit)| unit)
}

fn sample_tables(run: &Run) -> Vec<ParquetTable> {
    let tables = Counters::builtin().tables.iter().map(|table| {
        let rows: Vec<_> =
            run.samples.rows.iter().filter(|sample| sample.row.table == table.name).collect();
        let times = rows.iter().map(|sample| Some((sample.row.at_ns as f64 / 1e9).to_string()));
        let mut columns = vec![
            Column {
                name: "t_s".to_owned(),
                unit: "s",
                kind: ColumnKind::Number,
                cells: times.collect(),
            },
            Column::of_words("host", rows.iter().map(|sample| Some(sample.host.clone())).collect()),
            Column::of_words("arm", rows.iter().map(|sample| filled(&sample.row.arm)).collect()),
        ];
        for (index, name) in table.keys().enumerate() {
            let keys = rows.iter().map(|sample| filled(sample.row.keys.get(index)?));
            columns.push(Column::of_words(name, keys.collect()));
        }
        for (index, name) in table.values().enumerate() {
            let values = rows.iter().map(|sample| {
                let value = sample.row.values.get(index).copied().flatten();
                value.map(|value| value.to_string())
            });
            columns.push(Column {
                name: name.to_owned(),
                unit: unit_of(name),
                kind: ColumnKind::Count,
                cells: values.collect(),
            });
        }
        ParquetTable { name: format!("samples-{}", table.name), columns }
    });
    tables.filter(|table| table.rows() > 0).collect()
}

fn filled(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

impl ParquetTable {
    fn rows(&self) -> usize {
        self.columns.first().map_or(0, |column| column.cells.len())
    }

    /// Writes the table as a Parquet file.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn write(&self, output: impl Write + Send) -> Result<(), ParquetError> {
        let fields = self.columns.iter().map(Column::field).collect::<Result<_, _>>()?;
        let schema = Type::group_type_builder("table").with_fields(fields).build()?;
        let units = self.columns.iter().filter(|column| !column.unit.is_empty());
        let units = units
            .map(|column| KeyValue::new(format!("unit.{}", column.name), column.unit.to_owned()));
        let properties = WriterProperties::builder()
            .set_created_by("weir".to_owned())
            .set_key_value_metadata(Some(units.collect()))
            .build();
        let mut file = SerializedFileWriter::new(output, Arc::new(schema), Arc::new(properties))?;
        for begin in (0..self.rows()).step_by(GROUP_ROWS) {
            let mut group = file.next_row_group()?;
            for column in &self.columns {
                let end = column.cells.len().min(begin + GROUP_ROWS);
                column.write(&mut group, &column.cells[begin..end])?;
            }
            group.close()?;
        }
        file.close().map(drop)
    }
}

impl Column {
    fn of_words(name: &str, cells: Vec<Option<String>>) -> Column {
        Column { name: name.to_owned(), unit: "", kind: ColumnKind::Text, cells }
    }

    fn field(&self) -> Result<Arc<Type>, ParquetError> {
        let (physical, logical) = match self.kind {
            ColumnKind::Text => (PhysicalType::BYTE_ARRAY, Some(LogicalType::String)),
            ColumnKind::Count => (PhysicalType::INT64, Some(LogicalType::integer(64, false))),
            ColumnKind::Number => (PhysicalType::DOUBLE, None),
        };
        Type::primitive_type_builder(&self.name, physical)
            .with_repetition(Repetition::OPTIONAL)
            .with_logical_type(logical)
            .build()
            .map(Arc::new)
    }

    fn write<W: Write + Send>(
        &self,
        group: &mut SerializedRowGroupWriter<'_, W>,
        cells: &[Option<String>],
    ) -> Result<(), ParquetError> {
        match self.kind {
            ColumnKind::Text => {
                write_values::<ByteArrayType, W>(group, cells, |text| Some(ByteArray::from(text)))
            }
            // The bits of an unsigned number, as its logical type says.
            ColumnKind::Count => write_values::<Int64Type, W>(group, cells, |text| {
                text.parse().ok().map(u64::cast_signed)
            }),
            ColumnKind::Number => {
                write_values::<DoubleType, W>(group, cells, |text| text.parse().ok())
            }
        }
    }
}

/// Writes the values of a column. Definition levels tell rows with a value (1) from those without (0).
fn write_values<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    cells: &[Option<String>],
    parse: fn(&str) -> Option<T::T>,
) -> Result<(), ParquetError> {
    let parsed: Vec<Option<T::T>> =
        cells.iter().map(|cell| cell.as_deref().and_then(parse)).collect();
    let levels: Vec<i16> = parsed.iter().map(|value| i16::from(value.is_some())).collect();
    let values: Vec<T::T> = parsed.into_iter().flatten().collect();
    let mut column = group
        .next_column()?
        .ok_or_else(|| ParquetError::General("the schema has too few columns".to_owned()))?;
    column.typed::<T>().write_batch(&values, Some(&levels), None)?;
    column.close()
}
