const c = @cImport(@cInclude("adead.h"));

pub fn main() !void {
    const x = [4]f32{ -1, 0, 2, 3 };
    var y: [4]f32 = undefined;
    if (c.adead_relu(&x, &y, 4) != c.ADEAD_OK) return error.Failed;
    if (y[0] != 0 or y[3] != 3) return error.OtherValues;
    var context: ?*c.adead_context = null;
    if (c.adead_context_open("nowhere", null, &context) != c.ADEAD_INVALID_ARGUMENT) return error.NoError;
    if (c.adead_last_error()[0] == 0 or c.adead_shutdown() != c.ADEAD_OK) return error.Failed;
}
