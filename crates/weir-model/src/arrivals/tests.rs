use super::*;

const TEN: Duration = Duration::from_secs(10);
const S: u64 = 1_000_000_000;

fn segments(text: &str) -> Vec<(f64, f64, u64)> {
    let segments = parse_segments(text, TEN).unwrap();
    segments.iter().map(|s| (s.from, s.to, s.ns)).collect()
}

fn refused(text: &str) -> String {
    parse_segments(text, TEN).unwrap_err().to_string()
}

#[test]
fn one_rate_lasts_as_long_as_the_load() {
    for text in ["2000", "2k", "2k@10s", " 2000 ", "2k..2k"] {
        assert_eq!(segments(text), [(2000.0, 2000.0, 10 * S)], "{text}");
    }
}

#[test]
fn a_range_grows_over_the_whole_load() {
    assert_eq!(segments("100..5k"), [(100.0, 5000.0, 10 * S)]);
    assert_eq!(segments("0 .. 0.5"), [(0.0, 0.5, 10 * S)]);
    assert_eq!(segments("5000..0"), [(5000.0, 0.0, 10 * S)]);
}

#[test]
fn steps_have_equal_lengths_that_add_up() {
    let steps = segments("1000,2000,0..5k");
    assert_eq!(steps.iter().map(|step| step.2).sum::<u64>(), 10 * S);
    assert!(steps.iter().all(|step| step.2.abs_diff(10 * S / 3) <= 1));
    assert_eq!((steps[2].0, steps[2].1), (0.0, 5000.0));
}

#[test]
fn steps_have_the_lengths_given_and_the_last_what_remains() {
    assert_eq!(
        segments("1000@2s, 0@500ms, 2k"),
        [(1000.0, 1000.0, 2 * S), (0.0, 0.0, S / 2), (2000.0, 2000.0, 15 * S / 2)]
    );
    assert_eq!(segments("1k@2s,2k@3s")[1], (2000.0, 2000.0, 3 * S));
    let length = length_of_steps("1k@10s,2k@20s").unwrap();
    assert_eq!(length, Some(Duration::from_secs(30)));
    for text in ["1k", "1k..2k", "1k,2k", "1k@10s,2k"] {
        assert_eq!(length_of_steps(text), Ok(None), "{text}");
    }
}

#[test]
fn what_is_no_rate_over_time_says_what_would_be() {
    for text in ["1000..", "..5", "1..2..3", "1000,", ",", "1000,,5", "@10s", "1...5"] {
        assert!(
            refused(text).contains("(1000@10s,2000@20s,500)")
                || refused(text).contains("a rate in requests per second"),
            "{text}: {}",
            refused(text)
        );
    }
    #[rustfmt::skip]
    let rows = [
        ("fast", "`fast` is not a rate in requests per second"),
        ("1k,fast", "`fast` is not a rate"),
        ("1k..-2", "`-2` is out of range"),
        ("0", "`0` is out of range: a rate must be from 0.000001 to 1000000000"),
        ("12,050,000", "`12,050,000` is not a rate: write 12050000 without commas"),
        ("1,000@1s,5", "without commas between its digits"),
        ("0,0@5s", "step `0` of `0,0@5s` has no length: write one as in `0@10s`"),
        ("0@2s,0", "`0@2s,0` never sends anything"),
        ("1k@ten,2k", "`ten` is not a duration such as"),
        ("1k@0s,2k", "step `1k@0s` of `1k@0s,2k` lasts no time"),
        ("1k@9s,2k@3s", "the steps of `1k@9s,2k@3s` take 12s, but there are only 10s"),
        ("1k@10s,2k", "take 10s and the last needs time too, but there are only 10s"),
    ];
    for (text, want) in rows {
        assert!(refused(text).contains(want), "{text}: {}", refused(text));
    }
}

#[test]
fn spacings_have_one_word_and_a_number() {
    for (text, want) in [
        ("even", Spacing::Even),
        ("poisson", Spacing::Poisson { seed: 1 }),
        ("poisson:7", Spacing::Poisson { seed: 7 }),
        ("burst:50", Spacing::Burst { size: 50 }),
    ] {
        assert_eq!(parse_spacing(text), Ok(want));
    }
    #[rustfmt::skip]
    let rows = [
        ("posson", "the nearest is `poisson`"),
        ("Poisson", "the nearest is `poisson`"),
        ("exponential", "the nearest is `poisson`"),
        ("bursts:5", "the nearest is `burst:50`"),
        ("constant", "the nearest is `even`"),
        ("every tuesday", "write even, poisson, poisson:SEED or burst:SIZE"),
        ("even:3", "has a number, which `even` does not take: write even"),
        ("poisson:x", "has a seed that is not a whole number: write poisson:7"),
        ("burst", "has no size: write burst:50"),
        ("burst:0", "has a size that is not a whole number above zero"),
    ];
    for (text, want) in rows {
        let message = parse_spacing(text).unwrap_err().to_string();
        assert!(message.contains(want), "{text}: {message}");
    }
}
