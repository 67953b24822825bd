//! Other work on a context's threads.

use super::Context;
use crate::hal::Workers;
use std::sync::{Mutex, PoisonError};

impl Context {
    /// Calls `work` with each item on the context's CPU threads and returns the results in the items' order. For work beside
    /// operations, such as copies. `work` may call operations, which then share the threads. A panic in `work` is resumed here.
    pub fn map<T: Send, R: Send>(&self, items: Vec<T>, work: impl Fn(T) -> R + Sync) -> Vec<R> {
        let tasks: Vec<Mutex<(Option<T>, Option<R>)>> =
            items.into_iter().map(|item| Mutex::new((Some(item), None))).collect();
        self.cpu().run(tasks.len(), &|task| {
            let mut task = tasks[task].lock().unwrap_or_else(PoisonError::into_inner);
            task.1 = task.0.take().map(&work);
        });
        // Every task was run, or its panic was resumed above.
        tasks.into_iter().filter_map(|task| task.into_inner().unwrap_or_else(PoisonError::into_inner).1).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Attrs, ContextOptions, Op, Tensor};

    #[test]
    fn items_are_mapped_in_order_on_any_number_of_threads() {
        for threads in [1, 3] {
            let options = ContextOptions { threads: Some(threads), ..Default::default() };
            let context = Context::with_options("cpu", &options).unwrap();
            let mut rows = vec![0.0f32; 60];
            let parts: Vec<(usize, &mut [f32])> = rows.chunks_mut(10).enumerate().collect();
            // Operations in tasks share the threads.
            let found = context.map(parts, |(number, part)| {
                part.fill(number as f32);
                let part = Tensor::new(part, &[10])?;
                context.run(Op::Max, &Attrs::DEFAULT, &[Some(&part)])?.to_vec::<f32>()
            });
            let found: Vec<f32> = found.into_iter().flat_map(|max: crate::Result<Vec<f32>>| max.unwrap()).collect();
            assert_eq!(found, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
            assert_eq!(rows[59], 5.0);
            assert!(context.map(Vec::<u8>::new(), |item| item).is_empty());
            let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                context.map(vec![1, 2], |item| assert_ne!(item, 2));
            }));
            assert!(caught.is_err());
        }
    }
}
