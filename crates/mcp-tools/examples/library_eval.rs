//! temporary
#![allow(clippy::print_stdout, clippy::print_stderr, clippy::unwrap_used)]
use std::time::Instant;
use mcp_tools::servers::library::*;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let c = match a[1].as_str() {
        "folder" => Collection::folder("x", &a[2]).unwrap(),
        _ => Collection::json_lines("starter", &a[2]).unwrap(),
    };
    let t = Instant::now();
    let lib = Library::open(&LibraryOptions::new(vec![c], Some("/tmp/lib/cache".into()))).unwrap();
    eprintln!("open {:?}", t.elapsed());
    let qs = std::fs::read_to_string(&a[3]).unwrap();
    let show = a.get(4).is_some();
    let (mut mrr, mut h1, mut h5, mut n) = (0.0, 0, 0, 0);
    let mut times = vec![];
    for l in qs.lines() {
        let Some((gold, q)) = l.split_once('\t') else { continue };
        let t = Instant::now();
        let r = lib.search(q, 10).unwrap();
        times.push(t.elapsed());
        n += 1;
        let golds: Vec<String> = gold.split('|').map(|g| format!("starter/{g}")).collect();
        let pos = r.results.iter().position(|r| golds.contains(&r.id));
        if let Some(p) = pos { mrr += 1.0 / (p + 1) as f64; if p == 0 { h1 += 1 } if p < 5 { h5 += 1 } }
        if show && pos != Some(0) { println!("{q}  gold {gold} at {pos:?}; top {:?}", r.results.iter().take(3).map(|r| (&r.id, r.score)).collect::<Vec<_>>()); }
    }
    times.sort();
    println!("n {n} mrr {:.3} h@1 {:.3} h@5 {:.3} median {:?} p95 {:?} max {:?}", mrr / n as f64, h1 as f64 / n as f64, h5 as f64 / n as f64, times[n / 2], times[n * 95 / 100], times[n - 1]);
}
