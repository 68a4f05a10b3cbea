//! How figures are shown: one line each, beside an aim or what the reference takes, with how many times better ours is.
//! Prints as figures come, never judges.

/// What a figure is measured against.
#[derive(Debug, Clone, Copy)]
pub enum Beside {
    /// Nothing.
    None,
    /// At most so much is wanted.
    AtMost(f64),
    /// At least so much is wanted.
    AtLeast(f64),
    /// The reference takes so much for the same; less is better.
    ReferenceTakes(f64),
    /// The reference does so much in the same time; more is better.
    ReferenceDoes(f64),
}

/// The head of a group of figures.
pub fn section(title: &str) {
    println!("\n{:<62} {:>14}   {:<22} {:>12}", title, "figure", "beside", "times better");
    println!("{}", "─".repeat(114));
}

/// One figure, in the unit that both numbers have.
pub fn figure(what: &str, value: f64, unit: &str, beside: Beside) {
    let shown = format!("{} {unit}", number(value));
    let (other, ratio) = match beside {
        Beside::None => (String::new(), None),
        Beside::AtMost(aim) => (format!("aim ≤ {} {unit}", number(aim)), Some(aim / value)),
        Beside::AtLeast(aim) => (format!("aim ≥ {} {unit}", number(aim)), Some(value / aim)),
        Beside::ReferenceTakes(other) => (format!("reference {} {unit}", number(other)), Some(other / value)),
        Beside::ReferenceDoes(other) => (format!("reference {} {unit}", number(other)), Some(value / other)),
    };
    let ratio = ratio.map(|ratio| format!("{} ×", number(ratio))).unwrap_or_default();
    println!("{what:<62} {shown:>14}   {other:<22} {ratio:>12}");
}

/// Three digits that count; whole numbers in full.
fn number(value: f64) -> String {
    let size = value.abs();
    let decimals = match size {
        _ if value.fract() == 0.0 || size >= 100.0 => 0,
        _ if size >= 10.0 => 1,
        _ if size >= 1.0 => 2,
        _ => 3,
    };
    let plain = format!("{size:.decimals$}");
    let (whole, rest) =
        plain.split_once('.').map_or((plain.as_str(), None), |(whole, rest)| (whole, Some(rest)));
    let mut text = String::new();
    for (place, digit) in whole.chars().enumerate() {
        if place > 0 && (whole.len() - place) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    let sign = if value < 0.0 { "-" } else { "" };
    rest.map_or_else(|| format!("{sign}{text}"), |rest| format!("{sign}{text}.{rest}"))
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn numbers() {
        for (value, expected) in [
            (0.0, "0"),
            (0.0351, "0.035"),
            (2.344, "2.34"),
            (39.0, "39"),
            (45.67, "45.7"),
            (999.6, "1,000"),
            (1_234_567.8, "1,234,568"),
            (-12.34, "-12.3"),
        ] {
            assert_eq!(number(value), expected);
        }
    }
}
