//! temporary: time until the library server has answered, with 70 documents of the shipped size.
#![allow(clippy::print_stdout, clippy::unwrap_used)]
use std::time::Instant;
use mcp_tools::servers::library::*;
use mcp_tools::*;
#[tokio::main]
async fn main() {
    let file = std::env::args().nth(1).unwrap();
    let docs: Vec<Document> = std::fs::read_to_string(file).unwrap().lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let mut seventy = vec![];
    for n in 0..70 { let mut d = docs[n * 13].clone(); d.body = (0..12).map(|k| docs[n * 13 + k].body.clone()).collect::<Vec<_>>().join("\n\n"); seventy.push(d); }
    println!("bytes {}", seventy.iter().map(|d| d.body.len()).sum::<usize>());
    for _ in 0..4 {
        let t = Instant::now();
        let c = Collection::documents("a", seventy.clone()).unwrap();
        let m = ToolManager::start(vec![ServerSpec::built_in(server(LibraryOptions::new(vec![c.clone()], None)).unwrap())], ManagerOptions::default()).await;
        let a = t.elapsed();
        let mut args = serde_json::Map::new(); args.insert("q".into(), "radium".into());
        let r = m.call("library", "search_library", args, &tokio_util::sync::CancellationToken::new()).await;
        println!("started {a:?} searched {:?} {}", t.elapsed(), r.result.joined_text().len());
        let t = Instant::now(); let _l = Library::open(&LibraryOptions::new(vec![c], None)).unwrap(); println!("open alone {:?}", t.elapsed());
    }
    let t = Instant::now();
    let c = Collection::json_lines("starter", "/tmp/fathom-library-example/data/libraries/starter/documents.jsonl").unwrap();
    let fresh = tempfile::tempdir().unwrap();
    let o = LibraryOptions::new(vec![c], Some(fresh.path().into()));
    let _l = Library::open(&o).unwrap(); println!("starter indexed {:?}", t.elapsed());
    for _ in 0..3 { let t = Instant::now(); let l = Library::open(&o).unwrap(); println!("starter opened {:?}", t.elapsed());
      let mut times = vec![];
      for q in std::fs::read_to_string("/tmp/lib/hand.tsv").unwrap().lines() { let q = q.split('\t').nth(1).unwrap().to_owned(); let t = Instant::now(); l.search(&q, 10).unwrap(); times.push(t.elapsed()); }
      times.sort(); println!("query median {:?} p95 {:?} max {:?}", times[times.len()/2], times[times.len()*95/100], times[times.len()-1]);
      let t = Instant::now(); let e = l.read("starter/wikipedia/Mary Curie", 0).unwrap_err(); println!("unknown id {:?} {e}", t.elapsed());
      let t = Instant::now(); let _ = l.read("starter/wikipedia/Marie_Curie", 0).unwrap(); println!("read {:?}", t.elapsed());
    }
}
