//! The options object of an operation: attributes and optional operands by their names, in camel case.

use crate::tensor::tensor_of;
use adead::{Attrs, Op, Result, Tensor};
use adead_node_support::args::{Text, each, kind, named};
use adead_node_support::error::{fail, refused, thrown};
use napi::bindgen_prelude::FromNapiValue;
use napi::{ValueType, check_status, sys};
use smallvec::{SmallVec, smallvec};
use std::ptr::null_mut;

/// Converts a name from camel case to snake case: `transA` to `trans_a`.
fn snake(name: &str) -> String {
    let mut text = String::with_capacity(name.len() + 2);
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            text.push('_');
        }
        text.push(letter.to_ascii_lowercase());
    }
    text
}

/// The operands of a call in the operation's order, and its attributes.
pub struct Call {
    /// The attributes.
    pub attrs: Attrs,
    /// The operands, `None` for one that is left out.
    pub operands: SmallVec<[Option<Tensor>; 5]>,
}

/// Receives an operand: its index in the operation's order, its name and its value.
type Placing<'a> = &'a mut dyn FnMut(usize, &str, sys::napi_value) -> napi::Result<()>;

/// Reads a call and sets its attributes. `place` receives the operands. Required operands are given in order, from index
/// `before` on; the options name the others.
pub fn read(
    env: sys::napi_env,
    op: Op,
    before: usize,
    given: &[sys::napi_value],
    options: sys::napi_value,
    attrs: &mut Attrs,
    place: Placing<'_>,
) -> napi::Result<()> {
    let (mut count, mut given) = (before, given.iter().copied());
    for (i, name) in op.info().operands.iter().enumerate() {
        if name.ends_with('*') {
            // A call gives it as an array. A method of Tensor gives one tensor before the array.
            for value in given.by_ref() {
                let mut take = |value| {
                    count += 1;
                    place(count - 1, name, value)
                };
                if tensor_of(env, value).is_some() { take(value)? } else { each(env, value, take)? }
            }
        } else if i >= before && !name.ends_with('?') {
            given.next().map(|value| place(i, name, value)).transpose()?;
        }
    }
    take_options(env, op, options, attrs, Some(place))
}

impl Call {
    /// Reads a call: the required operands, in order, and the options, which may add operands.
    pub fn new(env: sys::napi_env, op: Op, given: &[sys::napi_value], options: sys::napi_value) -> napi::Result<Call> {
        let mut call = Call { attrs: Attrs::default(), operands: SmallVec::new() };
        let Call { attrs, operands } = &mut call;
        read(env, op, 0, given, options, attrs, &mut |at, name, value| {
            operands.resize((at + 1).max(operands.len()), None);
            operands[at] = Some(operand(env, op, at, name, value)?);
            Ok(())
        })?;
        Ok(call)
    }

    /// Reads the options alone. Every operand that they don't name is left out.
    pub fn optional(env: sys::napi_env, op: Op, options: sys::napi_value) -> napi::Result<Call> {
        let mut call = Call { attrs: Attrs::default(), operands: smallvec![None; op.info().operands.len()] };
        let Call { attrs, operands } = &mut call;
        let mut place = |at: usize, name: &str, value| {
            operands[at] = Some(operand(env, op, at, name, value)?);
            Ok(())
        };
        take_options(env, op, options, attrs, Some(&mut place))?;
        Ok(call)
    }

    /// Reads the attributes alone, for operations whose operands were all given in order.
    pub fn attributes(env: sys::napi_env, op: Op, options: sys::napi_value) -> napi::Result<Attrs> {
        let mut attrs = Attrs::default();
        take_options(env, op, options, &mut attrs, None)?;
        Ok(attrs)
    }
}

/// Sets attributes from the options, if there are any, and passes the operands that they name to `place`.
fn take_options(
    env: sys::napi_env,
    op: Op,
    options: sys::napi_value,
    attrs: &mut Attrs,
    mut place: Option<Placing<'_>>,
) -> napi::Result<()> {
    if options.is_null() {
        return Ok(());
    }
    match kind(env, options) {
        ValueType::Undefined | ValueType::Null => return Ok(()),
        ValueType::Object => {}
        _ => return Err(refused(env, &format!("{op}: options must be an object, not {}", named(env, options)))),
    }
    let mut names = null_mut();
    // SAFETY: the environment of this call and a value of it.
    check_status!(unsafe {
        sys::napi_get_all_property_names(
            env,
            options,
            sys::KeyCollectionMode::own_only,
            sys::KeyFilter::enumerable | sys::KeyFilter::skip_symbols,
            sys::KeyConversion::numbers_to_strings,
            &mut names,
        )
    })?;
    each(env, names, |name| {
        let mut value = null_mut();
        // SAFETY: as above.
        check_status!(unsafe { sys::napi_get_property(env, options, name, &mut value) })?;
        // SAFETY: as above.
        let name = snake(&unsafe { Text::from_napi_value(env, name) }?);
        let kind = kind(env, value);
        // A `signal` belongs to the promise, not to the operation.
        if kind == ValueType::Undefined || name == "signal" {
            return Ok(());
        }
        let optional = |operand: &&str| operand.strip_suffix('?') == Some(&name);
        match (op.info().operands.iter().position(optional), &mut place) {
            (Some(_), Some(_)) if kind == ValueType::Null => Ok(()),
            (Some(at), Some(place)) => place(at, &name, value),
            // The core checks the value.
            _ => attribute(env, &name, kind, value, &mut |text| attrs.set(op, &name, text)),
        }
    })
}

fn operand(env: sys::napi_env, op: Op, at: usize, name: &str, value: sys::napi_value) -> napi::Result<Tensor> {
    let name = name.trim_end_matches(['?', '*']);
    match tensor_of(env, value) {
        Some(tensor) => Ok(tensor),
        None => Err(refused(env, &format!("{op}: operand {at}, {name}, must be a Tensor, not {}", named(env, value)))),
    }
}

/// Passes a value of this kind to `set` as text, in the form of conformance cases and programs.
fn attribute(
    env: sys::napi_env,
    name: &str,
    kind: ValueType,
    value: sys::napi_value,
    set: &mut dyn FnMut(&str) -> Result<()>,
) -> napi::Result<()> {
    let checked = |outcome: Result<()>| outcome.map_err(|error| thrown(env, &error));
    match kind {
        ValueType::Boolean => {
            let mut flag = false;
            // SAFETY: a value of this environment.
            check_status!(unsafe { sys::napi_get_value_bool(env, value, &mut flag) })?;
            checked(set(if flag { "1" } else { "0" }))
        }
        ValueType::Number => {
            let mut number = 0.0;
            // SAFETY: a value of this environment.
            check_status!(unsafe { sys::napi_get_value_double(env, value, &mut number) })?;
            checked(set_number(number, set))
        }
        // SAFETY: a value of this environment.
        ValueType::String => checked(set(&unsafe { Text::from_napi_value(env, value) }?)),
        ValueType::Object => {
            let mut texts = Vec::new();
            each(env, value, |element| {
                let mut number = 0;
                // SAFETY: a value of this environment.
                check_status!(unsafe { sys::napi_get_value_int64(env, element, &mut number) })?;
                texts.push(number.to_string());
                Ok(())
            })?;
            checked(set(&texts.join(",")))
        }
        _ => Err(refused(env, &format!("{name} can't be {}", named(env, value)))),
    }
}

/// Passes a number to `set` as text. Integers up to 2²⁴ are decimal, which both integers and floats parse. Other numbers are
/// the bits of the nearest f32.
fn set_number(number: f64, set: &mut dyn FnMut(&str) -> Result<()>) -> Result<()> {
    const EXACT: f64 = 16_777_216.0;
    if number.fract() == 0.0 && number.abs() <= EXACT {
        let whole = number as i32;
        // Floats have a negative zero.
        return if whole == 0 && number.is_sign_negative() { set("-0") } else { set(&whole.to_string()) };
    }
    let bits = format!("{:#010x}", (number as f32).to_bits());
    match set(&bits) {
        Ok(()) => Ok(()),
        // The attribute is an integer. The second call fails with an error that names the given number.
        Err(_) => match set(&format!("{number}")) {
            Err(error) => Err(error),
            Ok(()) => fail!(InvalidArgument, "{number} is out of range"),
        },
    }
}
