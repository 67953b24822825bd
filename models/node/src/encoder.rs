//! The encoder.

use adead::config::Config;
use adead::{Context, ContextOptions, DType, Result};
use adead_models::{Embeddings, EncodeOptions, SentenceEncoder};
use adead_node_support::args::{Flag, List, Size, Text, Word};
use adead_node_support::array::array_of;
use adead_node_support::error::guard;
use adead_node_support::task::{Job, promise};
use napi::Env;
use napi::JsValue;
use napi::bindgen_prelude::{AsyncTask, FromNapiValue, Object, ObjectFinalize, Unknown};
use napi_derive::napi;
use std::path::Path;

/// A model on its device.
#[napi(custom_finalize)]
pub struct Encoder {
    inner: SentenceEncoder,
    /// The bytes of its weights, reported to V8 so that its garbage collector runs in time.
    bytes: i64,
}

impl Encoder {
    fn new(env: Env, (inner, bytes): (SentenceEncoder, i64)) -> napi::Result<Encoder> {
        env.adjust_external_memory(bytes)?;
        Ok(Encoder { inner, bytes })
    }
}

impl ObjectFinalize for Encoder {
    fn finalize(self, env: Env) -> napi::Result<()> {
        env.adjust_external_memory(-self.bytes).map(drop)
    }
}

/// How to open a model.
#[napi(object, object_to_js = false)]
#[derive(Default)]
pub struct OpenOptions {
    #[napi(ts_type = "string")]
    pub device: Option<Text>,
    #[napi(ts_type = "number")]
    pub threads: Option<Word>,
    #[napi(ts_type = "'f32' | 'fixed24' | 'fixed16'")]
    pub precision: Option<Text>,
}

/// How sentences are batched.
#[napi(object, object_to_js = false)]
#[derive(Default)]
pub struct BatchOptions {
    #[napi(ts_type = "number")]
    pub batch: Option<Size>,
    #[napi(ts_type = "boolean")]
    pub padded: Option<Flag>,
}

impl From<BatchOptions> for EncodeOptions {
    fn from(options: BatchOptions) -> EncodeOptions {
        EncodeOptions { batch: options.batch.map(|size| size.0), padded: options.padded.map(|flag| flag.0) }
    }
}

impl OpenOptions {
    pub(crate) fn context(&self) -> Result<Context> {
        let threads = self.threads.map(|threads| threads.0 as usize);
        let precision = self.precision.as_deref().map(str::parse).transpose()?;
        let wanted = ContextOptions { threads, precision, ..ContextOptions::default() };
        Context::configured(self.device.as_deref(), &wanted, &Config::load()?)
    }
}

/// The encoder and the bytes of its weights.
fn open(folder: &str, options: &OpenOptions) -> Result<(SentenceEncoder, i64)> {
    let encoder = SentenceEncoder::open(folder, &options.context()?)?;
    let weights = Path::new(folder).join("model.safetensors");
    let bytes = std::fs::metadata(weights).map_or(0, |found| found.len());
    Ok((encoder, i64::try_from(bytes).unwrap_or(0)))
}

/// Makes a `Float32Array` with a copy of values.
pub(crate) fn floats(env: Env, values: &[f32]) -> napi::Result<Unknown<'static>> {
    // SAFETY: the bytes of floats, which have no padding.
    let bytes = unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) };
    array_of(env, DType::F32, bytes)
}

/// Makes an object of embeddings: their values, width and truncated rows.
fn rows(env: Env, found: Embeddings) -> napi::Result<Unknown<'static>> {
    let mut object = Object::new(&env)?;
    object.set("width", found.width() as f64)?;
    object.set("truncated", found.truncated().iter().map(|&row| row as f64).collect::<Vec<_>>())?;
    object.set("values", floats(env, found.values())?)?;
    // SAFETY: a value of this environment, given to it at once.
    unsafe { Unknown::from_napi_value(env.raw(), object.raw()) }
}

/// Converts sentences to Rust's strings, which can go to another thread.
fn texts(sentences: List<Text>) -> Vec<String> {
    sentences.0.into_iter().map(String::from).collect()
}

#[napi]
impl Encoder {
    #[napi(factory, ts_args_type = "folder: string, options?: OpenOptions")]
    pub fn open(env: Env, folder: Text, options: Option<OpenOptions>) -> napi::Result<Encoder> {
        let opened = guard(env, || open(&folder, &options.unwrap_or_default()))?;
        Encoder::new(env, opened)
    }

    #[napi(ts_args_type = "folder: string, options?: OpenOptions", ts_return_type = "Promise<Encoder>")]
    pub fn open_async(folder: Text, options: Option<OpenOptions>) -> AsyncTask<Job> {
        promise(Ok(move || open(&folder, &options.unwrap_or_default())), Encoder::new)
    }

    #[napi(getter)]
    pub fn width(&self) -> f64 {
        self.inner.width() as f64
    }

    #[napi(getter)]
    pub fn max_tokens(&self) -> f64 {
        self.inner.max_tokens() as f64
    }

    #[napi(getter)]
    pub fn device(&self) -> String {
        self.inner.context().device_info().id.clone()
    }

    #[napi(ts_args_type = "sentences: string[], options?: BatchOptions", ts_return_type = "unknown")]
    pub fn encode(
        &self,
        env: Env,
        sentences: List<Text>,
        options: Option<BatchOptions>,
    ) -> napi::Result<Unknown<'static>> {
        let options = options.unwrap_or_default().into();
        let found = guard(env, || self.inner.encode_with(&texts(sentences), &options))?;
        rows(env, found)
    }

    #[napi(ts_args_type = "sentences: string[], options?: BatchOptions", ts_return_type = "Promise<unknown>")]
    pub fn encode_async(&self, sentences: List<Text>, options: Option<BatchOptions>) -> AsyncTask<Job> {
        let (encoder, options) = (self.inner.clone(), options.unwrap_or_default().into());
        promise(Ok(move || encoder.encode_with(&texts(sentences), &options)), rows)
    }
}
