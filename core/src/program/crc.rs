//! CRC-32 as in Ethernet, zip and PNG: reflected polynomial EDB88320, all bits inverted before and after.

const TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut i = 0;
    while i < 256 {
        let (mut value, mut bit) = (i as u32, 0);
        while bit < 8 {
            value = if value & 1 == 1 { value >> 1 ^ 0xEDB8_8320 } else { value >> 1 };
            bit += 1;
        }
        table[i] = value;
        i += 1;
    }
    table
};

/// Computes the checksum of the bytes.
pub(super) fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc: u32, &byte| crc >> 8 ^ TABLE[(crc as u8 ^ byte) as usize])
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_check_value() {
        assert_eq!(super::crc32(b"123456789"), 0xCBF4_3926);
        assert_eq!(super::crc32(b""), 0);
    }
}
