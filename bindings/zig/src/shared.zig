//! The code that the package of models shares with this one. Its build compiles copies of these files with the header of
//! models.

pub const call = @import("call.zig");
pub const callback = @import("callback.zig");
pub const enums = @import("enums.zig");
pub const failure = @import("failure.zig");
