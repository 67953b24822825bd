//! The fake driver's functions.

use super::calls::{INVALID_HANDLE, call, contains, handle, id, image, put_text};
use super::work::{Item, KERNELS, Work};
use super::{Block, CONTEXT, CONTEXTS, Event, Module, State, Stream, take};
use crate::hal::cuda::api::{Api, Handle, LaunchConfig, attribute, code};
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr::null;
use std::slice;

macro_rules! functions {
    ($($name:ident($state:ident $(, $argument:ident: $kind:ty)*) $body:block)*) => {
        $(unsafe extern "system" fn $name($($argument: $kind),*) -> c_int {
            call(stringify!($name), |$state| {
                // SAFETY: the caller passes what cuda.h requires.
                #[allow(unused_unsafe)]
                unsafe { $body }
                #[allow(unreachable_code)]
                Ok(())
            })
        })*

        /// All functions of the fake driver.
        pub const TABLE: Api = Api {
            $($name,)*
            launch_with: Some(launch_with),
            function_parameter: Some(function_parameter),
            module_function_count: Some(module_function_count),
            module_functions: Some(module_functions),
            function_name: Some(function_name),
        };
    };
}

/// Enqueues a kernel.
///
/// # Safety
/// `given` or `extra` must be parameters as cuda.h describes them.
unsafe fn start(
    s: &mut State,
    function: Handle,
    grid: [c_uint; 3],
    block: [c_uint; 3],
    stream: Handle,
    [given, extra]: [*mut *mut c_void; 2],
) -> Result<(), i32> {
    let (module, name) = s.function(function)?;
    let layout = KERNELS.iter().find(|kernel| kernel.0 == name).map_or(&[][..], |kernel| kernel.1);
    let bytes = layout.last().map_or(0, |&(at, size)| at + size);
    let threads = grid.iter().chain(&block).map(|&n| u64::from(n)).product();
    let of_block = block.iter().map(|&n| u64::from(n)).product::<u64>();
    let too_many = of_block > 1024 || grid[1] > 65_535 || grid[2] > 65_535;
    if threads == 0 || too_many || !given.is_null() || extra.is_null() != (bytes == 0) {
        return Err(code::INVALID_VALUE);
    }
    let mut parameters = Vec::new();
    if bytes > 0 {
        // SAFETY: the caller passes five pointers, of which the fourth is to a size and the second to as many bytes.
        let (extra, size) = unsafe {
            let extra = slice::from_raw_parts(extra, 5);
            (extra, extra[3].cast::<usize>().read())
        };
        if (extra[0].addr(), extra[2].addr(), extra[4].addr()) != (1, 2, 0) || size != bytes {
            return Err(code::INVALID_VALUE);
        }
        // SAFETY: as above.
        parameters.extend_from_slice(unsafe { slice::from_raw_parts(extra[1].cast::<u8>(), size) });
    }
    s.enqueue(stream, Work::Kernel { module, name, parameters, threads })?;
    Ok(())
}

functions! {
    init(_s, _flags: c_uint) {}
    driver_version(_s, out: *mut c_int) { out.write(12_040); }
    error_name(_s, result: c_int, out: *mut *const c_char) {
        let name = match result {
            2 => c"CUDA_ERROR_OUT_OF_MEMORY",
            100 => c"CUDA_ERROR_NO_DEVICE",
            218 => c"CUDA_ERROR_INVALID_PTX",
            700 => c"CUDA_ERROR_ILLEGAL_ADDRESS",
            _ => return Err(code::INVALID_VALUE),
        };
        out.write(name.as_ptr());
    }
    device_count(s, out: *mut c_int) { out.write(s.devices.len() as c_int); }
    device_get(s, out: *mut c_int, index: c_int) {
        if index as usize >= s.devices.len() {
            return Err(101);
        }
        out.write(index);
    }
    device_name(_s, out: *mut c_char, size: c_int, device: c_int) { put_text(&format!("Fake {device}"), out, size); }
    device_uuid(_s, out: *mut [u8; 16], device: c_int) { out.write([device as u8 + 1; 16]); }
    device_memory(s, out: *mut usize, device: c_int) { out.write(s.devices[device as usize].card.memory); }
    device_attribute(s, out: *mut c_int, what: c_int, device: c_int) {
        let card = &s.devices[device as usize].card;
        out.write(match what {
            attribute::MAX_THREADS | 2 | 3 => 1024,
            4 => 64,
            5 => i32::MAX,
            6 | 7 => 65_535,
            attribute::SHARED_MEMORY => 48 << 10,
            attribute::SHARED_MEMORY_OPTIN => card.shared_memory() - if card.capability < 80 { 0 } else { 1024 },
            attribute::SHARED_MEMORY_OF_UNIT => card.shared_memory(),
            attribute::MULTIPROCESSORS => 132,
            attribute::INTEGRATED => card.integrated.into(),
            attribute::MAJOR => card.capability / 10,
            attribute::MINOR => card.capability % 10,
            _ => return Err(code::INVALID_VALUE),
        });
    }
    device_bus(_s, out: *mut c_char, size: c_int, device: c_int) {
        put_text(&format!("0000:{:02X}:00.0", 0x3b + device), out, size);
    }
    context_retain(s, out: *mut Handle, device: c_int) {
        s.devices[device as usize].retained += 1;
        out.write(handle(CONTEXT * (device as usize + 1)));
    }
    context_release(s, device: c_int) {
        let device = device as usize;
        if s.devices[device].retained == 0 {
            return Err(201);
        }
        s.devices[device].retained -= 1;
        if s.devices[device].retained == 0 {
            s.end(device);
        }
    }
    context_current(_s, out: *mut Handle) {
        out.write(handle(CONTEXTS.with_borrow(|contexts| contexts.last().copied().unwrap_or(0))));
    }
    context_push(_s, context: Handle) { CONTEXTS.with_borrow_mut(|contexts| contexts.push(id(context))); }
    context_pop(_s, out: *mut Handle) {
        out.write(handle(CONTEXTS.with_borrow_mut(Vec::pop).ok_or(201)?));
    }
    memory_info(s, free: *mut usize, total: *mut usize) {
        let device = &s.devices[s.current()?];
        free.write(device.card.memory - device.used);
        total.write(device.card.memory);
    }
    memory_allocate(s, out: *mut u64, bytes: usize) {
        let current = s.current()?;
        let device = &mut s.devices[current];
        if bytes > device.card.memory - device.used {
            return Err(code::OUT_OF_MEMORY);
        }
        device.used += bytes;
        let address = take(bytes);
        s.blocks.insert(address, Block { device: current, bytes, host: false });
        out.write(address);
    }
    memory_free(s, address: u64) {
        s.current()?;
        match s.remove(address, false) { 0 => {} error => return Err(error) }
    }
    host_allocate(s, out: *mut *mut c_void, bytes: usize, _flags: c_uint) {
        let device = s.current()?;
        let address = take(bytes);
        s.blocks.insert(address, Block { device, bytes, host: true });
        out.write(std::ptr::with_exposed_provenance_mut(address as usize));
    }
    host_free(s, pointer: *mut c_void) {
        s.current()?;
        match s.remove(pointer.addr() as u64, true) { 0 => {} error => return Err(error) }
    }
    copy_to_device(s, to: u64, from: *const c_void, bytes: usize, stream: Handle) {
        s.copy((from.addr() as u64, true), (to, false), bytes, stream)?;
    }
    copy_to_host(s, to: *mut c_void, from: u64, bytes: usize, stream: Handle) {
        s.copy((from, false), (to.addr() as u64, true), bytes, stream)?;
    }
    copy_on_device(s, to: u64, from: u64, bytes: usize, stream: Handle) {
        s.copy((from, false), (to, false), bytes, stream)?;
    }
    context_peer(s, peer: Handle, flags: c_uint) {
        let (own, of) = (s.current()?, (id(peer) / CONTEXT).wrapping_sub(1));
        if flags != 0 || of == own || of >= s.devices.len() {
            return Err(code::INVALID_VALUE);
        }
    }
    copy_from_peer(s, to: u64, own: Handle, from: u64, peer: Handle, bytes: usize, stream: Handle) {
        let of = |context: Handle| (id(context) / CONTEXT).wrapping_sub(1);
        let lies_on = |address: u64, device| s.blocks.range(..=address).last().is_some_and(|(_, block)| block.device == device);
        if !lies_on(to, of(own)) || !lies_on(from, of(peer)) {
            return Err(code::INVALID_VALUE);
        }
        s.copy((from, false), (to, false), bytes, stream)?;
    }
    set_words(s, to: u64, word: c_uint, count: usize, stream: Handle) {
        if !s.holds(to, 4 * count as u64, false) {
            return Err(code::INVALID_VALUE);
        }
        s.enqueue(stream, Work::Set { to, word, count: count as u64 })?;
    }
    stream_create(s, out: *mut Handle, _flags: c_uint, priority: c_int) {
        s.priorities.push(priority);
        let (device, id) = (s.current()?, s.id());
        s.streams.insert(id, Stream { device, queue: Default::default(), captured: None, orphan: false });
        out.write(handle(id));
    }
    stream_destroy(s, stream: Handle) {
        let own = s.stream(stream)?;
        own.orphan = true;
        let (captures, idle) = (own.captured.is_some(), own.queue.is_empty());
        if captures {
            s.violation("a stream is destroyed while it captures".into());
        }
        if idle {
            s.streams.remove(&id(stream));
        }
    }
    stream_query(s, stream: Handle) {
        s.not_captured(stream)?;
        if !s.stream(stream)?.queue.is_empty() {
            s.step(id(stream));
            return Err(code::NOT_READY);
        }
    }
    stream_synchronize(s, stream: Handle) {
        // The default stream, 1, has no work in the fake driver.
        if id(stream) != 1 {
            s.not_captured(stream)?;
            s.drain(id(stream));
        }
    }
    stream_wait(s, stream: Handle, event: Handle, _flags: c_uint) {
        s.not_captured(stream)?;
        let time = s.event(event)?.recorded;
        s.stream(stream)?.queue.push_back(Item::Wait(id(event), time));
    }
    capture_begin(s, stream: Handle, _mode: c_int) {
        s.not_captured(stream)?;
        s.stream(stream)?.captured = Some(Vec::new());
    }
    capture_end(s, stream: Handle, out: *mut Handle) {
        let Some(captured) = s.stream(stream)?.captured.take() else { return Err(code::INVALID_VALUE) };
        let (device, id) = (s.current()?, s.id());
        s.graphs.insert(id, (device, captured));
        out.write(handle(id));
    }
    event_create(s, out: *mut Handle, flags: c_uint) {
        let (device, id) = (s.current()?, s.id());
        s.events.insert(id, Event { device, timed: flags & 2 == 0, ..Event::default() });
        out.write(handle(id));
    }
    event_destroy(s, event: Handle) {
        s.event(event)?;
        s.events.remove(&id(event));
    }
    event_record(s, event: Handle, stream: Handle) {
        s.not_captured(stream)?;
        let own = s.event(event)?;
        own.recorded += 1;
        let item = Item::Record(id(event), own.recorded);
        s.stream(stream)?.queue.push_back(item);
    }
    event_query(s, event: Handle) {
        s.event(event)?;
        if !s.reached(id(event)) {
            return Err(code::NOT_READY);
        }
    }
    event_synchronize(s, event: Handle) {
        s.event(event)?;
        while !s.reached(id(event)) {}
    }
    event_elapsed(s, out: *mut f32, from: Handle, to: Handle) {
        let times = [from, to].map(|event| s.event(event).map(|event| (event.timed && event.recorded > 0, event.time)));
        let ((true, from_time), (true, to_time)) = (times[0]?, times[1]?) else { return Err(INVALID_HANDLE) };
        for event in [from, to] {
            let time = s.event(event)?.recorded;
            if s.where_pending(id(event), time).is_some() {
                return Err(code::NOT_READY);
            }
        }
        out.write((to_time as f64 - from_time as f64) as f32 * 1e-6);
    }
    module_load(
        s, out: *mut Handle, module: *const c_void, count: c_uint, options: *mut c_int, values: *mut *mut c_void
    ) {
        let (device, bytes) = (s.current()?, image(module.cast()));
        let text = !bytes.starts_with(b"\x7fELF") && !bytes.starts_with(&[0x50, 0xed, 0x55, 0xba]);
        if contains(bytes, "sm_999") {
            return Err(code::NO_BINARY_FOR_GPU);
        }
        if contains(bytes, "refuse") {
            let options = slice::from_raw_parts(options, count as usize);
            let log = options.iter().position(|&option| option == 5).map(|i| values.add(i).read().cast::<c_char>());
            let size = options.iter().position(|&option| option == 6).map_or(0, |i| values.add(i).read().addr());
            if let Some(log) = log {
                put_text("ptxas: that is no instruction", log, size as c_int);
            }
            return Err(code::INVALID_PTX);
        }
        let has = |name: &str| contains(bytes, &if text { format!(".entry {name}") } else { name.to_string() });
        let names = KERNELS.iter().map(|kernel| kernel.0).filter(|name| has(name)).collect();
        let id = s.id();
        s.modules.insert(id, Module { device, names });
        out.write(handle(id));
    }
    module_unload(s, module: Handle) {
        s.current()?;
        if s.modules.remove(&id(module)).is_none() {
            return Err(INVALID_HANDLE);
        }
        s.functions.retain(|_, function| function.0 != id(module));
    }
    module_function(s, out: *mut Handle, module: Handle, name: *const c_char) {
        let names = &s.modules.get(&id(module)).ok_or(INVALID_HANDLE)?.names;
        let wanted = CStr::from_ptr(name).to_bytes();
        let name = *names.iter().find(|name| name.as_bytes() == wanted).ok_or(code::NOT_FOUND)?;
        let own = s.id();
        s.functions.insert(own, (id(module), name));
        out.write(handle(own));
    }
    function_attribute(s, out: *mut c_int, _what: c_int, function: Handle) {
        s.function(function)?;
        out.write(1024);
    }
    function_set(s, function: Handle, _what: c_int, _value: c_int) { s.function(function)?; }
    launch(
        s, function: Handle, x: c_uint, y: c_uint, z: c_uint, a: c_uint, b: c_uint, c: c_uint, _shared: c_uint,
        stream: Handle, given: *mut *mut c_void, extra: *mut *mut c_void
    ) {
        start(s, function, [x, y, z], [a, b, c], stream, [given, extra])?;
    }
    graph_instantiate(s, out: *mut Handle, graph: Handle, _flags: u64) {
        let graph = s.graphs.get(&id(graph)).cloned().ok_or(INVALID_HANDLE)?;
        let id = s.id();
        s.launchable.insert(id, graph);
        out.write(handle(id));
    }
    graph_launch(s, graph: Handle, stream: Handle) {
        s.not_captured(stream)?;
        let work = s.launchable.get(&id(graph)).map(|graph| graph.1.clone()).ok_or(INVALID_HANDLE)?;
        work.into_iter().try_for_each(|work| s.enqueue(stream, work))?;
    }
    graph_destroy(s, graph: Handle) { s.graphs.remove(&id(graph)).ok_or(INVALID_HANDLE)?; }
    graph_exec_destroy(s, graph: Handle) { s.launchable.remove(&id(graph)).ok_or(INVALID_HANDLE)?; }
}

unsafe extern "system" fn launch_with(
    config: *const LaunchConfig,
    function: Handle,
    given: *mut *mut c_void,
    extra: *mut *mut c_void,
) -> c_int {
    call("launch_with", |state| {
        // SAFETY: the caller passes what cuda.h requires.
        let LaunchConfig { grid, block, stream, attribute_count, .. } = unsafe { config.read() };
        if attribute_count != 1 {
            return Err(code::INVALID_VALUE);
        }
        // SAFETY: as above.
        unsafe { start(state, function, grid, block, stream, [given, extra]) }
    })
}

unsafe extern "system" fn function_parameter(
    function: Handle,
    index: usize,
    at: *mut usize,
    size: *mut usize,
) -> c_int {
    call("function_parameter", |state| {
        let name = state.function(function)?.1;
        let layout = KERNELS.iter().find(|kernel| kernel.0 == name).map_or(&[][..], |kernel| kernel.1);
        let place = layout.get(index).ok_or(code::INVALID_VALUE)?;
        // SAFETY: the caller passes room for two numbers.
        unsafe {
            at.write(place.0);
            size.write(place.1);
        }
        Ok(())
    })
}

unsafe extern "system" fn module_function_count(out: *mut c_uint, module: Handle) -> c_int {
    call("module_function_count", |state| {
        let count = state.modules.get(&id(module)).ok_or(INVALID_HANDLE)?.names.len();
        // SAFETY: the caller passes room for one number.
        unsafe { out.write(count as c_uint) };
        Ok(())
    })
}

unsafe extern "system" fn module_functions(out: *mut Handle, count: c_uint, module: Handle) -> c_int {
    call("module_functions", |state| {
        let names = state.modules.get(&id(module)).ok_or(INVALID_HANDLE)?.names.clone();
        for (i, name) in names.into_iter().take(count as usize).enumerate() {
            let own = state.id();
            state.functions.insert(own, (id(module), name));
            // SAFETY: the caller passes room for `count` handles.
            unsafe { out.add(i).write(handle(own)) };
        }
        Ok(())
    })
}

unsafe extern "system" fn function_name(out: *mut *const c_char, function: Handle) -> c_int {
    call("function_name", |state| {
        let text = match state.function(function)?.1 {
            "vecadd" => c"vecadd".as_ptr(),
            "bump" => c"bump".as_ptr(),
            "complain" => c"complain".as_ptr(),
            "crash" => c"crash".as_ptr(),
            _ => null(),
        };
        // SAFETY: the caller passes room for one pointer.
        unsafe { out.write(text) };
        Ok(())
    })
}
