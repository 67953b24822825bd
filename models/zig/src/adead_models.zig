//! Models for Zig, with the same bits on every device: text generation, sentence embeddings, training.
//!
//! A thin layer over the C interface: errors are an error set, with the text in `lastError()`; texts and arrays are
//! slices; `deinit` destroys. README.md is the guide. `c` is adead/models.h as the build system translates it.

const std = @import("std");
const shared = @import("shared");
pub const c = @import("c");

const encoder = @import("encoder.zig");
const generator = @import("generator.zig");
const gguf = @import("gguf.zig");
const text = @import("text.zig");
const trainer = @import("trainer.zig");

pub const Error = shared.enums.Error;
pub const Status = shared.enums.Status;
pub const statusOf = shared.enums.statusOf;
pub const BlockFormat = shared.enums.BlockFormat;
pub const Precision = shared.enums.Precision;

pub const TextGenerator = generator.TextGenerator;
pub const Progress = generator.Progress;
pub const GenerateOptions = text.GenerateOptions;
pub const Finish = text.Finish;
pub const Generation = text.Generation;
pub const Message = text.Message;
pub const TextStream = text.TextStream;

pub const SentenceEncoder = encoder.SentenceEncoder;
pub const EncodeOptions = encoder.EncodeOptions;
pub const Embeddings = encoder.Embeddings;
pub const Rows = encoder.Rows;

pub const quantize = gguf.quantize;
pub const convert = gguf.convert;
pub const ConvertOptions = gguf.ConvertOptions;
pub const Reporter = gguf.Reporter;

pub const Trainer = trainer.Trainer;
pub const Samples = trainer.Samples;
pub const DeviceOptions = trainer.DeviceOptions;
pub const FitProgress = trainer.FitProgress;
pub const train = trainer.train;
pub const TrainEvent = trainer.TrainEvent;
pub const TrainOptions = trainer.TrainOptions;
pub const TrainOutcome = trainer.TrainOutcome;
pub const JobProgress = trainer.JobProgress;

/// Returns the error text of the last call that failed on this thread. Valid until the next one fails.
pub const lastError = shared.failure.lastError;

/// Returns the version of the library.
pub fn version() [:0]const u8 {
    return std.mem.span(c.adead_models_version());
}
