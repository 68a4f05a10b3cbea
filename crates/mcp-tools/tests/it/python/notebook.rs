//! Cells as notebooks have them, and cells that spoil their own surroundings.

use super::client::{Reply, client, client_with};
use super::shown;
use serde_json::json;

#[tokio::test]
async fn cells_are_read_as_a_notebook_reads_them() {
    let client = client().await;
    let cases = [
        ("import asyncio\nawait asyncio.sleep(0, 'slept')", "'slept'"),
        ("async def f():\n    return 5\ny = await f()\nawait f() + y", "10"),
        ("for n in range(2):\n    await asyncio.sleep(0)\n    print(n)", "0\n1"),
        (
            "task = loop = None\nasync def g():\n    global task\n    task = asyncio.ensure_future(f())\nawait g()",
            "(no output)",
        ),
        ("await task", "5"),
        ("asyncio.run(f())", "5"),
        ("```python\nprint(3)\n```", "3"),
        ("!echo one; echo two\nif y:\n    !echo three", "one\ntwo\nthree"),
        ("%matplotlib inline\ny", "5"),
        ("\n```python\r\n!echo hi\r\ny\r\n```\r\n", "hi\n5"),
        (
            "!echo it's'\n!echo hi\nx='''\n!keep\n%pip install\x0b it's\n'''\nx",
            "its\nhi\n\"\\n!keep\\n%pip install\\x0b it's\\n\"",
        ),
        ("text = '''\n!no command\n```\n'''\ntext", "'\\n!no command\\n```\\n'"),
    ];
    for (code, expected) in cases {
        assert_eq!(client.run(code).await, shown(expected), "{code}");
    }
    // What is no Python in any reading is shown as it came.
    let text = client.run("!echo x\ndef f(:").await.text;
    assert!(text.contains("!echo x\n") && text.ends_with("SyntaxError: invalid syntax"), "{text}");
    let text = client.run("async def h():\n    raise ValueError('deep')\nawait h()").await.text;
    assert!(text.contains("line 3, in <module>") && text.ends_with("ValueError: deep"), "{text}");
    let text = client.run("import no_such_module").await.text;
    assert!(
        text.ends_with("[There is no network here, so that nothing can be installed: do without it.]"),
        "{text}"
    );
}

#[tokio::test]
async fn what_a_cell_does_to_its_output_ends_with_it() {
    let client = client().await;
    for spoiled in [
        "import os; os.close(0); os.close(1); os.close(2)",
        "os.closerange(0, 3); print('nowhere')",
        "import sys; sys.stdout.close(); sys.stderr.close()",
        "os.dup2(os.open('/dev/null', os.O_RDWR), 1); os.dup2(1, 2)",
        "import io; sys.stdout = sys.stderr = io.StringIO(); print('kept from sight')",
        "sys.stdout.detach(); sys.stderr.detach()",
        "class Odd:\n    closed = property(lambda self: 1 / 0)\nsys.stdout = sys.stderr = Odd()",
        "del sys.stdout, sys.stderr, sys.__stdout__",
    ] {
        client.run(spoiled).await;
        // What was printed to nowhere may still come; the next line is whole in any case.
        let Reply { text, is_error } = client.run("print('\\nback')").await;
        assert!(text.ends_with("\nback") || text == "back", "{spoiled}: {text}");
        assert!(!is_error, "{spoiled}");
        let command = client.call("run_command", json!({"command": "cat; echo out; echo err >&2"})).await;
        assert_eq!(command, shown("out\nerr"), "{spoiled}");
    }
    for spoiled in ["1/0", "sys.stderr = io.StringIO()\n1/0", "del sys.stderr\n1/0"] {
        let text = client.run(spoiled).await.text;
        assert!(text.ends_with("ZeroDivisionError: division by zero"), "{spoiled}: {text}");
    }
    let code = "sys.stdout = io.StringIO()\nprint('caught')\nsys.stdout.getvalue()";
    assert_eq!(client.run(code).await, shown("'caught\\n'"));
}

#[tokio::test]
async fn cells_run_with_few_descriptors() {
    let client = client_with(|options| options.limits.open_files = 40).await;
    client.run("import os; os.close(1); os.close(2)").await;
    assert_eq!(client.run("2").await, shown("2"));
}
