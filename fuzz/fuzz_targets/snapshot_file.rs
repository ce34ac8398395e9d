//! A file to a snapshot: never a panic, and what is taken for one has one encoding, this file. The first byte says
//! whether root (bit 1) and checksums (bit 0) are set right before.
#![no_main]

use bezant_fuzz::snapshot::{read, set_checksums, set_root};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((&choice, file)) = data.split_first() else { return };
    let mut file = file.to_vec();
    if choice & 2 != 0 {
        set_root(&mut file);
    }
    if choice & 1 != 0 {
        set_checksums(&mut file);
    }
    let path = std::env::temp_dir().join(format!("bezant-fuzz-{}", std::process::id()));
    // An error of the file system is none of the format's: the disk must have room for this.
    if let Err(bezant_node::snapshot::SnapshotError::Io(error)) = read(&path, &file) {
        panic!("{}: {error}", path.display());
    }
});
