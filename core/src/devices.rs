//! Which devices there are, which of them a name means, and what a context keeps of each.

use crate::command::Command;
use crate::config::Config;
use crate::error::{Error, Result, Status, fail};
use crate::fpenv::DefaultEnvironment;
use crate::gpu::guard::Guards;
#[cfg(feature = "cuda")]
use crate::hal::cuda::{self, CudaDevice};
use crate::hal::vulkan::{self, Opening, VulkanDevice};
use crate::hal::{Buffer, Device, DeviceInfo, DeviceKind, Download, Slice, Stream, Workers};
use crate::log::log;
use crate::machine::Mode;
use crate::operand::{Inputs, Place, View, ViewMut};
use crate::ops::Op;
use crate::profile::{Activity, ProfilerHandle, Reason, Watch, What};
use crate::tensor::{Cache, Keeper, Tensor};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::{fmt, slice};

/// An opened device with the stream that a context's own calls go to.
pub(crate) struct Opened {
    pub device: Arc<dyn Device>,
    pub profiler: ProfilerHandle,
    /// The tensors that have a copy on it.
    pub cache: Cache,
    /// Where users' buffers lie between guards.
    pub guards: Option<Guards>,
    stream: Mutex<Box<dyn Stream>>,
    me: Weak<Opened>,
}

impl Opened {
    pub fn new(device: Arc<dyn Device>, profiler: ProfilerHandle) -> Result<Arc<Opened>> {
        let guards = Guards::wanted(device.info().kind)?;
        Opened::with_guards(device, profiler, guards)
    }

    /// The same, with or without guards around users' buffers.
    pub fn with_guards(
        device: Arc<dyn Device>,
        profiler: ProfilerHandle,
        guards: Option<Guards>,
    ) -> Result<Arc<Opened>> {
        let stream = Mutex::new(device.clone().stream()?);
        let cache = Cache::new(device.info().memory);
        Ok(Arc::new_cyclic(|me| Opened { device, profiler, cache, guards, stream, me: me.clone() }))
    }

    /// The stream, which is one thread's at a time.
    pub fn lock(&self) -> MutexGuard<'_, Box<dyn Stream>> {
        self.stream.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something with the stream. Drivers compute: they must not meet the host's floating-point modes and traps.
    pub fn with<R>(&self, work: impl FnOnce(&mut dyn Stream) -> Result<R>) -> Result<R> {
        let _environment = DefaultEnvironment::enter();
        work(&mut **self.lock())
    }

    /// One piece of work for the stream, on a device that its operands chose, recorded where a profile is under way.
    pub fn watched(&self, what: &What<'_>, mut work: impl FnMut(&mut dyn Stream) -> Result<()>) -> Result<()> {
        self.watch(Some(0), &mut **self.lock(), what, &mut work)
    }

    /// A watch over a stream of that number, from here on.
    #[inline]
    pub fn begin_watch(&self, number: usize, stream: &mut dyn Stream) -> Watch<'_> {
        Watch::begin(&self.profiler, &self.device, number, stream)
    }

    /// One piece of work for a stream: recorded where a profile is under way and the stream has a number.
    #[inline(never)]
    pub fn watch(
        &self,
        number: Option<usize>,
        stream: &mut dyn Stream,
        what: &What<'_>,
        work: &mut dyn FnMut(&mut dyn Stream) -> Result<()>,
    ) -> Result<()> {
        let _environment = DefaultEnvironment::enter();
        let mut watch = number.map_or(Watch::nothing(), |number| self.begin_watch(number, stream));
        work(stream)?;
        watch.step(stream, what);
        Ok(())
    }

    /// Executes a command, which is here for that reason. Operands in host memory travel: then it returns when they are the
    /// caller's again, and with the output in host memory, when that is written.
    pub fn execute(&self, command: &mut Command<'_>, reason: Reason) -> Result<()> {
        self.perform(command, reason, true).map(|_| ())
    }

    /// Executes a command whose output is a description only: the result as a tensor that is on this device. It returns when the
    /// operation is enqueued, or, where its operands may be wrong, when it is done.
    pub fn compute(&self, command: &mut Command<'_>, reason: Reason) -> Result<Tensor> {
        let computed = self.perform(command, reason, false)?;
        let (Some(memory), Some(opened)) = (computed, self.me.upgrade()) else {
            fail!(Internal, "{}: a result is nowhere", command.op())
        };
        Ok(Tensor::computed(command.output().meta(), opened, memory))
    }

    /// Where there is room for what a command brings, it is executed: other tensors leave, within the budget before it, and all
    /// of them where the device has no more memory. A result that is to `come` is read.
    fn perform(&self, command: &mut Command<'_>, reason: Reason, come: bool) -> Result<Kept> {
        let since = self.make_room(command)?;
        self.with_room(since, &mut || {
            self.with(|stream| {
                let mut watch = self.begin_watch(0, stream);
                let result = self.send(stream, command, reason, &mut watch)?;
                match &result {
                    Some(result) if come => {
                        let bytes = command.output().meta().bytes();
                        // SAFETY: the view's maker vouched for that many bytes that nobody else touches.
                        let into = unsafe { slice::from_raw_parts_mut(command.output().host()?, bytes) };
                        stream.read(&**result, 0, into)?;
                        watch.step(stream, &What::bytes(Activity::Download, bytes, command.op().name(), reason));
                    }
                    Some(_) if command.op() == Op::Embedding => stream.synchronize()?,
                    _ => {}
                }
                Ok(result)
            })
        })
    }

    /// Memory of the device, of any contents or zeroed; see [`Opened::with_room`].
    pub fn allocate(&self, bytes: usize, zeroed: bool) -> Result<Arc<dyn Buffer>> {
        let device = &self.device;
        let memory = self.with_room(u64::MAX, &mut || {
            if zeroed { device.allocate(bytes) } else { device.allocate_unset(bytes) }.map(Some)
        })?;
        memory.ok_or_else(|| Error::new(Status::Internal, "memory that was allocated is nowhere"))
    }

    /// What takes memory of the device, while nobody has the stream. Where there is none left it is tried again: when work under
    /// way is done, which keeps the memory of what is gone, and when all tensors have left that were not used after `since`.
    fn with_room(&self, since: u64, take: &mut dyn FnMut() -> Result<Kept>) -> Result<Kept> {
        let mut tried = 0;
        loop {
            match take() {
                Err(error) if is_full(&error) && self.find_room(tried, since)? => tried += 1,
                done => return done,
            }
        }
    }

    /// Whether there may be more room than before; what was tried says what is next.
    #[cold]
    #[inline(never)]
    fn find_room(&self, tried: usize, since: u64) -> Result<bool> {
        if tried > 1 || tried == 1 && !self.cache.shrink(self, 0, since)? {
            return Ok(false);
        }
        // What was wrong with that work is for whoever synchronises.
        self.with(|stream| {
            stream.event()?.wait(u64::MAX)?;
            stream.is_idle()
        })?;
        Ok(true)
    }

    /// Makes room for what a command's result and operands need here that is not here yet; operands that are on another device
    /// come to the host, before this one's stream is locked. The time from which on uses are the command's.
    fn make_room(&self, command: &Command<'_>) -> Result<u64> {
        let since = self.cache.use_one();
        let mut bytes = command.output().meta().bytes();
        let (mut hits, mut misses) = (0, 0);
        for view in command.inputs().iter().flatten() {
            let Some((tensor, _)) = Tensor::at(view.place()) else { continue };
            if tensor.copy_on(self).is_some() {
                hits += 1;
                continue;
            }
            view.host()?;
            (misses, bytes) = (misses + 1, bytes + view.meta().bytes());
        }
        self.cache.count(hits, misses);
        self.cache.make_room(self, bytes as u64, since)?;
        Ok(since)
    }

    /// Makes a copy of a tensor's values here, unless there is one.
    pub fn bring(&self, tensor: &Tensor) -> Result<()> {
        let (root, _) = tensor.root();
        if root.copy_on(self).is_some() {
            return Ok(());
        }
        let (bytes, since) = (root.host_bytes()?, self.cache.use_one());
        self.cache.make_room(self, bytes.len() as u64, since)?;
        let buffer = self.allocate(bytes.len(), false)?;
        let what = What::bytes(Activity::Upload, bytes.len(), "tensor", Reason::Operands);
        self.watched(&what, |stream| stream.write(&*buffer, 0, bytes))?;
        if let Some(opened) = self.me.upgrade() {
            root.keep_copy(opened, &buffer);
        }
        Ok(())
    }

    /// Enqueues a command, which is here for that reason, under a watch over the stream. Operands in host memory travel, and are
    /// the caller's again when it returns; with the output in host memory, it returns the buffer that the result will be in.
    pub fn send(
        &self,
        stream: &mut dyn Stream,
        command: &mut Command<'_>,
        reason: Reason,
        watch: &mut Watch<'_>,
    ) -> Result<Option<Arc<dyn Buffer>>> {
        let mut moved: [Option<(Arc<dyn Buffer>, usize)>; 8] = Default::default();
        if command.inputs().len() > moved.len() {
            return self.send_moved(stream, command, reason, watch, &mut vec![None; command.inputs().len()]);
        }
        self.send_moved(stream, command, reason, watch, &mut moved)
    }

    fn send_moved(
        &self,
        stream: &mut dyn Stream,
        command: &mut Command<'_>,
        reason: Reason,
        watch: &mut Watch<'_>,
        moved: &mut [Option<(Arc<dyn Buffer>, usize)>],
    ) -> Result<Option<Arc<dyn Buffer>>> {
        for (place, view) in moved.iter_mut().zip(command.inputs()) {
            let Some(view) = view else { continue };
            if is_here(view.place()) {
                continue;
            }
            let tensor = Tensor::at(view.place());
            *place = tensor.and_then(|(tensor, at)| Some((tensor.copy_on(self)?, at)));
            if place.is_some() {
                continue;
            }
            let bytes = view.meta().bytes();
            let buffer = self.device.allocate_unset(bytes)?;
            // SAFETY: the view's maker vouched for that many initialised bytes while it is borrowed.
            stream.write(&*buffer, 0, unsafe { slice::from_raw_parts(view.host()?, bytes) })?;
            watch.step(stream, &What::bytes(Activity::Upload, bytes, command.op().name(), reason));
            // A part of a tensor does not bring all of it, and is not kept.
            if let (Some((tensor, 0)), Some(opened)) = (tensor, self.me.upgrade())
                && tensor.byte_len() == bytes
            {
                tensor.keep_copy(opened, &buffer);
            }
            *place = Some((buffer, 0));
        }
        let mut inputs = Inputs::new();
        for (moved, view) in moved.iter().zip(command.inputs()) {
            inputs.push(match (moved, view) {
                (Some((buffer, at)), Some(view)) => Some(View::buffer(&**buffer, *at, view.meta())?),
                (_, view) => *view,
            });
        }
        let (op, attrs, _, output) = command.parts();
        let meta = output.meta();
        let is_here = is_here(output.place());
        let result = if is_here { None } else { Some(self.device.allocate_unset(meta.bytes())?) };
        let output = match &result {
            Some(result) => ViewMut::buffer(&**result, 0, meta)?,
            None => output.reborrow(),
        };
        // SAFETY: the operation, attributes and descriptions are a checked command's; operands that moved have memory of their own.
        stream.submit(&mut [unsafe { Command::unchecked(op, *attrs, &inputs, output) }])?;
        watch.step(stream, &What::command(command, reason));
        Ok(result)
    }
}

impl Keeper for Opened {
    fn id(&self) -> &str {
        &self.device.info().id
    }

    fn cache(&self) -> &Cache {
        &self.cache
    }

    fn download(&self, part: Slice<'_>) -> Result<Box<dyn Download>> {
        let what = What::bytes(Activity::Download, part.bytes, "tensor", Reason::Operands);
        self.with(|stream| {
            let mut watch = self.begin_watch(0, stream);
            let download = stream.download(part)?;
            watch.step(stream, &what);
            Ok(download)
        })
    }

    fn read(&self, memory: &dyn Buffer, into: &mut [u8]) -> Result<()> {
        let what = What::bytes(Activity::Download, into.len(), "tensor", Reason::Operands);
        self.watched(&what, |stream| stream.read(memory, 0, into))
    }
}

/// The memory that a result is in, if it stays on a device.
type Kept = Option<Arc<dyn Buffer>>;

fn is_full(error: &Error) -> bool {
    error.status() == Status::OutOfMemory
}

/// Whether an operand is on a device that has memory of its own.
fn is_here(place: Place<'_>) -> bool {
    matches!(place, Place::Buffer(buffer, _) if buffer.host_pointer().is_none())
}

/// The device whose memory an operand of a command is in, by its id, if it is not the host's.
pub(crate) fn place_of<'a>(command: &Command<'a>) -> Option<&'a str> {
    let far = |place| match place {
        Place::Buffer(buffer, _) if buffer.host_pointer().is_none() => Some(buffer.device_name()),
        _ => None,
    };
    far(command.output().place()).or_else(|| command.inputs().iter().flatten().find_map(|view| far(view.place())))
}

/// Whether every operand of a command is in host memory, or in memory that the host can address.
pub(crate) fn are_on_host(command: &Command<'_>) -> bool {
    let far = |place| match place {
        Place::Buffer(buffer, _) => buffer.host_pointer().is_none(),
        Place::Tensor(tensor, _) => tensor.if_on_host().is_none(),
        _ => false,
    };
    !far(command.output().place()) && !command.inputs().iter().flatten().any(|view| far(view.place()))
}

/// Brings operands to host memory that are tensors on devices.
pub(crate) fn bring_to_host(inputs: &[Option<View<'_>>]) -> Result<()> {
    let tensors = inputs.iter().flatten().filter(|view| matches!(view.place(), Place::Tensor(..)));
    tensors.map(View::host).try_for_each(|first| first.map(|_| ()))
}

/// A GPU of a context, opened when it is first needed.
pub(crate) struct Slot {
    info: DeviceInfo,
    opened: OnceLock<Result<Arc<Opened>>>,
    cache: Option<std::path::PathBuf>,
    workers: Arc<dyn Workers>,
    profiler: ProfilerHandle,
}

impl Slot {
    /// One whose copies from and to the host `workers` help with.
    pub fn new(info: DeviceInfo, config: &Config, workers: Arc<dyn Workers>, profiler: ProfilerHandle) -> Slot {
        Slot { info, opened: OnceLock::new(), cache: config.cache_folder(), workers, profiler }
    }

    /// What it is: with its contract level once it was opened.
    pub fn info(&self) -> &DeviceInfo {
        match self.opened.get() {
            Some(Ok(opened)) => opened.device.info(),
            _ => &self.info,
        }
    }

    /// It, opened; the same error every time if it can't be.
    pub fn opened(&self) -> Result<&Arc<Opened>> {
        let open = || {
            let opened = self.open();
            match &opened {
                Ok(opened) => log!(Info, "devices", "opened {}", Described(opened.device.info())),
                Err(error) => log!(Warn, "devices", "{} can't be used: {error}", self.info.id),
            }
            opened
        };
        match self.opened.get_or_init(open) {
            Ok(opened) => Ok(opened),
            Err(error) => Err(error.clone()),
        }
    }

    /// It, if it was opened.
    pub fn if_opened(&self) -> Option<&Arc<Opened>> {
        self.opened.get()?.as_ref().ok()
    }

    fn open(&self) -> Result<Arc<Opened>> {
        let _environment = DefaultEnvironment::enter();
        let (_backend, number) = self.info.id.split_once(':').unwrap_or_default();
        let Ok(number) = number.parse() else { fail!(Internal, "'{}' has no number", self.info.id) };
        let workers = Some(self.workers.clone());
        #[cfg(feature = "cuda")]
        if _backend == "cuda" {
            let device = Arc::new(CudaDevice::open(number, &cuda::Opening::with(workers))?);
            return Opened::new(device, self.profiler.clone());
        }
        let opening = Opening::with(self.cache.clone(), workers);
        Opened::new(Arc::new(VulkanDevice::open(number, &opening)?), self.profiler.clone())
    }
}

/// Every GPU that `ADEAD_VISIBLE_DEVICES` leaves, by each of the backends that have it, CUDA's first, and of a backend the
/// preferred one first. `backend_unavailable` where there is neither CUDA nor Vulkan.
pub fn gpus(config: &Config) -> Result<Vec<DeviceInfo>> {
    // No driver is loaded for it.
    if config.visible_devices.as_deref() == Some("none") {
        return Ok(Vec::new());
    }
    let _environment = DefaultEnvironment::enter();
    let (by_cuda, by_vulkan) = (by_cuda(), vulkan::enumerate());
    for list in [&by_cuda, &by_vulkan] {
        match list {
            Ok(list) => list.iter().for_each(|info| log!(Info, "devices", "found {}", Described(info))),
            Err(error) => log!(Info, "devices", "{}", error.message()),
        }
    }
    if let (Err(cuda), Err(vulkan)) = (&by_cuda, &by_vulkan) {
        fail!(BackendUnavailable, "{}; {}", cuda.message(), vulkan.message());
    }
    let mut all = by_cuda.unwrap_or_default();
    all.extend(by_vulkan.unwrap_or_default());
    if let Some(visible) = &config.visible_devices {
        all.retain(|info| names_of(visible).any(|name| means(name, info)));
    }
    Ok(all)
}

/// The names of a list.
fn names_of(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim_ascii)
}

/// The names in `ADEAD_VISIBLE_DEVICES` that mean no GPU of this machine, `none` aside: they are likely mistyped.
pub fn unknown_visible(config: &Config) -> Vec<String> {
    let Some(visible) = config.visible_devices.as_deref().filter(|&visible| visible != "none") else {
        return Vec::new();
    };
    let all = gpus(&Config { visible_devices: None, ..Config::default() }).unwrap_or_default();
    let unknown = names_of(visible).filter(|name| !all.iter().any(|info| means(name, info)));
    unknown.map(String::from).collect()
}

/// A device as a message describes it.
pub(crate) struct Described<'a>(pub &'a DeviceInfo);

impl fmt::Display for Described<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DeviceInfo { id, name, arch, units, memory, driver, contract, .. } = self.0;
        write!(f, "{id}: {name}, {arch}, {units} units, {memory} bytes of memory, {} contract", contract.name())?;
        if driver.is_empty() { Ok(()) } else { write!(f, ", driver {driver}") }
    }
}

/// What CUDA's driver lists.
#[cfg(feature = "cuda")]
fn by_cuda() -> Result<Vec<DeviceInfo>> {
    cuda::enumerate()
}

/// Nothing, and why.
#[cfg(not(feature = "cuda"))]
fn by_cuda() -> Result<Vec<DeviceInfo>> {
    fail!(
        BackendUnavailable,
        "this build of adead has no CUDA: build it without ADEAD_MINIMAL (cargo: with the feature cuda)"
    )
}

/// The same GPU through another backend, by its UUID: `vulkan:0` of a device that is also `cuda:0`.
pub(crate) fn same_through(backend: &str, info: &DeviceInfo) -> Option<String> {
    let all = gpus(&Config::load().ok()?).ok()?;
    let uuid = Some(info.uuid?);
    all.into_iter().find(|other| other.uuid == uuid && other.id.starts_with(backend)).map(|other| other.id)
}

/// What a context takes for a device's name.
pub(crate) struct Choice {
    /// Whether the CPU is among its devices.
    pub cpu: bool,
    pub gpus: Vec<DeviceInfo>,
    /// Whether large operations are divided among them.
    pub hybrid: bool,
    pub named: Named,
}

/// How the devices of a choice are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Named {
    /// As many as can be used, when they are first needed.
    Chosen,
    /// As many as can be used, which is known at once.
    Usable,
    /// Each of them.
    Each,
}

/// The devices for `auto`, `hybrid`, a device's name, or names with commas between them.
pub(crate) fn choose(device: &str, config: &Config) -> Result<Choice> {
    match device {
        "cpu" => return Ok(Choice { cpu: true, gpus: Vec::new(), hybrid: false, named: Named::Each }),
        "auto" => {
            let gpus = usual(config);
            // As the hardware report recommends.
            let mode = Mode::for_gpu_memory(gpus.iter().map(|info| info.memory).max());
            let gpus = if mode == Mode::Cpu { Vec::new() } else { gpus };
            return Ok(Choice { cpu: true, gpus, hybrid: mode == Mode::Hybrid, named: Named::Chosen });
        }
        "hybrid" => return Ok(Choice { cpu: true, gpus: usual(config), hybrid: true, named: Named::Usable }),
        _ => {}
    }
    let all = gpus(config).unwrap_or_default();
    // A GPU's own name may have a comma.
    if device.contains(',') && !all.iter().any(|info| means(device, info)) {
        return several(device, config, &all);
    }
    Ok(Choice { cpu: true, gpus: vec![find(device, config, &all)?], hybrid: false, named: Named::Each })
}

/// The GPUs that are taken unasked: all but programs, each once.
fn usual(config: &Config) -> Vec<DeviceInfo> {
    if config.use_gpu == Some(false) {
        return Vec::new();
    }
    let mut all = gpus(config).unwrap_or_default();
    all.retain(|info| info.kind != DeviceKind::Software);
    // What CUDA has too is taken through CUDA.
    let known: Vec<_> = all.iter().filter(|info| info.id.starts_with("cuda:")).filter_map(|info| info.uuid).collect();
    all.retain(|info| info.id.starts_with("cuda:") || info.uuid.is_none_or(|uuid| !known.contains(&uuid)));
    all
}

/// The devices of a list.
fn several(list: &str, config: &Config, all: &[DeviceInfo]) -> Result<Choice> {
    let mut choice = Choice { cpu: false, gpus: Vec::new(), hybrid: true, named: Named::Each };
    for name in list.split(',').map(str::trim_ascii) {
        match name {
            "" => fail!(InvalidArgument, "'{list}': there is no name before or behind a comma"),
            "auto" | "hybrid" => fail!(InvalidArgument, "'{list}': '{name}' chooses devices; a list names them"),
            "cpu" if choice.cpu => fail!(InvalidArgument, "'{list}': 'cpu' is there twice"),
            "cpu" => choice.cpu = true,
            _ => {
                let info = find(name, config, all)?;
                let same =
                    |other: &&DeviceInfo| other.id == info.id || (info.uuid.is_some() && other.uuid == info.uuid);
                if let Some(other) = choice.gpus.iter().find(same) {
                    fail!(InvalidArgument, "'{list}': '{name}' is the same GPU as {}", other.id);
                }
                choice.gpus.push(info);
            }
        }
    }
    Ok(choice)
}

/// The GPU of a name, or why there is none.
fn find(device: &str, config: &Config, all: &[DeviceInfo]) -> Result<DeviceInfo> {
    let backend = device.split(':').next().unwrap_or_default();
    let ids = || match all.iter().map(|info| format!("{} ({})", info.id, info.name)).collect::<Vec<_>>() {
        none if none.is_empty() => match &config.visible_devices {
            Some(visible) => format!("no GPU that ADEAD_VISIBLE_DEVICES ('{visible}') leaves"),
            None => "no GPU".into(),
        },
        some => some.join(", "),
    };
    let found = match device {
        // The hardware report's word for the best one: a program that plays a GPU only where there is no other.
        "gpu" => all.iter().find(|info| info.kind != DeviceKind::Software).or(all.first()),
        _ => all.iter().find(|info| means(device, info)),
    };
    match found {
        Some(info) => Ok(info.clone()),
        None if device == "gpu" => {
            let listed = if config.visible_devices.is_some() { Ok(Vec::new()) } else { gpus(config) };
            let why = listed.err().map(|error| format!(": {}", error.message())).unwrap_or_default();
            fail!(BackendUnavailable, "there is no 'gpu' on this machine{why}; it has {}", ids())
        }
        None if matches!(backend, "cuda" | "vulkan") => {
            // Nothing is loaded to say why where it was left out.
            let listed = match backend {
                _ if config.visible_devices.is_some() => Ok(Vec::new()),
                "cuda" => by_cuda(),
                _ => vulkan::enumerate(),
            };
            let why = listed.err().map(|error| format!(": {}", error.message())).unwrap_or_default();
            fail!(BackendUnavailable, "there is no '{device}' on this machine{why}; it has {}", ids())
        }
        None => fail!(
            InvalidArgument,
            "no device '{device}': it must be 'auto', 'cpu', 'gpu', 'hybrid', 'cuda', 'vulkan:0', a part of a GPU's name or its UUID, \
             or several with commas between them; this machine has {}",
            ids()
        ),
    }
}

/// Whether a name means a GPU: by backend, number, UUID or a part of its own name, in any case.
#[inline(never)]
pub(crate) fn means(name: &str, info: &DeviceInfo) -> bool {
    let (backend, number) = info.id.split_once(':').unwrap_or((&info.id, ""));
    if name == backend || name == number || name == info.id {
        return true;
    }
    // A comma, which is in a software GPU's name, means none.
    let any = |is: fn(&u8) -> bool| name.as_bytes().iter().any(is);
    if name.contains(':') || !any(u8::is_ascii_alphanumeric) || !any(|byte| !byte.is_ascii_digit()) {
        return false;
    }
    let uuid: String = info.uuid.iter().flatten().map(|byte| format!("{byte:02x}")).collect();
    let plain = name.to_ascii_lowercase();
    let hex: String = plain.chars().filter(|&c| c != '-').collect();
    hex == uuid || info.name.to_ascii_lowercase().contains(&plain)
}

/// An error that says why no GPU can be used.
pub(crate) fn no_gpu(why: &str) -> Error {
    Error::new(Status::BackendUnavailable, format!("there is no GPU to use: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hal::ContractLevel;

    fn info(id: &str, name: &str, uuid: u8) -> DeviceInfo {
        DeviceInfo {
            id: id.into(),
            name: name.into(),
            contract: ContractLevel::Native,
            arch: "vulkan 1.3".into(),
            units: 1,
            memory: 1 << 30,
            kind: DeviceKind::Discrete,
            vendor: "NVIDIA".into(),
            driver: String::new(),
            uuid: Some([uuid; 16]),
            bus: None,
        }
    }

    #[test]
    fn names_mean_devices() {
        let gpu = info("vulkan:1", "NVIDIA GeForce RTX 3060", 0xab);
        for name in [
            "vulkan",
            "vulkan:1",
            "1",
            "GeForce",
            "rtx 3060",
            "abababab-abab-abab-abab-abababababab",
            "ABABABABABABABABABABABABABABABAB",
        ] {
            assert!(means(name, &gpu), "{name}");
        }
        for name in ["", "0", ",", ", ", "vulkan:0", "vulkan:11", "3060", "cuda", "abab", "radeon", "none"] {
            assert!(!means(name, &gpu), "{name}");
        }
    }

    #[test]
    fn the_gpu_is_the_first_that_is_no_program() {
        let mut all = [info("vulkan:0", "llvmpipe", 1), info("vulkan:1", "Radeon", 2)];
        all[0].kind = DeviceKind::Software;
        let config = Config::default();
        assert_eq!(find("gpu", &config, &all).unwrap().id, "vulkan:1");
        assert_eq!(find("gpu", &config, &all[..1]).unwrap().id, "vulkan:0");
        // Every mode that the hardware report recommends is a device's name.
        let known =
            |mode: Mode| choose(mode.name(), &config).err().is_none_or(|e| e.status() != Status::InvalidArgument);
        assert!([Mode::Cpu, Mode::Gpu, Mode::Hybrid].into_iter().all(known));
    }

    #[test]
    fn what_is_not_there_is_named() {
        let config = Config::default();
        assert!(choose("cpu", &config).unwrap().gpus.is_empty());
        let refused = |name| choose(name, &config).err().map(|error| error.status());
        assert_eq!(refused("cuda:99"), Some(Status::BackendUnavailable));
        assert_eq!(refused("vulkan:99"), Some(Status::BackendUnavailable));
        let hidden = Config { visible_devices: Some("none".into()), ..Config::default() };
        assert_eq!(choose("gpu", &hidden).err().map(|error| error.status()), Some(Status::BackendUnavailable));
        assert_eq!(refused("quantum"), Some(Status::InvalidArgument));
        assert_eq!(refused("cpu,vulkan:99"), Some(Status::BackendUnavailable));
    }
}
