//! The architectures that this version knows, as data: how each differs from the others.
//!
//! All are decoders with RMS norms, rotated positions and gated feed-forward layers. Biases of queries, keys and values, and norms
//! of queries and keys, are used where a file has them.

/// An architecture of `general.architecture`.
pub(crate) struct Architecture {
    pub name: &'static str,
    /// Its classes in `config.json` of Hugging Face.
    pub classes: &'static [&'static str],
    /// Whether the pairs that positions rotate are neighbours; else they are of both halves.
    pub interleaved: bool,
    /// The function of the feed-forward layers' gate.
    pub gate: Gate,
    /// Whether the words' values are multiplied by the square root of the width.
    pub scales_words: bool,
    /// Whether what attention and the feed-forward layers give is normalised before it is added.
    pub norms_after: bool,
    /// Whether some layers see the last positions only.
    pub local: Option<Local>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gate {
    Silu,
    /// In the form with tanh.
    Gelu,
}

/// What a file doesn't say about layers with a window.
pub(crate) struct Local {
    /// The last of so many layers sees all positions, the others those of the window.
    pub period: usize,
    /// The base of their positions' angles.
    pub rope_base: f64,
    /// The number of layers of the model whose queries have the scale of width / heads, not of a head's values.
    pub layers_scaled_by_width: usize,
}

const LLAMA: Architecture = Architecture {
    name: "llama",
    classes: &["LlamaForCausalLM", "MistralForCausalLM"],
    interleaved: true,
    gate: Gate::Silu,
    scales_words: false,
    norms_after: false,
    local: None,
};

const KNOWN: [Architecture; 4] = [
    LLAMA,
    Architecture { name: "qwen2", classes: &["Qwen2ForCausalLM"], interleaved: false, ..LLAMA },
    Architecture { name: "qwen3", classes: &["Qwen3ForCausalLM"], interleaved: false, ..LLAMA },
    Architecture {
        name: "gemma3",
        classes: &["Gemma3ForCausalLM"],
        interleaved: false,
        gate: Gate::Gelu,
        scales_words: true,
        norms_after: true,
        local: Some(Local { period: 6, rope_base: 10_000.0, layers_scaled_by_width: 62 }),
    },
];

impl Architecture {
    /// Finds an architecture by its name.
    pub fn of(name: &str) -> Option<&'static Architecture> {
        KNOWN.iter().find(|known| known.name == name)
    }

    /// Finds an architecture by a class of Hugging Face.
    pub fn of_class(class: &str) -> Option<&'static Architecture> {
        KNOWN.iter().find(|known| known.classes.contains(&class))
    }

    /// Returns the classes of all of them, for messages.
    pub fn classes() -> String {
        let classes: Vec<&str> = KNOWN.iter().flat_map(|known| known.classes).copied().collect();
        classes.join(", ")
    }

    /// Returns the names of all of them, for messages.
    pub fn names() -> String {
        KNOWN.map(|known| known.name).join(", ")
    }
}
