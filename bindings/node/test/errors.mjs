// Checks of errors, for the tests of every package with an AdeadError.

import assert from 'node:assert/strict'

/** The checks for a package's class of errors. */
export function checksOf(AdeadError) {
  function matches(error, code, text) {
    assert.ok(error instanceof AdeadError, `${error?.stack ?? error} is no AdeadError`)
    assert.equal(error.code, code)
    assert.ok(Number.isInteger(error.status) && error.status > 0)
    assert.match(error.message, text)
    return true
  }
  return {
    /** Checks that a call throws an AdeadError of a status, with this in its text. */
    throws(code, text, call) {
      assert.throws(call, (error) => matches(error, code, text))
    },
    /** Checks that a promise rejects with one. */
    async rejects(code, text, promise) {
      await assert.rejects(promise, (error) => matches(error, code, text))
    },
  }
}
