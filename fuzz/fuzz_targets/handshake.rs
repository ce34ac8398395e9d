//! A script for whoever sits between two sides of a handshake, without a key: nobody panics, and nobody is taken for
//! whom he is not. The first byte says who the sides are.
#![no_main]

use bezant_fuzz::handshake::World;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((&choice, script)) = data.split_first() else { return };
    World::new(choice).play(script);
});
