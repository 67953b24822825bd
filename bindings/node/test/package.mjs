// Packs the packages, installs them with npm from a registry of its own into a clean project, and uses them there: the README's
// quickstart with import and require, the examples, and the TypeScript compiler on what they show.
//
//   node test/package.mjs TOOLS WORK            the folder with typescript, and one to work in, which is emptied
//   node test/package.mjs TOOLS WORK --pack     only packs them there

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { cpSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { json, packBoth, platform } from '../scripts/pack.mjs'
import { configuration } from './typescript.mjs'

const [tools, work] = process.argv.slice(2).map((path) => resolve(path))
const source = fileURLToPath(new URL('..', import.meta.url))
const [main, native] = packBoth(source, work)
const packages = new Map([main, native].map((one) => [one.manifest.name, one]))
// The other platforms' are described and must not be fetched.
for (const name of readdirSync(join(source, 'npm'))) {
  const manifest = json(join(source, 'npm', name, 'package.json'))
  if (!packages.has(manifest.name)) packages.set(manifest.name, { manifest })
}
const platforms = [...packages.keys()].filter((name) => name !== 'adead')
assert.deepEqual(Object.keys(main.manifest.optionalDependencies).sort(), platforms.sort())
if (process.argv.includes('--pack')) process.exit()

const wrong = []
const server = createServer((request, response) => {
  const [, name, tarball] = /^\/(@?[^@]*?)(\/-\/package\.tgz)?$/.exec(decodeURIComponent(request.url)) ?? []
  const one = packages.get(name)
  if (!one || (tarball && !one.tarball)) {
    wrong.push(request.url)
    response.writeHead(404).end('{}')
    return
  }
  if (tarball) {
    response.end(one.tarball)
    return
  }
  const { version } = one.manifest
  const dist = { tarball: `http://${request.headers.host}/${name}/-/package.tgz` }
  if (one.tarball) dist.integrity = `sha512-${createHash('sha512').update(one.tarball).digest('base64')}`
  const versions = { [version]: { ...one.manifest, dist } }
  response.setHeader('content-type', 'application/json')
  response.end(JSON.stringify({ name, 'dist-tags': { latest: version }, versions }))
})
await new Promise((listening) => server.listen(0, '127.0.0.1', listening))

// Outside of the checkout, where nothing above could be found instead.
const project = mkdtempSync(join(tmpdir(), 'adead-project-'))
const run = (command, args, options = {}) =>
  new Promise((done, failed) => {
    const child = spawn(command, args, { cwd: project, stdio: ['ignore', 'pipe', 'inherit'], ...options })
    let text = ''
    child.stdout.on('data', (part) => (text += part))
    child.on('error', failed)
    child.on('close', (status) => (status === 0 ? done(text) : failed(new Error(`${command} ${args}: ${status}\n${text}`))))
  })

try {
  writeFileSync(join(project, 'package.json'), '{ "name": "project", "private": true }\n')
  const registry = `http://127.0.0.1:${server.address().port}/`
  const options = ['--registry', registry, '--cache', join(work, 'cache'), '--no-audit', '--no-fund', '--no-update-notifier']
  await run('npm', ['install', 'adead', ...options])
  assert.deepEqual(wrong, [])
  assert.deepEqual(readdirSync(join(project, 'node_modules/@adead')), [platform])
  assert.deepEqual(readdirSync(join(project, 'node_modules')).filter((name) => !name.startsWith('.')), ['@adead', 'adead'])

  // The README's quickstart, as it is and in CommonJS.
  const [, quickstart] = /<!-- ci: node -->\n```js\n(.*?)```/s.exec(readFileSync(join(source, 'README.md'), 'utf8'))
  const common = quickstart.replace(/^import (.*) from 'adead'$/m, "const $1 = require('adead')")
  assert.notEqual(common, quickstart)
  writeFileSync(join(project, 'quick.mjs'), quickstart)
  writeFileSync(join(project, 'quick.cjs'), `(async () => {\n${common}})()\n`)
  const shown = await run('node', ['quick.mjs'])
  assert.match(shown, /^\[ 2, 2 \] Float32Array\(4\) \[/)
  assert.equal(await run('node', ['quick.cjs']), shown)
  console.log(shown.trimEnd())

  // The same bits, whatever computes.
  cpSync(join(source, 'examples'), join(project, 'examples'), { recursive: true })
  const hash = await run('node', ['examples/same_bits.mjs'])
  assert.match(hash, /^[0-9a-f]{16}\n$/)
  const environment = { ...process.env, ADEAD_NUM_THREADS: '1', ADEAD_DEVICE: 'cpu' }
  assert.equal(await run('node', ['examples/same_bits.mjs'], { env: environment }), hash)
  console.log(`same_bits: ${hash.trimEnd()}`)

  // What the README, docs/profile.md and docs/logging.md show.
  await run('node', ['examples/guide.mjs'])
  assert.match(await run('node', ['examples/profile.mjs']), /^matmul /m)
  assert.match(await run('node', ['examples/log.mjs']), /^info adead.devices opened cpu: /m)

  // Layers, by the package's other entry.
  await run('node', ['examples/layers.mjs', join(source, '../../tests/sentences/tiny/model.safetensors')])

  // Strictly: the declarations, for require and import, the example, the quickstart.
  writeFileSync(join(project, 'quick.mts'), quickstart)
  cpSync(join(source, 'examples/typed.ts'), join(project, 'typed.ts'))
  writeFileSync(join(project, 'tsconfig.json'), configuration(tools, ['typed.ts', 'quick.mts']))
  await run('node', [join(tools, 'node_modules/typescript/bin/tsc')])
  assert.equal(await run('node', ['out/quick.mjs']), shown)
  console.log((await run('node', ['out/typed.js'])).trimEnd())

  // Without the platform's package, the error says so.
  rmSync(join(project, 'node_modules/@adead'), { recursive: true })
  const missing = `try { require('adead') } catch (error) { console.log(error.message) }`
  assert.match(await run('node', ['-e', missing]), new RegExp(`@adead/${platform} is not installed`))
  console.log('installed from a registry, used with import and require, type-checked')
} finally {
  rmSync(project, { recursive: true, force: true })
  server.close()
}
