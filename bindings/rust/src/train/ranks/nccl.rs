//! Ranks that exchange tensors from GPU to GPU through NCCL. NCCL only moves bytes; adead does every addition.

use super::{Exchange, Tcp, Transport, Under, tell};
use adead_core::{Context, DType, Error, Meta, Result, Shape, Status, Tensor};
use libloading::Library;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

/// Ranks over [`Tcp`] that exchange tensors through NCCL, if each rank has its own NVIDIA GPU and finds NCCL: the file that
/// `ADEAD_NCCL` names, or else `libnccl.so.2`. Otherwise tensors go over TCP too.
pub struct Nccl {
    tcp: Tcp,
    own: Option<Joined>,
}

/// What tensors are exchanged with.
struct Joined {
    communicator: Communicator,
    context: Context,
    device: String,
}

impl Nccl {
    /// Makes the transport from connected ranks.
    pub fn over(tcp: Tcp) -> Nccl {
        Nccl { tcp, own: None }
    }

    /// Begins to exchange tensors that are on the GPU.
    fn begin_on_device(
        &self,
        parts: &[Vec<Tensor>],
        dtype: DType,
        expected: &[Vec<usize>],
        own: &mut Joined,
    ) -> Result<Exchange> {
        self.tcp.usable()?;
        let Joined { communicator, context, device } = own;
        let other = |&rank: &usize| rank != self.tcp.rank();
        let sent: Vec<(usize, &Tensor)> =
            (0..parts.len()).filter(other).flat_map(|to| parts[to].iter().map(move |tensor| (to, tensor))).collect();
        let received: Vec<(usize, usize)> =
            (0..expected.len()).filter(other).flat_map(|from| expected[from].iter().map(move |&n| (from, n))).collect();
        let inputs: Vec<&Tensor> = sent.iter().map(|(_, tensor)| *tensor).collect();
        let outputs = received.iter().map(|&(_, count)| Ok(Meta::new(dtype, Shape::new(&[count])?)));
        let outputs = outputs.collect::<Result<Vec<_>>>()?;
        let mut give = |from: &[u64], to: &[u64]| {
            let sends = sent.iter().zip(from).map(|((rank, tensor), &at)| (*rank, at, tensor.byte_len()));
            let receives = received.iter().zip(to).map(|((rank, count), &at)| (*rank, at, dtype.size() * count));
            let begun = communicator.exchange(&mut { sends }, &mut { receives });
            // NCCL gives its work to the stream in a thread of its own, and until then has no time for more.
            let given = begun.and_then(|()| communicator.wait(&self.tcp, &|| Ok(true)));
            if given.is_err() {
                communicator.give_up();
            }
            given
        };
        // SAFETY: every output is received as a whole, on the default stream. Nothing is under way after an error.
        let writing = unsafe { context.lend(device, &inputs, &outputs, &mut give) }?;
        Ok(Exchange(Under::Gpu(writing, received.into_iter().map(|(from, _)| from).collect())))
    }

    /// What a rank says of its GPU: the version of its NCCL and the GPU's number, or why it has none of them.
    fn offer(context: &Context, device: &str) -> std::result::Result<String, String> {
        let info = context.devices().into_iter().find(|info| info.id == device);
        let Some(uuid) = info.filter(|_| device.starts_with("cuda:")).and_then(|info| info.uuid) else {
            return Err(format!("it computes on {device}"));
        };
        let api = Api::get().map_err(ToString::to_string)?;
        let uuid: String = uuid.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(format!("{} {uuid}", api.version))
    }
}

impl Transport for Nccl {
    fn rank(&self) -> usize {
        self.tcp.rank()
    }

    fn size(&self) -> usize {
        self.tcp.size()
    }

    fn exchange(&mut self, parts: &[Vec<&[u8]>]) -> Result<Vec<Vec<u8>>> {
        self.tcp.exchange(parts)
    }

    fn name(&self) -> String {
        match (&self.own, Api::get()) {
            (Some(_), Ok(api)) => {
                let (major, minor, patch) = (api.version / 10_000, api.version / 100 % 100, api.version % 100);
                format!("NCCL {major}.{minor}.{patch}")
            }
            _ => self.tcp.name(),
        }
    }

    fn attach(&mut self, context: &Context, device: &str) -> Result<()> {
        self.own = None;
        let own = match Nccl::offer(context, device) {
            Ok(text) => text,
            Err(why) => format!("- {why}"),
        };
        let all: Vec<String> =
            tell(&mut self.tcp, own.as_bytes())?.iter().map(|text| String::from_utf8_lossy(text).into()).collect();
        if let Some((rank, why)) = refusal(&all) {
            #[cfg(feature = "log")]
            ::log::info!(target: "adead::ranks", "gradients go over TCP, not NCCL: rank {rank}: {why}");
            let _ = (rank, why);
            return Ok(());
        }
        let api = Api::get().map_err(Clone::clone)?;
        let first = if self.rank() == 0 { api.unique_id() } else { Ok(Id([0; ID])) };
        // A rank that has no id tells the others by an empty one, so that none of them waits.
        let id = first.as_ref().map_or(&[][..], |id| &id.0);
        let told = tell(&mut self.tcp, id)?;
        first?;
        let Ok(id) = <[u8; ID]>::try_from(&told[0][..]) else {
            return lost("rank 0 could not begin with NCCL".into());
        };
        let (rank, size) = (self.rank(), self.size());
        let mut made = None;
        let mut begin = |_: &[u64], _: &[u64]| {
            let communicator = Communicator::begin(api, Id(id), rank, size)?;
            communicator.wait(&self.tcp, &|| Ok(true))?;
            made = Some(communicator);
            Ok(())
        };
        // SAFETY: there are no tensors.
        let begun = unsafe { context.lend(device, &[], &[], &mut begin) };
        if let Err(error) = begun {
            self.tcp.leave(&error);
            return Err(error);
        }
        self.own =
            made.map(|communicator| Joined { communicator, context: context.clone(), device: device.to_owned() });
        Ok(())
    }

    fn begin(&mut self, parts: Vec<Vec<Tensor>>, dtype: DType, expected: Vec<Vec<usize>>) -> Result<Exchange> {
        let Some(mut own) = self.own.take() else { return self.tcp.begin(parts, dtype, expected) };
        let begun = self.begin_on_device(&parts, dtype, &expected, &mut own);
        match &begun {
            Ok(_) => self.own = Some(own),
            Err(error) => self.tcp.leave(error),
        }
        begun
    }

    fn end(&mut self, exchange: Exchange) -> Result<Vec<Vec<Tensor>>> {
        let Exchange(Under::Gpu(writing, ranks)) = exchange else { return self.tcp.end(exchange) };
        self.tcp.usable()?;
        let Some(own) = self.own.take() else { return lost("the exchange began with another transport".into()) };
        // Without its communicator, which an error drops, the work ends.
        let waited = own.communicator.wait(&self.tcp, &|| writing.is_done());
        match waited.and_then(|()| writing.finish()) {
            Ok(found) => {
                self.own = Some(own);
                let mut all: Vec<Vec<Tensor>> = (0..self.size()).map(|_| Vec::new()).collect();
                ranks.into_iter().zip(found).for_each(|(from, tensor)| all[from].push(tensor));
                Ok(all)
            }
            Err(error) => {
                self.tcp.leave(&error);
                Err(error)
            }
        }
    }

    fn leave(&mut self, error: &Error) {
        self.own = None;
        self.tcp.leave(error);
    }
}

fn lost<T>(text: String) -> Result<T> {
    Err(Error::new(Status::Io, text))
}

/// The first rank that can't use NCCL with the others, from what all of them said, and why.
fn refusal(all: &[String]) -> Option<(usize, String)> {
    for (rank, text) in all.iter().enumerate() {
        if let Some(why) = text.strip_prefix("- ") {
            return Some((rank, why.to_owned()));
        }
        if let Some(other) = all[..rank].iter().position(|other| other == text) {
            return Some((rank, format!("it computes on the same GPU as rank {other}")));
        }
        let version = |text: &String| text.split(' ').next().map(str::to_owned);
        if let (Some(own), Some(first)) = (version(text), version(&all[0]))
            && own != first
        {
            return Some((rank, format!("its NCCL has the version {own}, and that of rank 0 {first}")));
        }
    }
    None
}

/// Bytes of the id of a communicator.
const ID: usize = 128;

#[derive(Clone, Copy)]
#[repr(C)]
struct Id([u8; ID]);

/// NCCL's settings of a communicator, of which it knows the first ones by their size.
#[repr(C)]
struct Settings {
    size: usize,
    magic: u32,
    version: u32,
    blocking: c_int,
    /// The size of clusters and the least and greatest number of blocks: `c_int::MIN` for NCCL's own.
    blocks: [c_int; 3],
    network: *const c_char,
    split_share: c_int,
}

type Handle = *mut c_void;

/// The functions of NCCL.
struct Api {
    version: c_int,
    error_text: unsafe extern "C" fn(c_int) -> *const c_char,
    unique_id: unsafe extern "C" fn(*mut Id) -> c_int,
    begin: unsafe extern "C" fn(*mut Handle, c_int, Id, c_int, *mut Settings) -> c_int,
    state: unsafe extern "C" fn(Handle, *mut c_int) -> c_int,
    group_start: unsafe extern "C" fn() -> c_int,
    group_end: unsafe extern "C" fn() -> c_int,
    send: unsafe extern "C" fn(*const c_void, usize, c_int, c_int, Handle, Handle) -> c_int,
    receive: unsafe extern "C" fn(*mut c_void, usize, c_int, c_int, Handle, Handle) -> c_int,
    abort: unsafe extern "C" fn(Handle) -> c_int,
}

// What NCCL's functions return.
const SUCCESS: c_int = 0;
const IN_PROGRESS: c_int = 7;
/// NCCL's number of the type of bytes.
const BYTES: c_int = 0;

impl Api {
    /// Returns NCCL, loaded once.
    fn get() -> std::result::Result<&'static Api, &'static Error> {
        static API: OnceLock<Result<Api>> = OnceLock::new();
        API.get_or_init(Api::load).as_ref()
    }

    fn load() -> Result<Api> {
        let name = std::env::var("ADEAD_NCCL").unwrap_or_else(|_| "libnccl.so.2".into());
        let unavailable = |error: libloading::Error| {
            Error::new(Status::BackendUnavailable, format!("no NCCL ({error}); ADEAD_NCCL may name its file"))
        };
        // SAFETY: the libraries' initialisers have no conditions. The functions have the types of nccl.h from 2.18 on.
        // The library stays loaded, because it is never dropped.
        unsafe {
            let nccl: &'static Library = Box::leak(Box::new(Library::new(&name).map_err(unavailable)?));
            macro_rules! function {
                ($name:literal) => {
                    *nccl.get($name).map_err(unavailable)?
                };
            }
            let version: unsafe extern "C" fn(*mut c_int) -> c_int = function!(b"ncclGetVersion");
            let mut api = Api {
                version: 0,
                error_text: function!(b"ncclGetErrorString"),
                unique_id: function!(b"ncclGetUniqueId"),
                begin: function!(b"ncclCommInitRankConfig"),
                state: function!(b"ncclCommGetAsyncError"),
                group_start: function!(b"ncclGroupStart"),
                group_end: function!(b"ncclGroupEnd"),
                send: function!(b"ncclSend"),
                receive: function!(b"ncclRecv"),
                abort: function!(b"ncclCommAbort"),
            };
            let code = version(&mut api.version);
            api.check(code, "asking for the version")?;
            if api.version < 21_800 {
                let text = format!("{name} has the version {}; adead uses NCCL from 2.18 on", api.version);
                return Err(Error::new(Status::BackendUnavailable, text));
            }
            Ok(api)
        }
    }

    /// Returns an error unless a call succeeded or its work is under way.
    fn check(&self, code: c_int, what: &str) -> Result<()> {
        if code == SUCCESS || code == IN_PROGRESS {
            return Ok(());
        }
        // SAFETY: NCCL returns a text that stays, or NULL, for any code.
        let text = unsafe { (self.error_text)(code) };
        let text = if text.is_null() {
            format!("error {code}")
        } else {
            // SAFETY: it is not NULL, and ends with NUL.
            unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
        };
        lost(format!("NCCL, {what}: {text}"))
    }

    fn unique_id(&self) -> Result<Id> {
        let mut id = Id([0; ID]);
        // SAFETY: NCCL writes an id.
        self.check(unsafe { (self.unique_id)(&mut id) }, "making an id").map(|()| id)
    }
}

/// A rank's end of NCCL's connections.
struct Communicator {
    api: &'static Api,
    handle: Handle,
}

// SAFETY: NCCL's functions may be called from any thread, and one thread at a time has the communicator.
unsafe impl Send for Communicator {}

impl Communicator {
    /// Begins to connect with the other ranks, which do the same with the id. The GPU's context must be current.
    fn begin(api: &'static Api, id: Id, rank: usize, size: usize) -> Result<Communicator> {
        let mut settings = Settings {
            size: size_of::<Settings>(),
            magic: 0xcafe_beef,
            version: 21_800,
            blocking: 0,
            blocks: [c_int::MIN; 3],
            network: ptr::null(),
            split_share: c_int::MIN,
        };
        let mut communicator = Communicator { api, handle: ptr::null_mut() };
        // SAFETY: the settings have the form of nccl.h, and the pointers are valid during the call.
        let code = unsafe { (api.begin)(&mut communicator.handle, size as c_int, id, rank as c_int, &mut settings) };
        api.check(code, "connecting the ranks").map(|()| communicator)
    }

    /// Begins to send and receive bytes: rank, address, count.
    fn exchange(
        &self,
        sends: &mut dyn Iterator<Item = (usize, u64, usize)>,
        receives: &mut dyn Iterator<Item = (usize, u64, usize)>,
    ) -> Result<()> {
        let (api, default_stream) = (self.api, ptr::null_mut());
        // SAFETY: the addresses are those of tensors that `on_device` holds until the exchange has ended.
        unsafe {
            api.check((api.group_start)(), "beginning an exchange")?;
            let mut begin = || {
                for (rank, address, bytes) in &mut *sends {
                    let from = ptr::with_exposed_provenance(address as usize);
                    let code = (api.send)(from, bytes, BYTES, rank as c_int, self.handle, default_stream);
                    api.check(code, "sending")?;
                }
                for (rank, address, bytes) in &mut *receives {
                    let to = ptr::with_exposed_provenance_mut(address as usize);
                    let code = (api.receive)(to, bytes, BYTES, rank as c_int, self.handle, default_stream);
                    api.check(code, "receiving")?;
                }
                Ok(())
            };
            let begun = begin();
            // After an error too: a group that stays open would take in this thread's later calls.
            let ended = api.check((api.group_end)(), "ending an exchange");
            begun.and(ended)
        }
    }

    /// Ends the connections, and what is under way with them.
    fn give_up(&mut self) {
        let handle = std::mem::replace(&mut self.handle, ptr::null_mut());
        if !handle.is_null() {
            // SAFETY: the communicator is alive, and nothing uses it after this.
            unsafe { (self.api.abort)(handle) };
        }
    }

    /// Waits until NCCL has begun what it was told, and until that is done.
    fn wait(&self, tcp: &Tcp, done: &dyn Fn() -> Result<bool>) -> Result<()> {
        /// How long it looks all the time, and then how often.
        const BUSY: Duration = Duration::from_millis(2);
        const PAUSE: Duration = Duration::from_micros(100);
        /// What a rank sent before it left may still be on its way for so long.
        const REST: Duration = Duration::from_secs(1);
        let (begin, mut looked) = (Instant::now(), Instant::now());
        let mut left: Option<(Error, Instant)> = None;
        loop {
            let mut state = SUCCESS;
            // SAFETY: the communicator is alive.
            self.api.check(unsafe { (self.api.state)(self.handle, &mut state) }, "asking for the state")?;
            self.api.check(state, "moving bytes")?;
            if state == SUCCESS && done()? {
                return Ok(());
            }
            if begin.elapsed() > BUSY {
                if let Some((error, since)) = &left
                    && since.elapsed() > REST
                {
                    return Err(error.clone());
                }
                if left.is_none() && looked.elapsed() > 100 * PAUSE {
                    left = tcp.look().err().map(|error| (error, Instant::now()));
                    looked = Instant::now();
                }
                if begin.elapsed() > tcp.patience() {
                    return lost(format!("a rank did not answer NCCL in {} s", tcp.patience().as_secs_f64()));
                }
                thread::sleep(PAUSE);
            }
        }
    }
}

impl Drop for Communicator {
    fn drop(&mut self) {
        self.give_up();
    }
}
