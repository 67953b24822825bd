//! Transports: what moves the bytes of a training's ranks, where a program does that itself.

const c = @import("c");
const shared = @import("shared");
const check = shared.enums.check;
const Error = shared.enums.Error;

/// What this rank sends in one exchange.
pub const Parts = struct {
    pointers: [*c]const ?*const anyopaque,
    lengths: [*c]const usize,

    /// Returns the bytes for a rank. There are none for this rank itself.
    pub fn of(self: Parts, rank: usize) []const u8 {
        const pointer = self.pointers[rank] orelse return &.{};
        return @as([*]const u8, @ptrCast(pointer))[0..self.lengths[rank]];
    }
};

/// What the ranks send to this one in one exchange.
pub const Mailbox = struct {
    handle: ?*c.adead_mailbox,

    /// Copies the bytes that a rank has sent. InvalidArgument for this rank itself, for one that does not exist, and if its bytes are
    /// there.
    pub fn put(self: Mailbox, rank: usize, bytes: []const u8) Error!void {
        try check(c.adead_mailbox_put(self.handle, rank, bytes.ptr, bytes.len));
    }
};

/// Moves bytes between the ranks of a training, for example over MPI.
pub const Transport = struct {
    /// The number of this rank, counted from 0.
    rank: usize,
    /// The number of ranks.
    size: usize,
    user: ?*anyopaque,
    function: *const fn (?*anyopaque, [*c]const ?*const anyopaque, [*c]const usize, ?*c.adead_mailbox) callconv(.c) i32,

    /// Makes a transport of a value with `pub fn exchange(self: *T, parts: Parts, mailbox: Mailbox) anyerror!void`. It sends each other
    /// rank its part, and puts what each other rank sent into the mailbox. All ranks call it equally often, in the thread that
    /// calls the trainer. An error makes the trainer's call Io. The value must outlive the trainer.
    pub fn of(value: anytype, rank: usize, size: usize) Transport {
        const Pointer = @TypeOf(value);
        const wrapped = struct {
            fn exchange(user: ?*anyopaque, parts: [*c]const ?*const anyopaque, lengths: [*c]const usize, mailbox: ?*c.adead_mailbox) callconv(.c) i32 {
                const own: Pointer = @ptrCast(@alignCast(user.?));
                own.exchange(.{ .pointers = parts, .lengths = lengths }, .{ .handle = mailbox }) catch return 1;
                return 0;
            }
        };
        return .{ .rank = rank, .size = size, .user = value, .function = wrapped.exchange };
    }
};
