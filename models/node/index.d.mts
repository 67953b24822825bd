export * from './index.js'
import * as models from './index.js'
export default models
