// Builds a package's module in a checkout, beside its sources. `npm install ./bindings/node` runs it. Needs cargo.
//
//   node build.mjs CRATE NAME    in the package's folder, such as adead-node adead

import { execFileSync } from 'node:child_process'
import { copyFileSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'

const [crate, name] = process.argv.slice(2)
const platform = createRequire(import.meta.url)('../platform.js')
const command = ['build', '--release', '--locked', '-p', crate, '--message-format=json-render-diagnostics']
const messages = execFileSync('cargo', command, { encoding: 'utf8', maxBuffer: 2 ** 28, stdio: ['ignore', 'pipe', 'inherit'] })
const built = messages
  .split('\n')
  .filter((line) => line.startsWith('{'))
  .map((line) => JSON.parse(line))
  .find((message) => message.reason === 'compiler-artifact' && message.target.name === crate.replaceAll('-', '_'))
if (!built) throw new Error(`cargo built no ${crate}`)
const module = `${name}.${platform}.node`
// Write a new file, because a running process may have mapped the old one.
rmSync(module, { force: true })
copyFileSync(built.filenames[0], module)
console.log(module)
