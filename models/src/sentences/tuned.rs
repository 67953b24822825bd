//! A model that is trained further: its weights as parameters, and its folder with the new ones.

use super::fault;
use super::files::Files;
use super::recorded::{Table, record};
use super::tokens::Words;
use adead::pipeline::Value;
use adead::train::{Network, write_tensors};
use adead::{Result, Status, Tensor};
use std::fs;
use std::path::{Path, PathBuf};

/// A model whose weights learn. Of its tables, those rows do that its sentences have.
pub(crate) struct Tuned {
    folder: PathBuf,
    files: Files,
    /// Of words, positions and the one type.
    tables: [Table; 3],
    length: usize,
}

/// A pair of sentences as tokens, which are numbers of used words.
type Pair = [Vec<u32>; 2];

impl Tuned {
    /// Opens a model's folder for sentences of at most `length` tokens. Returns the sentences' tokens too. The errors are those of
    /// `SentenceEncoder::open`, and `invalid_argument` for a length that the model does not take.
    pub fn open(folder: &Path, length: usize, pairs: &[[String; 2]]) -> Result<(Tuned, Vec<Pair>)> {
        let files = Files::read(folder)?;
        files.check_layers()?;
        if !(3..=files.most).contains(&length) {
            let text = format!("model.length is {length}; it must be from 3 to the {} tokens of the model", files.most);
            return Err(fault(Status::InvalidArgument, folder, text));
        }
        let tokenizer = Words::new(&folder.join("tokenizer.json"), &files.tokenizer, length, files.words)?;
        let tokens = |text: &String| tokenizer.tokens(text).map(|tokens| tokens.ids);
        let mut all: Vec<Pair> = pairs.iter().map(|[a, b]| Ok([tokens(a)?, tokens(b)?])).collect::<Result<Vec<_>>>()?;
        let mut used: Vec<u32> = all.iter().flatten().flatten().copied().collect();
        used.sort_unstable();
        used.dedup();
        for id in all.iter_mut().flatten().flatten() {
            *id = used.binary_search(id).map_or(0, |row| row as u32);
        }
        let tables = [
            Table::new(&files, "word", files.words, used)?,
            Table::new(&files, "position", files.positions, (0..length as u32).collect())?,
            Table::new(&files, "token_type", files.types, vec![0])?,
        ];
        Ok((Tuned { folder: folder.to_owned(), files, tables, length }, all))
    }

    /// Tokens of a sentence.
    pub fn length(&self) -> usize {
        self.length
    }

    /// Values of an embedding.
    pub fn width(&self) -> usize {
        self.files.config.width
    }

    /// Records the embeddings of sentences, `[sentences, width]`, from ids and from 1 for those that count and 0 for padding, both
    /// `[…, length]`.
    pub fn record(&self, net: &mut Network, ids: Value, kept: Value, dropout: f32) -> Result<Value> {
        record(net, &self.files, &self.tables, [ids, kept], dropout)
    }

    /// Writes the model's folder with the trained weights: what describes it is copied, and all tensors of floats become f32.
    pub fn save(&self, to: &Path, parameters: &[(String, Tensor)]) -> Result<()> {
        let failed = |path: &Path, error: std::io::Error| fault(Status::Io, path, error);
        let mut below = vec![PathBuf::new()];
        let modules = self.folder.join("modules.json");
        if let Ok(text) = fs::read(&modules) {
            let modules: serde_json::Value =
                serde_json::from_slice(&text).map_err(|error| fault(Status::InvalidArgument, &modules, error))?;
            let paths = modules.as_array().into_iter().flatten().filter_map(|module| module["path"].as_str());
            below.extend(paths.filter(|path| !path.is_empty()).map(PathBuf::from));
        }
        for part in below {
            let (from, to) = (self.folder.join(&part), to.join(&part));
            // Modules without settings have no folder.
            let Ok(entries) = fs::read_dir(&from) else { continue };
            fs::create_dir_all(&to).map_err(|error| failed(&to, error))?;
            for entry in entries {
                let path = entry.map_err(|error| failed(&from, error))?.path();
                let describes = path.extension().is_some_and(|kind| kind == "json" || kind == "txt");
                if let Some(name) = path.file_name().filter(|_| describes && path.is_file()) {
                    fs::copy(&path, to.join(name)).map_err(|error| failed(&path, error))?;
                }
            }
        }
        write_tensors(to.join("model.safetensors"), &self.merged(parameters)?)
    }

    /// The tensors of the model's file with those that were trained.
    fn merged(&self, parameters: &[(String, Tensor)]) -> Result<Vec<(String, Tensor)>> {
        let (weights, width) = (&self.files.weights, self.width());
        let mut merged = Vec::new();
        for name in weights.names() {
            // Some files have numbers of positions too, which nobody reads.
            let stored = match weights.tensor(&name, weights.dims(&name)?) {
                Err(error) if error.status() == Status::DtypeMismatch => continue,
                stored => stored?,
            };
            let named = |name: &str| parameters.iter().find(|(other, _)| other == name).map(|(_, tensor)| tensor);
            let table = self.tables.iter().find(|table| table.name == name);
            let new = match table.and_then(|table| Some((table, named(&table.parameter())?))) {
                Some((table, rows)) => {
                    let mut values = stored.to_vec::<f32>()?;
                    for (&number, row) in table.numbers.iter().zip(rows.as_slice::<f32>()?.chunks(width)) {
                        values[number as usize * width..][..width].copy_from_slice(row);
                    }
                    Tensor::new(&values, stored.dims())?
                }
                None => named(&name).cloned().unwrap_or(stored),
            };
            merged.push((name, new));
        }
        Ok(merged)
    }
}

#[cfg(test)]
mod tests {
    use super::super::model::Model;
    use super::*;
    use adead::train::Predictor;
    use adead::{Context, DType};

    #[test]
    fn the_recorded_network_has_the_bits_of_the_encoder() {
        let shared = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/sentences");
        let text = fs::read_to_string(shared.join("tiny.txt")).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let pairs: Vec<[String; 2]> = lines.chunks_exact(2).map(|two| [two[0].into(), two[1].into()]).collect();
        // Longer sentences are cut by the encoder too.
        let length = 24;
        let (tuned, tokens) = Tuned::open(&shared.join("tiny"), length, &pairs).unwrap();
        let context = Context::open("cpu").unwrap();
        let mut net = Network::for_prediction(&context);
        let (count, sentences) = (pairs.len(), 2 * pairs.len());
        let ids = net.input(DType::I64, &[count, 2, length]).unwrap();
        let kept = net.input(DType::F32, &[count, 2, length]).unwrap();
        let rows = tuned.record(&mut net, ids, kept, 0.5).unwrap();
        let predictor = Predictor::new(net, &[rows]).unwrap();
        let mut parameters: Vec<(String, Tensor)> =
            tuned.tables.iter().map(|table| (table.parameter(), table.rows.clone())).collect();
        let weights = &tuned.files.weights;
        for name in weights.names() {
            let tensor = weights.tensor(&name, weights.dims(&name).unwrap()).unwrap();
            parameters.push((name, tensor));
        }
        let (mut ids, mut kept) = (vec![0i64; sentences * length], vec![0f32; sentences * length]);
        for (sentence, tokens) in tokens.iter().flatten().enumerate() {
            for (at, &id) in tokens.iter().enumerate() {
                (ids[sentence * length + at], kept[sentence * length + at]) = (id.into(), 1.0);
            }
        }
        let dims = [count, 2, length];
        let batch = [Tensor::new(&ids, &dims).unwrap(), Tensor::new(&kept, &dims).unwrap()];
        let found = predictor.run(&parameters, &[&batch[0], &batch[1]]).unwrap();

        let model = Model::new(&tuned.files, &context).unwrap();
        let found = model.normalise(&found[0]).unwrap().to_vec::<f32>().unwrap();
        let words: Vec<Vec<u32>> = tokens
            .iter()
            .flatten()
            .map(|ids| ids.iter().map(|&id| tuned.tables[0].numbers[id as usize]).collect())
            .collect();
        let words: Vec<&[u32]> = words.iter().map(Vec::as_slice).collect();
        let expected = model.forward(&words, true).unwrap().to_vec::<f32>().unwrap();
        assert!(found.iter().map(|x| x.to_bits()).eq(expected.iter().map(|x| x.to_bits())));
    }
}
