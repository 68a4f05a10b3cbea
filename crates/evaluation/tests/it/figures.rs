//! Statistics against figures that Python's standard library gives (`cases/figures.py`), and by hand.

use evaluation::figures::{
    IntervalMethod, SetScore, calibration_error, clustered_mean, compare_paired, pass_all, pass_any,
    pass_figures, set_figures, spread_over_runs,
};
use serde_json::Value;

fn reference() -> Value {
    serde_json::from_str(include_str!("cases/figures.json")).unwrap()
}

fn number(value: &Value, key: &str) -> f64 {
    value[key].as_f64().unwrap_or_else(|| panic!("{key} in {value}"))
}

fn size(value: &Value, key: &str) -> usize {
    usize::try_from(value[key].as_u64().unwrap()).unwrap()
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|score| score.as_f64().unwrap()).collect()
}

#[track_caller]
fn close(given: f64, wanted: f64) {
    assert!((given - wanted).abs() < 1e-12, "{given} is not {wanted}");
}

#[test]
fn means_are_clustered_by_task() {
    for case in reference()["clustered"].as_array().unwrap() {
        let tasks: Vec<Vec<f64>> = case["tasks"].as_array().unwrap().iter().map(numbers).collect();
        let estimate = clustered_mean(&tasks).unwrap();
        close(estimate.mean, number(case, "mean"));
        close(estimate.standard_error.unwrap(), number(case, "se"));
        let (low, high) = estimate.interval.unwrap();
        close(low, number(case, "low"));
        close(high, number(case, "high"));
        assert_eq!(estimate.method, IntervalMethod::Normal);
    }
}

#[test]
fn one_sample_a_task_gives_the_ordinary_error() {
    let case = &reference()["one_each"];
    let tasks: Vec<[f64; 1]> = numbers(&case["scores"]).into_iter().map(|score| [score]).collect();
    close(clustered_mean(&tasks).unwrap().standard_error.unwrap(), number(case, "se"));
}

#[test]
fn means_at_the_edge() {
    assert!(clustered_mean::<[f64; 1]>(&[]).is_none());
    assert!(clustered_mean(&[Vec::new(), Vec::new()]).is_none());
    let single = clustered_mean(&[vec![1.0, 0.0]]).unwrap();
    assert_eq!((single.mean, single.standard_error, single.interval), (0.5, None, None));
    // All right in 10 tasks: Wilson's interval is 1 / (1 + 1.96² / 10) … 1.
    let all = clustered_mean(&[[1.0]; 10]).unwrap();
    assert_eq!((all.method, all.standard_error), (IntervalMethod::Wilson, Some(0.0)));
    let (low, high) = all.interval.unwrap();
    assert!((low - 0.722_467).abs() < 1e-6 && (high - 1.0).abs() < 1e-12, "{low} {high}");
}

#[test]
fn spread_of_runs() {
    for case in reference()["runs"].as_array().unwrap() {
        close(spread_over_runs(&numbers(&case["accuracies"])).unwrap(), number(case, "sd"));
    }
    assert_eq!(spread_over_runs(&[0.5]), None);
}

#[test]
fn pass_at_k_is_what_all_draws_give() {
    let reference = reference();
    let cases =
        reference["pass"].as_array().unwrap().iter().chain(reference["pass_large"].as_array().unwrap());
    for case in cases {
        let (n, c, k) = (size(case, "n"), size(case, "c"), size(case, "k"));
        close(pass_any(n, c, k).unwrap(), number(case, "any"));
        close(pass_all(n, c, k).unwrap(), number(case, "all"));
    }
    for (n, c, k) in [(3, 1, 0), (3, 1, 4), (3, 4, 1), (0, 0, 1)] {
        assert_eq!((pass_any(n, c, k), pass_all(n, c, k)), (None, None), "{n} {c} {k}");
    }
}

#[test]
fn pass_figures_go_as_far_as_every_task_allows() {
    let figures = pass_figures(&[(3, 1), (4, 4), (3, 0)]);
    assert_eq!(figures.iter().map(|figure| figure.k).collect::<Vec<_>>(), [1, 2, 3]);
    close(figures[0].any.mean, (1.0 / 3.0 + 1.0) / 3.0);
    close(figures[1].any.mean, (2.0 / 3.0 + 1.0) / 3.0);
    close(figures[2].all.mean, 1.0 / 3.0);
    assert!(pass_figures(&[(0, 0), (3, 1)]).is_empty());
}

#[test]
fn comparison_is_paired() {
    let case = &reference()["paired"];
    let pairs: Vec<(f64, f64)> = case["pairs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|pair| (pair[0].as_f64().unwrap(), pair[1].as_f64().unwrap()))
        .collect();
    let compared = compare_paired(&pairs).unwrap();
    close(compared.difference, number(case, "difference"));
    close(compared.standard_error.unwrap(), number(case, "se"));
    let (low, high) = compared.interval.unwrap();
    close(low, number(case, "low"));
    close(high, number(case, "high"));
    assert_eq!((compared.tasks, compared.wins, compared.losses, compared.ties), (5, 3, 1, 1));
    assert!(compare_paired(&[]).is_none());
}

#[test]
fn calibration_by_hand() {
    // Two bins of two: (0.1, 0.3 → 0.2; none right) and (0.8, 1.0 → 0.9; half right).
    let samples = [(0.8, true), (0.1, false), (1.0, false), (0.3, false)];
    let wanted = (0.5 * 0.2_f64.powi(2) + 0.5 * 0.4_f64.powi(2)).sqrt();
    close(calibration_error(&samples, 2).unwrap(), wanted);
    // Fewer than a bin: one bin. Mean confidence 0.55, a quarter right.
    close(calibration_error(&samples, 100).unwrap(), 0.3);
    // The rest goes into the last bin.
    close(calibration_error(&samples[..3], 2).unwrap(), (1.9 / 3.0 - 1.0 / 3.0_f64).abs());
    assert_eq!((calibration_error(&[], 10), calibration_error(&samples, 0)), (None, None));
}

#[test]
fn set_answers_by_hand() {
    let score = |found, expected, excess| Some(SetScore { found, expected, excess });
    let figures =
        set_figures(&[score(2, 2, 0), score(2, 2, 2), score(0, 3, 1), score(1, 2, 0), None]).unwrap();
    close(figures.fully_correct, 0.2);
    close(figures.correct_with_excess, 0.2);
    close(figures.fully_incorrect, 0.4);
    close(figures.f1, (1.0 + 4.0 / 6.0 + 0.0 + 2.0 / 3.0) / 5.0);
    assert!(set_figures(&[]).is_none());
}
