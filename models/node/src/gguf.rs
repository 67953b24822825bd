//! GGUF files: values as quantised blocks, models as files.

use adead::{BlockFormat, DType, Result};
use adead_models::convert::Conversion;
use adead_models::gguf;
use adead_node_support::args::Text;
use adead_node_support::array::array_of;
use adead_node_support::error::guard;
use adead_node_support::task::{Job, promise};
use napi::Env;
use napi::bindgen_prelude::{AsyncTask, Float32Array, Unknown};
use napi_derive::napi;

fn quantized(values: &[f32], format: &str) -> Result<Vec<u8>> {
    let format: BlockFormat = format.parse()?;
    gguf::quantize(values, format)
}

// index.js checks that the values are a Float32Array.
#[napi(ts_return_type = "Uint8Array")]
pub fn quantize(env: Env, values: Float32Array, format: Text) -> napi::Result<Unknown<'static>> {
    let blocks = guard(env, || quantized(&values, &format))?;
    array_of(env, DType::U8, &blocks)
}

#[napi(ts_return_type = "Promise<Uint8Array>")]
pub fn quantize_async(values: Float32Array, format: Text) -> AsyncTask<Job> {
    // A copy, because JavaScript may write to the array meanwhile.
    let values = values.to_vec();
    promise(Ok(move || quantized(&values, &format)), |env, blocks| array_of(env, DType::U8, &blocks))
}

/// Writes the file, and returns notes for the user.
fn converted(model: &str, file: &str, kind: Option<&str>) -> Result<Vec<String>> {
    let conversion = Conversion::from_path(model, kind.map(str::parse).transpose()?)?;
    let notes = conversion.notes().to_vec();
    conversion.write_file(file, |_, _| Ok(()))?;
    Ok(notes)
}

#[napi(ts_args_type = "model: string, file: string, kind?: string")]
pub fn convert(env: Env, model: Text, file: Text, kind: Option<Text>) -> napi::Result<Vec<String>> {
    guard(env, || converted(&model, &file, kind.as_deref()))
}

#[napi(ts_args_type = "model: string, file: string, kind?: string", ts_return_type = "Promise<string[]>")]
pub fn convert_async(model: Text, file: Text, kind: Option<Text>) -> AsyncTask<Job> {
    promise(Ok(move || converted(&model, &file, kind.as_deref())), |_, notes| Ok(notes))
}
