import adead from './index.js'

export const {
  AdeadError,
  ArenaAllocator,
  Context,
  DeterministicAllocator,
  DeviceBuffer,
  Download,
  Event,
  GPU,
  Kernel,
  Layout,
  Packed,
  Program,
  Recording,
  Stream,
  Tensor,
  Timestamp,
  defaultContext,
  hardware,
  hardwareAsync,
  version,
} = adead
export default adead
