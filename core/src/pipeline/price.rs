//! The cost of a graph on each device: uploads of inputs, every operation with what was folded into it, downloads of outputs.
//! Joined operations read and write no intermediate values. On a GPU all operations share the cost of one submission.

use super::fuse::{Step, steps};
use super::graph::{Graph, Source};
use crate::dispatch::{AutoDispatcher, Estimate, Kind, Places};

/// The prices of a graph.
pub(crate) struct Prices {
    /// The index of the cheapest device, or of the forced device.
    pub device: usize,
    /// By device and node: the estimate of the node's operation, with what was folded into it.
    pub nodes: Vec<Vec<Estimate>>,
    /// By node: the operation that computes it, which is the node itself unless it was folded into another. `None` if no output
    /// needs the node.
    #[cfg_attr(not(feature = "programs"), allow(dead_code))] // Programs' steps show it.
    pub done_by: Vec<Option<u32>>,
}

impl Prices {
    pub fn new(dispatcher: &AutoDispatcher, graph: &Graph) -> Prices {
        let steps = steps(graph);
        let mut done_by = vec![None; graph.nodes.len()];
        for link in steps.iter().flat_map(|step| &step.links) {
            link.recorded.iter().for_each(|&node| done_by[node as usize] = link.recorded.first().copied());
        }
        let devices = 0..dispatcher.profiles().len();
        let nodes: Vec<_> = devices.map(|device| on(dispatcher, graph, &steps, device)).collect();
        let mut prices = Prices { device: 0, nodes, done_by };
        let cheaper = |&(a, fits): &(usize, bool), &(b, other): &(usize, bool)| {
            other.cmp(&fits).then(prices.total_ns(a).total_cmp(&prices.total_ns(b)))
        };
        let bytes = graph.nodes.iter().fold(0u64, |sum, node| sum.saturating_add(node.meta.bytes() as u64));
        let fits = |memory: u64| memory == 0 || bytes <= memory;
        let all = dispatcher.profiles().iter().enumerate().map(|(device, it)| (device, fits(it.memory)));
        let cheapest = all.min_by(cheaper).map_or(0, |(device, _)| device);
        prices.device = dispatcher.forced().unwrap_or(cheapest);
        prices
    }

    /// The estimated nanoseconds of the whole graph on a device.
    pub fn total_ns(&self, device: usize) -> f64 {
        self.nodes[device].iter().map(Estimate::total_ns).sum()
    }
}

/// The estimate of each node's operations on one device.
fn on(dispatcher: &AutoDispatcher, graph: &Graph, steps: &[Step], device: usize) -> Vec<Estimate> {
    let (profile, place) = (&dispatcher.profiles()[device], dispatcher.place(device));
    let mut nodes = vec![Estimate { fits: true, ..Estimate::default() }; graph.nodes.len()];
    let mut begun = vec![false; graph.nodes.len()];
    let mut launch_ns = profile.launch_ns;
    let outputs: Vec<bool> = {
        let mut outputs = vec![false; graph.nodes.len()];
        graph.outputs.iter().for_each(|&node| outputs[graph.root(node) as usize] = true);
        outputs
    };
    for step in steps {
        for (i, (link, &node)) in step.links.iter().zip(&step.nodes).enumerate() {
            let Some(&first) = link.recorded.first() else { continue };
            let mut bytes = 0;
            for &operand in link.operands.iter().flatten() {
                let root = graph.root(operand) as usize;
                let is_input = matches!(graph.nodes[root].source, Source::Input);
                if is_input && !std::mem::replace(&mut begun[root], true) {
                    bytes += moved(
                        dispatcher,
                        graph.nodes[root].meta.bytes(),
                        Places::HOST,
                        place,
                        &mut nodes[first as usize],
                    );
                }
            }
            if outputs[node as usize] {
                bytes += moved(dispatcher, graph.meta(node).bytes(), place, Places::HOST, &mut nodes[first as usize]);
            }
            let estimate = &mut nodes[first as usize];
            estimate.transfer_bytes = bytes as f64;
            estimate.compute_ns = profile.work_ns(link.op.family(), link.attrs.precision(), &step.cost(graph, i));
            estimate.launch_ns = launch_ns;
            if profile.kind != Kind::Cpu {
                launch_ns = 0.0;
            }
        }
    }
    nodes
}

/// Adds a transfer to an estimate. Returns the bytes that move.
fn moved(dispatcher: &AutoDispatcher, bytes: usize, from: Places, to: Places, estimate: &mut Estimate) -> usize {
    let ns = dispatcher.transfer_ns(bytes, from, to);
    estimate.transfer_ns += ns;
    if ns > 0.0 { bytes } else { 0 }
}
