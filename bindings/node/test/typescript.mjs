// How the tests of packages compile programs in TypeScript: as strictly as it goes.

import { join } from 'node:path'

/** The text of a tsconfig.json for these files, given the folder with TypeScript. */
export const configuration = (tools, files) =>
  JSON.stringify({
    compilerOptions: {
      strict: true,
      noUncheckedIndexedAccess: true,
      noImplicitOverride: true,
      skipLibCheck: false,
      module: 'nodenext',
      target: 'es2022',
      typeRoots: [join(tools, 'node_modules/@types')],
      types: ['node'],
      outDir: 'out',
    },
    files,
  })
