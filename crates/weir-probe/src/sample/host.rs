//! Tables of the whole host: `cpus`, `host`, `softnet` and `disks`.

use super::rows::{Counter, Rows, Why};
use super::source::{Files, Source, number, pressure};

/// Name prefixes of devices that are not disks: memory, parts of files, and removable media.
const NO_DISKS: [&str; 4] = ["loop", "ram", "zram", "sr"];

/// Size of a sector in /proc/diskstats (iostats.rst), regardless of the disk, in bytes.
const SECTOR: u64 = 512;

/// Open files with counters of the whole host.
#[derive(Debug)]
pub(super) struct HostFiles {
    stat: Source,
    softnet: Source,
    pressure: [Source; 3],
    files: Source,
    meminfo: Source,
    load: Source,
    diskstats: Source,
    /// Disk names below /sys/block.
    disks: Vec<String>,
    tick_ns: u64,
}

impl HostFiles {
    pub(super) fn open(files: &Files) -> HostFiles {
        let pressure = ["cpu", "memory", "io"];
        HostFiles {
            stat: files.open("/proc/stat"),
            softnet: files.open("/proc/net/softnet_stat"),
            pressure: pressure.map(|name| files.open(format!("/proc/pressure/{name}"))),
            files: files.open("/proc/sys/fs/file-nr"),
            meminfo: files.open("/proc/meminfo"),
            load: files.open("/proc/loadavg"),
            diskstats: files.open("/proc/diskstats"),
            disks: match files {
                Files::Here => disks(),
                Files::PodFiles(_) => Vec::new(),
            },
            tick_ns: tick_ns(),
        }
    }

    pub(super) fn read(&mut self, rows: &mut Rows<'_>) {
        let cpus = self.stat.text().map(|text| cpus(text, self.tick_ns));
        match cpus {
            Ok(cpus) => cpus.into_iter().for_each(|(cpu, values)| {
                rows.of_host("cpus", vec![cpu], &values);
            }),
            Err(why) => rows.miss_table("cpus", "", &why),
        }
        let softnet = self.softnet.parsed(softnet);
        let [dropped, squeezed] = ["dropped", "squeezed"].map(|name| sum_softnet(&softnet, name));
        self.read_whole(dropped, squeezed, rows);
        match softnet {
            Ok(cpus) => cpus.into_iter().for_each(|(cpu, values)| {
                rows.of_host("softnet", vec![cpu], &values);
            }),
            Err(why) => rows.miss_table("softnet", "", &why),
        }
        match self.diskstats.text() {
            Ok(text) => {
                text.lines()
                    .filter_map(|line| disk(line, &self.disks))
                    .for_each(|(name, values)| rows.of_host("disks", vec![name], &values));
            }
            Err(why) => rows.miss_table("disks", "", &why),
        }
    }

    /// Adds the row of the table `host`.
    fn read_whole(&mut self, dropped: Counter, squeezed: Counter, rows: &mut Rows<'_>) {
        let [cpu, memory, io] = &mut self.pressure;
        let [switches] = self.stat.named(["ctxt"]);
        let [available] = self.meminfo.named(["MemAvailable"]);
        let files = self.files.text().map(str::to_owned);
        let [files, files_most] = [0, 2].map(|field| {
            let text = files.as_ref().map_err(Clone::clone)?;
            number(text, field).ok_or_else(|| "/proc/sys/fs/file-nr does not read".into())
        });
        let values = [
            ("pressure_cpu_us", cpu.parsed(pressure)),
            ("pressure_memory_us", memory.parsed(pressure)),
            ("pressure_io_us", io.parsed(pressure)),
            ("files", files),
            ("files_most", files_most),
            ("mem_available_bytes", available.map(|kib| kib * 1024)),
            ("softnet_dropped", dropped),
            ("softnet_squeezed", squeezed),
            ("context_switches", switches),
            ("load_hundredths", self.load.parsed(load)),
        ];
        rows.of_host("host", Vec::new(), &values);
    }
}

/// Returns the length of a clock tick in nanoseconds.
pub(super) fn tick_ns() -> u64 {
    1_000_000_000 / rustix::param::clock_ticks_per_second().max(1)
}

type Named<const N: usize> = (String, [(&'static str, Counter); N]);

/// Parses lines such as `cpu0 11 1 1 100 10 1 1 10 7 7`: user, nice, system, idle, iowait, irq, softirq, steal.
fn cpus(text: &str, tick_ns: u64) -> Vec<Named<6>> {
    text.lines()
        .take_while(|line| line.starts_with("cpu"))
        .filter_map(|line| read_cpu(line, tick_ns))
        .collect()
}

fn read_cpu(line: &str, tick_ns: u64) -> Option<Named<6>> {
    let (cpu, ticks) = line.strip_prefix("cpu")?.split_once(' ')?;
    cpu.parse::<u32>().ok()?;
    let times: Vec<u64> = ticks
        .split_ascii_whitespace()
        .take(8)
        .map(|ticks| Some(ticks.parse::<u64>().ok()? * tick_ns))
        .collect::<Option<_>>()?;
    let [user, nice, system, idle, waiting, irq, softirq, steal] = times[..] else {
        return None;
    };
    let values = [
        ("user_ns", Ok(user + nice)),
        ("system_ns", Ok(system)),
        ("softirq_ns", Ok(softirq)),
        ("irq_ns", Ok(irq)),
        ("steal_ns", Ok(steal)),
        ("idle_ns", Ok(idle + waiting)),
    ];
    Some((cpu.to_owned(), values))
}

/// Parses a hexadecimal line for each online CPU; the 13th column is the number of the CPU (since Linux 5.10).
fn softnet(text: &str) -> Option<Vec<Named<4>>> {
    text.lines().enumerate().map(|(index, line)| read_softnet(index, line)).collect()
}

fn read_softnet(index: usize, line: &str) -> Option<Named<4>> {
    let numbers: Vec<u64> = line
        .split_ascii_whitespace()
        .map(|hex| u64::from_str_radix(hex, 16))
        .collect::<Result<_, _>>()
        .ok()?;
    let cpu = numbers.get(12).copied().unwrap_or(index as u64).to_string();
    let rps = numbers
        .get(9)
        .copied()
        .ok_or_else(|| "softnet_stat has no received_rps on this kernel".into());
    let values = [
        ("processed", Ok(*numbers.first()?)),
        ("dropped", Ok(*numbers.get(1)?)),
        ("squeezed", Ok(*numbers.get(2)?)),
        ("received_rps", rps),
    ];
    Some((cpu, values))
}

fn sum_softnet(softnet: &Result<Vec<Named<4>>, Why>, name: &str) -> Counter {
    let cpus = softnet.as_ref().map_err(Clone::clone)?;
    cpus.iter()
        .flat_map(|(_, values)| values)
        .filter(|(column, _)| *column == name)
        .map(|(_, value)| value.clone())
        .sum()
}

/// Parses `0.52 0.58 0.59 1/467 12345` and returns the first number in hundredths.
fn load(text: &str) -> Option<u64> {
    let load: f64 = text.split_ascii_whitespace().next()?.parse().ok()?;
    Some((load * 100.0).round() as u64)
}

/// Returns the names of whole disks.
fn disks() -> Vec<String> {
    let names = std::fs::read_dir("/sys/block")
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names.filter(|name| !NO_DISKS.iter().any(|other| name.starts_with(other))).collect()
}

/// Parses a line such as `8 0 sda reads merged sectors ms writes merged sectors ms in_flight ms weighted …`; `None` if
/// it is not a whole disk, or an idle one.
fn disk(line: &str, disks: &[String]) -> Option<Named<6>> {
    let name = line.split_ascii_whitespace().nth(2)?.to_owned();
    let (reads, writes) = (number(line, 3)?, number(line, 7)?);
    let values = [
        ("reads", Ok(reads)),
        ("writes", Ok(writes)),
        ("read_bytes", Ok(number(line, 5)? * SECTOR)),
        ("written_bytes", Ok(number(line, 9)? * SECTOR)),
        ("io_ms", Ok(number(line, 12)?)),
        ("weighted_io_ms", Ok(number(line, 13)?)),
    ];
    let is_idle = reads + writes == 0;
    (disks.contains(&name) && !is_idle).then_some((name, values))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values<const N: usize>(row: &Named<N>) -> (&str, Vec<u64>) {
        let values = row.1.iter().map(|(_, value)| *value.as_ref().unwrap());
        (&row.0, values.collect())
    }

    #[test]
    fn cpus_disks_and_packets_are_read_from_their_lines() {
        let text = "cpu  9 9 9 9 9 9 9 9 0 0\ncpu3 1 2 3 4 5 6 7 8 9 9\nintr 5\n";
        let cpu_rows = cpus(text, 10);
        assert_eq!(cpu_rows.len(), 1);
        assert_eq!(values(&cpu_rows[0]), ("3", vec![30, 30, 70, 60, 80, 90]));

        let text = "0000000a 1 2 0 0 0 0 0 0 3 0 0 00000005\n0000000b 0 0 0 0 0 0 0 0 0\n";
        let softnet_rows = softnet(text).unwrap();
        assert_eq!(values(&softnet_rows[0]), ("5", vec![10, 1, 2, 3]));
        assert_eq!(values(&softnet_rows[1]).0, "1");
        assert!(softnet("nonsense\n").is_none());

        let line = " 254 0 vda 7 1 16 3 5 2 8 4 0 11 12 0 0 0 0";
        let disk_row = disk(line, &["vda".to_owned()]).unwrap();
        assert_eq!(values(&disk_row), ("vda", vec![7, 5, 8192, 4096, 11, 12]));
        assert!(disk(line, &[]).is_none(), "a part of a disk");
        assert_eq!(load("0.52 0.58 0.59 1/467 12\n"), Some(52));
    }
}
