//! The text below the options in each command's help. Lines have at most 80 characters, so a terminal does not wrap the examples.

/// For `adead` without arguments.
pub const FIRST: &str = "\
Usage: adead COMMAND [OPTIONS]

Runs compute with the same bits on every device. Start here:

  adead doctor          check this machine, and read what would make it faster
  adead info            list the devices that adead finds
  adead verify          compare every device's results with the contract
  adead run PROGRAM     run a program, and get the hash of its result

  adead --help          all commands and options
  adead COMMAND --help  one command, with examples
";

/// For `adead` itself.
pub const EXIT_CODES: &str = "\
EXAMPLES
  adead doctor
  adead info
  adead run examples/programs/matmul_1024.hex \\
      --in 0x1000=rand:1 --in 0x2000=rand:2
  adead verify --all-isas
  adead dispatch examples/kernels/vecadd.spv --groups 4 --push 1000 \\
      --buffer 'f32[1000]:rand:1' --buffer 'f32[1000]:rand:2' \\
      --buffer 'f32[1000]:zeros'

EXIT CODES
  0    done
  1    the work was done, but its result is wrong: a failed verification,
       runs that differ, a problem that 'doctor' found
  2    the command line is wrong
  11…  10 + the status of an error: 11 invalid_argument, 12 shape_mismatch,
       13 dtype_mismatch, 14 out_of_memory, 15 backend_unavailable,
       16 device_lost, 17 invalid_kernel, 18 invalid_program, 19 unsupported,
       20 not_ready, 21 io, 22 internal
  130  SIGINT or SIGTERM ended it; unfinished files are gone
  141  the reader of the output has closed it";

/// For `adead run`.
pub const RUN_HELP: &str = "\
SOURCES
  FILE.npy     f32, f16, i32, i64 or u32; as many bytes as the slot,
               for .adead its dtype and shape
  rand:SEED:E  uniform in [-1, 1) · 2^E; E is 0 by default
  wild:SEED    any bit pattern, with special values often
  ids:SEED:N   integers in [0, N)
  fill:HEX     every element has these bits: fill:3f800000 is 1.0 in f32
  zeros        zeros
  (for a file of that name, write ./zeros)

EXAMPLES
  adead run examples/programs/matmul_1024.hex \\
      --in 0x1000=rand:1 --in 0x2000=rand:2
  adead run matmul.hex --in 0x1000=a.npy --in 0x2000=b.npy --out 0x3000=c.npy
  adead run model.adead --in x=x.npy --repeat 20 --json | jq .gflops
  adead asm step.asm -o - | adead run - --in x=rand:1";

/// For `adead asm`.
pub const ASM_HELP: &str = "\
EXAMPLES
  adead asm relu.asm -o relu.adead
  adead asm matmul.asm -o matmul.hex
  adead asm old.hex -o new.agpu
  adead asm - -o - --to hex < matmul.asm";

/// For `adead verify`.
pub const VERIFY_HELP: &str = "\
Prints 'FAIL ID: …' for each failure and a line for each device; exits with 1 if
anything failed.

EXAMPLES
  adead verify
  adead verify --all-isas --filter matmul/
  adead verify --cases tests/conformance/cases --threads 1
  adead verify --json | jq '.devices[] | {device, failed}'";

/// For `adead explain`.
pub const EXPLAIN_HELP: &str = "\
Estimates come from the cost model: figures that manufacturers document, or
this machine's after 'adead calibrate'. Nothing runs. The results of the program
are the same on every device.

EXAMPLES
  adead explain examples/programs/matmul_1024.hex
  adead explain model.adead --gpu integrated
  adead explain model.adead --json | jq '.findings[].reason'";

/// For `adead dispatch`.
pub const DISPATCH_HELP: &str = "\
CONTENTS
  FILE.npy             f32, f16, i32, i64 or u32
  zeros:SIZE           zeros: bytes, or with KiB, MiB, GiB, TiB; shown as u32
  f32[10,20]:SOURCE    of that dtype and shape, from a generator: zeros,
                       rand:SEED[:E], wild:SEED, ids:SEED:N, fill:HEX

Without --device, ADEAD_DEVICE and adead.toml it runs on the best GPU.
'adead kernel' shows what a kernel needs. A push constant with a type (u32: i32:
f32: u64: i64: f64:) is refused if the kernel declares another type.

EXAMPLES
  adead dispatch examples/kernels/vecadd.spv --groups 4 --push 1000 \\
      --buffer a.npy --buffer b.npy --buffer 'f32[1000]:zeros' --out 2=c.npy
  adead dispatch examples/kernels/matmul.spv --groups 32,32 --repeat 20 \\
      --buffer 'f32[512,512]:rand:1' --buffer 'f32[512,512]:rand:2' \\
      --buffer 'f32[512,512]:zeros'
  adead dispatch examples/kernels/reduce.spv --groups 8 --push 1000 \\
      --constant 0=64 --buffer 'f32[1000]:rand:1' --buffer zeros:32";

/// For `adead calibrate`.
pub const CALIBRATE_HELP: &str = "\
The figures are stored in ADEAD_CACHE_DIR (else XDG_CACHE_HOME/adead, else
~/.cache/adead), in a file for each processor, instruction set and number of
threads. They change which device is chosen, never a result. No other command
measures. Without --device, the processor and every GPU that 'auto' uses are
measured. With it, that device is measured, and the others' figures are kept.

EXAMPLES
  adead calibrate
  adead calibrate --quick --threads 4
  adead calibrate --device cuda:0
  ADEAD_CACHE_DIR=/var/cache/adead adead calibrate";

/// For `adead bench`.
pub const BENCH_HELP: &str = "\
EXAMPLES
  adead bench
  adead bench --only matmul --threads 1
  adead bench --json > now.json
  adead bench --report report.html
  adead bench --compare --model all-MiniLM-L6-v2
  adead bench --only attention --trace trace.json";

/// For `adead doctor`.
pub const DOCTOR_HELP: &str = "\
Each line is ok, a note (nothing is broken) or a problem, and says what to do.
Exits with 1 if there is a problem.

EXAMPLES
  adead doctor
  adead doctor --device cuda
  adead doctor --json | jq -r '.checks[] | select(.state != \"ok\") | .todo'";

/// For `adead man`.
pub const MAN_HELP: &str = "\
The pages have the texts of --help.

EXAMPLES
  adead man | man -l -
  adead man run | man -l -
  adead man --dir ~/.local/share/man/man1";
