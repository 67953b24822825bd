export * from './index.js'
import * as adead from './index.js'
export default adead
