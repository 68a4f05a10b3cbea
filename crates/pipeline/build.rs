//! Builds the crate again when a file comes into `conf/` or leaves it: the tree is part of the binary, and the
//! compiler only watches the files that it has seen.

fn main() {
    println!("cargo::rerun-if-changed=../../conf");
}
