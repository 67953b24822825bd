//! Copies of the folders of `tests/text` that tests change, and files in memory.

use adead::{Result, Status};
use adead_models::TextGenerator;
use adead_models::convert::Conversion;
use adead_models::gguf::{Gguf, Kind};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// A folder that goes with the test.
pub struct Folder(pub PathBuf);

impl Folder {
    /// A copy of a folder of `tests/text`.
    pub fn copy(name: &str, of: &str) -> Folder {
        let folder = std::env::temp_dir().join(format!("adead-convert-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        for entry in fs::read_dir(super::text(of)).unwrap() {
            let path = entry.unwrap().path();
            fs::copy(&path, folder.join(path.file_name().unwrap())).unwrap();
        }
        Folder(folder)
    }

    pub fn path(&self, file: &str) -> PathBuf {
        self.0.join(file)
    }

    /// Changes a JSON file.
    pub fn change(&self, file: &str, change: impl FnOnce(&mut Value)) -> &Folder {
        let path = self.path(file);
        let mut value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        change(&mut value);
        fs::write(path, value.to_string()).unwrap();
        self
    }

    pub fn set(&self, file: &str, pointer: &str, to: Value) -> &Folder {
        self.change(file, |value| {
            let (parent, key) = pointer.rsplit_once('/').unwrap();
            match value.pointer_mut(parent).unwrap() {
                Value::Array(list) => list[key.parse::<usize>().unwrap()] = to,
                parent => parent[key] = to,
            }
        })
    }

    pub fn convert(&self, kind: Option<Kind>) -> Result<Conversion> {
        Conversion::from_folder(&self.0, kind.map(Kind::into))
    }

    /// The error of the conversion, without the folder's path.
    pub fn refusal(&self) -> (Status, String) {
        let result = self.convert(Some(Kind::F32)).and_then(|plan| plan.write(Vec::new(), |_, _| Ok(())));
        let error = result.map(|_| ()).unwrap_err();
        (error.status(), error.message().replace(&format!("{}", self.0.display()), "F"))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Writes a planned file into memory.
pub fn written(plan: Conversion) -> Gguf {
    let (all, mut last) = (plan.elements(), 0);
    let bytes = plan.write(Vec::new(), |done, of| {
        assert!(done > last && of == all);
        last = done;
        Ok(())
    });
    assert_eq!(last, all);
    Gguf::from_bytes(bytes.unwrap()).unwrap()
}

/// The bytes of a file that is planned, opened as a model.
pub fn model(name: &str, plan: Conversion) -> TextGenerator {
    let path = std::env::temp_dir().join(format!("adead-converted-{}-{name}.gguf", std::process::id()));
    plan.write(fs::File::create(&path).unwrap(), |_, _| Ok(())).unwrap();
    let model = TextGenerator::open(&path);
    fs::remove_file(&path).unwrap();
    model.unwrap()
}

/// The lines of a file of hashes: name and hash.
pub fn hashes(path: &Path) -> Vec<(String, String)> {
    let text = fs::read_to_string(path).unwrap();
    text.lines().map(|line| line.split_once("  ").unwrap()).map(|(hash, name)| (name.into(), hash.into())).collect()
}
