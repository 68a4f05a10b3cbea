//! What a library of a folder costs: `library_perf [DOCUMENTS]`, 10,000 where no number is given.
//!
//! Makes the documents (text, HTML, CSV and JSON in turn) with words that are as unevenly common as those of a language,
//! then prints how long the first indexing takes, seeing that nothing changed, a change of one file, and a search. Each
//! line is a figure with its unit and its aim, between tabs.
//! `cargo run --release -p mcp-tools --example library_perf`.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for a terminal")]

use std::error::Error;
use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use mcp_tools::servers::library::{Collection, Library, LibraryOptions};

/// Different words of the made texts.
const VOCABULARY: usize = 40_000;
/// Words of a document, least and most.
const WORDS: (u64, u64) = (200, 2_000);
/// Searches that are timed.
const QUERIES: usize = 1_000;
/// The commonest words, which make up half of the running text of a language.
const FUNCTION_WORDS: &str = "the of and to in a is that for it was on are as with his they at be this from have or by \
     one had not but what all were when we there can an your which their said if do will each about how up out";
/// What other words are made of.
const SYLLABLES: &[&str] = &[
    "ba", "cor", "den", "el", "fan", "gra", "hol", "in", "jas", "ker", "lo", "mar", "ne", "or", "pel", "qui",
    "ran", "sto", "tir", "un", "ver", "wes", "ya", "zo", "bri", "cla", "dro", "flu", "gle", "kni", "ple",
    "sha", "tho", "wri",
];

fn main() -> Result<(), Box<dyn Error>> {
    let documents: usize = std::env::args().nth(1).map_or(Ok(10_000), |number| number.parse())?;
    let home = tempfile::tempdir()?;
    let folder = home.path().join("documents");
    let mut language = Language::new();
    let bytes = make(&folder, documents, &mut language)?;
    let options = || {
        LibraryOptions::new(
            vec![Collection::folder_by_its_name(folder.display().to_string())],
            Some(home.path().join("cache")),
        )
    };
    let what = format!("{documents} documents indexed ({} MB)", bytes / 1_000_000);
    drop(timed(&what, "", || Library::open(&options()))?);
    let library =
        timed("an unchanged folder is seen to be so", "at most 1000", || Library::open(&options()))?;
    search(&library, &mut language)?;
    drop(library);
    std::fs::write(folder.join("0/0.txt"), "A new text about a lighthouse keeper.")?;
    drop(timed("one file of it changed", "", || Library::open(&options()))?);
    Ok(())
}

/// Times searches for words as they are common in the texts, so that most queries hold some that nearly every document
/// has.
fn search(library: &Library, language: &mut Language) -> Result<(), Box<dyn Error>> {
    let mut times = Vec::with_capacity(QUERIES);
    for number in 0..QUERIES {
        let words: Vec<String> = (0..1 + number % 6).map(|_| language.content_word().to_owned()).collect();
        let query = match number % 3 {
            0 => words.join(" "),
            1 => format!("What is the {} and where was it?", words.join(" of ")),
            _ => format!("\"{}\" {}", words[0], words.join(" ")),
        };
        let began = Instant::now();
        let answer = library.search(&query, 10)?;
        times.push((began.elapsed(), query));
        if answer.results.is_empty() {
            return Err(format!("nothing was found for {words:?}").into());
        }
    }
    times.sort_unstable();
    let at =
        |share: usize| times.get((times.len() - 1) * share / 100).map(|(time, _)| *time).unwrap_or_default();
    print("a search, median", at(50), "at most 10");
    print("a search, 99 of 100", at(99), "at most 10");
    if let Some((time, query)) = times.last() {
        print("the slowest search", *time, "");
        eprintln!("the slowest search was for {query}");
    }
    Ok(())
}

fn timed<T, E>(what: &str, aim: &str, work: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    let began = Instant::now();
    let done = work()?;
    print(what, began.elapsed(), aim);
    Ok(done)
}

fn print(what: &str, took: Duration, aim: &str) {
    println!("{what}\t{:.3}\tms\t{aim}", took.as_secs_f64() * 1e3);
}

/// Words by how common they are: the tenth commonest word comes a tenth as often as the commonest.
struct Language {
    words: Vec<String>,
    /// Sums of the shares up to each word.
    sums: Vec<f64>,
    function_words: usize,
    state: u64,
}

impl Language {
    fn new() -> Self {
        let mut words: Vec<String> = FUNCTION_WORDS.split_whitespace().map(str::to_owned).collect();
        let function_words = words.len();
        let mut language = Self { words: Vec::new(), sums: Vec::new(), function_words, state: 7 };
        let mut known: std::collections::HashSet<String> = words.iter().cloned().collect();
        while words.len() < VOCABULARY {
            let rare = u64::from(words.len() > 2_000);
            let syllables = 2 + language.below(2 + rare);
            let word: String =
                (0..syllables).map(|_| SYLLABLES[language.below(SYLLABLES.len() as u64) as usize]).collect();
            if known.insert(word.clone()) {
                words.push(word);
            }
        }
        let mut sum = 0.0;
        language.sums = (1..=words.len())
            .map(|rank| {
                sum += 1.0 / rank as f64;
                sum
            })
            .collect();
        language.words = words;
        language
    }

    /// A number below another (SplitMix64).
    fn below(&mut self, limit: u64) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % limit
    }

    fn rank(&mut self) -> usize {
        const PARTS: u64 = 1 << 52;
        let share = self.below(PARTS) as f64 / PARTS as f64 * self.sums.last().copied().unwrap_or(1.0);
        self.sums.partition_point(|sum| *sum < share).min(self.words.len() - 1)
    }

    fn word(&mut self) -> &str {
        let rank = self.rank();
        &self.words[rank]
    }

    fn content_word(&mut self) -> &str {
        loop {
            let rank = self.rank();
            if rank >= self.function_words {
                return &self.words[rank];
            }
        }
    }

    /// Sentences of 5 to 25 words, paragraphs of about five sentences.
    fn text(&mut self) -> String {
        let mut left = WORDS.0 + self.below(WORDS.1 - WORDS.0);
        let mut text = String::new();
        while left > 0 {
            let length = (5 + self.below(21)).min(left);
            left -= length;
            for at in 0..length {
                let word = self.word();
                match (at, word.split_at(1)) {
                    (0, (first, rest)) => text.extend([&*first.to_uppercase(), rest]),
                    _ => text.extend([" ", word]),
                }
            }
            text.push_str(if self.below(5) == 0 { ".\n\n" } else { ". " });
        }
        text
    }
}

/// Files that settled a minute ago, so that their times tell that they are the same. Gives the bytes of all.
fn make(folder: &Path, documents: usize, language: &mut Language) -> std::io::Result<usize> {
    let settled = SystemTime::now() - Duration::from_secs(60);
    let mut bytes = 0;
    for number in 0..documents {
        let directory = folder.join((number / 500).to_string());
        if number % 500 == 0 {
            std::fs::create_dir_all(&directory)?;
        }
        let text = language.text();
        let title = format!("{} {}", language.content_word().to_owned(), language.content_word());
        let (ending, content) = match number % 4 {
            0 => ("txt", text),
            1 => {
                let paragraphs = text.trim_end().replace("\n\n", "</p><p>");
                ("html", format!("<title>{title}</title><h1>{title}</h1><p>{paragraphs}</p>"))
            }
            2 => ("csv", text.replace("\n\n", "\n").replace(". ", ",")),
            _ => ("json", serde_json::json!({"title": title, "text": text}).to_string()),
        };
        let path = directory.join(format!("{number}.{ending}"));
        bytes += content.len();
        std::fs::write(&path, content)?;
        File::options().write(true).open(&path)?.set_modified(settled)?;
    }
    // The time at which a file was changed itself cannot be set: what is younger than two seconds is read again.
    std::thread::sleep(Duration::from_secs(3));
    Ok(bytes)
}
