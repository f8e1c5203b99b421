//! Times a layout of rocfl on a file of identifiers: `runner CONFIG IDENTIFIERS PATHS ROUNDS`.
//!
//! Files hold NUL-delimited UTF-8; an identifier that rocfl refuses, which it does by a panic, gets an empty path.
//! Prints one JSON object with the seconds of each round, of the mapping loop alone.

use std::{env, fs, panic, time::Instant};

use rocfl::ocfl::{LayoutExtensionName, StorageLayout};

fn main() {
    let arguments: Vec<String> = env::args().collect();
    let config = fs::read(&arguments[1]).expect("the layout's config.json");
    let content = fs::read_to_string(&arguments[2]).expect("identifiers in UTF-8");
    let rounds: usize = arguments[4].parse().expect("a number of rounds");

    let text = String::from_utf8_lossy(&config).into_owned();
    let name = ["0002", "0003", "0004", "0006", "0007"]
        .into_iter()
        .find(|digits| text.contains(&format!("\"extensionName\": \"{digits}")))
        .map(|digits| match digits {
            "0002" => LayoutExtensionName::FlatDirectLayout,
            "0003" => LayoutExtensionName::HashedNTupleObjectIdLayout,
            "0004" => LayoutExtensionName::HashedNTupleLayout,
            "0006" => LayoutExtensionName::FlatOmitPrefixLayout,
            _ => LayoutExtensionName::NTupleOmitPrefixLayout,
        })
        .expect("a layout that rocfl has");
    let layout = StorageLayout::new(name, Some(&config)).expect("a configuration that rocfl takes");

    panic::set_hook(Box::new(|_| {}));
    let ids: Vec<&str> = content.split_terminator('\0').collect();
    let mut seconds = Vec::new();
    let mut paths: Vec<String> = Vec::new();
    for _ in 0..rounds {
        paths = Vec::with_capacity(ids.len());
        let start = Instant::now();
        for id in &ids {
            let path = panic::catch_unwind(panic::AssertUnwindSafe(|| layout.map_object_id(id)));
            paths.push(path.unwrap_or_default());
        }
        seconds.push(start.elapsed().as_secs_f64());
    }

    let mut output = paths.join("\0");
    if !paths.is_empty() {
        output.push('\0');
    }
    fs::write(&arguments[3], output).expect("paths written");
    println!("{{\"seconds\": {seconds:?}, \"runtime\": \"Rust, release build\"}}");
}
