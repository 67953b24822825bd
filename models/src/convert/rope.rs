//! How positions rotate, from Hugging Face's `config.json`: `rope_theta` and `rope_scaling`, or `rope_parameters`.

use super::json::Object;
use crate::gguf::Header;
use crate::text::architecture::Local;
use adead::{Result, Status};
use std::f64::consts::PI;

pub(super) struct Rope {
    base: f64,
    /// The base of layers with a window.
    local_base: Option<f64>,
    linear: Option<f64>,
    /// The factors of `rope_freqs.weight`, one for each pair of a head.
    pub factors: Option<Vec<f32>>,
}

/// The base without one in the file; of an architecture with windows the greater.
const BASE: f64 = 10_000.0;
const BASE_WITH_WINDOWS: f64 = 1_000_000.0;

impl Rope {
    /// Reads the fields. `unsupported` for a scaling of another kind.
    pub fn read(file: &Object, local: Option<&Local>, head_width: usize) -> Result<Rope> {
        let parameters = file.object("rope_parameters")?;
        // With windows each kind of layer has its own.
        let nested = |key: &str| parameters.as_ref().map_or(Ok(None), |own| own.object(key));
        let (whole, sliding) = (nested("full_attention")?, nested("sliding_attention")?);
        let own = whole.as_ref().or(parameters.as_ref());
        let base = match own.map_or(Ok(None), |own| own.optional_number("rope_theta"))? {
            None => file.optional_number("rope_theta")?,
            base => base,
        };
        let base = base.unwrap_or(if local.is_some() { BASE_WITH_WINDOWS } else { BASE });
        let local_base = match (local, &sliding) {
            (None, _) => None,
            (Some(local), None) => Some(file.optional_number("rope_local_base_freq")?.unwrap_or(local.rope_base)),
            (Some(local), Some(own)) => {
                refuse_scaling(own)?;
                Some(own.optional_number("rope_theta")?.unwrap_or(local.rope_base))
            }
        };
        for base in [Some(base), local_base].into_iter().flatten() {
            if !(base > 0.0 && base.is_finite()) {
                let text = format!("the base of positions' angles is {base}; it must be more than 0");
                return Err(file.error(Status::InvalidArgument, text));
            }
        }
        if let Some(part) = file.optional_number("partial_rotary_factor")?.filter(|&part| part != 1.0) {
            return Err(file.unsupported(format!("'partial_rotary_factor' is {part}; 1 is supported")));
        }
        let mut rope = Rope { base, local_base, linear: None, factors: None };
        let scaling = file.object("rope_scaling")?;
        let Some(scaling) = scaling.as_ref().or(own) else { return Ok(rope) };
        match kind(scaling)? {
            None | Some("default") => {}
            Some("linear") => rope.linear = Some(positive(scaling, "factor")?),
            Some("llama3") => rope.factors = Some(llama3(scaling, base, head_width)?),
            Some(other) => return Err(unknown(scaling, other)),
        }
        Ok(rope)
    }

    pub fn write(&self, header: &mut Header, name: &str) -> Result<()> {
        header.set(&format!("{name}.rope.freq_base"), self.base as f32)?;
        if let Some(base) = self.local_base {
            header.set(&format!("{name}.rope.freq_base_swa"), base as f32)?;
        }
        if let Some(factor) = self.linear {
            header.set(&format!("{name}.rope.scaling.type"), "linear")?;
            header.set(&format!("{name}.rope.scaling.factor"), factor as f32)?;
        }
        Ok(())
    }
}

fn kind<'a>(scaling: &'a Object<'_>) -> Result<Option<&'a str>> {
    match scaling.optional_text("rope_type")? {
        None => scaling.optional_text("type"),
        kind => Ok(kind),
    }
}

fn unknown(scaling: &Object, kind: &str) -> adead::Error {
    scaling.unsupported(format!("positions are scaled by '{kind}'; supported are default, linear and llama3"))
}

fn refuse_scaling(own: &Object) -> Result<()> {
    match kind(own)? {
        None | Some("default") => Ok(()),
        Some(other) => Err(own.unsupported(format!(
            "positions of layers with a window are scaled by '{other}'; they are supported without a scaling"
        ))),
    }
}

fn positive(scaling: &Object, key: &str) -> Result<f64> {
    let number = scaling.number(key)?;
    if number > 0.0 && number.is_finite() { Ok(number) } else { Err(scaling.wrong(key, "more than 0")) }
}

/// Llama 3's factors: 1 for short waves, `factor` for long ones, and between them what joins both.
fn llama3(scaling: &Object, base: f64, head_width: usize) -> Result<Vec<f32>> {
    let [factor, low, high, length] =
        ["factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"]
            .map(|key| positive(scaling, key));
    let (factor, low, high, length) = (factor?, low?, high?, length?);
    if low >= high {
        let text = format!("'low_freq_factor' is {low} and 'high_freq_factor' {high}; the first must be less");
        return Err(scaling.error(Status::InvalidArgument, text));
    }
    let of_pair = |pair: usize| {
        let wave = 2.0 * PI * libm::pow(base, 2.0 * pair as f64 / head_width as f64);
        if wave < length / high {
            1.0
        } else if wave > length / low {
            factor as f32
        } else {
            let smooth = (length / wave - low) / (high - low);
            (1.0 / ((1.0 - smooth) / factor + smooth)) as f32
        }
    };
    Ok((0..head_width / 2).map(of_pair).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, local: Option<&Local>) -> Result<Rope> {
        let path = std::env::temp_dir().join(format!("adead-rope-{}-{}.json", std::process::id(), text.len()));
        std::fs::write(&path, text).unwrap();
        let rope = Rope::read(&Object::required(&path).unwrap(), local, 128);
        std::fs::remove_file(&path).unwrap();
        rope
    }

    #[test]
    fn llama_3_1_has_its_factors() {
        let text = r#"{"rope_theta": 500000.0, "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
            "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}}"#;
        let factors = read(text, None).unwrap().factors.unwrap();
        // Computed apart, in double precision.
        assert_eq!((factors.len(), factors[28], factors[35], factors[63]), (64, 1.0, 8.0, 8.0));
        assert!((factors[29] - 1.207_483_9).abs() < 1e-5 && factors.is_sorted(), "{factors:?}");
        assert!((factors[34] - 5.257_326_6).abs() < 1e-5, "{factors:?}");
    }

    #[test]
    fn other_scalings_are_read_or_refused() {
        let rope =
            read(r#"{"rope_parameters": {"rope_type": "linear", "factor": 4, "rope_theta": 5000}}"#, None).unwrap();
        assert_eq!((rope.base, rope.linear, rope.local_base), (5000.0, Some(4.0), None));
        let local = Local { period: 6, rope_base: 10_000.0, layers_scaled_by_width: 62 };
        let nested = r#"{"rope_parameters": {"full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6},
            "sliding_attention": {"rope_type": "default", "rope_theta": 20000.0}}}"#;
        let rope = read(nested, Some(&local)).unwrap();
        assert_eq!((rope.base, rope.linear, rope.local_base), (1e6, Some(8.0), Some(20_000.0)));
        let rope = read(r#"{"rope_scaling": null }"#, Some(&local)).unwrap();
        assert_eq!((rope.base, rope.linear, rope.local_base), (1e6, None, Some(10_000.0)));
        let says = |text: &str| read(text, None).map(|_| ()).unwrap_err().message().to_owned();
        let yarn = says(r#"{"rope_scaling": {"type": "yarn", "factor": 4.0}}"#);
        assert!(yarn.ends_with("positions are scaled by 'yarn'; supported are default, linear and llama3"), "{yarn}");
        let negative = says(r#"{"rope_scaling": {"type": "linear", "factor": -4.0}}"#);
        assert!(negative.ends_with("'rope_scaling.factor' is -4.0; it must be more than 0"), "{negative}");
        assert!(says(r#"{"rope_theta": 0}"#).ends_with("the base of positions' angles is 0; it must be more than 0"));
    }
}
