//! Fused pipelines: operations that are recorded and run as a whole. Their methods are in `operations.js`, which is generated
//! from the op table. Each method calls `pipeline_record` with its operation's number.

use crate::compiled::{Compiled, Outputs};
use crate::options::read;
use crate::run::{operation, optional_signal};
use crate::tensor::{Value as Given, dtype, tensor_of};
use adead::{Attrs, Meta, Op, Result, Tensor, pipeline};
use adead_node_support::args::{Dims, Flag, List, Of, Text, named};
use adead_node_support::error::{fail, guard, refused};
use adead_node_support::task::{Job, promise_with};
use napi::bindgen_prelude::{AsyncTask, FnArgs, FromNapiValue, Function, FunctionRef, Unknown};
use napi::{Env, JsValue, ValueType, sys};
use napi_derive::napi;
use smallvec::SmallVec;
use std::cell::RefCell;
use std::ptr::null_mut;
use std::rc::Rc;

/// Returns the dimensions of a value.
pub fn dims(meta: &Meta) -> Vec<f64> {
    meta.shape.dims().iter().map(|&dim| dim as f64).collect()
}

/// A value of a pipeline: the result of an input, a constant or an operation. `Pipeline.value` returns it.
#[napi]
pub struct Value {
    inner: pipeline::Value,
    meta: Meta,
}

#[napi]
impl Value {
    /// The dimensions.
    #[napi(getter)]
    pub fn dims(&self) -> Vec<f64> {
        dims(&self.meta)
    }

    /// The dtype of the elements.
    #[napi(getter, ts_return_type = "DType")]
    pub fn dtype(&self) -> &'static str {
        self.meta.dtype.name()
    }

    /// Returns a description of the value.
    #[napi]
    #[allow(clippy::inherent_to_string, reason = "JavaScript's toString")]
    pub fn to_string(&self) -> String {
        format!("Value({:?})", self.meta)
    }
}

/// The use of a context's cache of compiled pipelines.
#[napi(object)]
pub struct PipelineCache {
    /// The number of pipelines in the cache.
    pub entries: f64,
    /// The most pipelines that the cache holds. The least recently used one is evicted first.
    pub most: f64,
    /// Executions that found their pipeline in the cache.
    pub hits: f64,
    /// Executions that had to compile their pipeline.
    pub misses: f64,
}

impl From<pipeline::CacheUse> for PipelineCache {
    fn from(used: pipeline::CacheUse) -> PipelineCache {
        PipelineCache {
            entries: used.entries as f64,
            most: used.most as f64,
            hits: used.hits as f64,
            misses: used.misses as f64,
        }
    }
}

/// Operations that are recorded to be run as a whole. `Context.pipeline` begins one.
///
/// Each operation is a method, with the operands and options of the context's method. Its first operand is the pipeline's
/// current value, and its result becomes the current value. While there is no current value, all operands are given. A call
/// that fails changes nothing.
#[napi]
pub struct Pipeline {
    state: RefCell<State>,
}

struct State {
    pipeline: pipeline::Pipeline,
    /// The current value: the first operand of the next operation.
    value: Option<pipeline::Value>,
    /// Whether `output` has been called.
    named: bool,
    /// What to call for the gradients of values.
    hooks: Vec<(pipeline::Value, Rc<Hook>)>,
}

/// A function of a gradient, which returns what takes its place, or nothing.
type Hook = FunctionRef<FnArgs<(Value,)>, Option<Of<Value>>>;

impl State {
    fn current(&self) -> Result<pipeline::Value> {
        match self.value {
            Some(value) => Ok(value),
            None => fail!(InvalidArgument, "the pipeline has no value yet: it begins with an input or an operation"),
        }
    }
}

impl Pipeline {
    /// Begins a pipeline without operations.
    pub fn new(context: &adead::Context) -> Pipeline {
        Pipeline {
            state: RefCell::new(State { pipeline: context.pipeline(), value: None, named: false, hooks: Vec::new() }),
        }
    }

    /// Makes the result of `next` the current value. `next` runs no JavaScript, so the state is not borrowed twice.
    fn advance(&self, env: Env, next: impl FnOnce(&mut State) -> Result<pipeline::Value>) -> napi::Result<()> {
        guard(env, || {
            let state = &mut *self.state.borrow_mut();
            state.value = Some(next(state)?);
            Ok(())
        })
    }

    /// Returns a copy to compile or run. The current value is its output unless `output` was called.
    fn finished(&self, env: Env) -> napi::Result<pipeline::Pipeline> {
        guard(env, || {
            let state = self.state.borrow();
            let mut pipeline = state.pipeline.clone();
            if let (false, Some(value)) = (state.named, state.value) {
                pipeline.output(value)?;
            }
            Ok(pipeline)
        })
    }
}

#[napi]
impl Pipeline {
    /// Adds an input, and makes it the current value. Each run of the compiled pipeline receives its inputs in the order of
    /// these calls. The default dtype is f32.
    #[napi(ts_args_type = "dims: readonly number[], dtype?: DType", ts_return_type = "this")]
    pub fn input(&self, env: Env, dims: Dims, dtype: Option<Text>) -> napi::Result<()> {
        self.advance(env, |state| {
            let dtype = dtype.map(|name| self::dtype(&name)).transpose()?.unwrap_or_default();
            state.pipeline.input(dtype, &dims)
        })
    }

    /// Adds a constant: a tensor that is the same in each run, such as weights. It becomes the current value.
    #[napi(ts_args_type = "tensor: Tensor", ts_return_type = "this")]
    pub fn constant(&self, env: Env, tensor: Given) -> napi::Result<()> {
        self.advance(env, |state| state.pipeline.constant(&tensor.0))
    }

    /// Gives the current value another shape with the same number of elements.
    #[napi(ts_args_type = "dims: readonly number[]", ts_return_type = "this")]
    pub fn reshape(&self, env: Env, dims: Dims) -> napi::Result<()> {
        self.advance(env, |state| state.pipeline.reshape(state.current()?, &dims))
    }

    /// Makes a value with the same elements as the current one. No gradient passes through it.
    #[napi(ts_return_type = "this")]
    pub fn detach(&self, env: Env) -> napi::Result<()> {
        self.advance(env, |state| state.pipeline.detach(state.current()?))
    }

    /// Sets whether gradients pass through what is recorded from now on, as they do at first. Returns what was set before.
    #[napi(ts_args_type = "enabled: boolean")]
    pub fn set_grad_enabled(&self, env: Env, enabled: Flag) -> napi::Result<bool> {
        guard(env, || Ok(self.state.borrow_mut().pipeline.set_grad_enabled(enabled.0)))
    }

    /// Calls `hook` when `gradients` has recorded the gradient of the current value. It receives the gradient, which is then also the
    /// current value, and returns what takes its place, or undefined.
    #[napi(ts_args_type = "hook: (gradient: Value) => Value | undefined | void", ts_return_type = "this")]
    pub fn hook(&self, env: Env, hook: Unknown<'_>) -> napi::Result<()> {
        if hook.get_type()? != ValueType::Function {
            return Err(refused(env.raw(), &format!("hook must be a function, not {}", named(env.raw(), hook.raw()))));
        }
        // SAFETY: it is a function of this environment.
        let hook = unsafe { Function::<FnArgs<(Value,)>, Option<Of<Value>>>::from_napi_value(env.raw(), hook.raw()) }?;
        let hook = Rc::new(hook.create_ref()?);
        self.advance(env, |state| {
            let value = state.current()?;
            state.hooks.push((value, hook));
            Ok(value)
        })
    }

    /// Records the gradients of the current value, which must have one element, such as a loss, with respect to values of this pipeline.
    /// The current value does not change. https://adead.github.io/adead/training.html gives the rule of each operation.
    #[napi(ts_args_type = "values: readonly Value[]", ts_return_type = "Array<Value>")]
    pub fn gradients(&self, env: Env, values: List<Of<Value>>) -> napi::Result<Vec<Value>> {
        let by: Vec<pipeline::Value> = values.0.iter().map(|value| value.inner).collect();
        let mut thrown = None;
        let found = guard(env, || {
            let (mut pipeline, loss, named, hooks) = {
                let state = &mut *self.state.borrow_mut();
                let loss = state.current()?;
                let empty = state.pipeline.context().pipeline();
                (std::mem::replace(&mut state.pipeline, empty), loss, state.named, state.hooks.clone())
            };
            let hooked: Vec<pipeline::Value> = hooks.iter().map(|(value, _)| *value).collect();
            // A hook records into this object's pipeline, so the pipeline is back in it meanwhile.
            let found = pipeline.gradients_with(loss, &by, &hooked, &mut |pipeline, number, gradient| {
                let given = Value { inner: gradient, meta: pipeline.meta(gradient)? };
                {
                    let state = &mut *self.state.borrow_mut();
                    std::mem::swap(&mut state.pipeline, pipeline);
                    state.value = Some(gradient);
                }
                let returned = hooks[number].1.borrow_back(&env).and_then(|hook| hook.call((given,).into()));
                std::mem::swap(&mut self.state.borrow_mut().pipeline, pipeline);
                match returned {
                    Ok(found) => Ok(found.map_or(gradient, |found| found.inner)),
                    Err(error) => {
                        thrown = Some(error);
                        fail!(InvalidArgument, "a hook threw an exception")
                    }
                }
            });
            let state = &mut *self.state.borrow_mut();
            (state.pipeline, state.value, state.named) = (pipeline, Some(loss), named);
            found?.into_iter().map(|inner| Ok(Value { inner, meta: state.pipeline.meta(inner)? })).collect()
        });
        match thrown {
            Some(error) => Err(error),
            None => found,
        }
    }

    /// Makes an earlier value of this pipeline the current value.
    #[napi(ts_args_type = "value: Value", ts_return_type = "this")]
    pub fn switch(&self, env: Env, value: Of<Value>) -> napi::Result<()> {
        self.advance(env, |state| state.pipeline.operand(value.inner.into()))
    }

    /// Makes the current value an output. Outputs are in the order of these calls. Without any call, the last current value is
    /// the output.
    #[napi(ts_return_type = "this")]
    pub fn output(&self, env: Env) -> napi::Result<()> {
        self.advance(env, |state| {
            let value = state.current()?;
            state.pipeline.output(value)?;
            state.named = true;
            Ok(value)
        })
    }

    /// The current value, which the next operation takes. Keep it to use it again later.
    #[napi(getter)]
    pub fn value(&self, env: Env) -> napi::Result<Value> {
        guard(env, || {
            let state = self.state.borrow();
            let inner = state.current()?;
            Ok(Value { inner, meta: state.pipeline.meta(inner)? })
        })
    }

    /// Compiles the operations recorded so far for the device with the lowest cost.
    #[napi]
    pub fn compile(&self, env: Env) -> napi::Result<Compiled> {
        let pipeline = self.finished(env)?;
        let compiled = guard(env, || pipeline.compile())?;
        Compiled::new(env, compiled)
    }

    /// Runs `compile` on another thread.
    #[napi(ts_args_type = "options?: Abortable", ts_return_type = "Promise<Compiled>")]
    pub fn compile_async(&self, env: Env, options: Option<Unknown<'_>>) -> napi::Result<AsyncTask<Job>> {
        let (signal, pipeline) = (optional_signal(env, options.as_ref())?, self.finished(env)?);
        Ok(promise_with(Ok(move || pipeline.compile()), Compiled::new, signal))
    }

    /// The types of this method and the next are in `tensor.d.ts`.
    #[napi(skip_typescript)]
    pub fn execute(&self, env: Env) -> napi::Result<Outputs> {
        let pipeline = self.finished(env)?;
        guard(env, || pipeline.execute()).map(Outputs)
    }

    #[napi(skip_typescript)]
    pub fn execute_async(&self, env: Env, options: Option<Unknown<'_>>) -> napi::Result<AsyncTask<Job>> {
        let (signal, pipeline) = (optional_signal(env, options.as_ref())?, self.finished(env)?);
        Ok(promise_with(Ok(move || pipeline.execute()), |_, tensors| Ok(Outputs(tensors)), signal))
    }

    /// Returns a description of the pipeline.
    #[napi]
    #[allow(clippy::inherent_to_string, reason = "JavaScript's toString")]
    pub fn to_string(&self) -> String {
        let state = self.state.borrow();
        let meta = state.value.and_then(|value| state.pipeline.meta(value).ok());
        meta.map_or_else(|| "Pipeline()".into(), |meta| format!("Pipeline({meta:?})"))
    }
}

/// An operand of a pipeline's operation.
enum Recorded {
    Tensor(Tensor),
    Value(pipeline::Value),
}

impl Recorded {
    fn of(env: sys::napi_env, value: sys::napi_value) -> Option<Recorded> {
        if let Some(tensor) = tensor_of(env, value) {
            return Some(Recorded::Tensor(tensor));
        }
        // SAFETY: a value of this environment.
        let value = unsafe { Of::<Value>::from_napi_value(env, value) }.ok()?;
        Some(Recorded::Value(value.inner))
    }

    fn operand(&self) -> pipeline::Operand<'_> {
        match self {
            Recorded::Tensor(tensor) => pipeline::Operand::Tensor(tensor),
            Recorded::Value(value) => pipeline::Operand::Value(*value),
        }
    }
}

/// Records the operation with the number `op`. The methods in `operations.js` call it.
#[napi(skip_typescript)]
pub fn pipeline_record(env: Env, pipeline: Of<Pipeline>, op: f64, arguments: List<Unknown<'_>>) -> napi::Result<()> {
    let op = guard(env, || operation(op))?;
    let arguments: SmallVec<[sys::napi_value; 8]> = arguments.0.iter().map(JsValue::raw).collect();
    let current = pipeline.state.borrow().value;
    let before = usize::from(current.is_some());
    let wanted = missing_operands(op, before);
    let (given, options) = arguments.split_at(wanted.min(arguments.len()));
    let options = options.first().copied().unwrap_or(null_mut());
    if arguments.len() > wanted + 1 || (!options.is_null() && Recorded::of(env.raw(), options).is_some()) {
        let text = format!("{op}: expected {wanted} operands and options here, got {} arguments", arguments.len());
        return Err(refused(env.raw(), &text));
    }
    let mut operands: SmallVec<[Option<Recorded>; 5]> =
        current.map(|value| Some(Recorded::Value(value))).into_iter().collect();
    let mut attrs = Attrs::default();
    read(env.raw(), op, before, given, options, &mut attrs, &mut |at, name, value| {
        let Some(operand) = Recorded::of(env.raw(), value) else {
            let (name, what) = (name.trim_end_matches(['?', '*']), named(env.raw(), value));
            let text = format!("{op}: operand {at}, {name}, must be a Tensor or a Value, not {what}");
            return Err(refused(env.raw(), &text));
        };
        while operands.len() <= at {
            operands.push(None);
        }
        operands[at] = Some(operand);
        Ok(())
    })?;
    let operands: SmallVec<[_; 5]> = operands.iter().map(|operand| operand.as_ref().map(Recorded::operand)).collect();
    pipeline.advance(env, |state| state.pipeline.record(op, &attrs, &operands))
}

/// Returns how many arguments are operands, if the pipeline supplies the first `before` ones.
fn missing_operands(op: Op, before: usize) -> usize {
    let operands = op.info().operands;
    // An operand that repeats is an array.
    if operands[0].ends_with('*') {
        return 1;
    }
    operands.iter().filter(|name| !name.ends_with('?')).count() - before
}
