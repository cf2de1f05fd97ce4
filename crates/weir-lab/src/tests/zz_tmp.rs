use super::bench::{Bench, load};
use std::time::Duration;
use weir_model::study::{MatrixCell, Metric, StudyArrivals};

#[test]
fn widths() {
    let seeds: u64 = std::env::var("SEEDS").unwrap().parse().unwrap();
    for scenario in ["quiet", "bursts", "white noise", "instances that differ"] {
        for new in [false, true] {
            let mut w: Vec<Vec<Vec<f64>>> = vec![vec![Vec::new(); 10]; 2];
            for seed in 0..seeds {
                let model = weir_simulation::scenarios(seed + 1)
                    .into_iter()
                    .find(|(n, _)| *n == scenario)
                    .unwrap()
                    .1;
                let mut bench = Bench::new(&["stock", "other", "third"], 1, model);
                bench.study.loads = (1..=10)
                    .map(|i| {
                        let rate = 100.0 * i as f64;
                        let mut c = load(&format!("r{rate}"), StudyArrivals::Constant(rate), 36);
                        c.connections = 100;
                        if new {
                            c.duration = Duration::from_secs_f64(match i {
                                1 | 10 => 23.6,
                                2 => 18.5,
                                _ => 14.3,
                            });
                            c.cell = Some(MatrixCell {
                                matrix: String::new(),
                                connections: 100,
                                rate: Some(rate),
                            });
                        }
                        c
                    })
                    .collect();
                if new {
                    bench.study.blocks.slice = Some(Duration::from_millis(140));
                    bench.study.blocks.discard = 0.05;
                    bench.study.blocks.at_least = 8;
                } else {
                    bench.study.blocks.slice = Some(Duration::from_secs(1));
                    bench.study.blocks.discard = 0.1;
                    bench.study.blocks.at_least = 6;
                    bench.study.blocks.instances = 1;
                }
                let f = bench.findings();
                for (i, l) in f.loads.iter().enumerate() {
                    for c in &l.comparisons {
                        let m = match c.metric {
                            Metric::ResponseP50 => 0,
                            Metric::ResponseP99 => 1,
                            _ => continue,
                        };
                        if c.n >= 6 && c.interval.0.is_finite() && c.interval.0 > 0.0 {
                            w[m][i].push((c.interval.1 / c.interval.0).ln() / 2.0);
                        }
                    }
                }
            }
            for (m, name) in ["p50", "p99"].iter().enumerate() {
                let row: Vec<String> = w[m]
                    .iter_mut()
                    .map(|v| {
                        v.sort_by(f64::total_cmp);
                        if v.is_empty() {
                            "   -".into()
                        } else {
                            format!("{:5.2}", 100.0 * v[v.len() / 2])
                        }
                    })
                    .collect();
                println!(
                    "{scenario:22} {} {name} {}",
                    if new { "new" } else { "old" },
                    row.join(" ")
                );
            }
        }
    }
}
