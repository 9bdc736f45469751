//! Keys that collide under a public hash function, as an attacker constructs them from its source.
//!
//! Foldhash multiplies two words of a key, each mixed with a word of its state, and folds the
//! product. An attacker that knows the state word of one factor chooses the key word so that the
//! factor is zero. The key word of the other factor is then free:
//!
//! ```text
//! folded(word ^ state, other ^ other_state) = 0    for word = state and any other
//! ```

use corvid_data::Uuid;

/// Number of keys.
pub(crate) const KEYS: usize = 100_000;

/// The state that all hashers share, word by word; `FIRST` is the first word of a hasher without a
/// seed.
const SHARED: [u64; 2] = [0xc0ac_29b7_c97c_50dd, 0x3f84_d5b5_b547_0917];
const FIRST: u64 = 0x082e_fa98_ec4e_6c89;

fn folded(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// Returns UUIDs whose high half makes the second factor zero, so that they collide under any seed
/// of the hasher.
pub(crate) fn uuids() -> impl Iterator<Item = Uuid> {
    (0..KEYS as u64).map(|number| {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&number.to_le_bytes());
        bytes[8..].copy_from_slice(&SHARED[0].to_le_bytes());
        Uuid(bytes)
    })
}

/// The second column of an index over two integers. With this value, any first column collides with
/// all others.
pub(crate) const SECOND: i64 = SHARED[0].cast_signed();

/// Returns strings of 60 letters that differ in four. Their hash has two rounds of two lanes. In
/// the first lane, letters 16 to 23 equal the result of the first round. That makes one factor of
/// the second round zero, so the other factor, letters 28 to 35, has no effect. The other lane does
/// not read letters 32 to 35.
pub(crate) fn strings() -> impl Iterator<Item = String> {
    let (mut text, zero) = (0u32..)
        .map(|number| {
            let text = format!("{number:-<60}");
            let word = |at: usize| {
                u64::from_le_bytes(text.as_bytes()[at..at + 8].try_into().expect("8 bytes"))
            };
            let first = FIRST.rotate_right(60);
            let zero = folded(word(0) ^ first, word(44) ^ SHARED[0]);
            (text, zero.to_le_bytes())
        })
        .find(|(_, zero)| zero.iter().all(u8::is_ascii_alphanumeric))
        .expect("one in some hundred thousand");
    text.replace_range(16..24, std::str::from_utf8(&zero).expect("ASCII"));
    (0..KEYS).map(move |number| {
        let mut text = text.clone();
        text.replace_range(32..36, &base32(number));
        text
    })
}

/// Returns four letters.
fn base32(number: usize) -> String {
    let letter = |place: u32| {
        let digit = number >> (5 * place) & 31;
        char::from_digit(digit as u32, 32).expect("below 32")
    };
    (0..4).map(letter).collect()
}
