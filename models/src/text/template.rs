//! Chat templates: Jinja texts in a model's file, which format messages as in the model's training.

use adead::{Error, Result, Status};
use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, ErrorKind, Value, context};

/// A message of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The role: `system`, `user`, `assistant`, or another role that the model's template knows.
    pub role: String,
    /// The text.
    pub content: String,
}

impl Message {
    /// Makes a message.
    pub fn new(role: impl Into<String>, content: impl Into<String>) -> Message {
        Message { role: role.into(), content: content.into() }
    }

    /// Makes a message of the user.
    pub fn user(content: impl Into<String>) -> Message {
        Message::new("user", content)
    }

    /// Makes a message that tells the model how to answer.
    pub fn system(content: impl Into<String>) -> Message {
        Message::new("system", content)
    }

    /// Makes an answer of the model.
    pub fn assistant(content: impl Into<String>) -> Message {
        Message::new("assistant", content)
    }
}

/// A model's chat template.
pub(crate) struct Template {
    environment: Environment<'static>,
}

const NAME: &str = "chat";

/// The most steps of a template: a template from an untrusted file must not run forever.
const STEPS: u64 = 2_000_000;

impl Template {
    /// Compiles a template, with the settings of transformers. `invalid_argument` if it is malformed.
    pub fn new(source: &str) -> Result<Template> {
        let mut environment = Environment::new();
        let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
        environment.set_syntax(syntax.map_err(|error| malformed(&error))?);
        environment.set_fuel(Some(STEPS));
        environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        let raise = |text: String| Err::<String, _>(minijinja::Error::new(ErrorKind::InvalidOperation, text));
        environment.add_function("raise_exception", raise);
        environment.add_function("strftime_now", |_: String| {
            let text = "strftime_now is refused: a text that depends on the time has other bits every day";
            Err::<String, _>(minijinja::Error::new(ErrorKind::InvalidOperation, text))
        });
        environment.add_template_owned(NAME, source.to_owned()).map_err(|error| malformed(&error))?;
        Ok(Template { environment })
    }

    /// Writes messages as text, with the beginning of an answer behind them. `invalid_argument` if the template refuses them.
    pub fn render(&self, messages: &[Message], bos: &str, eos: &str) -> Result<String> {
        let each = |message: &Message| {
            Value::from_pairs([("role", message.role.as_str()), ("content", message.content.as_str())])
        };
        let messages: Vec<Value> = messages.iter().map(each).collect();
        let values = context! { messages, bos_token => bos, eos_token => eos, add_generation_prompt => true };
        let template = self.environment.get_template(NAME).map_err(|error| malformed(&error))?;
        template.render(values).map_err(|error| {
            let why = error.detail().map_or_else(|| error.to_string(), str::to_owned);
            Error::new(Status::InvalidArgument, format!("the model's chat template refuses the messages: {why}"))
        })
    }
}

fn malformed(error: &minijinja::Error) -> Error {
    Error::new(Status::InvalidArgument, format!("the model's chat template is malformed: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(source: &str, messages: &[Message]) -> Result<String> {
        Template::new(source)?.render(messages, "<s>", "</s>")
    }

    #[test]
    fn messages_become_text() {
        let messages =
            [Message::system(" Be brief. "), Message::user("Hi"), Message::assistant("Hello"), Message::user("x")];
        let plain = "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message.content + '<|im_end|>\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";
        assert_eq!(
            rendered(plain, &messages[1..2]).unwrap(),
            "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
        );
        // Blocks take no line of their own, and Python's methods and slices work.
        let llama = "\
{{ bos_token }}
{%- if messages[0]['role'] == 'system' %}
    {%- set system = messages[0]['content'].strip() %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system = '' %}
{%- endif %}
{% for message in messages %}
    {% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}
        {{- raise_exception('roles must alternate') }}
    {% endif %}
    {%- if loop.first and system %}
[{{ system }}]
    {% endif %}
{{ message.role | upper }}: {{ message.get('content') }}{{ eos_token if message.role == 'assistant' else '' }}
{% endfor %}
";
        assert_eq!(rendered(llama, &messages).unwrap(), "<s>[Be brief.]\nUSER: Hi\nASSISTANT: Hello</s>\nUSER: x\n");
        let error = rendered(llama, &messages[2..]).unwrap_err();
        let text = "the model's chat template refuses the messages: roles must alternate";
        assert_eq!((error.status(), error.message()), (Status::InvalidArgument, text));
    }

    #[test]
    fn a_faulty_template_is_an_error() {
        let status = |source| rendered(source, &[Message::user("Hi")]).map_err(|error| error.message().to_owned());
        assert!(status("{% for %}").unwrap_err().starts_with("the model's chat template is malformed: "));
        assert!(status("{{ strftime_now('%Y') }}").unwrap_err().contains("strftime_now is refused"));
        let forever = "{% for a in range(9999) %}{% for b in range(9999) %}{% for c in range(9999) %}{{ a }}{% endfor %}{% endfor %}{% endfor %}";
        assert!(status(forever).is_err());
    }
}
