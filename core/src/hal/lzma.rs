//! Unpacks the operations' kernels, which `core/build.rs` compresses. A packed file has one byte with LZMA's three
//! parameters, four bytes with the unpacked size, and an LZMA stream without an end mark.

use lzma_rust2::LzmaReader;
use std::io::Read;

/// Returns the unpacked bytes; `None` if the data is damaged or there is no memory for them.
pub fn unpack(packed: &[u8]) -> Option<Vec<u8>> {
    let (&[parameters, a, b, c, d], packed) = packed.split_first_chunk()?;
    let size = u32::from_le_bytes([a, b, c, d]);
    let mut out = Vec::new();
    out.try_reserve_exact(size as usize).ok()?;
    out.resize(size as usize, 0);
    // The packer's window is at most the unpacked size.
    let window = size.checked_next_power_of_two()?.max(1 << 16);
    let mut reader = LzmaReader::new_with_props(packed, size.into(), parameters, window, None).ok()?;
    reader.read_exact(&mut out).ok()?;
    // The reader checks the end of the stream only when it reads further.
    (reader.read(&mut [0]).ok()? == 0).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lzma_rust2::{EncodeMode, LzmaOptions, LzmaWriter, MfType};
    use proptest::prelude::*;
    use std::io::Write;

    fn pack(bytes: &[u8]) -> Vec<u8> {
        let mut options = LzmaOptions::with_preset(9);
        (options.lc, options.lp, options.pb, options.dict_size) = (0, 0, 2, 1 << 16);
        (options.mode, options.mf) = (EncodeMode::Normal, MfType::Bt4);
        let mut packed = vec![options.get_props()];
        packed.extend((bytes.len() as u32).to_le_bytes());
        let mut writer = LzmaWriter::new_no_header(packed, &options, false).unwrap();
        writer.write_all(bytes).unwrap();
        writer.finish().unwrap()
    }

    #[test]
    fn what_is_unpacked_is_what_was_packed() {
        for length in [0usize, 1, 5, 1000, 100_000] {
            let bytes: Vec<u8> = (0..length).map(|i| (i % 1000 * i / 7 % 251) as u8).collect();
            assert!(unpack(&pack(&bytes)).as_deref() == Some(&bytes), "{length}");
        }
    }

    #[test]
    fn what_breaks_off_is_seen() {
        let packed = pack(&[7; 1000].map(|byte: u8| byte));
        for length in 0..packed.len() {
            assert!(unpack(&packed[..length]).is_none(), "{length}");
        }
    }

    proptest! {
        #[test]
        fn nonsense_ends(mut bytes in prop::collection::vec(any::<u8>(), 0..300), size in 0u32..10_000) {
            if let Some(own) = bytes.get_mut(1..5) {
                own.copy_from_slice(&size.to_le_bytes());
            }
            prop_assert!(unpack(&bytes).is_none_or(|all| all.len() == size as usize));
        }
    }
}
