//! Whole documents through [`to_markdown`].

use super::*;

fn markdown(bytes: &[u8], name: &str) -> String {
    to_markdown(bytes, name).expect("a document").markdown
}

#[test]
fn each_format_is_written_its_own_way() {
    let check =
        |bytes: &[u8], name: &str, expected: &str| assert_eq!(markdown(bytes, name), expected, "{name}");
    check(b"plain\n", "a.txt", "plain\n");
    check(b"# T\n\nx", "a.md", "# T\n\nx");
    check(b"let x = 1;\n", "a.rs", "```rust\nlet x = 1;\n```");
    check(b"a = \"```\"", "a.py", "````python\na = \"```\"\n````");
    check(b"{\"a\":1}", "a.json", "```json\n{\n  \"a\": 1\n}\n```");
    check(b"{broken", "a.json", "```json\n{broken\n```");
    check(b"a,b\n1,2", "a.csv", "| a | b |\n| --- | --- |\n| 1 | 2 |");
    check(b"no table here", "a.csv", "no table here");
    check(b"<a>x</a>", "a.xml", "```xml\n<a>x</a>\n```");
    check(b"caf\xe9 cr\xe8me, d\xe9j\xe0 vu", "a.txt", "café crème, déjà vu");
    check(b"", "empty.txt", "");
}

#[test]
fn what_is_not_read_says_what_is() {
    for (bytes, name, kind) in
        [(&b"\x89PNG\r\n\x1a\n\0\0"[..], "a.pdf", "unsupported"), (b"\0\0\0", "a.bin", "binary")]
    {
        let error = to_markdown(bytes, name).expect_err("not read");
        assert_eq!(error.kind(), kind);
        assert!(error.to_string().contains(name) && error.to_string().contains("Read are: PDF"), "{error}");
    }
}

#[test]
fn an_article_is_kept_and_what_surrounds_it_is_not() {
    let sentence = "The lighthouse was built in 1911, of granite that was quarried on the island itself, and kept by one family. ";
    let page = format!(
        "<html><head><title>The lighthouse</title><style>p {{}}</style></head><body><nav><a href=/a>Home</a> <a href=/b>Shop</a></nav>\
         <article><h2>History</h2><p>{0}{0}</p><p>{0}See <a href=\"https://example.org/x\">more</a>.</p><p>{0}{0}</p>\
         <script>track()</script><img src=\"data:image/png;base64,AAAA\" alt=\"The tower\"></article><footer>Imprint</footer></body></html>",
        sentence.repeat(2)
    );
    let document = to_markdown(page.as_bytes(), "page.html").expect("a document");
    assert_eq!(document.title.as_deref(), Some("The lighthouse"));
    let text = &document.markdown;
    assert!(text.starts_with("# The lighthouse\n\n") && text.contains("## History"), "{text}");
    assert!(text.contains("[more](https://example.org/x)") && text.contains("[Image: The tower]"), "{text}");
    for gone in ["track()", "Imprint", "Shop", "base64", "p {}"] {
        assert!(!text.contains(gone), "{gone} in {text}");
    }
}

#[test]
fn a_page_that_is_no_article_is_kept_whole() {
    let page = b"<title>Prices</title><body><h1>Prices</h1><script>x()</script><table><tr><th>a<th>b<tr><td>1<td>2</table><ul><li>one<li>two</ul>";
    let text = markdown(page, "prices.html");
    assert!(text.starts_with("# Prices") && !text.contains("x()"), "{text}");
    assert!(
        text.contains("| a") && text.contains("| 1") && text.contains("one") && text.contains("two"),
        "{text}"
    );
}

#[test]
fn hostile_pages_come_to_an_end() {
    let shapes: [(&str, String); 10] = [
        ("deep", "<div>".repeat(200_000)),
        ("unmatched ends", "<div></x>".repeat(100_000)),
        ("below the limit", format!("{}x{}", "<div>".repeat(590), "</div>".repeat(590))),
        ("inline", "<b><i><u>".repeat(190)),
        ("paragraphs", "<p>a, b, c".repeat(10_000)),
        ("brackets", "<".repeat(100_000)),
        ("ampersands", "&".repeat(100_000)),
        ("attributes", format!("<p {}>x", "a=b ".repeat(50_000))),
        ("list items", "<ul><li>".repeat(290)),
        ("breaks", "<br>".repeat(10_000)),
    ];
    for (shape, page) in shapes {
        let result = to_markdown(page.as_bytes(), "page.html");
        assert_eq!(result.is_err(), matches!(shape, "deep" | "unmatched ends"), "{shape}: {result:?}");
    }
}
