//! The path of an operation to a device: the decision where it runs, and its execution there.

use super::Context;
use crate::command::{self, Command};
use crate::contract::Precision;
use crate::devices::{self, Opened, Slot};
use crate::dispatch::{Explanation, Split, Why};
use crate::dtype::DType;
use crate::error::{Result, fail};
use crate::fpenv::DefaultEnvironment;
use crate::hybrid;
use crate::interrupt;
use crate::log::log;
use crate::operand::{Inputs, Meta, Packed, Place, Turns, View, ViewMut, in_buffers};
use crate::ops::{Attrs, Cut, Op};
use crate::profile::Reason;
use crate::tensor::Tensor;
use std::sync::Arc;

/// Where a command runs.
enum Target<'a> {
    Cpu(Reason),
    Gpu(&'a Arc<Opened>, Reason),
    /// Several devices. Boxed, because this case is rare and large.
    Parts(Box<(Cut<'a>, Split)>),
}

impl Context {
    /// Explains on which device [`Context::run`] would run this operation and why, or how it would divide the result's rows, with
    /// the estimate of every device. Runs nothing.
    pub fn explain(&self, op: Op, attrs: &Attrs, operands: &[Option<&Tensor>]) -> Result<Explanation<'_>> {
        let inputs: Vec<_> = operands.iter().map(|tensor| tensor.map(Tensor::view)).collect();
        let said = self.said(op, attrs, &inputs);
        let attrs = said.as_ref().unwrap_or(attrs);
        let output = op.info().infer(attrs, &inputs)?;
        // SAFETY: the shape rule returned this description, and the output has no memory.
        let command = unsafe { Command::unchecked(op, attrs, &inputs, ViewMut::nowhere(&output)) };
        let cut = self.cut(&command);
        Ok(self.dispatcher.explain_parts(&self.dispatcher.task(&command), cut.as_ref()))
    }

    /// Executes a checked command.
    ///
    /// The output is written when this returns, with one exception: if operands and output are in buffers of a GPU, it returns
    /// once the command is enqueued, and reading the buffer waits. A command that ends early ([`Interrupt`](crate::Interrupt))
    /// has written parts of the output.
    #[inline]
    pub fn execute(&self, command: &mut Command<'_>) -> Result<()> {
        command.say(self.precision());
        if command.has_buffers() { self.execute_in_turn(command) } else { self.execute_now(command) }
    }

    /// Executes a command on buffers. Buffers in host memory wait for their turns.
    #[inline(never)]
    fn execute_in_turn(&self, command: &mut Command<'_>) -> Result<()> {
        let _turns = Turns::of_operands(command.inputs(), Some(command.output().place()))?;
        self.execute_now(command)
    }

    #[inline(always)]
    fn execute_now(&self, command: &mut Command<'_>) -> Result<()> {
        let only = self.gpus.is_empty() && !self.profiler.is_on();
        if only { self.cpu.execute(command) } else { self.execute_among(command) }
    }

    #[inline(never)]
    fn execute_among(&self, command: &mut Command<'_>) -> Result<()> {
        if self.is_for_cpu(command) {
            return self.cpu.execute(command);
        }
        // The cost model computes in floating point, so it needs the default environment.
        let _environment = DefaultEnvironment::enter();
        let target = self.target(command)?;
        self.execute_on(target, command)
    }

    /// Returns the attributes with the context's default precision if the operation has a precision and none is given. Returns
    /// `None` if nothing changes.
    #[inline(always)]
    pub(crate) fn said(&self, op: Op, attrs: &Attrs, inputs: &[Option<View<'_>>]) -> Option<Attrs> {
        let precision = self.precision();
        if precision == Precision::F32 { None } else { command::said(op, attrs, inputs, precision) }
    }

    /// Whether the command is so small that it runs on the CPU without the cost model.
    fn is_for_cpu(&self, command: &Command<'_>) -> bool {
        let tiny = !self.gpus.is_empty() && !self.profiler.is_on() && self.dispatcher.is_tiny(command);
        tiny && devices::are_on_host(command)
    }

    fn execute_on(&self, target: Target<'_>, command: &mut Command<'_>) -> Result<()> {
        match target {
            Target::Cpu(reason) => self.execute_on_cpu(command, reason),
            Target::Gpu(gpu, reason) => gpu.execute(command, reason),
            Target::Parts(parts) => self.execute_parts(command, &parts.0, &parts.1),
        }
    }

    fn execute_on_cpu(&self, command: &mut Command<'_>, reason: Reason) -> Result<()> {
        devices::download_inputs(command.inputs())?;
        self.profiler.execute(&self.cpu, command, reason)
    }

    /// Decides where a command runs, and the reason.
    fn target<'a>(&'a self, command: &Command<'a>) -> Result<Target<'a>> {
        if let Some(id) = devices::device_of(command) {
            let slot = self.gpus.iter().find(|slot| slot.info().id == id);
            let Some(slot) = slot else {
                fail!(InvalidArgument, "an operand is on {id}, which this context does not use")
            };
            return Ok(Target::Gpu(slot.opened()?, Reason::Operands));
        }
        // A context without GPUs comes here only for a profile, which needs the dispatcher's reason.
        if !self.gpus.is_empty() && self.dispatcher.done_before_others_begin(command) && devices::are_on_host(command) {
            return Ok(Target::Cpu(Reason::Chosen(Why::Cheapest)));
        }
        let cut = self.cut(command);
        let (choice, split) = match &cut {
            Some(cut) => self.dispatcher.choose_parts(&self.dispatcher.task(command), Some(cut)),
            None => (self.dispatcher.choose(command), None),
        };
        if let (Some(cut), Some(split)) = (cut, split) {
            let rows = split.rows.iter().enumerate().filter(|(_, rows)| **rows > 0);
            let is_open = |device| self.gpu(device).is_some_and(|gpu| gpu.opened().is_ok());
            if cut.stays() && !rows.clone().all(|(device, _)| is_open(device)) {
                return Ok(Target::Cpu(Reason::Fallback));
            }
            return Ok(Target::Parts(Box::new((cut, split))));
        }
        let chosen = Reason::Chosen(choice.why);
        let Some(slot) = self.gpu(choice.device) else { return Ok(Target::Cpu(chosen)) };
        if is_packed(command) {
            return Ok(Target::Cpu(Reason::Packed));
        }
        match slot.opened() {
            Ok(gpu) => Ok(Target::Gpu(gpu, chosen)),
            // The dispatcher chose this GPU, the caller did not: if it can't be used, the CPU computes.
            Err(_) if choice.why != Why::Forced => Ok(Target::Cpu(Reason::Fallback)),
            Err(error) => Err(error),
        }
    }

    /// Returns how the command can be divided, if the context divides. Packed operands have the layout of the CPU's kernels.
    fn cut<'a>(&self, command: &Command<'a>) -> Option<Cut<'a>> {
        if !self.dispatcher.is_hybrid() || is_packed(command) {
            return None;
        }
        let cut = if self.stays(command) { Cut::staying } else { Cut::of };
        cut(command.op(), command.attrs(), command.inputs(), command.output().meta())
    }

    /// Whether GPUs would keep a divided result: they copy from one another, and the CPU is no device of the context or an operand is
    /// only on a GPU.
    fn stays(&self, command: &Command<'_>) -> bool {
        let nowhere = matches!(command.output().place(), Place::Nowhere);
        let gpus_alone = || self.before == 0 || !devices::are_on_host(command);
        nowhere && self.dispatcher.has_peers() && !command.op().checks_ids() && gpus_alone()
    }

    /// Computes a divided operation whose result stays with the GPUs.
    fn compute_parts(&self, cut: &Cut<'_>, split: &Split, output: &ViewMut<'_>) -> Result<Tensor> {
        let mut parts = Vec::with_capacity(split.rows.len());
        for (device, &rows) in split.rows.iter().enumerate().filter(|(_, rows)| **rows > 0) {
            let Some(gpu) = self.gpu(device) else { fail!(Internal, "{}: a part stays on no GPU", cut.op()) };
            parts.push((&**gpu.opened()?, rows));
        }
        log!(Trace, "dispatch", "{} is divided and stays, with these rows for the devices: {:?}", cut.op(), split.rows);
        hybrid::compute(&self.cpu, &parts, cut, output)
    }

    #[inline(never)]
    fn execute_parts(&self, command: &mut Command<'_>, cut: &Cut<'_>, split: &Split) -> Result<()> {
        let mut parts = Vec::with_capacity(split.rows.len());
        for (device, &rows) in split.rows.iter().enumerate() {
            parts.push(match self.gpu(device).filter(|_| rows > 0).map(Slot::opened) {
                Some(Ok(gpu)) => (Some(&**gpu), rows),
                None => (None, rows),
                // The dispatcher chose this GPU, the caller did not: if it can't be used, the CPU computes.
                Some(Err(_)) => return self.execute_on_cpu(command, Reason::Fallback),
            });
        }
        log!(Trace, "dispatch", "{} is divided, with these rows for the devices: {:?}", command.op(), split.rows);
        hybrid::execute((&self.cpu, &self.profiler), &parts, cut, command.parts().3)
    }

    /// Computes the row-major f32 product `a[m × k]·b[k × n]` of sizes `[m, n, k]`, if it is small and there is no device to
    /// choose, no profile, no interrupt and no other default precision. Returns whether it did. If it returns false, it has
    /// written nothing: [`Context::execute`] computes the product or returns the error.
    ///
    /// # Safety
    /// If a pointer is aligned and not null, it must point to `m·k` values (`a`), `k·n` values (`b`) or `m·n` values (`out`).
    /// During the call nothing may write to the operands, and nothing else may use `out`.
    #[inline]
    pub unsafe fn multiply_small(&self, a: *const f32, b: *const f32, out: *mut f32, [m, n, k]: [usize; 3]) -> bool {
        let apart = |x: *const f32, count: usize| {
            let (x, y) = (x.addr(), out.addr());
            x % 4 == 0 && x != 0 && (x.saturating_add(4 * count) <= y || y.saturating_add(4 * m * n) <= x)
        };
        // The other terms are evaluated only if the sizes are small, so they can't overflow.
        let fits = m.max(n).max(k) <= 64 && apart(a, m * k) && apart(b, k * n) && out.is_aligned() && !out.is_null();
        let plain = self.precision() == Precision::F32 && !self.profiler.is_on() && !interrupt::is_possible();
        let alone = || self.gpus.is_empty() || m * k + k * n + m * n <= self.dispatcher.tiny(Op::Matmul);
        // SAFETY: the caller's promise covers this, and the result overlaps no operand.
        fits && plain && alone() && unsafe { self.cpu.multiply_small(a, b, out, [m, n, k]) }
    }

    /// Executes an operation and returns its result as a new tensor. Operands are in the operation's order, `None` for an
    /// optional operand that is left out. Trailing optional operands may be missing.
    ///
    /// A result that a GPU computes stays there until it is read ([`Tensor::places`]), and this returns once the operation is
    /// enqueued.
    pub fn run(&self, op: Op, attrs: &Attrs, operands: &[Option<&Tensor>]) -> Result<Tensor> {
        let mut inputs = Inputs::new();
        operands.iter().for_each(|tensor| inputs.push(tensor.map(Tensor::view)));
        self.run_on(op, attrs, &inputs)
    }

    /// Executes an operation like [`Context::run`], on views: of the caller's memory, or of a [`Packed`] matrix.
    #[inline(never)]
    pub fn run_views(&self, op: Op, attrs: &Attrs, inputs: &[Option<View<'_>>]) -> Result<Tensor> {
        self.run_on(op, attrs, inputs)
    }

    /// Inlined into both callers, because one more call costs small operations a few percent.
    #[inline(always)]
    fn run_on(&self, op: Op, attrs: &Attrs, inputs: &[Option<View<'_>>]) -> Result<Tensor> {
        let _turns = if in_buffers(inputs) { Some(Turns::of_operands(inputs, None)?) } else { None };
        let said = self.said(op, attrs, inputs);
        let attrs = said.as_ref().unwrap_or(attrs);
        let mut meta = Meta::scalar();
        op.info().describe(attrs, inputs.into(), &mut meta)?;
        if !self.gpus.is_empty() || self.profiler.is_on() {
            // SAFETY: the shape rule returned this description, and the output has no memory.
            let command = unsafe { Command::unchecked(op, attrs, inputs, ViewMut::nowhere(&meta)) };
            if let Some(tensor) = self.run_among(command)? {
                return Ok(tensor);
            }
        }
        Tensor::result(self.cpu.results(), &meta, |output| {
            // SAFETY: the output has the rule's description and memory of its own.
            self.cpu.execute(&mut unsafe { Command::unchecked(op, attrs, inputs, output) })
        })
    }

    /// Runs a command without memory for its result on the best device. Returns `None` if only the processor is an option.
    #[inline(never)]
    fn run_among(&self, mut command: Command<'_>) -> Result<Option<Tensor>> {
        if self.is_for_cpu(&command) {
            return Ok(None);
        }
        // The cost model computes in floating point, so it needs the default environment.
        let _environment = DefaultEnvironment::enter();
        let tensor = match self.target(&command)? {
            Target::Gpu(gpu, reason) => gpu.compute(&mut command, reason)?,
            Target::Parts(parts) if parts.0.stays() => self.compute_parts(&parts.0, &parts.1, command.output())?,
            target => {
                let meta = command.output().meta();
                Tensor::result(self.cpu.results(), meta, |output| {
                    // SAFETY: the output has the description of the command's output and memory of its own.
                    self.execute_on(target, &mut unsafe { command.with_output(output) })
                })?
            }
        };
        Ok(Some(tensor))
    }

    /// Packs a matrix for repeated products, as the right operand of [`Context::matmul_packed`]. Its shape is `[K, N]`, or `[N,
    /// K]` with `trans_b`. f16 and bf16 are widened to f32 here. Products with the packed matrix have the default precision
    /// that the context has now ([`Context::set_precision`]). Packing takes about as long as ten products of one row. Returns
    /// `shape_mismatch` unless b is a matrix, `dtype_mismatch` for integers.
    ///
    /// If [`Context::packs_on_gpu`], the GPU keeps the matrix's digits, and products with them run there. Otherwise the processor
    /// packs, and computes the products.
    pub fn pack(&self, b: &Tensor, trans_b: bool) -> Result<Packed> {
        let dtype = b.dtype();
        if !dtype.computes_as_f32() {
            fail!(DtypeMismatch, "pack: b is {dtype}; products are computed on f32, f16 and bf16: cast it first");
        }
        let precision = self.precision();
        if dtype == DType::F32 {
            return self.pack_f32(b, dtype, trans_b, precision);
        }
        let attrs = Attrs { dtype: Some(DType::F32), ..Attrs::default() };
        let wide = self.run_views(Op::Cast, &attrs, &[Some(b.view())])?;
        self.pack_f32(&wide, dtype, trans_b, precision)
    }

    /// Returns whether [`Context::pack`] makes packed matrices of a GPU: if everything runs on one GPU, and the default precision is one of
    /// exact integers.
    pub fn packs_on_gpu(&self) -> bool {
        self.packer(self.precision()).is_some()
    }

    /// Returns the GPU that packs matrices for a precision.
    fn packer(&self, precision: Precision) -> Option<&Slot> {
        if !cfg!(feature = "integers") {
            return None;
        }
        self.dispatcher.forced().and_then(|device| self.gpu(device)).filter(|_| precision != Precision::F32)
    }

    fn pack_f32(&self, b: &Tensor, dtype: DType, trans_b: bool, precision: Precision) -> Result<Packed> {
        #[cfg(feature = "integers")]
        if let Some(slot) = self.packer(precision)
            && let Some(packed) = slot.opened()?.pack(b, dtype, trans_b, precision)?
        {
            return Ok(packed);
        }
        self.cpu.pack(&b.view(), dtype, trans_b, precision)
    }
}

/// Whether an operand is a packed matrix of the processor's.
fn is_packed(command: &Command<'_>) -> bool {
    let of_host = |place| matches!(place, Place::Packed(packed) if packed.on_device().is_none());
    command.inputs().iter().flatten().any(|view| of_host(view.place()))
}
