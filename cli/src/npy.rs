//! NumPy's `.npy` files, versions 1 to 3: one array of f32, f16, i32, i64, u32 or bool, in either byte order and memory order.
//! Files are written little endian and row-major, as `numpy.save` writes them.

#[cfg(feature = "models")]
pub mod rows;

use crate::failure::{Failure, Result};
use crate::files::NewFile;
use adead::{Context, DType, Shape, Status, Tensor};
use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

const MAGIC: &[u8] = b"\x93NUMPY";

/// A header is one line of text. A longer one is malformed.
const MAX_HEADER: u32 = 1 << 20;

/// The contents of a header.
#[derive(Debug, PartialEq, Eq)]
pub struct Header {
    /// The element type.
    pub dtype: DType,
    /// The dimensions.
    pub dims: Vec<usize>,
    /// Whether the first dimension is contiguous instead of the last.
    fortran: bool,
    big_endian: bool,
}

/// A file whose header was read.
#[derive(Debug)]
pub struct Npy {
    /// The contents of the header.
    pub header: Header,
    path: PathBuf,
    file: File,
}

impl Npy {
    /// Opens a file and reads its header.
    pub fn open(path: &Path) -> Result<Npy> {
        let mut file = File::open(path).map_err(|error| Failure::io(path.display(), &error))?;
        let header = header(&mut file).map_err(|fault| match fault {
            Fault::Malformed(text) => malformed(path, text),
            Fault::Io(error) => Failure::io(path.display(), &error),
        })?;
        Ok(Npy { header, path: path.into(), file })
    }

    /// Reads the elements.
    pub fn read(mut self, ctx: &Context) -> Result<Tensor> {
        let Header { dtype, dims, fortran, big_endian } = &self.header;
        let shape = Shape::new(dims)?;
        let size = shape.elements() * dtype.size();
        // The allocation follows from the bytes in the file, not from what the header claims.
        let mut bytes = Vec::new();
        let read = (&mut self.file).take(size as u64 + 1).read_to_end(&mut bytes);
        read.map_err(|error| Failure::io(self.path.display(), &error))?;
        if bytes.len() != size {
            let have = if bytes.len() > size { "more".to_string() } else { bytes.len().to_string() };
            return Err(malformed(
                &self.path,
                format!("{dtype}{shape} takes {size} bytes and {have} follow the header"),
            ));
        }
        if *big_endian != cfg!(target_endian = "big") {
            bytes.chunks_exact_mut(dtype.size()).for_each(<[u8]>::reverse);
        }
        if *fortran {
            let reversed: Vec<usize> = dims.iter().rev().copied().collect();
            return Ok(ctx.transpose(&Tensor::from_bytes(&bytes, *dtype, &reversed)?)?);
        }
        Ok(Tensor::from_bytes(&bytes, *dtype, dims)?)
    }
}

/// Writes a tensor as a whole file. [`check_writable`] tells in advance whether that is possible.
pub fn write(file: &mut NewFile, tensor: &Tensor) -> Result<()> {
    file.write(&preamble(tensor.dtype(), tensor.dims(), 0)?)?;
    file.write(&little_endian(tensor.bytes(), tensor.dtype()))
}

/// The bytes before the data: at least this many, a multiple of 64, ending with a line break.
fn preamble(dtype: DType, dims: &[usize], least: usize) -> Result<Vec<u8>> {
    let Some(descr) = descr(dtype) else { return Err(no_bf16()) };
    let dims: Vec<String> = dims.iter().map(usize::to_string).collect();
    let dims = if dims.len() == 1 { format!("{},", dims[0]) } else { dims.join(", ") };
    let text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({dims}), }}");
    let start = (MAGIC.len() + 4 + text.len() + 1).max(least).next_multiple_of(64);
    let length = start - MAGIC.len() - 4;
    let mut bytes = [MAGIC, &[1, 0], &(length as u16).to_le_bytes(), text.as_bytes()].concat();
    bytes.resize(start - 1, b' ');
    bytes.push(b'\n');
    Ok(bytes)
}

/// Whether `.npy` has a type for this dtype.
pub fn check_writable(dtype: DType) -> Result<()> {
    if descr(dtype).is_none() { Err(no_bf16()) } else { Ok(()) }
}

fn no_bf16() -> Failure {
    Failure::new(Status::Unsupported, ".npy has no type for bf16; cast the output to f32 in the program")
}

fn descr(dtype: DType) -> Option<&'static str> {
    match dtype {
        DType::F32 => Some("<f4"),
        DType::F16 => Some("<f2"),
        DType::BF16 => None,
        DType::I32 => Some("<i4"),
        DType::I64 => Some("<i8"),
        DType::U32 => Some("<u4"),
        DType::Bool => Some("|b1"),
        DType::U8 => Some("|u1"),
        DType::F64 => Some("<f8"),
    }
}

fn little_endian(bytes: &[u8], dtype: DType) -> Cow<'_, [u8]> {
    if cfg!(target_endian = "little") {
        return Cow::Borrowed(bytes);
    }
    let mut bytes = bytes.to_vec();
    bytes.chunks_exact_mut(dtype.size()).for_each(<[u8]>::reverse);
    Cow::Owned(bytes)
}

fn malformed(path: &Path, text: String) -> Failure {
    Failure::invalid(format!("{}: {text}", path.display()))
}

/// Why a header can't be read.
#[derive(Debug)]
enum Fault {
    Malformed(String),
    Io(io::Error),
}

impl<T: Into<String>> From<T> for Fault {
    fn from(text: T) -> Fault {
        Fault::Malformed(text.into())
    }
}

/// Fills a buffer. `short` is the error if the file ends before.
fn fill(file: &mut impl Read, buffer: &mut [u8], short: &str) -> Result<(), Fault> {
    file.read_exact(buffer).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => short.into(),
        _ => Fault::Io(error),
    })
}

/// Reads a header. Afterwards the file is at the data.
fn header(file: &mut impl Read) -> Result<Header, Fault> {
    let mut start = [0; 8];
    fill(file, &mut start, "not a .npy file: it is too short")?;
    if &start[..6] != MAGIC {
        return Err("not a .npy file: it must begin with \\x93NUMPY".into());
    }
    let bytes = match start[6] {
        1 => 2,
        2 | 3 => 4,
        other => return Err(format!(".npy version {other}.{}; this version reads 1 to 3", start[7]).into()),
    };
    let mut length = [0; 4];
    fill(file, &mut length[..bytes], "truncated: the header's length is missing")?;
    let length = u32::from_le_bytes(length);
    if length > MAX_HEADER {
        return Err(format!("the header claims {length} bytes, more than {MAX_HEADER}").into());
    }
    let mut text = vec![0; length as usize];
    fill(file, &mut text, "truncated: the file ends inside the header")?;
    let text = std::str::from_utf8(&text).map_err(|_| "the header is not UTF-8")?;
    Ok(Literal { rest: text }.header()?)
}

/// The Python literal of a header.
struct Literal<'a> {
    rest: &'a str,
}

impl<'a> Literal<'a> {
    fn header(&mut self) -> Result<Header, String> {
        let (mut descr, mut fortran, mut dims) = (None, None, None);
        self.expect('{')?;
        while !self.take('}') {
            let key = self.string()?;
            self.expect(':')?;
            match key {
                "descr" if self.peek() == Some('[') => {
                    return Err("its elements are records; adead reads only numbers".into());
                }
                "descr" => descr = Some(self.string()?),
                "fortran_order" => fortran = Some(self.boolean()?),
                "shape" => dims = Some(self.tuple()?),
                _ => return Err(format!("the header has a key '{key}'")),
            }
            if !self.take(',') {
                self.expect('}')?;
                break;
            }
        }
        if !self.rest.trim().is_empty() {
            return Err(format!("unexpected text after the header: '{}'", self.rest.trim()));
        }
        let missing = |key: &str| format!("the header lacks '{key}'");
        let (dtype, big_endian) = element(descr.ok_or_else(|| missing("descr"))?)?;
        let dims = dims.ok_or_else(|| missing("shape"))?;
        Shape::new(&dims).map_err(|error| error.message().to_string())?;
        Ok(Header { dtype, dims, fortran: fortran.ok_or_else(|| missing("fortran_order"))?, big_endian })
    }

    fn peek(&mut self) -> Option<char> {
        self.rest = self.rest.trim_start();
        self.rest.chars().next()
    }

    fn take(&mut self, wanted: char) -> bool {
        let there = self.peek() == Some(wanted);
        if there {
            self.rest = &self.rest[wanted.len_utf8()..];
        }
        there
    }

    fn expect(&mut self, wanted: char) -> Result<(), String> {
        if self.take(wanted) {
            Ok(())
        } else {
            Err(format!("the header is malformed: no '{wanted}' at '{}'", self.rest.trim_end()))
        }
    }

    fn string(&mut self) -> Result<&'a str, String> {
        let quote = if self.peek() == Some('"') { '"' } else { '\'' };
        self.expect(quote)?;
        let (text, rest) = self.rest.split_once(quote).ok_or("the header is malformed: a string does not end")?;
        self.rest = rest;
        Ok(text)
    }

    fn boolean(&mut self) -> Result<bool, String> {
        self.peek();
        for (word, value) in [("False", false), ("True", true)] {
            if let Some(rest) = self.rest.strip_prefix(word) {
                self.rest = rest;
                return Ok(value);
            }
        }
        Err("the header is malformed: fortran_order is neither True nor False".into())
    }

    fn tuple(&mut self) -> Result<Vec<usize>, String> {
        let mut dims = Vec::new();
        self.expect('(')?;
        while !self.take(')') {
            self.peek();
            let digits = self.rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.rest.len());
            let (number, rest) = self.rest.split_at(digits);
            dims.push(number.parse().map_err(|_| format!("the header is malformed: '{number}' is not a dimension"))?);
            // Python 2 wrote long integers as 3L.
            self.rest = rest.strip_prefix('L').unwrap_or(rest);
            if !self.take(',') {
                self.expect(')')?;
                break;
            }
        }
        Ok(dims)
    }
}

/// The dtype of a `descr`, and whether it is big endian.
fn element(descr: &str) -> Result<(DType, bool), String> {
    let order = descr.chars().next().unwrap_or_default();
    let kind = descr.strip_prefix(['<', '>', '=', '|']).unwrap_or(descr);
    let dtype = match kind {
        "f4" => DType::F32,
        "f2" => DType::F16,
        "f8" => DType::F64,
        "i4" => DType::I32,
        "i8" => DType::I64,
        "u4" => DType::U32,
        "b1" => DType::Bool,
        "u1" => DType::U8,
        _ => {
            let hint = match kind {
                "i1" | "i2" | "u2" | "u8" => "; save it with .astype('int32')",
                "V2" => " (.npy has no type for bf16)",
                _ => "",
            };
            return Err(format!("its elements are '{descr}'; adead reads f4, f2, f8, i4, i8, u4, b1 and u1{hint}"));
        }
    };
    Ok((dtype, order == '>' || (order == '=' && cfg!(target_endian = "big"))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Header, String> {
        Literal { rest: text }.header()
    }

    #[test]
    fn headers_of_every_writer_are_read() {
        let header =
            |dtype, dims: &[usize], fortran, big_endian| Ok(Header { dtype, dims: dims.to_vec(), fortran, big_endian });
        let text = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }   \n";
        assert_eq!(parse(text), header(DType::F32, &[3, 4], false, false));
        assert_eq!(parse("{'descr':'>i8','fortran_order':True,'shape':(5,)}"), header(DType::I64, &[5], true, true));
        assert_eq!(
            parse("{\"shape\": (), \"fortran_order\": False, \"descr\": \"<f2\"}"),
            header(DType::F16, &[], false, false)
        );
        assert_eq!(
            parse("{'descr': '<u4', 'fortran_order': False, 'shape': (2L, 0L)}"),
            header(DType::U32, &[2, 0], false, false)
        );
        assert_eq!(
            parse("{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }"),
            header(DType::F64, &[3], false, false)
        );
        assert_eq!(
            parse("{'descr': '|b1', 'fortran_order': False, 'shape': (3,), }"),
            header(DType::Bool, &[3], false, false)
        );
        assert_eq!(
            parse("{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }"),
            header(DType::U8, &[3], false, false)
        );
    }

    #[test]
    fn malformed_headers_are_refused_with_their_reason() {
        for (text, reason) in [
            ("", "no '{'"),
            ("{'descr': '<f4', 'fortran_order': False}", "lacks 'shape'"),
            ("{'fortran_order': False, 'shape': (1,)}", "lacks 'descr'"),
            ("{'descr': '<f4', 'shape': (1,)}", "lacks 'fortran_order'"),
            ("{'descr': '<V2', 'fortran_order': False, 'shape': (1,)}", "bf16"),
            ("{'descr': '<i2', 'fortran_order': False, 'shape': (1,)}", ".astype('int32')"),
            ("{'descr': '<c8', 'fortran_order': False, 'shape': (1,)}", "'<c8'"),
            ("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", "records"),
            ("{'descr': '<f4', 'fortran_order': 0, 'shape': (1,)}", "neither True nor False"),
            ("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", "'' is not a dimension"),
            ("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}", "is not a dimension"),
            ("{'descr': '<f4', 'fortran_order': False, 'shape': (1 2)}", "no ')'"),
            ("{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x", "unexpected text after the header: 'x'"),
            ("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'é': 1}", "a key 'é'"),
            ("{'descr': '<f4", "does not end"),
            (
                "{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807, 9223372036854775807)}",
                "elements",
            ),
            ("{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}", "at most 8"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }

    #[test]
    fn a_header_never_panics_wherever_it_is_cut_or_changed() {
        let mut whole = MAGIC.to_vec();
        let text = b"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }\n";
        whole.extend([1, 0, text.len() as u8, 0]);
        whole.extend(text);
        assert!(header(&mut &whole[..]).is_ok());
        for cut in 0..whole.len() {
            assert!(header(&mut &whole[..cut]).is_err(), "cut at {cut}");
            for byte in [0, b'\'', b'{', b'(', 0x80, 0xff] {
                let mut changed = whole.clone();
                changed[cut] = byte;
                let _ = header(&mut &changed[..]);
            }
        }
        let mut long = whole.clone();
        long.splice(6..10, [2, 0, 0xff, 0xff, 0xff, 0xff]);
        let said = |bytes: &[u8]| format!("{:?}", header(&mut &bytes[..]));
        assert!(said(&long).contains("claims"));
        long[6] = 4;
        assert!(said(&long).contains("version 4.0"));
    }
}
