//! Reads the header, the metadata and what the file says about tensors.

use super::Entry;
use super::cursor::{Cursor, Found, Name};
use super::kind::Kind;
use super::source::Source;
use super::tensor::TensorInfo;
use super::value::{Described, Value, ValueType};
use std::sync::Arc;

/// Where the metadata begins.
const HEADER: usize = 24;
/// The fewest bytes of a key with its value: the key's length, the type, a byte.
const LEAST_ENTRY: u64 = 8 + 4 + 1;
/// The fewest bytes of what is said about a tensor: the name's length, the rank, a dimension, the type, the offset.
const LEAST_TENSOR: u64 = 8 + 4 + 8 + 4 + 8;
/// The most bytes of a key, by the format.
const LONGEST_KEY: u64 = 65535;
/// The most bytes of a tensor's name, by the format.
const LONGEST_NAME: u64 = 64;
const DEFAULT_ALIGNMENT: u64 = 32;

/// What the beginning of a file says.
pub(super) struct Contents {
    pub version: u32,
    pub alignment: u64,
    pub entries: Vec<Entry>,
    /// Indices of the entries, by key.
    pub keys: Vec<usize>,
    pub tensors: Vec<TensorInfo>,
    /// Indices of the tensors, by name.
    pub names: Vec<usize>,
}

/// Reads a file, and checks all of it but the tensors' values.
pub(super) fn read(source: &Arc<Source>) -> Found<Contents> {
    let bytes = source.bytes();
    if bytes.len() < HEADER {
        return Err(format!("it has {} bytes, and a header has {HEADER}", bytes.len()));
    }
    let mut cursor = Cursor::new(bytes, 0);
    let magic: [u8; 4] = cursor.array("the magic number")?;
    if magic != *b"GGUF" {
        return Err(format!("it begins with '{}' instead of 'GGUF'", magic.escape_ascii()));
    }
    let version = version(cursor.u32("the version")?)?;
    let tensors = cursor.u64("the count of tensors")?;
    let entries = cursor.u64("the count of keys")?;
    // Before memory for them is allocated: the file is long enough to have them.
    let least = entries.checked_mul(LEAST_ENTRY).zip(tensors.checked_mul(LEAST_TENSOR));
    if least.and_then(|(a, b)| a.checked_add(b)).is_none_or(|least| least > cursor.left() as u64) {
        return Err(format!(
            "it counts {tensors} tensors at byte 8 and {entries} keys at byte 16, which take at least {LEAST_TENSOR} and \
             {LEAST_ENTRY} bytes each; {} bytes follow",
            cursor.left()
        ));
    }
    let (entries, keys) = metadata(&mut cursor, entries as usize, source)?;
    let alignment = alignment(&entries, &keys, source)?;
    let (mut tensors, names) = infos(&mut cursor, tensors as usize, alignment)?;
    super::layout::place(&mut tensors, cursor.at(), alignment, bytes.len())?;
    Ok(Contents { version, alignment, entries, keys, tensors, names })
}

fn version(version: u32) -> Found<u32> {
    match version {
        2 | 3 => Ok(version),
        _ if matches!(version.swap_bytes(), 1..=3) => Err(format!(
            "it is big-endian: version {} at byte 4 has its bytes in the other order; little-endian files are supported",
            version.swap_bytes()
        )),
        _ => Err(format!("its version is {version} at byte 4; 2 and 3 are supported")),
    }
}

fn metadata(cursor: &mut Cursor, count: usize, source: &Arc<Source>) -> Found<(Vec<Entry>, Vec<usize>)> {
    let mut entries = Vec::with_capacity(count);
    for index in 0..count {
        let key = cursor.string(LONGEST_KEY, format_args!("key {index}"))?;
        let what = format_args!("the value of {}", Name(key));
        let kind = ValueType::read(cursor, what)?;
        let value = Value::read(cursor, kind, source, what)?;
        entries.push(Entry { key: key.into(), value });
    }
    let keys = sorted(&entries, |entry| &entry.key).map_err(|(first, second)| {
        let key = Name(&entries[second].key);
        // Only the error needs offsets. Read again, they cost no memory otherwise.
        let at = |index| place_of(source, index).unwrap_or_default();
        format!("key {second} at byte {} is {key}, as key {first} at byte {}", at(second), at(first))
    })?;
    Ok((entries, keys))
}

/// The offset of a key.
fn place_of(source: &Arc<Source>, index: usize) -> Found<usize> {
    let mut cursor = Cursor::new(source.bytes(), HEADER);
    for _ in 0..index {
        cursor.string(LONGEST_KEY, "a key")?;
        let kind = ValueType::read(&mut cursor, "a value")?;
        Value::read(&mut cursor, kind, source, format_args!("a value"))?;
    }
    Ok(cursor.at())
}

/// The indices of items sorted by name, or two whose names are equal.
fn sorted<T>(items: &[T], name: impl Fn(&T) -> &str) -> Result<Vec<usize>, (usize, usize)> {
    let mut order: Vec<usize> = (0..items.len()).collect();
    order.sort_unstable_by(|&a, &b| name(&items[a]).cmp(name(&items[b])).then(a.cmp(&b)));
    match order.windows(2).find(|pair| name(&items[pair[0]]) == name(&items[pair[1]])) {
        Some(pair) => Err((pair[0], pair[1])),
        None => Ok(order),
    }
}

fn alignment(entries: &[Entry], keys: &[usize], source: &Arc<Source>) -> Found<u64> {
    const KEY: &str = "general.alignment";
    match super::find(entries, keys, KEY) {
        None => Ok(DEFAULT_ALIGNMENT),
        Some(Value::U32(value)) if value.is_power_of_two() && *value >= 8 => Ok(u64::from(*value)),
        Some(other) => {
            let index = entries.iter().position(|entry| &*entry.key == KEY).unwrap_or_default();
            Err(format!(
                "'{KEY}' at byte {} is {}; it must be a u32, a power of two and a multiple of 8",
                place_of(source, index)?,
                Described(other)
            ))
        }
    }
}

fn infos(cursor: &mut Cursor, count: usize, alignment: u64) -> Found<(Vec<TensorInfo>, Vec<usize>)> {
    // The metadata may have taken the bytes that the header left for tensors.
    if count > cursor.left() / LEAST_TENSOR as usize {
        return Err(format!(
            "it counts {count} tensors at byte 8, which take at least {LEAST_TENSOR} bytes each; {} bytes follow the \
             metadata, which ends at byte {}",
            cursor.left(),
            cursor.at()
        ));
    }
    let mut tensors = Vec::with_capacity(count);
    for index in 0..count {
        tensors.push(info(cursor, index, alignment)?);
    }
    let names = sorted(&tensors, |tensor: &TensorInfo| &tensor.name).map_err(|(first, second)| {
        let [a, b] = [first, second].map(|index| tensors[index].described);
        format!("tensor {second} at byte {b} is named {}, as tensor {first} at byte {a}", Name(&tensors[first].name))
    })?;
    Ok((tensors, names))
}

fn info(cursor: &mut Cursor, index: usize, alignment: u64) -> Found<TensorInfo> {
    let described = cursor.at();
    let name = cursor.string(LONGEST_NAME, format_args!("the name of tensor {index}"))?;
    let what = format_args!("the tensor {}", Name(name));
    let at = cursor.at();
    let rank = cursor.u32(format_args!("the rank of {what}"))?;
    if !(1..=4).contains(&rank) {
        return Err(format!("{what} has {rank} dimensions at byte {at}; 1 to 4 are allowed"));
    }
    let at = cursor.at();
    let mut sizes = [1; 4];
    for size in &mut sizes[..rank as usize] {
        *size = cursor.u64(format_args!("the dimensions of {what}"))?;
    }
    let sizes = &sizes[..rank as usize];
    let at_kind = cursor.at();
    let kind = Kind::from_number(cursor.u32(format_args!("the type of {what}"))?);
    let large = || format!("{what} has dimensions {sizes:?} of {kind} at byte {at}: too many bytes");
    let mut dims = [0; 4];
    for (dim, &size) in dims.iter_mut().zip(sizes.iter().rev()) {
        *dim = usize::try_from(size).map_err(|_| large())?;
    }
    let dims_given = &dims[..rank as usize];
    // A dimension of 0 must not hide that the others are too large.
    let product =
        dims_given.iter().try_fold(1usize, |product, &dim| product.checked_mul(dim.max(1))).ok_or_else(large)?;
    let empty = dims_given.contains(&0);
    let mut bytes = 0;
    if let (Some(block), Some(block_bytes)) = (kind.block(), kind.block_bytes()) {
        let row = sizes[0];
        if row % block as u64 != 0 {
            return Err(format!(
                "{what} has rows of {row} values at byte {at}; {kind} at byte {at_kind} has blocks of {block}"
            ));
        }
        let whole = (product / block).checked_mul(block_bytes).filter(|&bytes| bytes <= isize::MAX as usize);
        bytes = whole.ok_or_else(large)?;
    }
    let at = cursor.at();
    let offset = cursor.u64(format_args!("the offset of {what}"))?;
    if offset % alignment != 0 {
        return Err(format!("{what} has the offset {offset} at byte {at}; it must be a multiple of {alignment}"));
    }
    let start = usize::try_from(offset);
    let start = start.map_err(|_| format!("{what} has the offset {offset} at byte {at}, which is beyond the file"))?;
    let bytes = if empty { 0 } else { bytes };
    Ok(TensorInfo { name: name.into(), dims, rank: rank as u8, kind, described, start, bytes })
}
