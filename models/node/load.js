'use strict'

// Finds this platform's module: beside this file in a checkout, or else in the platform's package.

const { existsSync } = require('node:fs')
const { join } = require('node:path')
const name = require('./platform.js')

const beside = join(__dirname, `adead-models.${name}.node`)

function load() {
  if (existsSync(beside)) return require(beside)
  try {
    return require(`@adead/models-${name}`)
  } catch (cause) {
    if (cause.code !== 'MODULE_NOT_FOUND') throw cause
    const missing = `adead-models: the package @adead/models-${name} is not installed`
    const text = `${missing}; install adead-models without --omit=optional. There may be none for this platform.`
    throw new Error(text, { cause })
  }
}

module.exports = load()
