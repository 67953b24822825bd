import adead from './index.js'

export const {
  AdeadError,
  ArenaAllocator,
  Compiled,
  Context,
  DeterministicAllocator,
  DeviceBuffer,
  Download,
  Event,
  GPU,
  Kernel,
  Layout,
  Packed,
  Pipeline,
  Program,
  Recording,
  Stream,
  Tensor,
  Timestamp,
  Value,
  defaultContext,
  hardware,
  hardwareAsync,
  version,
} = adead
export default adead
