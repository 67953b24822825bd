export * from './index.js'
import * as nn from './index.js'
export default nn
