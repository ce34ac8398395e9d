//! A script for three correct replicas and a faulty one: nobody panics, and the correct ones agree.
#![no_main]

use bezant_fuzz::cluster::World;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|script: &[u8]| World::new().play(script));
