//! Digests of texts and bytes. They protect nothing here: programs ask for them.

use super::bytes::spelled;
use super::call::{Arguments, Outcome};
use rusqlite::types::{Value, ValueRef};
use sha2::{Digest, Sha256};

/// RFC 1321: the whole part of 2^32 |sin i|, for i from 1 to 64.
#[rustfmt::skip]
const SINES: [u32; 64] = [
    0xd76a_a478, 0xe8c7_b756, 0x2420_70db, 0xc1bd_ceee, 0xf57c_0faf, 0x4787_c62a, 0xa830_4613, 0xfd46_9501,
    0x6980_98d8, 0x8b44_f7af, 0xffff_5bb1, 0x895c_d7be, 0x6b90_1122, 0xfd98_7193, 0xa679_438e, 0x49b4_0821,
    0xf61e_2562, 0xc040_b340, 0x265e_5a51, 0xe9b6_c7aa, 0xd62f_105d, 0x0244_1453, 0xd8a1_e681, 0xe7d3_fbc8,
    0x21e1_cde6, 0xc337_07d6, 0xf4d5_0d87, 0x455a_14ed, 0xa9e3_e905, 0xfcef_a3f8, 0x676f_02d9, 0x8d2a_4c8a,
    0xfffa_3942, 0x8771_f681, 0x6d9d_6122, 0xfde5_380c, 0xa4be_ea44, 0x4bde_cfa9, 0xf6bb_4b60, 0xbebf_bc70,
    0x289b_7ec6, 0xeaa1_27fa, 0xd4ef_3085, 0x0488_1d05, 0xd9d4_d039, 0xe6db_99e5, 0x1fa2_7cf8, 0xc4ac_5665,
    0xf429_2244, 0x432a_ff97, 0xab94_23a7, 0xfc93_a039, 0x655b_59c3, 0x8f0c_cc92, 0xffef_f47d, 0x8584_5dd1,
    0x6fa8_7e4f, 0xfe2c_e6e0, 0xa301_4314, 0x4e08_11a1, 0xf753_7e82, 0xbd3a_f235, 0x2ad7_d2bb, 0xeb86_d391,
];

/// By how many bits each of the four rounds turns, one operation after the other.
const TURNS: [[u32; 4]; 4] = [[7, 12, 17, 22], [5, 9, 14, 20], [4, 11, 16, 23], [6, 10, 15, 21]];

/// The digest of one more block.
fn with_block(state: [u32; 4], block: &[u8]) -> [u32; 4] {
    let mut words = [0_u32; 16];
    for (word, bytes) in words.iter_mut().zip(block.chunks_exact(4)) {
        *word = bytes.iter().rev().fold(0, |all, byte| all << 8 | u32::from(*byte));
    }
    let [mut a, mut b, mut c, mut d] = state;
    for (step, sine) in SINES.into_iter().enumerate() {
        let (mixed, place) = match step / 16 {
            0 => (b & c | !b & d, step),
            1 => (d & b | !d & c, 5 * step + 1),
            2 => (b ^ c ^ d, 3 * step + 5),
            _ => (c ^ (b | !d), 7 * step),
        };
        let sum = a.wrapping_add(mixed).wrapping_add(sine).wrapping_add(words[place % 16]);
        (a, d, c) = (d, c, b);
        b = b.wrapping_add(sum.rotate_left(TURNS[step / 16][step % 4]));
    }
    let [first, second, third, fourth] = state;
    [first.wrapping_add(a), second.wrapping_add(b), third.wrapping_add(c), fourth.wrapping_add(d)]
}

/// MD5, by RFC 1321.
fn md5_of(bytes: &[u8]) -> [u8; 16] {
    let (whole, rest) = bytes.split_at(bytes.len() / 64 * 64);
    let start = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];
    let state = whole.chunks_exact(64).fold(start, with_block);
    // One bit, zeros, and the length in bits fill one block or two.
    let mut last = [0_u8; 128];
    last[..rest.len()].copy_from_slice(rest);
    last[rest.len()] = 0x80;
    let end = if rest.len() < 56 { 64 } else { 128 };
    last[end - 8..end].copy_from_slice(&(8 * bytes.len() as u64).to_le_bytes());
    let state = last[..end].chunks_exact(64).fold(state, with_block);
    let mut digest = [0; 16];
    for (bytes, word) in digest.chunks_exact_mut(4).zip(state) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    digest
}

/// Of a text or of bytes, in hexadecimal digits.
pub(super) fn md5(arguments: &Arguments<'_>) -> Outcome {
    let digest = match arguments.0.get_raw(0) {
        ValueRef::Blob(bytes) => md5_of(bytes),
        _ => md5_of(arguments.text(0)?.as_bytes()),
    };
    spelled("", &digest)
}

pub(super) fn sha256(arguments: &Arguments<'_>) -> Outcome {
    Ok(Value::Blob(Sha256::digest(arguments.blob(0)?).to_vec()))
}
