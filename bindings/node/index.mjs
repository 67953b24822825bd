import adead from './index.js'

export const {
  AdeadError,
  ArenaAllocator,
  Context,
  DataLoader,
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
  overlap,
  version,
} = adead
export default adead
