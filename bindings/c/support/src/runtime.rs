//! Definitions for a library that contains its own Rust runtime.

/// Adds to a C library the definitions that its own Rust runtime needs. `$at_load` is a closure that runs when the library is
/// loaded.
///
/// Call it in the library's crate, whose build script must call `adead_c_link::shared_library`. It is a macro so that these items
/// are in the library's own object files. A linker that puts `libadead.a` into a program leaves out an object file that nothing
/// refers to.
#[macro_export]
macro_rules! runtime {
    ($at_load:expr) => {
        // No other code uses the Rust runtime in this library, so the library may set the panic hook. It does so at load time,
        // before anything can panic. A host written in Rust has a runtime and a hook of its own, which this leaves alone.
        #[used]
        #[cfg_attr(
            any(target_os = "linux", target_os = "android", target_os = "freebsd"),
            unsafe(link_section = ".init_array")
        )]
        #[cfg_attr(target_vendor = "apple", unsafe(link_section = "__DATA,__mod_init_func"))]
        #[cfg_attr(windows, unsafe(link_section = ".CRT$XCU"))]
        static AT_LOAD: extern "C" fn() = at_load;

        extern "C" fn at_load() {
            $crate::keep_panics_quiet();
            let at_load: fn() = $at_load;
            at_load();
        }

        /// The standard library begins a backtrace with this walk up the stack; here it ends at once. Without it, the linker leaves
        /// out the code that reads debug information and demangles symbols: 230 KB for backtraces that nobody sees, because panics
        /// here are quiet and become a status. The symbol is hidden: other unwinders in the process are untouched.
        #[cfg(without_backtraces)]
        #[unsafe(no_mangle)]
        pub extern "C" fn _Unwind_Backtrace(_: *const std::ffi::c_void, _: *mut std::ffi::c_void) -> i32 {
            const END_OF_STACK: i32 = 5;
            END_OF_STACK
        }

        #[cfg(without_backtraces)]
        std::arch::global_asm!(".hidden _Unwind_Backtrace");

        /// Defines the functions that Rust's runtime uses from the object file with LLVM's `_Unwind_Backtrace`. A linker that
        /// accepts no duplicate symbols must not need that file. Each function does the same as LLVM's.
        #[cfg(llvm_unwinder)]
        mod llvm_unwinder {
            use std::ffi::{c_int, c_void};

            unsafe extern "C" {
                fn _Unwind_GetIP(context: *mut c_void) -> usize;
            }

            /// # Safety
            /// The pointers are an unwinder's context, and where an int may be written.
            #[unsafe(no_mangle)]
            unsafe extern "C" fn _Unwind_GetIPInfo(context: *mut c_void, is_at_instruction: *mut c_int) -> usize {
                // SAFETY: the caller vouches for the pointers. Only a signal's frame is at an instruction, and adead has no
                // handler that a panic passes.
                unsafe {
                    is_at_instruction.write(0);
                    _Unwind_GetIP(context)
                }
            }

            /// Aborts: on ELF, no tables are relative to the text.
            #[unsafe(no_mangle)]
            extern "C" fn _Unwind_GetTextRelBase(_: *mut c_void) -> usize {
                std::process::abort()
            }

            /// Aborts: on ELF, no tables are relative to the data.
            #[unsafe(no_mangle)]
            extern "C" fn _Unwind_GetDataRelBase(_: *mut c_void) -> usize {
                std::process::abort()
            }

            std::arch::global_asm!(
                ".hidden _Unwind_GetIPInfo",
                ".hidden _Unwind_GetTextRelBase",
                ".hidden _Unwind_GetDataRelBase"
            );
        }
    };
}
