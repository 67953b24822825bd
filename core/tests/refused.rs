//! Operands that operations refuse, and the messages: what was given, what is allowed.

use adead_core::{Attrs, Context, Op, Status, Tensor};

fn refused(op: Op, set: &[(&str, &str)], operands: &[Option<&Tensor>]) -> String {
    let mut attrs = Attrs::default();
    let mut run = || -> adead_core::Result<Tensor> {
        set.iter().try_for_each(|(name, value)| attrs.set(op, name, value))?;
        Context::open("cpu")?.run(op, &attrs, operands)
    };
    let error = run().expect_err("it must be refused");
    assert_eq!(error.status(), Status::InvalidArgument, "{error}");
    error.message().into()
}

#[test]
fn a_norm_takes_no_eps_that_makes_nan() {
    let x = Tensor::new(&[1.0f32, 2.0], &[1, 2]).unwrap();
    for op in [Op::Layernorm, Op::Rmsnorm] {
        for eps in ["-1", "0x7fc00000", "0x7f800000"] {
            let text = refused(op, &[("eps", eps)], &[Some(&x)]);
            assert!(text.contains("eps is") && text.contains("at least 0"), "{text}");
        }
        let mut attrs = Attrs::default();
        attrs.set(op, "eps", "0").unwrap();
        Context::open("cpu").unwrap().run(op, &attrs, &[Some(&x)]).unwrap();
    }
}

#[test]
fn what_an_attribute_may_be_is_said() {
    let x = Tensor::new(&[1.0f32, 2.0], &[1, 2]).unwrap();
    let text = refused(Op::Sum, &[("axis", "0,1")], &[Some(&x)]);
    assert_eq!(text, "sum: axis is '0,1'; it must be one integer (negative ones count from the end) or 'all'");
    let text = refused(Op::Relu, &[], &[Some(&x), Some(&x)]);
    assert_eq!(text, "relu: takes at most 1 operand (x); 2 were given");
}
