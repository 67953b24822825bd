//! `adead train --report`: how a run went, as one HTML page.

use super::lines::{Line, lines};
use super::page::{document, facts, key, table};
use super::plot::escape;
use super::version;
use adead_models::train::Epoch;

/// The data of a page.
pub struct Training<'a> {
    /// The job's name, and the text of its file.
    pub job: &'a str,
    pub text: &'a str,
    /// The steps with the losses of their batches.
    pub steps: &'a [(u64, f32)],
    pub epochs: &'a [Epoch],
    /// What else is known of the run, by name.
    pub facts: &'a [(String, String)],
}

/// Writes the whole page.
pub fn page(it: &Training<'_>) -> String {
    let mut html = String::new();
    if it.epochs.is_empty() {
        html += "<p>The checkpoint has all epochs of the job: nothing was left to train.</p>\n";
    } else {
        html += "<h2>Curves</h2>\n";
        html += &key(&[("s0", "batches, and their mean in an epoch"), ("s1", "held out")]);
        html += "<div class=\"plots\">\n";
        html += &loss_by_step(it);
        html += &by_epoch("Loss by epoch", it.epochs, &[("s0", |it| it.loss), ("s1", |it| it.held_out_loss)]);
        html +=
            &by_epoch("Accuracy by epoch, % of the held-out samples", it.epochs, &[("s1", |it| 100.0 * it.accuracy)]);
        html += "</div>\n<h2>Epochs</h2>\n";
        html += &epochs(it.epochs);
    }
    html += "<h2>Run</h2>\n";
    html += &facts(it.facts);
    html += "<h2>Job</h2>\n<pre>";
    html += &escape(it.text);
    html += "</pre>\n";
    document("adead train", &format!("{}; {}", it.job, version()), &html)
}

fn loss_by_step(it: &Training<'_>) -> String {
    let points = it.steps.iter().map(|&(step, loss)| (step as f64, f64::from(loss)));
    lines("Loss by step", "step", &[Line { class: "s0", points: points.collect() }])
}

/// A figure of an epoch, with its class in the style sheet.
type Figure = (&'static str, fn(&Epoch) -> f64);

fn by_epoch(title: &str, epochs: &[Epoch], figures: &[Figure]) -> String {
    let line = |(class, of): &Figure| Line {
        class,
        points: epochs.iter().map(|epoch| (f64::from(epoch.number), of(epoch))).collect(),
    };
    lines(title, "epoch", &figures.iter().map(line).collect::<Vec<_>>())
}

fn epochs(epochs: &[Epoch]) -> String {
    let row = |epoch: &Epoch| {
        vec![
            epoch.number.to_string(),
            format!("{:.4}", epoch.loss),
            format!("{:.4}", epoch.held_out_loss),
            format!("{:.2} %", 100.0 * epoch.accuracy),
            format!("{:.1}", epoch.took.as_secs_f64()),
        ]
    };
    let head = ["epoch", "loss", "held-out loss", "accuracy", "seconds"];
    table("Mean losses of an epoch", &head, 1, &epochs.iter().map(row).collect::<Vec<_>>())
}
