//! Packs the directory bag below a directory with the crates tar and zip.
use std::fs::{self, File};
use std::io::{self, Seek, Write};
use std::path::Path;
use zip::write::SimpleFileOptions;

fn add<W: Write + Seek>(zipped: &mut zip::ZipWriter<W>, top: &Path, path: &Path, options: SimpleFileOptions, all: bool) {
    let name = path.strip_prefix(top).unwrap().to_str().unwrap();
    if path.is_dir() {
        if all {
            zipped.add_directory(name, options).unwrap();
        }
        for entry in fs::read_dir(path).unwrap() {
            add(zipped, top, &entry.unwrap().path(), options, all);
        }
    } else {
        zipped.start_file(name, options).unwrap();
        io::copy(&mut File::open(path).unwrap(), zipped).unwrap();
    }
}

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let (mode, top) = (words[1].as_str(), Path::new(&words[2]));
    let file = File::create(&words[3]).unwrap();
    let deflated = SimpleFileOptions::default().compression_method(zip::CompressionMethod::Deflated);
    match mode {
        "tar" => {
            let mut tarred = tar::Builder::new(file);
            tarred.append_dir_all("bag", top.join("bag")).unwrap();
            tarred.into_inner().unwrap();
        }
        "tar-data" => {
            let mut tarred = tar::Builder::new(file);
            for name in ["bagit.txt", "manifest-sha256.txt"] {
                let data = fs::read(top.join("bag").join(name)).unwrap();
                let mut header = tar::Header::new_gnu();
                header.set_size(data.len() as u64);
                header.set_mode(0o644);
                tarred.append_data(&mut header, format!("bag/{name}"), &data[..]).unwrap();
            }
            tarred.append_dir_all("bag/data", top.join("bag/data")).unwrap();
            tarred.into_inner().unwrap();
        }
        "zip" | "zip-large" => {
            let mut zipped = zip::ZipWriter::new(file);
            add(&mut zipped, top, &top.join("bag"), deflated.large_file(mode == "zip-large"), true);
            zipped.finish().unwrap();
        }
        "zip-stream" => {
            let mut zipped = zip::ZipWriter::new_stream(file);
            // It announces a descriptor of a directory and writes none: UnZip refuses such an archive.
            add(&mut zipped, top, &top.join("bag"), deflated, false);
            zipped.finish().unwrap();
        }
        _ => panic!("unknown mode"),
    }
}
