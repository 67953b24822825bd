//! Conversations, which keep the keys and values that were computed.

use super::cache::Cache;
use super::generator::TextGenerator;
use super::options::{GenerateOptions, Generation};
use super::run::Run;
use super::template::Message;
use adead::Result;

/// A conversation with a model. Each answer computes only the tokens that are new since the last one. Its bits equal those of
/// [`TextGenerator::chat`] with the same messages.
pub struct Conversation {
    generator: TextGenerator,
    messages: Vec<Message>,
    /// The tokens that the cache has, and the cache.
    computed: Vec<u32>,
    cache: Cache,
}

impl Conversation {
    pub(crate) fn new(generator: TextGenerator, messages: Vec<Message>) -> Conversation {
        let cache = generator.inner().cache();
        Conversation { generator, messages, computed: Vec::new(), cache }
    }

    /// Returns the messages so far, including the answers.
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// Sends a message to the model and returns its answer. `piece` receives each piece of the answer. After an error, including
    /// one of `piece`, the conversation contains neither the message nor an answer.
    ///
    /// # Errors
    /// Those of [`TextGenerator::chat`], and those of `piece`.
    pub fn say(
        &mut self,
        text: &str,
        options: &GenerateOptions,
        mut piece: impl FnMut(&str) -> Result<()>,
    ) -> Result<Generation> {
        let inner = self.generator.inner().clone();
        let mut messages = self.messages.clone();
        messages.push(Message::user(text));
        let prompt = inner.prompt(&messages)?;
        // The next token follows from the last one's computation, so that one is computed again.
        let known = self.computed.iter().zip(&prompt).take_while(|(a, b)| a == b).count();
        let known = known.min(prompt.len().saturating_sub(1));
        let mut cache = std::mem::replace(&mut self.cache, inner.cache());
        self.computed.clear();
        cache.truncate(known);
        let mut stream = self.generator.stream_of(Run::new(&inner, cache, prompt, options)?);
        let mut answer = String::new();
        for text in stream.by_ref() {
            let text = text?;
            piece(&text)?;
            answer += &text;
        }
        let run = stream.into_run();
        let generation = run.generation(answer);
        messages.push(Message::assistant(generation.text.clone()));
        self.messages = messages;
        self.computed = run.tokens[..run.cache.length()].to_vec();
        self.cache = run.cache;
        Ok(generation)
    }
}

impl std::fmt::Debug for Conversation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Conversation({} messages, {} tokens computed)", self.messages.len(), self.computed.len())
    }
}
