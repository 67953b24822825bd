//! Which devices there are, which of them a name means, and what a context keeps of each.

use crate::command::{Command, Inputs, Place, View, ViewMut};
use crate::config::Config;
use crate::error::{Error, Result, Status, fail};
use crate::hal::cpu::DefaultEnvironment;
#[cfg(feature = "cuda")]
use crate::hal::cuda::{self, CudaDevice};
use crate::hal::vulkan::{self, Opening, VulkanDevice};
use crate::hal::{Buffer, Device, DeviceInfo, DeviceKind, Stream, Workers};
use crate::profile::{Activity, Profiler, Reason, Watch, What};
use std::slice;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// An opened device with the stream that a context's own calls go to.
pub(crate) struct Opened {
    pub device: Arc<dyn Device>,
    pub profiler: Arc<Profiler>,
    stream: Mutex<Box<dyn Stream>>,
}

impl Opened {
    pub fn new(device: Arc<dyn Device>, profiler: Arc<Profiler>) -> Result<Arc<Opened>> {
        let stream = Mutex::new(device.clone().stream()?);
        Ok(Arc::new(Opened { device, profiler, stream }))
    }

    /// Something with the stream, which is one thread's at a time. Drivers compute: they must not meet the host's floating-point modes
    /// and traps.
    pub fn with<R>(&self, work: impl FnOnce(&mut dyn Stream) -> Result<R>) -> Result<R> {
        let _environment = DefaultEnvironment::enter();
        work(&mut **self.stream.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// One piece of work for the stream, on a device that its operands chose, recorded where a profile is under way.
    pub fn watched(&self, what: &dyn Fn() -> What, work: impl FnOnce(&mut dyn Stream) -> Result<()>) -> Result<()> {
        self.with(|stream| {
            let mut watch = Watch::begin(self, 0, stream);
            work(stream)?;
            watch.step(stream, what);
            Ok(())
        })
    }

    /// Executes a command, which is here for that reason. Operands in host memory travel: then it returns when they are the
    /// caller's again, and with the output in host memory, when that is written.
    pub fn execute(&self, command: &mut Command<'_>, reason: Reason) -> Result<()> {
        let mut moved: [Option<Arc<dyn Buffer>>; 8] = Default::default();
        if command.inputs.len() > moved.len() {
            return self.execute_moved(command, reason, &mut vec![None; command.inputs.len()]);
        }
        self.execute_moved(command, reason, &mut moved)
    }

    fn execute_moved(
        &self,
        command: &mut Command<'_>,
        reason: Reason,
        moved: &mut [Option<Arc<dyn Buffer>>],
    ) -> Result<()> {
        self.with(|stream| {
            let mut watch = Watch::begin(self, 0, stream);
            let name = command.op.name();
            for (place, view) in moved.iter_mut().zip(command.inputs) {
                let Some(view) = view else { continue };
                if is_here(view.place()) {
                    continue;
                }
                let bytes = view.meta().bytes();
                let buffer = self.device.allocate_unset(bytes)?;
                // SAFETY: the view's maker vouched for that many initialised bytes while it is borrowed.
                stream.write(&*buffer, 0, unsafe { slice::from_raw_parts(view.host()?, bytes) })?;
                watch.step(stream, &|| What::bytes(Activity::Upload, bytes, name, reason));
                *place = Some(buffer);
            }
            let mut inputs = Inputs::new();
            for (buffer, view) in moved.iter().zip(command.inputs) {
                inputs.push(match (buffer, view) {
                    (Some(buffer), Some(view)) => Some(View::buffer(&**buffer, 0, view.meta())?),
                    (_, view) => *view,
                });
            }
            let meta = command.output.meta();
            if is_here(command.output.place()) {
                let output = command.output.reborrow();
                stream.submit(&mut [Command { op: command.op, attrs: command.attrs, inputs: &inputs, output }])?;
                watch.step(stream, &|| What::command(command, reason));
                return Ok(());
            }
            let result = self.device.allocate_unset(meta.bytes())?;
            let output = ViewMut::buffer(&*result, 0, meta)?;
            stream.submit(&mut [Command { op: command.op, attrs: command.attrs, inputs: &inputs, output }])?;
            watch.step(stream, &|| What::command(command, reason));
            // SAFETY: the view's maker vouched for that many bytes that nobody else touches.
            let into = unsafe { slice::from_raw_parts_mut(command.output.host()?, meta.bytes()) };
            stream.read(&*result, 0, into)?;
            watch.step(stream, &|| What::bytes(Activity::Download, meta.bytes(), name, reason));
            Ok(())
        })
    }
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
    far(command.output.place()).or_else(|| command.inputs.iter().flatten().find_map(|view| far(view.place())))
}

/// A GPU of a context, opened when it is first needed.
pub(crate) struct Slot {
    info: DeviceInfo,
    opened: OnceLock<Result<Arc<Opened>>>,
    cache: Option<std::path::PathBuf>,
    workers: Arc<dyn Workers>,
    profiler: Arc<Profiler>,
}

impl Slot {
    /// One whose copies from and to the host `workers` help with.
    pub fn new(info: DeviceInfo, config: &Config, workers: Arc<dyn Workers>, profiler: Arc<Profiler>) -> Slot {
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
        match self.opened.get_or_init(|| self.open()) {
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
    if let (Err(cuda), Err(vulkan)) = (&by_cuda, &by_vulkan) {
        fail!(BackendUnavailable, "{}; {}", cuda.message(), vulkan.message());
    }
    let mut all = by_cuda.unwrap_or_default();
    all.extend(by_vulkan.unwrap_or_default());
    if let Some(visible) = &config.visible_devices {
        let wanted: Vec<&str> = visible.split(',').map(str::trim_ascii).collect();
        all.retain(|info| wanted.iter().any(|name| means(name, info)));
    }
    Ok(all)
}

/// What CUDA's driver lists.
#[cfg(feature = "cuda")]
fn by_cuda() -> Result<Vec<DeviceInfo>> {
    cuda::enumerate()
}

/// Nothing, and why.
#[cfg(not(feature = "cuda"))]
fn by_cuda() -> Result<Vec<DeviceInfo>> {
    fail!(BackendUnavailable, "this build has no CUDA backend")
}

/// The same GPU through another backend, by its UUID: `vulkan:0` of a device that is also `cuda:0`.
pub(crate) fn same_through(backend: &str, info: &DeviceInfo) -> Option<String> {
    let all = gpus(&Config::load().ok()?).ok()?;
    let uuid = Some(info.uuid?);
    all.into_iter().find(|other| other.uuid == uuid && other.id.starts_with(backend)).map(|other| other.id)
}

/// The GPUs that a context takes for `device`: all but programs for `auto`, else the one that it names.
pub(crate) fn choose(device: &str, config: &Config) -> Result<Vec<DeviceInfo>> {
    if device == "cpu" || (device == "auto" && config.use_gpu == Some(false)) {
        return Ok(Vec::new());
    }
    if device == "auto" {
        let mut all = gpus(config).unwrap_or_default();
        all.retain(|info| info.kind != DeviceKind::Software);
        // What CUDA has too is taken through CUDA.
        let known: Vec<_> =
            all.iter().filter(|info| info.id.starts_with("cuda:")).filter_map(|info| info.uuid).collect();
        all.retain(|info| info.id.starts_with("cuda:") || info.uuid.is_none_or(|uuid| !known.contains(&uuid)));
        return Ok(all);
    }
    let backend = device.split(':').next().unwrap_or_default();
    if backend == "hybrid" {
        fail!(
            BackendUnavailable,
            "'{device}': this version has no hybrid backend; use 'auto', 'cuda', 'vulkan' or 'cpu'"
        );
    }
    let all = gpus(config).unwrap_or_default();
    let ids = || match all.iter().map(|info| format!("{} ({})", info.id, info.name)).collect::<Vec<_>>() {
        none if none.is_empty() => match &config.visible_devices {
            Some(visible) => format!("no GPU that ADEAD_VISIBLE_DEVICES ('{visible}') leaves"),
            None => "no GPU".into(),
        },
        some => some.join(", "),
    };
    match all.iter().find(|info| means(device, info)) {
        Some(info) => Ok(vec![info.clone()]),
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
            "no device '{device}': it must be 'auto', 'cpu', 'cuda', 'vulkan:0', or a part of a GPU's name or its UUID; \
             this machine has {}",
            ids()
        ),
    }
}

/// Whether a name means a GPU: by backend, number, UUID or a part of its own name, in any case.
fn means(name: &str, info: &DeviceInfo) -> bool {
    let (backend, number) = info.id.split_once(':').unwrap_or((&info.id, ""));
    if name == backend || name == number || name == info.id {
        return true;
    }
    if name.is_empty() || name.contains(':') || name.bytes().all(|byte| byte.is_ascii_digit()) {
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
        for name in ["", "0", "vulkan:0", "vulkan:11", "3060", "cuda", "abab", "radeon", "none"] {
            assert!(!means(name, &gpu), "{name}");
        }
    }

    #[test]
    fn what_is_not_there_is_named() {
        let config = Config::default();
        assert!(choose("cpu", &config).unwrap().is_empty());
        let refused = |name| choose(name, &config).unwrap_err().status();
        assert_eq!(refused("cuda:99"), Status::BackendUnavailable);
        assert_eq!(refused("hybrid"), Status::BackendUnavailable);
        assert_eq!(refused("vulkan:99"), Status::BackendUnavailable);
        assert_eq!(refused("quantum"), Status::InvalidArgument);
    }
}
