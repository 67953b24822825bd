//! Measures one operation at a time: its result and its times.

use crate::data::{Digest, places};
use crate::items::Item;
use crate::timing::{Effort, Times, completion, occupy, on_device, repeats};
use adead_core::gpu::{Buffer, Operand, Stream};
use adead_core::{Context, Meta, Result, Status, Tensor};
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::time::Duration;

/// The most seconds of one run, estimated from smaller ones. A slower device skips the item.
const PATIENCE: f64 = 0.3;
/// Operands that together are larger than any cache of today's GPUs.
const COLD: usize = 256 << 20;
/// Sets of operands that are used in turn.
const SETS: usize = 256;

/// A device with memory for the operands and results of every item.
pub struct Bench {
    pub ctx: Context,
    pub stream: Stream,
    numbers: Vec<f32>,
    inputs: Buffer,
    results: Buffer,
    ballast: Buffer,
    effort: Effort,
    /// Whether it is a hardware device, with memory and caches of its own.
    hardware: bool,
    /// Seconds per flop and byte, by group and operation.
    rates: HashMap<(&'static str, &'static str), f64>,
    cpu: Context,
    /// The most seconds that the CPU may take for a result to compare with.
    cpu_seconds: f64,
}

impl Bench {
    /// Prepares a context for these items.
    pub fn new(ctx: Context, cpu: Context, items: &[Item], quick: bool, hardware: bool) -> Result<Bench> {
        let least = if hardware { COLD } else { 1 << 20 };
        let room = |bytes: usize| bytes.next_multiple_of(256).max(least);
        let inputs = room(items.iter().map(|item| places(item.operand_bytes()).1).max().unwrap_or(0));
        let results = room(items.iter().map(Item::output_bytes).max().unwrap_or(0));
        let numbers = crate::data::pool(inputs / 4);
        Ok(Bench {
            stream: ctx.stream()?,
            inputs: ctx.buffer(&numbers)?,
            results: ctx.buffer_zeroed(results)?,
            ballast: ctx.buffer_zeroed(if hardware { COLD } else { 1 << 20 })?,
            numbers,
            ctx,
            cpu,
            effort: Effort {
                time: Duration::from_millis(if quick { 60 } else { 200 }),
                least: if quick { 3 } else { 5 },
            },
            hardware,
            rates: HashMap::new(),
            cpu_seconds: if quick { 0.3 } else { 4.0 },
        })
    }

    /// Measures an item. Returns JSON: times, the hash of its result, whether the CPU's result is the same.
    pub fn measure(&mut self, item: &Item) -> Value {
        let mut found = match item.to_json() {
            Value::Object(found) => found,
            _ => Map::new(),
        };
        let work = item.flops + item.bytes;
        let key = (item.group, item.op.name());
        let expected = self.rates.get(&key).map_or(0.0, |rate| rate * work);
        if expected > PATIENCE {
            found.insert("skipped".into(), format!("it would take about {expected:.0} s a run").into());
        } else if let Err(error) = self.fill(item, &mut found) {
            found.insert("error".into(), error.to_string().into());
        }
        if let Some(one) = found.get("seconds").and_then(|seconds| seconds["completion"]["median"].as_f64()) {
            self.rates.insert(key, one / work);
        }
        Value::Object(found)
    }

    fn fill(&mut self, item: &Item, found: &mut Map<String, Value>) -> Result<()> {
        let Bench { stream, inputs, results, ballast, effort, .. } = self;
        let (metas, output) = item.metas()?;
        let (offsets, stride) = places(item.operand_bytes());
        let out_stride = item.output_bytes().next_multiple_of(crate::data::ALIGN);
        let run = |stream: &mut Stream, set: usize| -> Result<()> {
            let operand =
                |i: usize| Some(Operand { buffer: &*inputs, offset: set * stride + offsets[i], meta: &metas[i] });
            let operands: Vec<_> = (0..metas.len()).map(operand).collect();
            let result = Operand { buffer: &*results, offset: set * out_stride, meta: &output };
            stream.run(item.op, &item.attrs, &operands, result)
        };

        // The first run computes the result and makes the pipelines.
        let bytes = item.output_bytes();
        stream.clear(results, 0, bytes)?;
        let first = completion(stream, &mut |stream| run(stream, 0))?;
        let mut result = vec![0; bytes];
        results.read_bytes(0, &mut result)?;
        let digest = Digest::of(&result)?;
        drop(result);
        found.insert("sha256".into(), digest.sha256.clone().into());
        found.insert("sample".into(), json!(digest.sample));

        let one = completion(stream, &mut |stream| run(stream, 0))?;
        let mut seconds = Map::new();
        let mut keep = |name: &str, times: Times| seconds.insert(name.into(), times.to_json());
        keep("first", Times::of(vec![first], 1));
        keep("completion", Times::of(effort.samples(|| completion(stream, &mut |stream| run(stream, 0)))?, 1));
        let runs = repeats(one, 5e-3, 100);
        let mut queue = |stream: &mut Stream| (0..runs).try_for_each(|_| run(stream, 0));
        keep("queued", Times::of(effort.samples(|| completion(stream, &mut queue))?, runs));

        // Repeated runs on the same operands, so those that fit in the caches are there.
        let runs = repeats(one, 2e-3, 200);
        let recording = stream.record(|stream| (0..runs).try_for_each(|_| run(stream, 0)));
        let recording = match recording {
            Err(error) if error.status() == Status::Unsupported => None, // the CPU has no recordings
            recording => Some(recording?),
        };
        if let Some(recording) = recording {
            let mut before = |stream: &mut Stream| {
                occupy(stream, ballast)?;
                run(stream, 0)
            };
            keep("hot", Times::of(effort.samples(|| on_device(stream, &mut before, &recording))?, runs));
            // Runs on so many operands in turn that none is still in a cache when it is used again.
            let room = (inputs.size() / stride.max(1)).min(results.size() / out_stride.max(1));
            let wanted = COLD.div_ceil(stride + out_stride);
            let sets = wanted.clamp(2, SETS).min(room);
            if self.hardware && sets >= 2 {
                let recording = stream.record(|stream| (0..sets).try_for_each(|set| run(stream, set)))?;
                let mut before = |stream: &mut Stream| occupy(stream, ballast);
                keep("cold", Times::of(effort.samples(|| on_device(stream, &mut before, &recording))?, sets));
            }
        }
        found.insert("seconds".into(), Value::Object(seconds));
        let equal = self.equals_cpu(item, &metas, &offsets, &digest.sha256)?;
        found.insert("cpu".into(), equal.into());
        Ok(())
    }

    /// Returns `equal`, `different`, or the reason why the CPU's result was not computed.
    fn equals_cpu(&self, item: &Item, metas: &[Meta], offsets: &[usize], sha256: &str) -> Result<String> {
        let threads = self.cpu.device_info().units.max(1) as f64;
        // The least rate of a thread on a machine with a GPU.
        let expected = item.flops / (threads * 20e9) + item.bytes / 10e9;
        if expected > self.cpu_seconds {
            return Ok(format!("not compared: it would take the CPU about {expected:.1} s"));
        }
        let mut operands = Vec::new();
        for (meta, offset) in metas.iter().zip(offsets) {
            let numbers = &self.numbers[offset / 4..][..meta.bytes() / 4];
            operands.push(Tensor::new(numbers, meta.shape.dims())?);
        }
        let operands: Vec<_> = operands.iter().map(Some).collect();
        let result = self.cpu.run(item.op, &item.attrs, &operands)?;
        Ok(if adead_conformance::hash(&result) == sha256 { "equal" } else { "different" }.into())
    }
}
