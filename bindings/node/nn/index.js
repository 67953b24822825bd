'use strict'

// Layers of neural networks, and their weights from safetensors files: docs/sentences.md.

module.exports = { ...require('./layers.js'), ...require('./transformer.js'), ...require('./weights.js') }
