//! Layers and weights of `adead::nn`: what they compute is what their operations compute, and what does not fit is refused by
//! its name and shapes. On the CPU and on the GPU that `ADEAD_TEST_BACKEND` names.
#![cfg(feature = "nn")]

#[path = "../../../core/tests/backend/mod.rs"]
mod backend;

use adead::nn::{
    Embedding, FeedForward, Forward, Gelu, Group, Layer, LayerNorm, Linear, Module, MultiHeadAttention, Relu,
    Sequences, Sequential, TransformerConfig, TransformerEncoder, Weights,
};
use adead::{Activation, Attrs, Context, DType, GeluForm, MatmulOptions, Op, Precision, Result, Status, Tensor};
use std::path::PathBuf;

/// Each context, and that of its one device.
fn contexts() -> Vec<Context> {
    let mut names = vec!["cpu".to_string()];
    if let Some(backend) = backend::named() {
        names.extend([format!("{backend}:0"), format!("cpu,{backend}:0")]);
    }
    let open = |name: &String| match Context::open(name) {
        Ok(context) => Some([context.undivided().unwrap(), context]),
        Err(error) if error.status() == Status::BackendUnavailable => {
            backend::skip(name, &error);
            None
        }
        Err(error) => panic!("{error}"),
    };
    names.iter().filter_map(open).flatten().collect()
}

/// Values between -1 and 1, the same each time.
fn draw(seed: u32, dims: &[usize]) -> Tensor {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    let values: Vec<f32> = (0..dims.iter().product()).map(|_| next()).collect();
    Tensor::new(&values, dims).unwrap()
}

/// A safetensors file of tensors given as name, dtype, shape and bytes.
fn file(name: &str, tensors: &[(&str, &str, &[usize], Vec<u8>)]) -> PathBuf {
    let (mut header, mut data) = (Vec::new(), Vec::new());
    for (name, dtype, shape, bytes) in tensors {
        let (begin, end) = (data.len(), data.len() + bytes.len());
        header.push(format!(r#""{name}":{{"dtype":"{dtype}","shape":{shape:?},"data_offsets":[{begin},{end}]}}"#));
        data.extend(bytes);
    }
    let text = format!("{{{}}}", header.join(","));
    // Not cargo's folder: this test also runs where it was not built.
    let path = std::env::temp_dir().join(format!("adead-{name}-{}.safetensors", std::process::id()));
    std::fs::write(&path, [&(text.len() as u64).to_le_bytes()[..], text.as_bytes(), &data].concat()).unwrap();
    path
}

fn refused<T>(result: Result<T>) -> (Status, String) {
    let error = result.err().expect("it is refused");
    (error.status(), error.message().into())
}

#[test]
fn weights_are_widened_and_checked_by_name_and_shape() {
    let floats = |values: &[f32]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
    let path = file(
        "weights",
        &[
            ("f32", "F32", &[2, 2], floats(&[1.0, -0.0, f32::MIN_POSITIVE / 4.0, f32::INFINITY])),
            ("f16", "F16", &[3], vec![0x00, 0x3c, 0x01, 0x00, 0x00, 0xfc]),
            ("bf16", "BF16", &[1], vec![0x80, 0x3f]),
            // Behind ten bytes of halves: at an address that suits no f32, as the header's end may be, too.
            ("later", "F32", &[1], floats(&[0.5])),
            ("f64", "F64", &[2], [0.1f64, 1e300].iter().flat_map(|value| value.to_le_bytes()).collect()),
            ("ids", "I64", &[1], vec![0; 8]),
            ("none", "F32", &[0, 3], vec![]),
        ],
    );
    let weights = Weights::open(&path).unwrap();
    assert_eq!(weights.names(), ["bf16", "f16", "f32", "f64", "ids", "later", "none"]);
    assert!(weights.contains("f16") && !weights.contains("f17") && weights.dims("f32").unwrap() == [2, 2]);
    let bits = |name, dims: &[usize]| -> Vec<u32> {
        let tensor = weights.tensor(name, dims).unwrap();
        assert_eq!((tensor.dtype(), tensor.dims()), (DType::F32, dims));
        tensor.as_slice::<f32>().unwrap().iter().map(|value| value.to_bits()).collect()
    };
    assert_eq!(bits("f32", &[2, 2]), [0x3f800000, 0x80000000, 0x00200000, 0x7f800000]);
    assert_eq!(bits("f16", &[3]), [0x3f800000, 0x33800000, 0xff800000]);
    assert_eq!((bits("bf16", &[1]), bits("later", &[1])), (vec![0x3f800000], vec![0x3f000000]));
    assert_eq!(bits("f64", &[2]), [0.1f32.to_bits(), 0x7f800000]);
    assert!(bits("none", &[0, 3]).is_empty());
    let (status, text) = refused(weights.tensor("f32", &[4]));
    assert_eq!(status, Status::ShapeMismatch);
    assert!(text.ends_with("the tensor 'f32' is [2, 2]; it must be [4]"), "{text}");
    let (status, text) = refused(weights.tensor("f17", &[4]));
    assert_eq!(status, Status::InvalidArgument);
    assert!(text.ends_with("the tensor 'f17' is not among the file's 7 tensors"), "{text}");
    let (status, text) = refused(weights.tensor("ids", &[1]));
    assert_eq!(status, Status::DtypeMismatch);
    assert!(text.contains("I64"), "{text}");
    // A tensor keeps the file.
    let kept = weights.tensor("f32", &[2, 2]).unwrap();
    drop(weights);
    std::fs::remove_file(&path).unwrap();
    assert_eq!(kept.as_slice::<f32>().unwrap()[0], 1.0);
}

#[test]
fn a_file_that_is_none_is_refused() {
    assert_eq!(refused(Weights::open("no such file")).0, Status::Io);
    let path = file("whole", &[("x", "F32", &[4], vec![0; 16])]);
    let whole = std::fs::read(&path).unwrap();
    for length in 1..whole.len() {
        std::fs::write(&path, &whole[..length]).unwrap();
        let (status, text) = refused(Weights::open(&path));
        assert!(status == Status::InvalidArgument && text.contains("not a safetensors file"), "{length}: {text}");
    }
    std::fs::remove_file(&path).unwrap();
}

/// What the crate `safetensors` refuses is refused, and nothing else: any byte of the header is another, and odd headers.
#[test]
fn the_same_files_are_refused_as_by_the_format_s_own_library() {
    let whole = std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/sentences/tiny/model.safetensors"));
    let whole = whole.unwrap();
    let header = 8 + u64::from_le_bytes(whole[..8].try_into().unwrap()) as usize;
    let path = std::env::temp_dir().join(format!("adead-same-{}.safetensors", std::process::id()));
    let check = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        let theirs = safetensors::SafeTensors::read_metadata(bytes);
        let ours = Weights::open(&path);
        let text = String::from_utf8_lossy(&bytes[..bytes.len().min(header)]).into_owned();
        assert_eq!(ours.is_ok(), theirs.is_ok(), "{ours:?} {:?} {text}", theirs.err());
        if let (Ok(ours), Ok((_, theirs))) = (ours, theirs) {
            let mut names = theirs.offset_keys();
            names.sort_unstable();
            assert_eq!(ours.names(), names);
            names.iter().for_each(|name| assert_eq!(ours.dims(name).unwrap(), theirs.info(name).unwrap().shape));
        }
    };
    check(&whole);
    for at in (8..header).step_by(3) {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 7);
        check(&bytes);
    }
    let entry = r#"{"dtype":"F32","shape":[2],"data_offsets":[0,8]}"#;
    let (f4, f6) = (
        r#"{"dtype":"F4","shape":[16],"data_offsets":[0,8]}"#,
        r#"{"dtype":"F6_E2M3","shape":[11],"data_offsets":[0,8]}"#,
    );
    for header in [
        "".into(),
        "{".into(),
        "[]".into(),
        format!("{{\"a\":{entry}}}"),
        format!(" {{\n\"\\ud83c\\udf0a\\/\\u00e9\" :\t{entry} }} \r\n"),
        format!("{{\"\\ud83c\":{entry}}}"),
        format!("{{\"__metadata__\":{{\"a\":\"b\"}},\"a\":{entry}}}"),
        format!("{{\"__metadata__\":{{\"a\":1}},\"a\":{entry}}}"),
        format!("{{\"a\":{entry}}}x"),
        format!("{{\"a\":{entry},}}"),
        format!("{{\"a\":{f4}}}"),
        format!("{{\"a\":{f6}}}"),
        format!("{{\"a\":{}}}", entry.replace("F32", "F33")),
        format!("{{\"a\":{}}}", entry.replace("[2]", "[18446744073709551615,2]")),
        format!("{{\"a\":{}}}", entry.replace("[2]", "[18446744073709551616]")),
        format!("{{\"a\":{}}}", entry.replace("[2]", "[02]")),
        format!("{{\"a\":{}}}", entry.replace("[2]", "[1,2,1]")),
        format!("{{\"a\":{}}}", entry.replace("[0,8]", "[0,8,8]")),
        format!("{{\"a\":{}}}", entry.replace("[0,8]", "[8,0]")),
        format!("{{\"a\":{}}}", entry.replace("\"shape\":[2],", "")),
    ] {
        check(&[&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &[0; 8]].concat());
    }
    std::fs::remove_file(&path).unwrap();
}

/// Modules are the layers, as one type.
#[test]
fn modules_compute_what_layers_do() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/sentences/tiny/model.safetensors");
    let weights = Weights::open(path).unwrap();
    let config = TransformerConfig { width: 32, heads: 4, hidden: 48, activation: Activation::GeluErf, eps: 1e-12 };
    let x = draw(1, &[3, 7, 32]);
    for ctx in &contexts() {
        let encoder = TransformerEncoder::load(&weights, "encoder.layer", 2, &config, ctx).unwrap();
        let module = Module::from(encoder.clone());
        let layer = |i| {
            let name = |rest: &str| format!("encoder.layer.{i}.{rest}");
            let parts = ["self.query", "self.key", "self.value", "output.dense"];
            let parts = parts.map(|part| name(&format!("attention.{part}")));
            let parts = parts.each_ref().map(String::as_str);
            let norm = |rest: &str| LayerNorm::load(&weights, &name(rest), 32, 1e-12, ctx).unwrap().into();
            let linear =
                |rest: &str, inputs, outputs| Linear::load(&weights, &name(rest), inputs, outputs, ctx).unwrap();
            let (inner, outer) = (linear("intermediate.dense", 32, 48).into(), linear("output.dense", 48, 32).into());
            Module::transformer_layer(
                &MultiHeadAttention::load(&weights, parts, 32, 4, ctx).unwrap().into(),
                &norm("attention.output.LayerNorm"),
                &Module::feed_forward(&inner, &outer, Activation::GeluErf).unwrap(),
                &norm("output.LayerNorm"),
            )
            .unwrap()
        };
        let of_parts = Module::transformer_encoder(&[layer(0), layer(1)]).unwrap();
        let one_by_one = Module::sequential(&[layer(0), layer(1)]);
        for lengths in [None, Some(&[7, 1, 4][..])] {
            let expected = encoder.forward_padded(&x, lengths).unwrap();
            let with = Forward { lengths, ..Forward::default() };
            for module in [&module, &of_parts] {
                assert_eq!(module.forward_with(&x, with).unwrap().bytes(), expected.bytes(), "{ctx:?}");
            }
            if lengths.is_none() {
                assert_eq!(one_by_one.forward(&x).unwrap().bytes(), expected.bytes(), "{ctx:?}");
            }
        }
        assert_eq!(Module::sequential(&[]).forward(&x).unwrap().bytes(), x.bytes());
        assert_eq!(Module::transformer_encoder(&[]).unwrap().forward(&x).unwrap().bytes(), x.bytes());
        let ids = Tensor::new(&[3u32, 0, 91], &[3]).unwrap();
        let table = Embedding::load(&weights, "embeddings.word_embeddings", 92, 32, ctx).unwrap();
        let table = Module::from(table);
        assert_eq!((table.kind(), table.size()), ("embedding", [92, 32]));
        let rows =
            ctx.embedding(&weights.tensor("embeddings.word_embeddings.weight", &[92, 32]).unwrap(), &ids).unwrap();
        assert_eq!(table.forward(&ids).unwrap().bytes(), rows.bytes());
        for (module, expected) in [
            (Module::from(Relu::new(ctx)), ctx.relu(&x)),
            (Gelu::new(GeluForm::Tanh, ctx).into(), ctx.gelu(&x, GeluForm::Tanh)),
        ] {
            assert_eq!(module.forward(&x).unwrap().bytes(), expected.unwrap().bytes());
            let refused = refused(module.forward_with(&x, Forward { lengths: Some(&[7, 7, 7]), ..Forward::default() }));
            assert_eq!(refused.1, format!("a layer of the kind {} takes no lengths", module.kind()));
        }
    }
}

#[test]
fn layers_compute_what_their_operations_do() {
    let ctx = Context::open("cpu").unwrap();
    let (x, w, b) = (draw(1, &[5, 12]), draw(2, &[20, 12]), draw(3, &[20]));
    let (gamma, beta, residual) = (draw(4, &[20]), draw(5, &[20]), draw(6, &[5, 20]));
    let options = MatmulOptions { trans_b: true, bias: Some(&b), ..Default::default() };
    let product = ctx.matmul_with(&x, &w, options).unwrap();
    let added = MatmulOptions { beta: 1.0, c: Some(&residual), activation: Activation::Silu, ..options };
    let added = ctx.matmul_with(&x, &w, added).unwrap();
    let normed = ctx.layernorm(&ctx.gelu(&product, GeluForm::Erf).unwrap(), Some(&gamma), Some(&beta), 1e-12).unwrap();
    let ids = Tensor::new(&[3u32, 0, 19, 3], &[2, 2]).unwrap();
    for context in &contexts() {
        let same = |y: Tensor, expected: &Tensor| {
            assert_eq!((y.dims(), y.bytes()), (expected.dims(), expected.bytes()), "{context:?}");
        };
        let linear = || Linear::new(&w, Some(&b), context).unwrap();
        same(linear().forward(&x).unwrap(), &product);
        same(linear().forward_with(&x, Some(&residual), Activation::Silu).unwrap(), &added);
        same(Relu::new(context).forward(&x).unwrap(), &ctx.relu(&x).unwrap());
        let norm = LayerNorm::new(&gamma, &beta, 1e-12, context).unwrap();
        let net = Sequential::new().then(linear()).then(Gelu::new(GeluForm::Erf, context)).then(norm);
        assert!(net.len() == 3 && !net.is_empty());
        same(net.forward(&x).unwrap(), &normed);
        same(Sequential::new().forward(&x).unwrap(), &x);
        let embedding = Embedding::new(&w, context).unwrap();
        assert_eq!((embedding.count(), embedding.width()), (20, 12));
        same(embedding.forward(&ids).unwrap(), &ctx.embedding(&w, &ids).unwrap());
        // Few ids and many, of which the last is none of the table's.
        for count in [2, 1000] {
            let mut ids = vec![7u32; count];
            ids[count - 1] = 20;
            let refused = refused(embedding.forward(&Tensor::new(&ids, &[count]).unwrap()));
            assert_eq!(refused.0, Status::InvalidArgument, "{context:?}");
            assert!(refused.1.contains(&format!("id 20 at position {}", count - 1)), "{}", refused.1);
            same(
                embedding.forward(&Tensor::new(&ids, &[count]).unwrap().rows(0, 1).unwrap()).unwrap(),
                &w.rows(7, 1).unwrap(),
            );
        }
        let back = draw(7, &[12, 20]);
        let bare = Linear::new(&back, None, context).unwrap();
        let feed_forward = FeedForward::new(linear(), bare, Activation::Relu).unwrap();
        let hidden = ctx.matmul_with(&x, &w, MatmulOptions { activation: Activation::Relu, ..options }).unwrap();
        let expected = ctx.matmul_with(&hidden, &back, MatmulOptions { trans_b: true, ..Default::default() }).unwrap();
        same(feed_forward.forward(&x).unwrap(), &expected);
        context.trim();
    }
}

#[test]
fn layers_keep_the_precision_that_they_were_made_with() {
    for context in contexts() {
        let (x, weight, bias) = (draw(1, &[7, 60]), draw(2, &[20, 60]), draw(3, &[20]));
        let made = Precision::ALL.map(|precision| {
            context.set_precision(precision);
            Linear::new(&weight, Some(&bias), &context).unwrap()
        });
        for (layer, precision) in made.iter().zip(Precision::ALL) {
            let options =
                MatmulOptions { trans_b: true, bias: Some(&bias), precision: Some(precision), ..Default::default() };
            let expected = context.matmul_with(&x, &weight, options).unwrap();
            assert!(layer.forward(&x).unwrap().bytes() == expected.bytes(), "{context:?} {precision:?}");
            let own = Linear::new(&weight, Some(&bias), &context.with_precision(precision)).unwrap();
            assert!(own.forward(&x).unwrap().bytes() == expected.bytes(), "{context:?} {precision:?}");
        }
    }
}

#[test]
fn attention_is_that_of_its_heads_and_padding_changes_no_bit() {
    let ctx = Context::open("cpu").unwrap();
    let (width, heads, lengths) = (24, 3, [70usize, 3, 3, 1]);
    let rows: usize = lengths.iter().sum();
    let (x, wqkv, bqkv) = (draw(1, &[rows, width]), draw(2, &[3 * width, width]), draw(3, &[3 * width]));
    let (wo, bo) = (draw(4, &[width, width]), draw(5, &[width]));
    let linear = |x: &Tensor, w, b| {
        ctx.matmul_with(x, w, MatmulOptions { trans_b: true, bias: Some(b), ..Default::default() }).unwrap()
    };
    // One sequence after the other, by single operations.
    let (mut expected, mut first) = (Vec::new(), 0);
    for length in lengths {
        let qkv = linear(&x.rows(first, length).unwrap(), &wqkv, &bqkv);
        let apart = ctx.permute(&qkv.reshape(&[length, 3, heads, width / heads]).unwrap(), &[1, 2, 0, 3]).unwrap();
        let part = |i| apart.rows(i, 1).unwrap().reshape(&[heads, length, width / heads]).unwrap();
        let y = ctx.permute(&ctx.attention(&part(0), &part(1), &part(2)).unwrap(), &[1, 0, 2]).unwrap();
        expected.extend(linear(&y.reshape(&[length, width]).unwrap(), &wo, &bo).to_vec::<f32>().unwrap());
        first += length;
    }
    for context in &contexts() {
        let attention = || {
            let qkv = Linear::new(&wqkv, Some(&bqkv), context).unwrap();
            MultiHeadAttention::new(qkv, Linear::new(&wo, Some(&bo), context).unwrap(), heads).unwrap()
        };
        let groups = vec![Group::new(1, 70), Group::new(2, 3), Group::new(1, 1)];
        let sequences = Sequences::new(groups);
        let y = attention().forward_with(&x, &sequences, None).unwrap();
        assert_eq!(y.to_vec::<f32>().unwrap(), expected, "{context:?}");
        // Padded with what must not be seen.
        let longest = 130;
        let (mut padded, mut first) = (Vec::new(), 0);
        for length in lengths {
            padded.extend_from_slice(x.rows(first, length).unwrap().as_slice::<f32>().unwrap());
            padded.extend(vec![7.5f32; (longest - length) * width]);
            first += length;
        }
        let sequences = Sequences::new(vec![Group::padded(&lengths, longest).unwrap()]);
        let x = Tensor::new(&padded, &[lengths.len() * longest, width]).unwrap();
        let y = attention().forward_with(&x, &sequences, None).unwrap();
        let own = lengths.iter().enumerate().flat_map(|(i, &length)| {
            let at = i * longest * width;
            y.as_slice::<f32>().unwrap()[at..at + length * width].to_vec()
        });
        assert!(own.eq(expected.iter().copied()), "{context:?}, padded");
        // Several of one length, as a layer by itself.
        let three = draw(9, &[2, 3, width]);
        let y = attention().forward(&three).unwrap();
        assert_eq!(y.dims(), [2, 3, width]);
        let second = attention().forward(&three.rows(1, 1).unwrap().reshape(&[3, width]).unwrap()).unwrap();
        assert_eq!(y.rows(1, 1).unwrap().bytes(), second.bytes());
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let context = &Context::open("cpu").unwrap();
    let linear = |outputs, inputs| Linear::new(&draw(1, &[outputs, inputs]), None, context).unwrap();
    let status = |result: Result<Tensor>| refused(result).0;
    assert_eq!(refused(Linear::new(&draw(1, &[3]), None, context)).0, Status::ShapeMismatch);
    assert_eq!(refused(Linear::new(&draw(1, &[3, 2]), Some(&draw(2, &[2])), context)).0, Status::ShapeMismatch);
    assert_eq!(refused(Embedding::new(&draw(1, &[3]), context)).0, Status::ShapeMismatch);
    let fitting = FeedForward::new(linear(4, 2), linear(2, 3), Activation::Relu);
    assert_eq!(refused(fitting).1, "feed-forward: the first layer returns 4 values and the second takes 3");
    assert_eq!(refused(MultiHeadAttention::new(linear(8, 4), linear(4, 4), 2)).0, Status::ShapeMismatch);
    assert_eq!(refused(MultiHeadAttention::new(linear(12, 4), linear(4, 4), 3)).0, Status::InvalidArgument);
    let attention = MultiHeadAttention::new(linear(12, 4), linear(4, 4), 2).unwrap();
    let x = draw(1, &[6, 4]);
    let sequences = Sequences::new(vec![Group::new(1, 5)]);
    assert_eq!(status(attention.forward_with(&x, &sequences, None)), Status::ShapeMismatch);
    assert_eq!(refused(Group::padded(&[3, 6], 5)).0, Status::InvalidArgument);
    assert_eq!(refused(Group::padded(&[0], 5)).0, Status::InvalidArgument);
    assert_eq!(status(linear(3, 5).forward(&x)), Status::ShapeMismatch);
    assert_eq!((status(x.reshape(&[5, 5])), status(x.rows(5, 2))), (Status::ShapeMismatch, Status::InvalidArgument));
    let ids = Tensor::new(&[0u32, 9], &[2]).unwrap();
    let embedding = Embedding::new(&draw(1, &[9, 2]), context).unwrap();
    assert_eq!(status(embedding.forward(&ids)), Status::InvalidArgument);
    let path = file("empty", &[]);
    let config = TransformerConfig { width: 4, heads: 2, hidden: 8, activation: Activation::Relu, eps: 1e-5 };
    let weights = Weights::open(&path).unwrap();
    let (status, text) = refused(TransformerEncoder::load(&weights, "encoder.layer", 1, &config, context));
    assert_eq!(status, Status::InvalidArgument);
    assert!(text.contains("'encoder.layer.0."), "{text}");
    std::fs::remove_file(path).unwrap();
}

#[test]
fn memory_is_used_again_and_never_while_somebody_has_it() {
    for context in contexts() {
        let relu = Relu::new(&context);
        // Large enough for memory that is kept for the next result, and a result of two parts among them.
        let x = draw(1, &[256, 256]);
        let first = relu.forward(&x).unwrap();
        let expected = first.bytes().to_vec();
        for seed in 2..40 {
            let other = draw(seed, &[200 + seed as usize, 256]);
            let y = relu.forward(&relu.forward(&other).unwrap()).unwrap();
            let z = y.rows(1, 1).unwrap();
            let joined =
                context.run_joined(Op::Relu, &Attrs::DEFAULT, &[&x, &other], &[456 + seed as usize, 256]).unwrap();
            let behind = joined.rows(257, 1).unwrap();
            drop((y, joined));
            let again = relu.forward(&other).unwrap();
            let row = again.rows(1, 1).unwrap();
            assert_eq!((z.bytes(), behind.bytes()), (row.bytes(), row.bytes()), "{context:?}");
        }
        assert_eq!(first.bytes(), expected, "{context:?}");
    }
}

#[test]
fn results_that_do_not_fit_each_other_are_not_joined() {
    for context in contexts() {
        let (floats, ids) = (draw(1, &[3, 4]), Tensor::new(&[1u32, 2], &[2]).unwrap());
        let joined =
            |operands: &[&Tensor], dims: &[usize]| context.run_joined(Op::Transpose, &Attrs::DEFAULT, operands, dims);
        let turned = context.transpose(&floats).unwrap();
        let twice = joined(&[&floats, &floats], &[8, 3]).unwrap();
        assert_eq!(
            (twice.rows(0, 4).unwrap().bytes(), twice.rows(4, 4).unwrap().bytes()),
            (turned.bytes(), turned.bytes())
        );
        assert_eq!(refused(joined(&[&floats, &floats], &[7, 3])).0, Status::ShapeMismatch, "{context:?}");
        assert_eq!(refused(joined(&[&floats, &ids], &[14])).0, Status::DtypeMismatch, "{context:?}");
        assert_eq!(refused(joined(&[&floats], &[7])).0, Status::ShapeMismatch, "{context:?}");
    }
}
