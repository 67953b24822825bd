// Packs a package for npm: its own files, and this platform's module.

import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gunzipSync } from 'node:zlib'

export const platform = createRequire(import.meta.url)('../platform.js')
export const json = (path) => JSON.parse(readFileSync(path, 'utf8'))

const license = fileURLToPath(new URL('../../../LICENSE', import.meta.url))

/** Packs a folder of `work`, which `fill` fills. Returns what a registry stores about the package. */
function pack(work, name, fill) {
  const folder = join(work, name)
  mkdirSync(folder, { recursive: true })
  fill(folder)
  cpSync(license, join(folder, 'LICENSE'))
  // `prepare` is only for a checkout.
  const command = ['pack', '--ignore-scripts', '--json', '--pack-destination', work]
  const [{ filename }] = JSON.parse(execFileSync('npm', command, { cwd: folder }))
  const file = join(work, filename)
  // npm packs with Node's zlib, which is built for speed and makes a module 2 % larger.
  writeFileSync(file, execFileSync('gzip', ['-9n'], { input: gunzipSync(readFileSync(file)), maxBuffer: 2 ** 28 }))
  console.log(`${basename(file)}: ${statSync(file).size} bytes`)
  return { manifest: json(join(folder, 'package.json')), file, tarball: readFileSync(file) }
}

/** Packs the package in a folder of the checkout, and this platform's, into `work`, which is emptied
 * first. */
export function packBoth(source, work) {
  rmSync(work, { recursive: true, force: true })
  mkdirSync(work, { recursive: true })
  const { name, files } = json(join(source, 'package.json'))
  const main = pack(work, name, (folder) => {
    for (const file of ['package.json', 'README.md', ...files]) cpSync(join(source, file), join(folder, file), { recursive: true })
  })
  const native = pack(work, platform, (folder) => {
    cpSync(join(source, 'npm', platform), folder, { recursive: true })
    const file = `${name}.${platform}.node`
    cpSync(join(source, file), join(folder, file))
    writeFileSync(join(folder, 'README.md'), `The module of [${name}](https://www.npmjs.com/package/${name}) for ${platform}.\n`)
  })
  return [main, native]
}
