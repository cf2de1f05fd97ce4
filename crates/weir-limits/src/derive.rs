//! Derives quantities from the rows of a window. A quantity that cannot be determined for certain is absent, with the
//! reason.

use std::collections::BTreeMap;

use weir_model::sample::{Counters, SampleRow, Table};

use crate::evidence::{Absent, Divisor, Input};
use crate::modes::excess;
use crate::quantities::{Columns, Derivation, Keys, Take};
use crate::window::{Figure, HostSamples, Role, Trial, Window};

/// Values of the quantities that precede the current one in the file.
pub(crate) type QuantityValues = BTreeMap<String, f64>;

/// Role key of rows that belong to several roles in one network namespace.
const SHARED: &str = "shared";

/// Returns the value of a quantity in a window.
pub(crate) fn value(
    from: &Derivation,
    window: &Window<'_>,
    counters: &Counters,
    known: &QuantityValues,
) -> Result<f64, Absent> {
    let trial = window.trial;
    match from {
        Derivation::Samples(of) => of_samples(of, window, counters),
        Derivation::Ratio { of, by } => {
            share(find_known(known, of)?, find_known(known, by)?, Divisor::Quantity(by.clone()))
        }
        Derivation::Less { of, by } => {
            let minuend = find_known(known, of)?;
            Ok((minuend - known.get(by).unwrap_or(&0.0)).max(0.0))
        }
        Derivation::Trial(Figure::OthersCpu) => {
            let read = figure_of(trial, Figure::OthersCpu);
            read.or_else(|unknown| others(window, counters).ok_or(unknown))
        }
        Derivation::Trial(figure) => figure_of(trial, *figure),
        Derivation::Errors(kinds) => {
            let errors = trial.errors.as_ref().ok_or(Absent::NotGiven(Input::Errors))?;
            let failed: u64 = kinds.iter().filter_map(|kind| errors.get(kind)).sum();
            share(failed as f64, trial.requests as f64, Divisor::Requests)
        }
        Derivation::Setting(ids) => {
            let level = ids
                .iter()
                .find_map(|id| trial.settings.get(id))
                .ok_or_else(|| Absent::NotGiven(Input::Setting(ids.clone())))?;
            let word = if level == "off" { 0.0 } else { 1.0 };
            Ok(level.parse().unwrap_or(word))
        }
        Derivation::Modes(at) => excess(at, &trial.response_times),
    }
}

fn find_known(known: &QuantityValues, name: &str) -> Result<f64, Absent> {
    known.get(name).copied().ok_or_else(|| Absent::NotGiven(Input::Quantity(name.to_owned())))
}

fn figure_of(trial: &Trial, figure: Figure) -> Result<f64, Absent> {
    trial.figures.get(&figure).copied().ok_or(Absent::NotGiven(Input::Figure(figure)))
}

fn share(part: f64, whole: f64, divisor: Divisor) -> Result<f64, Absent> {
    if whole == 0.0 { Err(Absent::OfNothing(divisor)) } else { Ok(part / whole) }
}

/// Returns the share of the proxy's CPU time that went to other processes, from samples of its host, if no reading was
/// taken when the load came and went. CPU time of the trial's own processes on other CPUs is subtracted, too: the
/// result is a lower bound. `None` if unknown.
fn others(window: &Window<'_>, counters: &Counters) -> Option<f64> {
    const TASKS: [&str; 2] = ["user_ns", "system_ns"];
    const ALL: [&str; 6] = ["user_ns", "system_ns", "softirq_ns", "irq_ns", "steal_ns", "idle_ns"];
    let hosts: Vec<HostSamples> =
        window.hosts.iter().filter(|host| host.roles.contains(&Role::Proxy)).cloned().collect();
    let window = Window { hosts: &hosts, ..*window };
    let (tasks, all) = (
        read_in_use("cpus", &TASKS, &window, counters)?,
        read_in_use("cpus", &ALL, &window, counters)?,
    );
    // All processes of a server must be known; of threads that weir starts and ends meanwhile, those that were seen.
    let server = read_in_use("processes", &TASKS, &window, counters)?;
    let peers = [Role::Generator, Role::Origin].map(|role| {
        let rates = each_key(&build_rate("processes", &TASKS, role, 1.0), &window, counters);
        rates.iter().map(|(_, rate)| rate).sum::<f64>()
    });
    let of_trial = server + peers.iter().sum::<f64>();
    (all > 0.0).then(|| (tasks - of_trial).max(0.0) / all)
}

/// Returns the rate of the proxy's columns; `None` if any of its pods could not be read, as what is missing would be
/// taken for that of others.
fn read_in_use(
    table: &str,
    columns: &[&str],
    window: &Window<'_>,
    counters: &Counters,
) -> Option<f64> {
    let rate = build_rate(table, columns, Role::Proxy, 1.0);
    let (value, unread) = as_far_as_read(&rate, window, counters).ok()?;
    unread.is_none().then_some(value)
}

/// Builds the rate of the sum of columns of a role, times `scale`.
pub(crate) fn build_rate(table: &str, columns: &[&str], role: Role, scale: f64) -> Columns {
    Columns {
        table: table.to_owned(),
        columns: columns.iter().map(|name| (*name).to_owned()).collect(),
        role: Some(role),
        only: BTreeMap::new(),
        take: Take::Rate,
        keys: Keys::Sum,
        share_of: Vec::new(),
        scale,
    }
}

/// Rows by key, in order of time.
type Series<'a> = BTreeMap<&'a [String], Vec<&'a SampleRow>>;

/// Returns the value of a derivation from samples, for as many pods as could be read.
fn of_samples(of: &Columns, window: &Window<'_>, counters: &Counters) -> Result<f64, Absent> {
    Ok(as_far_as_read(of, window, counters)?.0)
}

/// Returns the value of a derivation from samples and, if some of the proxy's pods could not be read, the reason.
fn as_far_as_read(
    of: &Columns,
    window: &Window<'_>,
    counters: &Counters,
) -> Result<(f64, Option<Absent>), Absent> {
    let Some(table) = counters.table(&of.table) else {
        return Err(Absent::NotSampled(join_columns(of)));
    };
    let (mut by_host, mut unread) = (Vec::new(), None);
    for host in window.hosts {
        match of_host(of, table, host, window) {
            Ok(read) => by_host.extend(read),
            // Others of the proxy's pods can be read: it is known for these.
            Err(absent @ Absent::Missing { .. }) if of.role == Some(Role::Proxy) => {
                unread.get_or_insert(absent);
            }
            Err(absent) => return Err(absent),
        }
    }
    if by_host.is_empty() {
        Err(unread.unwrap_or_else(|| Absent::NotSampled(join_columns(of))))
    } else {
        Ok((together(of.keys, &by_host) * of.scale, unread))
    }
}

fn join_columns(of: &Columns) -> String {
    format!("{}.{}", of.table, of.columns.join("+"))
}

/// Returns the value for one host; `None` if the derivation does not concern the host.
fn of_host(
    of: &Columns,
    table: &Table,
    host: &HostSamples,
    window: &Window<'_>,
) -> Result<Option<f64>, Absent> {
    if of.role.is_some_and(|role| !host.roles.contains(&role)) {
        return Ok(None);
    }
    let series = select_series(of, table, host, window);
    if series.is_empty() {
        return find_missing(of, host).map_or(Ok(None), Err);
    }
    let series = without_shared(with_cells(series, of, table), of, table);
    let reader = Reader { of, table, series };
    let read = if of.take == Take::Begun {
        Ok(reader.begun())
    } else if of.take.is_of_counters() {
        reader.differences(figure_of(window.trial, Figure::RateCompleted))
    } else {
        reader.gauges()
    };
    // What the sampler said of it is worth more than that a cell is empty.
    read.map(Some).map_err(|absent| match absent {
        Absent::NotSampled(_) | Absent::SampledOnce(_) => find_missing(of, host).unwrap_or(absent),
        absent => absent,
    })
}

/// Returns how many of the proxy's hosts or pods a quantity covers, and how many there are; `None` if it covers all.
pub(crate) fn read_of(
    from: &Derivation,
    window: &Window<'_>,
    counters: &Counters,
) -> Option<(u32, u32)> {
    let Derivation::Samples(of) = from else {
        return None;
    };
    let table = counters.table(&of.table)?;
    let reads: Vec<_> = window
        .hosts
        .iter()
        .map(|host| of_host(of, table, host, window))
        .filter(|read| !matches!(read, Ok(None)))
        .collect();
    let read = reads.iter().filter(|read| read.is_ok()).count();
    (read < reads.len()).then_some((read as u32, reads.len() as u32))
}

/// Returns the growth of columns per second for each key. A key that appeared, vanished or cannot be read is left out.
pub(crate) fn each_key(
    of: &Columns,
    window: &Window<'_>,
    counters: &Counters,
) -> Vec<(Vec<String>, f64)> {
    let Some(table) = counters.table(&of.table) else {
        return Vec::new();
    };
    let of_host = window.hosts.iter().flat_map(|host| {
        let series = select_series(of, table, host, window);
        let reader = Reader { of, table, series };
        let rates = reader.series.iter().filter_map(|(keys, rows)| {
            let (first, last) = (rows.first()?.at_ns, rows.last()?.at_ns);
            let grown = reader.sum(&of.columns, rows).ok()?;
            let is_same = !reader.is_restarted(rows);
            let rate = grown * of.scale * 1e9 / last.checked_sub(first)? as f64;
            (is_same && rate.is_finite()).then(|| (keys.to_vec(), rate))
        });
        rates.collect::<Vec<_>>()
    });
    of_host.collect()
}

fn find_missing(of: &Columns, host: &HostSamples) -> Option<Absent> {
    let role = of.role.map_or("", Role::name);
    let missing = host.missing.iter().find(|missing| {
        let is_role = missing.role.is_empty() || role.is_empty() || missing.role == role;
        let mut names = of.columns.iter().chain(&of.share_of).chain(of.only.get("counter"));
        missing.table == of.table
            && is_role
            && (missing.column.is_empty() || names.any(|name| *name == missing.column))
    })?;
    Some(Absent::Missing {
        column: format!("{}.{}", missing.table, missing.column),
        why: missing.why.clone(),
    })
}

fn together(keys: Keys, values: &[f64]) -> f64 {
    match keys {
        Keys::Sum => values.iter().sum(),
        Keys::Busiest => values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        Keys::Least => values.iter().copied().fold(f64::INFINITY, f64::min),
        Keys::Mean => values.iter().sum::<f64>() / values.len() as f64,
    }
}

/// Returns the rows that a derivation uses. Rows of a namespace shared by several roles count as the proxy's only,
/// because they are read for the proxy's sockets.
fn select_series<'a>(
    of: &Columns,
    table: &Table,
    host: &'a HostSamples,
    window: &Window<'_>,
) -> Series<'a> {
    let role_key = find_key(table, "role").zip(of.role);
    let only: Vec<(usize, &String)> =
        of.only.iter().filter_map(|(key, value)| Some((find_key(table, key)?, value))).collect();
    let cpus = of.role.and_then(|role| host.cpus.get(&role)).zip(find_key(table, "cpu"));
    let rows = host.rows.iter().filter(|row| {
        row.table == of.table
            && (row.arm.is_empty() || window.arm.is_empty() || row.arm == window.arm)
            && (window.from_ns..=window.until_ns).contains(&row.at_ns)
            && only.iter().all(|(index, value)| row.keys.get(*index) == Some(*value))
            && role_key.is_none_or(|(index, role)| {
                let key = row.keys.get(index).map(String::as_str);
                (role == Role::Proxy && key == Some(SHARED)) || key == Some(role.name())
            })
            && cpus.is_none_or(|(cpus, index)| {
                let number = row.keys.get(index).and_then(|cpu| cpu.parse().ok());
                number.is_some_and(|cpu: u64| cpus.contains(&cpu))
            })
    });
    let mut series = Series::new();
    for row in rows {
        series.entry(&row.keys).or_default().push(row);
    }
    series
}

fn find_key(table: &Table, name: &str) -> Option<usize> {
    table.keys().position(|key| key == name)
}

/// Keeps only the keys that have values in these columns, in a table whose rows may lack some; keeps all keys if none
/// has.
fn with_cells<'a>(series: Series<'a>, of: &Columns, table: &Table) -> Series<'a> {
    if !table.partial {
        return series;
    }
    let indices: Vec<usize> = table
        .values()
        .enumerate()
        .filter(|(_, name)| of.columns.iter().any(|column| column == name))
        .map(|(index, _)| index)
        .collect();
    let (filled, empty): (Series<'a>, Series<'a>) = series.into_iter().partition(|(_, rows)| {
        rows.iter().any(|row| {
            let mut cells = indices.iter().map(|index| row.values.get(*index));
            cells.any(|cell| cell.copied().flatten().is_some())
        })
    });
    if filled.is_empty() { empty } else { filled }
}

/// Removes the rows shared by several roles if the role has rows of its own.
fn without_shared<'a>(series: Series<'a>, of: &Columns, table: &Table) -> Series<'a> {
    let role_index = find_key(table, "role");
    let (unshared, shared): (Series<'a>, Series<'a>) = series.into_iter().partition(|(keys, _)| {
        let key = role_index.and_then(|index| keys.get(index));
        key.zip(of.role).is_none_or(|(key, role)| key == role.name())
    });
    if unshared.is_empty() { shared } else { unshared }
}

/// Reads the rows of one host.
struct Reader<'a> {
    of: &'a Columns,
    table: &'a Table,
    series: Series<'a>,
}

impl Reader<'_> {
    fn name(&self, column: &str) -> String {
        format!("{}.{column}", self.of.table)
    }

    fn cell(&self, row: &SampleRow, column: &str) -> Option<u64> {
        let index = self.table.values().position(|name| name == column)?;
        row.values.get(index).copied().flatten()
    }

    fn differences(&self, rate: Result<f64, Absent>) -> Result<f64, Absent> {
        let times = self.series.values().flatten().map(|row| row.at_ns);
        let (first, last) = (times.clone().min(), times.max());
        let (mut parts, mut wholes, mut values) = (0.0, 0.0, Vec::new());
        let mut seconds: f64 = 0.0;
        for rows in self.series.values() {
            let (begin, end) =
                (rows.first().map(|row| row.at_ns), rows.last().map(|row| row.at_ns));
            if (begin, end) != (first, last) || self.is_restarted(rows) {
                return Err(Absent::CameOrWent(self.of.table.clone()));
            }
            let part = self.sum(&self.of.columns, rows)?;
            let span = end.unwrap_or(0).saturating_sub(begin.unwrap_or(0)) as f64 / 1e9;
            seconds = seconds.max(span);
            let total =
                if self.of.share_of.is_empty() { 1.0 } else { self.sum(&self.of.share_of, rows)? };
            parts += part;
            wholes += total;
            values.push(if total == 0.0 { 0.0 } else { part / total });
        }
        let value = match self.of.keys {
            Keys::Sum if !self.of.share_of.is_empty() => {
                share(parts, wholes, Divisor::Columns(self.name(&self.of.share_of.join("+"))))?
            }
            Keys::Sum => parts,
            keys => together(keys, &values),
        };
        match self.of.take {
            Take::Rate => Ok(value / seconds),
            Take::PerRequest => share(value, rate? * seconds, Divisor::Requests),
            _ => Ok(value),
        }
    }

    /// Returns the total growth of several columns from the first row to the last.
    fn sum(&self, columns: &[String], rows: &[&SampleRow]) -> Result<f64, Absent> {
        if rows.len() < 2 {
            return Err(Absent::SampledOnce(self.name(&columns.join("+"))));
        }
        let mut grown = 0;
        for pair in rows.windows(2) {
            let [before, after] = pair else { continue };
            if after.at_ns <= before.at_ns {
                return Err(Absent::Clock(self.of.table.clone()));
            }
            for column in columns {
                let (before, after) = self
                    .cell(before, column)
                    .zip(self.cell(after, column))
                    .ok_or_else(|| Absent::NotSampled(self.name(column)))?;
                let more = after.checked_sub(before);
                grown += more.ok_or_else(|| Absent::WentBack(self.name(column)))?;
            }
        }
        Ok(grown as f64)
    }

    /// Returns true if a process id was reused by another process.
    fn is_restarted(&self, rows: &[&SampleRow]) -> bool {
        rows.windows(2)
            .any(|pair| self.cell(pair[0], "started_ticks") != self.cell(pair[1], "started_ticks"))
    }

    /// Returns the number of keys that appeared after the first moment.
    fn begun(&self) -> f64 {
        let begins: Vec<u64> =
            (self.series.values()).filter_map(|rows| Some(rows.first()?.at_ns)).collect();
        let first = begins.iter().min();
        begins.iter().filter(|begin| Some(*begin) > first).count() as f64
    }

    /// Combines the keys at each moment, and then the moments. Moments with an empty cell are left out: some gauges are
    /// not read every time.
    fn gauges(&self) -> Result<f64, Absent> {
        let mut moments: BTreeMap<u64, Option<(Vec<f64>, f64, f64)>> = BTreeMap::new();
        for row in self.series.values().flatten() {
            let part = self.sum_cells(row, &self.of.columns);
            let total = if self.of.share_of.is_empty() {
                Some(1.0)
            } else {
                self.sum_cells(row, &self.of.share_of).filter(|total| *total > 0.0)
            };
            let moment = moments.entry(row.at_ns).or_insert_with(|| Some((Vec::new(), 0.0, 0.0)));
            match (part.zip(total), moment.as_mut()) {
                (Some((part, total)), Some((values, parts, wholes))) => {
                    values.push(part / total);
                    *parts += part;
                    *wholes += total;
                }
                _ => *moment = None,
            }
        }
        let is_share = !self.of.share_of.is_empty();
        let over_time: Vec<f64> = moments
            .into_values()
            .flatten()
            .map(|(values, parts, wholes)| match self.of.keys {
                Keys::Sum if is_share => parts / wholes,
                keys => together(keys, &values),
            })
            .collect();
        let Some(last) = over_time.last() else {
            return Err(Absent::NotSampled(self.name(&self.of.columns.join("+"))));
        };
        Ok(match self.of.take {
            Take::Most => together(Keys::Busiest, &over_time),
            Take::Least => together(Keys::Least, &over_time),
            Take::Mean => together(Keys::Mean, &over_time),
            _ => *last,
        })
    }

    fn sum_cells(&self, row: &SampleRow, columns: &[String]) -> Option<f64> {
        let mut cells = columns.iter().map(|column| self.cell(row, column));
        cells.try_fold(0.0, |sum, cell| Some(sum + cell? as f64))
    }
}
