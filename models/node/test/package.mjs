// Packs the packages, installs them with npm into a clean project, and uses them there: the quickstart with import and require,
// and the TypeScript compiler on what is shown.
//
//   node test/package.mjs TOOLS WORK            the folder with typescript, and one to work in, which is emptied
//   node test/package.mjs TOOLS WORK --pack     only packs them there

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { packBoth, platform } from '../../../bindings/node/scripts/pack.mjs'
import { configuration } from '../../../bindings/node/test/typescript.mjs'

const [tools, work] = process.argv.slice(2).map((path) => resolve(path))
const source = fileURLToPath(new URL('..', import.meta.url))
const tiny = join(source, '../../tests/sentences/tiny')
const packages = packBoth(source, work)
if (process.argv.includes('--pack')) process.exit()

// Outside of the checkout, where nothing above could be found instead.
const project = mkdtempSync(join(tmpdir(), 'adead-models-project-'))
const options = { cwd: project, stdio: ['ignore', 'pipe', 'inherit'], encoding: 'utf8' }
const run = (command, ...args) => execFileSync(command, args, options)

try {
  writeFileSync(join(project, 'package.json'), '{ "name": "project", "private": true }\n')
  // The platform's package by its file, as there is no registry to ask for the others.
  const quiet = ['--offline', '--omit=optional', '--no-audit', '--no-fund', '--no-update-notifier']
  run('npm', 'install', ...quiet, ...packages.map(({ file }) => file))
  cpSync(tiny, join(project, 'all-MiniLM-L6-v2'), { recursive: true })
  cpSync(join(source, '../../tests/text/llama.gguf'), join(project, 'SmolLM2-135M-Instruct.Q4_1.gguf'))

  const quickstart = readFileSync(join(source, 'examples/quickstart.mjs'), 'utf8')
  const common = quickstart.replace(/^import (.*) from 'adead-models'$/m, "const $1 = require('adead-models')")
  assert.notEqual(common, quickstart)
  writeFileSync(join(project, 'quick.mjs'), quickstart)
  writeFileSync(join(project, 'quick.cjs'), `(async () => {\n${common}})()\n`)
  const shown = run('node', 'quick.mjs')
  assert.match(shown, /^2 32 Float32Array\(64\) \[/)
  assert.match(shown, /^64 128 Float32Array\(32\) \[/m)
  assert.equal(run('node', 'quick.cjs'), shown)

  const generate = readFileSync(join(source, 'examples/generate.mjs'), 'utf8')
  writeFileSync(join(project, 'generate.mjs'), generate)
  const written = run('node', 'generate.mjs')
  assert.match(written, /^\d+ tokens, (max_tokens|end)$/m)

  const train = readFileSync(join(source, 'examples/train.mjs'), 'utf8')
  writeFileSync(join(project, 'train.mjs'), train)
  const trained = run('node', 'train.mjs')
  // The same weights on every machine, and as those of the example for Zig.
  assert.match(trained, /^98\.5 % right, sha256 4f8169cf86bd29b9e7f89121dc05fb4b6a481219414c4079a8abbfaedfa36594$/m)

  writeFileSync(join(project, 'quick.mts'), quickstart)
  writeFileSync(join(project, 'generate.mts'), generate)
  writeFileSync(join(project, 'train.mts'), train)
  cpSync(join(source, 'examples/typed.ts'), join(project, 'typed.ts'))
  writeFileSync(join(project, 'tsconfig.json'), configuration(tools, ['typed.ts', 'quick.mts', 'generate.mts', 'train.mts']))
  run('node', join(tools, 'node_modules/typescript/bin/tsc'))
  assert.equal(run('node', 'out/quick.mjs'), shown)
  assert.equal(run('node', 'out/generate.mjs'), written)
  assert.equal(run('node', 'out/train.mjs'), trained)
  const typed = run('node', 'out/typed.js', 'all-MiniLM-L6-v2', 'SmolLM2-135M-Instruct.Q4_1.gguf')
  assert.equal(typed, 'cpu true true true 2 2 invalid_argument []\n34 2 true 3 max_tokens\n6 2 cpu 2 6 true io\n')

  // Without the platform's package, the error says so.
  rmSync(join(project, 'node_modules/@adead'), { recursive: true })
  const missing = `try { require('adead-models') } catch (error) { console.log(error.message) }`
  assert.match(run('node', '-e', missing), new RegExp(`@adead/models-${platform} is not installed`))
  console.log('adead-models: installed, used with import and require, type-checked')
} finally {
  rmSync(project, { recursive: true, force: true })
}
