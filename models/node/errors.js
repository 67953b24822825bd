'use strict'

// The class of errors, which the native module throws too, and checks of strings.

const native = require('./load.js')

class AdeadError extends Error {
  constructor(message, code, status) {
    super(message)
    this.code = code
    this.status = status
  }
}
Object.defineProperty(AdeadError.prototype, 'name', { value: 'AdeadError', configurable: true, writable: true })
native.setErrorClass(AdeadError)

const refused = (text) => new AdeadError(text, 'invalid_argument', 1)
const named = (value) => (value === null ? 'null' : Array.isArray(value) ? 'an array' : `of the type ${typeof value}`)

/** Checks a string: the native module would replace an unpaired surrogate by U+FFFD. */
function checkText(text, what) {
  if (typeof text !== 'string') throw refused(`${what} must be a string; it is ${named(text)}`)
  if (!text.isWellFormed()) throw refused(`${what} has an unpaired surrogate, which is not a character`)
}

module.exports = { AdeadError, checkText, named, refused }
