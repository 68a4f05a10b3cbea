//! A report as one HTML file: the tables, and charts as SVG inside it. Nothing is loaded from anywhere.

use super::Report;
use super::sections::{Section, estimate, headline, percent, sections};
use crate::figures::Estimate;

/// Reports as one HTML file.
#[must_use]
pub fn to_html(reports: &[Report]) -> String {
    let titles: Vec<String> = reports.iter().map(|report| report.header.suite.clone()).collect();
    let title = escaped(&titles.join(", "));
    let body: String = reports.iter().map(body).collect();
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title}</title>\n\
         <style>{STYLE}</style>\n</head>\n<body>\n<main>\n{body}</main>\n</body>\n</html>\n"
    )
}

/// One report.
fn body(report: &Report) -> String {
    let mut body = format!("<h1>{}</h1>\n", escaped(&headline(report)));
    body.push_str(&states_chart(report));
    let mut bars: Vec<(String, Estimate)> = Vec::new();
    if let Some(accuracy) = report.accuracy {
        bars.push(("all".to_owned(), accuracy));
    }
    let groups = report.groups.iter().chain(report.restarts.iter().filter(|_| report.restarts.len() > 1));
    bars.extend(groups.map(|group| (format!("{} {}", group.by, group.value), group.accuracy)));
    body.push_str(&bars_chart("Accuracy with 95 % intervals", &bars));
    body.push_str(&pass_chart(report));
    for section in sections(report) {
        body.push_str(&section_html(&section));
    }
    body
}

const STYLE: &str = "\
:root{color-scheme:light dark;--ink:#1c2430;--soft:#5d6b7c;--line:#d9dee5;--paper:#fff;--good:#2f7d4f;--bad:#b4483c;\
--open:#b98a2d;--idle:#8a97a6;--accent:#2b62b5}\
@media(prefers-color-scheme:dark){:root{--ink:#e5e9ef;--soft:#9aa7b6;--line:#333d49;--paper:#161b22;--good:#5cb583;\
--bad:#e07a6d;--open:#d9b056;--idle:#6b7887;--accent:#7aa9ef}}\
body{margin:0;background:var(--paper);color:var(--ink);font:15px/1.5 system-ui,sans-serif}\
main{max-width:60rem;margin:0 auto;padding:2rem 1.25rem}h1{font-size:1.4rem}h2{font-size:1.05rem;margin:2rem 0 .5rem}\
table{border-collapse:collapse;width:100%}td,th{padding:.3rem .6rem .3rem 0;border-bottom:1px solid var(--line);\
text-align:left;vertical-align:top;overflow-wrap:anywhere;font-variant-numeric:tabular-nums}\
th{color:var(--soft);font-weight:600}td:first-child{color:var(--soft);width:16rem}p.note{color:var(--soft)}\
figure{margin:1.5rem 0}figcaption{color:var(--soft);margin-bottom:.4rem}svg{width:100%;height:auto;display:block}\
svg text{fill:var(--ink);font:13px system-ui,sans-serif}svg .soft{fill:var(--soft)}";

fn section_html(section: &Section) -> String {
    let mut html = format!("<h2>{}</h2>\n<table>\n", escaped(section.title));
    if !section.columns.is_empty() {
        let cells: String =
            section.columns.iter().map(|name| format!("<th>{}</th>", escaped(name))).collect();
        html.push_str(&format!("<tr>{cells}</tr>\n"));
    }
    for row in &section.rows {
        let cells: String = row.iter().map(|cell| format!("<td>{}</td>", escaped(cell))).collect();
        html.push_str(&format!("<tr>{cells}</tr>\n"));
    }
    html.push_str("</table>\n");
    if let Some(note) = &section.note {
        html.push_str(&format!("<p class=\"note\">{}</p>\n", escaped(note)));
    }
    html
}

/// Samples by state, as one bar.
#[expect(clippy::cast_precision_loss, reason = "counts of samples")]
fn states_chart(report: &Report) -> String {
    let correct: usize = report.correct_by.values().sum();
    let answered = report.states.get("answered").copied().unwrap_or(0);
    let open = report.unjudged + report.not_scored.min(answered.saturating_sub(correct + report.unjudged));
    let wrong = answered.saturating_sub(correct + open);
    let mut parts =
        vec![("correct", correct, "good"), ("not correct", wrong, "bad"), ("not judged", open, "open")];
    for (state, count) in &report.states {
        if state != "answered" {
            parts.push((state.as_str(), *count, if state == "pending" { "idle" } else { "soft" }));
        }
    }
    parts.retain(|(_, count, _)| *count > 0);
    let total = parts.iter().map(|(_, count, _)| count).sum::<usize>().max(1) as f64;
    let (mut bar, mut legend, mut at) = (String::new(), String::new(), 0.0);
    for (index, (name, count, colour)) in parts.iter().enumerate() {
        let width = 800.0 * *count as f64 / total;
        bar.push_str(&format!(
            "<rect x=\"{at:.1}\" y=\"0\" width=\"{width:.1}\" height=\"28\" fill=\"var(--{colour})\" \
             stroke=\"var(--paper)\"><title>{} {count}</title></rect>",
            escaped(name)
        ));
        let y = 54 + 20 * index;
        legend.push_str(&format!(
            "<rect x=\"0\" y=\"{}\" width=\"12\" height=\"12\" fill=\"var(--{colour})\"/>\
             <text x=\"20\" y=\"{y}\">{} {count}</text>",
            y - 11,
            escaped(name)
        ));
        at += width;
    }
    figure("Samples", &format!("{bar}{legend}"), 50 + 20 * parts.len())
}

/// Horizontal bars with intervals.
fn bars_chart(caption: &str, bars: &[(String, Estimate)]) -> String {
    if bars.is_empty() {
        return String::new();
    }
    let mut svg = String::new();
    let x = |share: f64| 220.0 + 430.0 * share.clamp(0.0, 1.0);
    for (index, (name, value)) in bars.iter().enumerate() {
        let y = 26 * index;
        let short: String = name.chars().take(30).collect();
        svg.push_str(&format!(
            "<text x=\"0\" y=\"{}\">{}</text><rect x=\"220\" y=\"{}\" width=\"{:.1}\" height=\"14\" \
             fill=\"var(--accent)\"/>",
            y + 16,
            escaped(&short),
            y + 5,
            x(value.mean) - 220.0
        ));
        if let Some((low, high)) = value.interval {
            svg.push_str(&format!(
                "<line x1=\"{:.1}\" x2=\"{:.1}\" y1=\"{middle}\" y2=\"{middle}\" stroke=\"var(--ink)\" \
                 stroke-width=\"2\"/>",
                x(low),
                x(high),
                middle = y + 12
            ));
        }
        svg.push_str(&format!("<text x=\"660\" y=\"{}\">{}</text>", y + 16, escaped(&estimate(value))));
    }
    figure(caption, &svg, 26 * bars.len() + 6)
}

/// pass@k and pass^k over k, as two lines.
#[expect(clippy::cast_precision_loss, reason = "epochs")]
fn pass_chart(report: &Report) -> String {
    if report.pass.len() < 2 {
        return String::new();
    }
    let last = report.pass.len() as f64 - 1.0;
    let x = |index: usize| 50.0 + 620.0 * index as f64 / last;
    let y = |share: f64| 190.0 - 170.0 * share.clamp(0.0, 1.0);
    let mut svg: String = [0.0, 0.5, 1.0]
        .iter()
        .map(|share| {
            format!(
                "<line x1=\"50\" x2=\"670\" y1=\"{height:.1}\" y2=\"{height:.1}\" stroke=\"var(--line)\"/>\
                 <text class=\"soft\" x=\"0\" y=\"{:.1}\">{}</text>",
                y(*share) + 4.0,
                percent(*share),
                height = y(*share)
            )
        })
        .collect();
    for (index, figure) in report.pass.iter().enumerate() {
        svg.push_str(&format!(
            "<text class=\"soft\" x=\"{:.1}\" y=\"210\" text-anchor=\"middle\">{}</text>",
            x(index),
            figure.k
        ));
    }
    let any = report.pass.iter().map(|figure| figure.any.mean).collect::<Vec<_>>();
    let all = report.pass.iter().map(|figure| figure.all.mean).collect::<Vec<_>>();
    for (name, colour, values) in [("pass@k", "good", any), ("pass^k", "bad", all)] {
        let points: Vec<String> = values
            .iter()
            .enumerate()
            .map(|(index, value)| format!("{:.1},{:.1}", x(index), y(*value)))
            .collect();
        let end = values.last().copied().unwrap_or_default();
        svg.push_str(&format!(
            "<polyline points=\"{}\" fill=\"none\" stroke=\"var(--{colour})\" stroke-width=\"2\"/>\
             <text x=\"680\" y=\"{:.1}\">{name} {}</text>",
            points.join(" "),
            y(end) + 4.0,
            percent(end)
        ));
    }
    figure("Right in any and in all of k epochs", &svg, 220)
}

fn figure(caption: &str, svg: &str, height: usize) -> String {
    format!(
        "<figure>\n<figcaption>{caption}</figcaption>\n<svg viewBox=\"0 0 800 {height}\" role=\"img\" \
         aria-label=\"{caption}\">{svg}</svg>\n</figure>\n",
        caption = escaped(caption)
    )
}

fn escaped(text: &str) -> String {
    let text = text.replace(|character: char| character.is_control() && character != '\n', " ");
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
