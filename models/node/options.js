'use strict'

// Options that functions share.

const { named, refused } = require('./errors.js')

/** Options for the native module, without those that are null. */
function present(options) {
  if (typeof options !== 'object' || options === null) return options ?? undefined
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== null))
}

/** The function that options ask to be told of progress, and the options without it. */
function progressOf(given) {
  // The native module refuses what is no object.
  if (typeof given !== 'object' || given === null) return [undefined, given ?? undefined]
  const { onProgress, ...options } = present(given)
  if (onProgress !== undefined && typeof onProgress !== 'function') {
    throw refused(`onProgress must be a function; it is ${named(onProgress)}`)
  }
  return [onProgress, options]
}

module.exports = { present, progressOf }
