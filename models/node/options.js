'use strict'

// Options that functions share.

const { named, refused } = require('./errors.js')

/** Options for the native module, without those that are null. */
function present(options) {
  if (typeof options !== 'object' || options === null) return options ?? undefined
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== null))
}

/** Returns the options' `onProgress` and the other options. */
function progressOf(given) {
  // The native module refuses anything that is not an object.
  if (typeof given !== 'object' || given === null) return [undefined, given ?? undefined]
  const { onProgress, ...options } = present(given)
  if (onProgress !== undefined && typeof onProgress !== 'function') {
    throw refused(`onProgress must be a function; it is ${named(onProgress)}`)
  }
  return [onProgress, options]
}

module.exports = { present, progressOf }
