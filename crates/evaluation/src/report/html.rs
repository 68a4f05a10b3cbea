//! A report as one HTML file: the tables, and charts inside it. Nothing is loaded from anywhere, and nothing runs: what
//! the browser may do is forbidden in the page itself.

use super::Report;
use super::sections::{Section, estimate, headline, judge, percent, sections, words};
use crate::figures::Estimate;

/// Reports as one HTML file.
#[must_use]
pub fn to_html(reports: &[Report]) -> String {
    let titles: Vec<String> = reports.iter().map(|report| report.header.suite.clone()).collect();
    let title = escaped(&titles.join(", "));
    let mut main = if reports.len() > 1 { overview(reports) } else { String::new() };
    main.extend(reports.iter().map(body));
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n{main}</main>\n</body>\n</html>\n"
    )
}

const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

/// Several runs in a table, a line each, before their reports.
fn overview(reports: &[Report]) -> String {
    let rows = reports.iter().map(|report| {
        let samples = report.accuracy.map_or_else(|| "–".to_owned(), |all| all.samples.to_string());
        let figure = match (&report.accuracy, &report.any_of) {
            (Some(accuracy), _) => estimate(accuracy),
            (None, Some(any)) => format!("any of {}: {}", any.k, estimate(&any.share)),
            (None, None) => "–".to_owned(),
        };
        vec![report.header.suite.clone(), report.header.model.clone(), figure, samples, judge(report)]
    });
    let section = Section {
        title: "Runs",
        columns: vec!["suite", "model", "accuracy", "samples", "judge"],
        rows: rows.collect(),
        note: None,
    };
    table_html(&section, "runs")
}

/// One report.
fn body(report: &Report) -> String {
    let header = &report.header;
    let mut body = format!("<h1>{}</h1>\n", escaped(&headline(report)));
    let epochs = if header.epochs == 1 { "1 epoch".to_owned() } else { format!("{} epochs", header.epochs) };
    let about = format!(
        "{} ({}) · judge {} · {} tasks, {epochs}, {} samples",
        header.model,
        header.provider,
        judge(report),
        header.task_ids.len(),
        report.selected
    );
    body.push_str(&format!("<p class=\"note\">{}</p>\n", escaped(&about)));
    body.push_str(&states_chart(report));
    let mut bars: Vec<(String, Estimate)> = Vec::new();
    if let Some(accuracy) = report.accuracy {
        bars.push(("all".to_owned(), accuracy));
    }
    let groups = report.groups.iter().chain(report.restarts.iter().filter(|_| report.restarts.len() > 1));
    bars.extend(groups.map(|group| (format!("{} {}", group.by, group.value), group.accuracy)));
    body.push_str(&intervals_chart(&bars));
    body.push_str(&pass_chart(report));
    for section in sections(report) {
        body.push_str(&section_html(&section));
    }
    body
}

const STYLE: &str = "\
:root{color-scheme:light dark;--ink:#1c2430;--soft:#56616f;--line:#d9dee5;--paper:#fff;--good:#2f7d4f;--bad:#b4483c;\
--open:#b98a2d;--none:#8a97a6;--limit:#7d5ba6;--error:#1c2430;--leak:#c2457f;--idle:#d5dae1;--accent:#2b62b5}\
@media(prefers-color-scheme:dark){:root{--ink:#e5e9ef;--soft:#a3afbd;--line:#333d49;--paper:#161b22;--good:#5cb583;\
--bad:#e07a6d;--open:#d9b056;--none:#6b7887;--limit:#a98bd0;--error:#e5e9ef;--leak:#e27aa8;--idle:#2b333d;\
--accent:#7aa9ef}}\
body{margin:0;background:var(--paper);color:var(--ink);font:15px/1.5 system-ui,sans-serif}\
main{max-width:60rem;margin:0 auto;padding:2rem 1.25rem}\
h1{font-size:1.4rem;line-height:1.3;margin:2.5rem 0 .25rem;overflow-wrap:anywhere}h1:first-child{margin-top:0}\
h2{font-size:1.05rem;margin:2rem 0 .5rem}.scroll{overflow-x:auto}\
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}\
td,th{padding:.3rem .9rem .3rem 0;border-bottom:1px solid var(--line);text-align:left;vertical-align:top}\
th{color:var(--soft);font-weight:600}td:first-child{color:var(--soft)}\
table.pairs td:first-child{width:16rem}table.runs td{overflow-wrap:break-word}table.pairs td{overflow-wrap:anywhere}\
table.many td:not(:first-child),table.many th{white-space:nowrap}table.many td:first-child{overflow-wrap:break-word}\
p.note{color:var(--soft);overflow-wrap:anywhere;margin:.4rem 0}\
figure{margin:1.5rem 0}figcaption{color:var(--soft);margin-bottom:.4rem}\
.stack{display:flex;height:1.75rem}.stack i{min-width:2px;border-right:1px solid var(--paper)}\
ul{list-style:none;margin:.6rem 0 0;padding:0;display:flex;flex-wrap:wrap;gap:.2rem 1.4rem}\
li i{display:inline-block;width:.75rem;height:.75rem;margin-right:.45rem}\
.row{display:grid;grid-template-columns:12rem 1fr 15.5rem;gap:0 1rem;align-items:center;padding:.15rem 0}\
.row b{font-weight:400;overflow-wrap:anywhere}.row span{font-variant-numeric:tabular-nums}\
.track{position:relative;height:1.1rem;border-left:1px solid var(--soft);border-right:1px solid var(--line);\
background:linear-gradient(90deg,transparent calc(50% - 1px),var(--line) 50%,transparent calc(50% + 1px))}\
.track i{position:absolute}.track .value{left:0;top:.2rem;bottom:.2rem;background:var(--accent);opacity:.35}\
.track .reach{top:calc(50% - 1px);height:2px;background:var(--ink)}\
.track .mean{top:.2rem;bottom:.2rem;width:3px;margin-left:-1px;background:var(--accent)}\
svg{width:100%;max-width:44rem;height:auto;display:block}svg text{fill:var(--ink);font:12px system-ui,sans-serif}\
svg .soft{fill:var(--soft)}\
@media(max-width:40rem){main{padding:1.25rem .9rem}table.pairs td:first-child{width:42%}td,th{padding-right:.6rem}\
.row{grid-template-columns:1fr auto}.row .track{grid-column:1/3;grid-row:2;margin-bottom:.4rem}\
svg text{font-size:17px}}";

fn section_html(section: &Section) -> String {
    table_html(section, if section.columns.is_empty() { "pairs" } else { "many" })
}

fn table_html(section: &Section, class: &str) -> String {
    let mut html =
        format!("<h2>{}</h2>\n<div class=\"scroll\"><table class=\"{class}\">\n", escaped(section.title));
    if !section.columns.is_empty() {
        let cells: String =
            section.columns.iter().map(|name| format!("<th>{}</th>", escaped(name))).collect();
        html.push_str(&format!("<tr>{cells}</tr>\n"));
    }
    for row in &section.rows {
        let cells: String = row.iter().map(|cell| format!("<td>{}</td>", escaped(cell))).collect();
        html.push_str(&format!("<tr>{cells}</tr>\n"));
    }
    html.push_str("</table></div>\n");
    if let Some(note) = &section.note {
        html.push_str(&format!("<p class=\"note\">{}</p>\n", escaped(note)));
    }
    html
}

/// Colours of the states that are no answers.
const COLOURS: [(&str, &str); 5] = [
    ("no_answer", "none"),
    ("limit", "limit"),
    ("error", "error"),
    ("contaminated", "leak"),
    ("pending", "idle"),
];

/// Samples by state, as one bar.
#[expect(clippy::cast_precision_loss, reason = "counts of samples")]
fn states_chart(report: &Report) -> String {
    let of = |verdict: &str| report.verdicts.get(verdict).copied().unwrap_or(0);
    let mut parts = vec![
        ("correct".to_owned(), of("correct"), "good"),
        ("not correct".to_owned(), of("incorrect") + of("not_attempted"), "bad"),
        ("unjudged".to_owned(), of("unjudged"), "open"),
        ("no right answer known".to_owned(), of("without_truth"), "idle"),
    ];
    for (state, colour) in COLOURS {
        parts.push((words(state), report.states.get(state).copied().unwrap_or(0), colour));
    }
    parts.retain(|(_, count, _)| *count > 0);
    let total = parts.iter().map(|(_, count, _)| count).sum::<usize>().max(1) as f64;
    let (mut bar, mut legend) = (String::new(), String::new());
    for (name, count, colour) in &parts {
        let (name, share) = (escaped(name), *count as f64 / total);
        bar.push_str(&format!(
            "<i style=\"flex:{count} 1 0;background:var(--{colour})\" title=\"{name} {count}\"></i>"
        ));
        legend.push_str(&format!(
            "<li><i style=\"background:var(--{colour})\"></i>{name} {count} ({})</li>",
            percent(share)
        ));
    }
    figure(
        &format!("Samples: {} selected", report.selected),
        &format!("<div class=\"stack\">{bar}</div>\n<ul>{legend}</ul>"),
    )
}

/// Means with their intervals on a scale from 0 to 100 %, and how many samples each is taken over.
fn intervals_chart(bars: &[(String, Estimate)]) -> String {
    if bars.is_empty() {
        return String::new();
    }
    let place = |share: f64| 100.0 * share.clamp(0.0, 1.0);
    let rows: String = bars
        .iter()
        .map(|(name, value)| {
            let reach = value.interval.map_or_else(String::new, |(low, high)| {
                let (low, high) = (place(low), place(high));
                format!("<i class=\"reach\" style=\"left:{low:.2}%;width:{:.2}%\"></i>", high - low)
            });
            let mean = place(value.mean);
            format!(
                "<div class=\"row\"><b>{}</b><div class=\"track\"><i class=\"value\" style=\"width:{mean:.2}%\"></i>\
                 {reach}<i class=\"mean\" style=\"left:{mean:.2}%\"></i></div><span>{} n = {}</span></div>\n",
                escaped(name),
                escaped(&estimate(value)),
                value.samples
            )
        })
        .collect();
    figure("Accuracy from 0 to 100 % with 95 % intervals; n counts samples", &rows)
}

/// pass@k and pass^k over k with their intervals, as two lines.
#[expect(clippy::cast_precision_loss, reason = "epochs")]
fn pass_chart(report: &Report) -> String {
    if report.pass.len() < 2 {
        return String::new();
    }
    let last = report.pass.len() as f64 - 1.0;
    let x = |index: usize| 62.0 + 326.0 * index as f64 / last;
    let y = |share: f64| 190.0 - 175.0 * share.clamp(0.0, 1.0);
    let mut svg: String = [0.0, 0.25, 0.5, 0.75, 1.0]
        .iter()
        .map(|share| {
            format!(
                "<line x1=\"56\" x2=\"396\" y1=\"{height:.1}\" y2=\"{height:.1}\" stroke=\"var(--line)\"/>\
                 <text class=\"soft\" x=\"50\" y=\"{:.1}\" text-anchor=\"end\">{:.0} %</text>",
                y(*share) + 4.0,
                100.0 * share,
                height = y(*share)
            )
        })
        .collect();
    // As many labels as have room.
    let step = report.pass.len().div_ceil(8);
    for (index, figure) in report.pass.iter().enumerate() {
        if index.is_multiple_of(step) || index + 1 == report.pass.len() {
            svg.push_str(&format!(
                "<text class=\"soft\" x=\"{:.1}\" y=\"212\" text-anchor=\"middle\">{}</text>",
                x(index),
                figure.k
            ));
        }
    }
    let any = report.pass.iter().map(|figure| figure.any).collect::<Vec<_>>();
    let all = report.pass.iter().map(|figure| figure.all).collect::<Vec<_>>();
    for (name, colour, values) in [("pass@k", "good", any), ("pass^k", "bad", all)] {
        let points: Vec<String> = values
            .iter()
            .enumerate()
            .map(|(index, value)| format!("{:.1},{:.1}", x(index), y(value.mean)))
            .collect();
        for (index, value) in values.iter().enumerate() {
            if let Some((low, high)) = value.interval {
                svg.push_str(&format!(
                    "<line x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{:.1}\" y2=\"{:.1}\" stroke=\"var(--{colour})\" \
                     stroke-opacity=\"0.55\"/>",
                    y(low),
                    y(high),
                    at = x(index)
                ));
            }
        }
        let end = values.last().map_or(0.0, |value| value.mean);
        svg.push_str(&format!(
            "<polyline points=\"{}\" fill=\"none\" stroke=\"var(--{colour})\" stroke-width=\"2\"/>\
             <text x=\"402\" y=\"{:.1}\">{name} {}</text>",
            points.join(" "),
            y(end) + 4.0,
            percent(end)
        ));
    }
    let caption = "Right in any (pass@k) and in all (pass^k) of k epochs, with 95 % intervals";
    let svg =
        format!("<svg viewBox=\"0 0 530 220\" role=\"img\" aria-label=\"{}\">{svg}</svg>", escaped(caption));
    figure(caption, &svg)
}

fn figure(caption: &str, content: &str) -> String {
    format!("<figure>\n<figcaption>{}</figcaption>\n{content}\n</figure>\n", escaped(caption))
}

fn escaped(text: &str) -> String {
    let text = text.replace(|character: char| character.is_control() && character != '\n', " ");
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
