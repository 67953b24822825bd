'use strict'

// adead for Node.js. The native module has the classes and does the work. This file has the operations' methods, which
// operations.js lists, and the public names.

const native = require('./load.js')
const operations = require('./operations.js')(native)
const { Tensor, methods, statics } = require('./tensor.js')(native)
const { AdeadError } = require('./errors.js')

native.startLogger()
const { overlap, DataLoader } = require('./overlap.js')(native)

/** Adds methods to a class. They are not enumerable, as a class's own methods. */
function extend(target, source) {
  const properties = Object.getOwnPropertyDescriptors(source)
  for (const key of Reflect.ownKeys(properties)) properties[key].enumerable = false
  Object.defineProperties(target, properties)
}

extend(Tensor.prototype, methods)
extend(Tensor.prototype, operations.tensor)
extend(Tensor, statics)
extend(native.Context.prototype, operations.context)
extend(native.Pipeline.prototype, operations.pipeline)
// Methods that continue from a value return the pipeline, as its operations do.
for (const key of ['input', 'constant', 'reshape', 'detach', 'hook', 'switch', 'output']) {
  const original = native.Pipeline.prototype[key]
  const chained = {
    [key](...args) {
      original.apply(this, args)
      return this
    },
  }
  extend(native.Pipeline.prototype, chained)
}

extend(native.Pipeline.prototype, {
  noGrad(record) {
    if (typeof record !== 'function') throw new AdeadError('noGrad takes a function', 'invalid_argument', 1)
    const before = this.setGradEnabled(false)
    try {
      return record()
    } finally {
      this.setGradEnabled(before)
    }
  },
})

// Makes a promise reject with an error in its arguments, instead of throwing it.
const rejecting = (original) =>
  async function (...args) {
    return original.apply(this, args)
  }

// A report's lists are made once, when they are first read.
for (const key of ['records', 'totals', 'devices']) {
  const { get } = Object.getOwnPropertyDescriptor(native.ProfileReport.prototype, key)
  const once = function () {
    const value = get.call(this)
    Object.defineProperty(this, key, { value, enumerable: true })
    return value
  }
  Object.defineProperty(native.ProfileReport.prototype, key, { get: once })
}

// This thread's logger: the function that was set, and the number with which it fetches messages.
let logger = null
let number = 0
function deliver() {
  for (const message of native.takeMessages(number)) logger?.(...message)
}
function setLogger(given, options) {
  deliver()
  if (given !== null && typeof given !== 'function') {
    throw new AdeadError('the logger must be a function or null', 'invalid_argument', 1)
  }
  number = native.setLogger(given && deliver, options)
  // A program may end before its event loop delivers the messages.
  if (given && !process.listeners('exit').includes(deliver)) process.on('exit', deliver)
  logger = given
}

const { hardware, hardwareAsync, defaultContext, version } = native
const classes = {
  Context: native.Context,
  DeviceBuffer: native.DeviceBuffer,
  Kernel: native.Kernel,
  Stream: native.Stream,
  Event: native.Event,
  Download: native.Download,
  Timestamp: native.Timestamp,
  Recording: native.Recording,
  Packed: native.Packed,
  Pipeline: native.Pipeline,
  Value: native.Value,
  Compiled: native.Compiled,
  Profile: native.Profile,
  ProfileReport: native.ProfileReport,
  Program: native.Program,
  Random: native.Random,
  Layout: native.Layout,
  DeterministicAllocator: native.DeterministicAllocator,
  ArenaAllocator: native.ArenaAllocator,
}
for (const { prototype } of Object.values(classes)) {
  for (const key of Object.getOwnPropertyNames(prototype)) {
    // The operations' methods reject already.
    if (!key.endsWith('Async') || key in operations.context) continue
    extend(prototype, { [key]: rejecting(prototype[key]) })
  }
}

class GPU extends native.Context {
  constructor(device) {
    super(device, { gpu: true })
  }

  static openAsync(device) {
    return super.openAsync(device, { gpu: true })
  }
}

module.exports = {
  ...classes,
  Tensor,
  GPU,
  AdeadError,
  DataLoader,
  hardware,
  hardwareAsync,
  defaultContext,
  overlap,
  setLogger,
  version: version(),
}
