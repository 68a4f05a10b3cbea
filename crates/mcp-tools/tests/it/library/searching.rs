//! What queries find, and that no query fails.

use mcp_tools::servers::library::{Collection, Library, LibraryError, LibraryOptions, PAGE_CHARACTERS};
use proptest::prelude::*;

use super::{document, ids, library_of};

fn reference() -> Library {
    library_of(vec![
        document("cpp", "C++", "C++ is a language that Bjarne Stroustrup designed as an extension of C."),
        document("csharp", "C#", "C# runs on .NET and was designed by Anders Hejlsberg."),
        document("c", "C", "C is a language of Dennis Ritchie. Vitamin C is something else."),
        document("goedel", "Kurt Gödel", "Gödel proved the incompleteness theorems in 1931."),
        document("curie", "Marie Curie", "Marie Curie shared the Nobel Prize in Physics of 1903."),
        document(
            "prizes",
            "Prizes",
            "The Nobel Prize in Physics is awarded in Stockholm. Curie is a unit, too.",
        ),
        document("beijing", "北京大学", "北京大学是中国北京的一所大学。"),
        document("tokyo", "東京", "東京タワーは日本の東京にある。"),
        document(
            "who",
            "World Health Organization",
            "The WHO coordinates public health. To be or not to be is no question.",
        ),
        document("band", "A band", "Some people ask how they are."),
    ])
}

#[test]
fn queries_find_what_they_ask_for() {
    let library = reference();
    for (query, first) in [
        ("Who designed C++?", "notes/cpp"),
        ("c++", "notes/cpp"),
        ("C# language", "notes/csharp"),
        (".NET", "notes/csharp"),
        ("Godel", "notes/goedel"),
        ("GÖDEL", "notes/goedel"),
        ("Go\u{308}del incompleteness", "notes/goedel"),
        ("theorem", "notes/goedel"),
        ("\"Nobel Prize in Physics of 1903\"", "notes/curie"),
        ("Marie Curie", "notes/curie"),
        ("北京大学", "notes/beijing"),
        ("大学", "notes/beijing"),
        ("東京タワー", "notes/tokyo"),
        ("What is the WHO?", "notes/who"),
        ("\"to be or not to be\"", "notes/who"),
    ] {
        assert_eq!(ids(&library, query).first().map(String::as_str), Some(first), "{query}");
    }
}

#[test]
fn stop_words_alone_find_something() {
    assert!(ids(&reference(), "how they are").contains(&"notes/band".to_owned()));
}

#[test]
fn phrases_that_nobody_has_are_searched_as_words() {
    let library = reference();
    let answer = library.search("\"Curie Marie\"", 5).unwrap();
    assert_eq!(answer.results[0].id, "notes/curie");
    assert!(answer.note.unwrap().contains("quoted"));
    assert_eq!(library.search("\"Marie Curie\"", 5).unwrap().note, None);
}

#[test]
fn nothing_found_is_said() {
    let library = reference();
    for query in ["xylophone", "+-!", "\u{1F600}", "\u{0}", "\"\""] {
        let answer = library.search(query, 5).unwrap();
        assert!(answer.results.is_empty(), "{query}");
        assert!(answer.note.is_some(), "{query}");
    }
    for query in ["", "  \n\t"] {
        assert!(matches!(library.search(query, 5), Err(LibraryError::EmptyQuery)), "{query:?}");
    }
    assert!(library_of(vec![]).search("x", 5).unwrap().results.is_empty());
}

#[test]
fn hostile_queries_are_words_like_others() {
    let library = reference();
    let long_word = "x".repeat(100_000);
    let long_query = "curie prize ".repeat(9_000);
    for query in [
        "title:curie AND (body:\"",
        "\"\"\"",
        "curie~2^3 *:*",
        "[a TO b}",
        "a OR NOT -curie",
        "curie\u{0}prize",
        "👩‍🔬 curie",
        "\\",
        "((((((((((",
        "+curie -marie !x",
        "curie\"",
        "“curie",
        "/curie.*/",
        "{!lucene}curie",
        "%00%20",
        "';--",
        "\u{202e}eiruc",
        &long_word,
        &long_query,
    ] {
        let answer = library.search(query, 5).unwrap();
        if query.contains("curie") {
            assert!(answer.results.iter().any(|result| result.id == "notes/curie"), "{query:.60}");
        }
    }
}

#[test]
fn results_are_spread_over_collections() {
    let documents = |count: usize, text: &str| {
        (0..count).map(|number| document(&number.to_string(), "Radium", text)).collect::<Vec<_>>()
    };
    let collections = vec![
        Collection::documents("many", documents(20, "Radium is a metal.")).unwrap(),
        Collection::documents("few", documents(2, "Radium is a metal that glows.")).unwrap(),
    ];
    let library = Library::open(&LibraryOptions::new(collections, None)).unwrap();
    let found = ids(&library, "radium metal");
    assert!(found.iter().take(4).any(|id| id.starts_with("few/")), "{found:?}");
    assert!(found.iter().take(4).any(|id| id.starts_with("many/")), "{found:?}");
}

#[test]
fn statistics_are_those_of_all_collections() {
    let together = library_of(vec![
        document("a", "A", "radium and common words"),
        document("b", "B", "common words"),
        document("c", "C", "common words again"),
    ]);
    let single = |name: &str, id: &str, text: &str| {
        Collection::documents(name, vec![document(id, &id.to_uppercase(), text)]).unwrap()
    };
    let apart = Library::open(&LibraryOptions::new(
        vec![
            single("one", "a", "radium and common words"),
            single("two", "b", "common words"),
            single("three", "c", "common words again"),
        ],
        None,
    ));
    let best = |library: &Library| library.search("radium", 1).unwrap().results[0].score;
    assert!((best(&together) - best(&apart.unwrap())).abs() < 0.011);
}

#[test]
fn a_long_document_is_found_by_any_part_and_read_whole() {
    let filler = "Sentences of no interest stand here in great number. ".repeat(400);
    let body = format!(
        "# Beginning\n\n{filler}\n\n## Needle\n\nThe quokka lives on Rottnest.\n\n{filler}Ende: äöü漢字."
    );
    let library =
        library_of(vec![document("long", "A long one", &body), document("other", "Other", &filler)]);
    let answer = library.search("Where does the quokka live?", 5).unwrap();
    assert_eq!(answer.results[0].id, "notes/long");
    assert!(
        answer.results[0].snippet.contains("The quokka lives on Rottnest."),
        "{}",
        answer.results[0].snippet
    );
    assert_eq!(answer.results.iter().filter(|result| result.id == "notes/long").count(), 1);

    let (mut whole, mut offset, mut pages) = (String::new(), 0, 0);
    loop {
        let page = library.read("notes/long", offset).unwrap();
        assert_eq!(page.total, body.chars().count() as u64);
        assert_eq!(page.offset, offset);
        assert!(page.text.chars().count() <= PAGE_CHARACTERS);
        whole.push_str(&page.text);
        pages += 1;
        match page.next {
            Some(next) => offset = next,
            None => break,
        }
    }
    assert_eq!(whole, body);
    assert!(pages >= 5, "{pages}");
}

#[test]
fn any_offset_can_be_read() {
    let body = "äöü 漢字 text. ".repeat(1500);
    let library = library_of(vec![document("x", "X", &body)]);
    let total = body.chars().count() as u64;
    for offset in [0, 1, 7999, 8000, 8001, total - 1] {
        let page = library.read("notes/x", offset).unwrap();
        let expected: String = body.chars().skip(offset as usize).take(page.text.chars().count()).collect();
        assert!(!page.text.is_empty());
        assert_eq!(page.text, expected, "{offset}");
    }
    for offset in [total, total + 1, u64::MAX] {
        let error = library.read("notes/x", offset).unwrap_err();
        assert_eq!(error.kind(), "offset_past_end");
        assert!(error.to_string().contains(&total.to_string()), "{error}");
    }
    assert_eq!(library_of(vec![document("e", "Empty", "")]).read("notes/e", 0).unwrap().text, "");
}

#[test]
fn unknown_ids_get_the_nearest() {
    let library = reference();
    for (id, expected) in [
        ("notes/curi", "notes/curie"),
        ("curie", "notes/curie"),
        ("other/curie", "notes/curie"),
        ("Marie Curie", "notes/curie"),
        ("NOTES/TOKYO", "notes/tokyo"),
    ] {
        match library.read(id, 0) {
            Err(error @ LibraryError::UnknownDocument { .. }) => {
                assert!(error.to_string().contains(&format!("`{expected}`")), "{error}");
            }
            other => panic!("{id}: {other:?}"),
        }
    }
    assert!(library.read(" `notes/curie` ", 0).is_ok(), "quotes around an id are left out");
    for id in ["", "/", "notes/", &"x/".repeat(50_000), "\u{0}"] {
        let message = library.read(id, 0).unwrap_err().to_string();
        assert!(message.len() < 1500, "{}", message.len());
    }
}

#[test]
fn a_page_says_what_it_is() {
    let mut long = document("x", "Title", &"word ".repeat(4000));
    long.license = Some("CC0".to_owned());
    let library = library_of(vec![long, document("y", "Short", "Few words.")]);
    let first = library.read("notes/x", 0).unwrap().to_markdown();
    assert!(
        first.starts_with(
            "# Title\n\nSource: source of x (CC0)\nCharacters: 0 to 8000 of 20000; for the next page read `notes/x` with offset 8000\n\nword "
        ),
        "{first:.200}"
    );
    let last = library.read("notes/x", 16_000).unwrap().to_markdown();
    assert!(last.contains("Characters: 16000 to 20000 of 20000, the end\n"), "{last:.200}");
    let short = library.read("notes/y", 0).unwrap().to_markdown();
    assert_eq!(short, "# Short\n\nSource: source of y\nCharacters: 10, complete\n\nFew words.");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn no_query_fails(query in "(curie|prize|[\"+\\-!(){}\\[\\]^~*?:\\\\/&|'“”.#]|\\PC| ){0,40}") {
        thread_local!(static LIBRARY: Library = reference());
        LIBRARY.with(|library| match library.search(&query, 5) {
            Ok(answer) => assert!(answer.results.iter().all(|result| result.snippet.chars().count() <= 400)),
            Err(error) => assert!(matches!(error, LibraryError::EmptyQuery) && query.trim().is_empty()),
        });
    }

    #[test]
    fn no_id_fails(id in "(notes/)?\\PC{0,30}", offset in any::<u64>()) {
        thread_local!(static LIBRARY: Library = reference());
        LIBRARY.with(|library| {
            let _ = library.read(&id, offset);
        });
    }
}
