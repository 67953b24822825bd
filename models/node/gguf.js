'use strict'

// GGUF files: values as quantised blocks, and models as files.

const native = require('./load.js')
const { checkText, named, refused } = require('./errors.js')

function checkValues(values, format) {
  if (!(values instanceof Float32Array)) throw refused(`values must be a Float32Array; they are ${named(values)}`)
  checkText(format, 'the format')
}

function quantize(values, format) {
  checkValues(values, format)
  return native.quantize(values, format)
}

// Errors in arguments reject the promise instead of being thrown.
async function quantizeAsync(values, format) {
  checkValues(values, format)
  return native.quantizeAsync(values, format)
}

/** Returns the native module's arguments. */
function checked(model, file, options) {
  checkText(model, 'the model')
  checkText(file, 'the file')
  const kind = options?.kind ?? undefined
  if (kind !== undefined) checkText(kind, 'kind')
  return [model, file, kind]
}

function convert(model, file, options) {
  return native.convert(...checked(model, file, options))
}

async function convertAsync(model, file, options) {
  return native.convertAsync(...checked(model, file, options))
}

module.exports = { convert, convertAsync, quantize, quantizeAsync }
