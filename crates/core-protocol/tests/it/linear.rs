//! Time grows with the length of the text, on hostile texts too. Not a measurement: the texts are so
//! long that anything quadratic would run for minutes.

use core_protocol::{DialectName, ParseOptions, StreamParser, last_boxed, parse_arguments, parse_reply};

const HEAD: &str = "<use_mcp_tool><server_name>s</server_name><tool_name>t</tool_name><arguments>";

fn hostile_texts() -> Vec<String> {
    let many = 4_000;
    let call = format!("{HEAD}{{\"a\": \"b\"}}</arguments>");
    vec![
        "<use_mcp_tool>".repeat(many),
        format!("<use_mcp_tool>{}", " ".repeat(200_000)),
        format!("{HEAD}```json{}", "\n".repeat(200_000)),
        format!("{HEAD}{{{}", " ".repeat(200_000)),
        call.repeat(many / 4),
        format!("{HEAD}{{\"a\": \"").repeat(many / 4),
        format!("{HEAD}{{'").repeat(many / 4),
        format!("{HEAD}{{\"").repeat(many / 4),
        format!("{HEAD}[\"',").repeat(many / 4),
        format!("{HEAD}{{/*").repeat(many / 4),
        format!("{HEAD}{{//").repeat(many / 4),
        format!("{HEAD}x</arguments> ").repeat(many / 4),
        format!("{HEAD}{{x</arguments></use_mcp_tool>").repeat(many / 4),
        format!("{HEAD}{}", "[".repeat(200_000)),
        format!("{HEAD}{{x {}", "</arguments></use_mcp_tool".repeat(many)),
        format!(
            "{HEAD}{{\"a\": \"{}\"}}</arguments></use_mcp_tool>",
            "</arguments></use_mcp_tool>".repeat(many)
        ),
        "<tool_call>".repeat(many),
        "<tool_call>{\"name\": \"".repeat(many),
        "<tool_call>{\"name\": x</tool_call>".repeat(many),
        "<tool_call><function=f><parameter=p>".repeat(many / 2),
        format!(
            "<tool_call><function=f><parameter=p>{}",
            "<tool_call><function=f><parameter=p>1</parameter></function></tool_call>".repeat(many / 4)
        ),
        format!("<tool_call><function=f><parameter=p>{}", "</parameter> ".repeat(many)),
        format!("<tool_call><function=f><parameter=p>{}", "<parameter=".repeat(many)),
        format!("<tool_call><function=f>{}", "<parameter=p></parameter>".repeat(many)),
        format!("<tool_call><function=f>{}", "<parameter=p>x<parameter=q>y</parameter>".repeat(many)),
        "<tool_call><function=f><parameter=p><function=f></function>".repeat(many),
        "<function=".repeat(many),
        "\n{\"name\":[".repeat(many),
        format!("\n{{\"name\":[{}", "\n{\"name\":1},".repeat(many)),
        "\n{\"name\":{".repeat(many),
        "<think>".repeat(many),
        "</think>".repeat(many),
        format!("{}x{}", " ".repeat(200_000), "<think>".repeat(many)),
        "<".repeat(200_000),
        "</".repeat(200_000),
        "{".repeat(200_000),
    ]
}

#[test]
fn replies() {
    for dialect in DialectName::ALL {
        for starts_in_thinking in [false, true] {
            let options = ParseOptions { starts_in_thinking, ..ParseOptions::new(dialect.dialect()) };
            for text in hostile_texts() {
                let _ = parse_reply(&text, &options);
            }
        }
    }
}

#[test]
fn streams_in_small_pieces() {
    for dialect in DialectName::ALL {
        let options = ParseOptions::new(dialect.dialect());
        for text in hostile_texts() {
            let mut parser = StreamParser::new(options);
            for piece in text.as_bytes().chunks(64) {
                parser.push(piece, |_| {});
            }
            parser.finish(|_| {}).expect("UTF-8");
        }
    }
}

#[test]
fn arguments() {
    let many = 100_000;
    for text in [
        "{\"a\": \"".to_owned() + &"\" ".repeat(many),
        "{\"a\": \"".to_owned() + &"\"x".repeat(many),
        "{\"a\": \"".to_owned() + &"\", ".repeat(many),
        "{\"a\": \"".to_owned() + &"\", \"b\"".repeat(many),
        "{\"a\": \"".to_owned() + &"\"}".repeat(many),
        "{\"a\": \"(\" x \"".to_owned() + &"\"}".repeat(many),
        "{".to_owned() + &"'".repeat(many),
        "{".repeat(many),
        "{a".repeat(many),
        "{a:[".repeat(many),
        "{a:/*".repeat(many),
        "{#".repeat(many),
        "{\"a\": x //".repeat(many),
        "{\"a\": \"\\".repeat(many),
        format!("{{\"a\": \"{}", "\\\"}".repeat(many)),
        format!("{{\"a\": True, \"b\": \"{}\"}}", " ".repeat(many * 4)),
        format!("{{a: {}", "b ".repeat(many)),
        format!("{{\"a\": 1}}{}", ", \"b\": 1}".repeat(many)),
        format!("{{\"a\": 1}}{}", "}".repeat(many)),
        "\"\"\"".repeat(many),
        "“".repeat(many),
        format!("{{“{}", "”".repeat(many)),
    ] {
        let _ = parse_arguments(&text);
    }
}

#[test]
fn boxes() {
    let many = 200_000;
    for text in [
        "\\boxed".repeat(many),
        "\\boxed{".repeat(many),
        "\\boxed{}".repeat(many),
        format!("\\boxed{}", " ".repeat(many)),
        format!("{}\\boxed{{x", "\\boxed \n".repeat(many)),
        format!("\\boxed{{{}", "{".repeat(many)),
        format!("\\boxed{{{}", "\\".repeat(many)),
    ] {
        let _ = last_boxed(&text);
    }
}
