export * from './index.js'
import * as sentences from './index.js'
export default sentences
