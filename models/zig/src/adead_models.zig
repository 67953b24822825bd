//! Models for Zig, with the same bits on every device: text generation, sentence embeddings and training.
//!
//! A thin layer over the C interface: errors are an error set, with the text in `lastError()`; texts and arrays are
//! slices; `deinit` destroys. README.md is the guide. `c` is adead/models.h as the build system translates it.
//! docs/NAME.md in comments is https://adead.github.io/adead/NAME.html.

const std = @import("std");
const shared = @import("shared");
pub const c = @import("c");

const encoder = @import("encoder.zig");
const generator = @import("generator.zig");
const gguf = @import("gguf.zig");
const job = @import("job.zig");
const text = @import("text.zig");
const trainer = @import("trainer.zig");
const transport = @import("transport.zig");

pub const Error = shared.enums.Error;
pub const Status = shared.enums.Status;
pub const statusOf = shared.enums.statusOf;
pub const BlockFormat = shared.enums.BlockFormat;
pub const DType = shared.enums.DType;
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

pub const Trainer = trainer.Trainer;
pub const Samples = trainer.Samples;
pub const FitOptions = trainer.FitOptions;
pub const FitProgress = trainer.FitProgress;
pub const Measured = trainer.Measured;
pub const Parameter = trainer.Parameter;
pub const Transport = transport.Transport;
pub const Parts = transport.Parts;
pub const Mailbox = transport.Mailbox;

pub const trainJob = job.trainJob;
pub const TrainOptions = job.TrainOptions;
pub const TrainProgress = job.TrainProgress;
pub const TrainEvent = job.TrainEvent;
pub const TrainOutcome = job.TrainOutcome;

pub const quantize = gguf.quantize;
pub const convert = gguf.convert;
pub const ConvertOptions = gguf.ConvertOptions;
pub const Reporter = gguf.Reporter;

/// Returns the error text of the last call that failed on this thread. Valid until the next one fails.
pub const lastError = shared.failure.lastError;

/// Returns the version of the library.
pub fn version() [:0]const u8 {
    return std.mem.span(c.adead_models_version());
}
