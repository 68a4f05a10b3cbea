//! The published schemas are those of the types. To print them anew, set `UPDATE_SCHEMAS`.

use core_protocol::published_schemas;
use std::path::Path;

#[test]
fn files_are_current() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("schema");
    for (name, schema) in published_schemas() {
        let path = folder.join(format!("{name}.json"));
        let printed = format!("{}\n", serde_json::to_string_pretty(&schema).expect("a schema"));
        if std::env::var_os("UPDATE_SCHEMAS").is_some() {
            std::fs::create_dir_all(&folder).expect("the folder");
            std::fs::write(&path, &printed).expect("the file");
        }
        let published = std::fs::read_to_string(&path).unwrap_or_default();
        // Not `assert_eq`, which would print both.
        assert!(
            published == printed,
            "{} is not current: run the test with UPDATE_SCHEMAS=1",
            path.display()
        );
    }
}
