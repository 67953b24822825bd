// Generated from the op table by `ADEAD_BLESS=1 cargo test -p adead-node`; don't edit.
'use strict'

// The operations as methods: `run` takes the context (null: the default one), the operation's number,
// options, operands.
module.exports = ({ run, runAsync, pipelineRecord }) => ({
  context: {
    matmul(a, b, options) {
      return run(this, 0, options, a, b)
    },
    async matmulAsync(a, b, options) {
      return runAsync(this, 0, options, [a, b])
    },
    dot(a, b, options) {
      return run(this, 1, options, a, b)
    },
    async dotAsync(a, b, options) {
      return runAsync(this, 1, options, [a, b])
    },
    add(a, b, options) {
      return run(this, 2, options, a, b)
    },
    async addAsync(a, b, options) {
      return runAsync(this, 2, options, [a, b])
    },
    sub(a, b, options) {
      return run(this, 3, options, a, b)
    },
    async subAsync(a, b, options) {
      return runAsync(this, 3, options, [a, b])
    },
    mul(a, b, options) {
      return run(this, 4, options, a, b)
    },
    async mulAsync(a, b, options) {
      return runAsync(this, 4, options, [a, b])
    },
    div(a, b, options) {
      return run(this, 5, options, a, b)
    },
    async divAsync(a, b, options) {
      return runAsync(this, 5, options, [a, b])
    },
    scale(x, options) {
      return run(this, 6, options, x)
    },
    async scaleAsync(x, options) {
      return runAsync(this, 6, options, [x])
    },
    neg(x, options) {
      return run(this, 7, options, x)
    },
    async negAsync(x, options) {
      return runAsync(this, 7, options, [x])
    },
    abs(x, options) {
      return run(this, 8, options, x)
    },
    async absAsync(x, options) {
      return runAsync(this, 8, options, [x])
    },
    exp(x, options) {
      return run(this, 9, options, x)
    },
    async expAsync(x, options) {
      return runAsync(this, 9, options, [x])
    },
    log(x, options) {
      return run(this, 10, options, x)
    },
    async logAsync(x, options) {
      return runAsync(this, 10, options, [x])
    },
    sqrt(x, options) {
      return run(this, 11, options, x)
    },
    async sqrtAsync(x, options) {
      return runAsync(this, 11, options, [x])
    },
    rsqrt(x, options) {
      return run(this, 12, options, x)
    },
    async rsqrtAsync(x, options) {
      return runAsync(this, 12, options, [x])
    },
    relu(x, options) {
      return run(this, 13, options, x)
    },
    async reluAsync(x, options) {
      return runAsync(this, 13, options, [x])
    },
    sigmoid(x, options) {
      return run(this, 14, options, x)
    },
    async sigmoidAsync(x, options) {
      return runAsync(this, 14, options, [x])
    },
    tanh(x, options) {
      return run(this, 15, options, x)
    },
    async tanhAsync(x, options) {
      return runAsync(this, 15, options, [x])
    },
    gelu(x, options) {
      return run(this, 16, options, x)
    },
    async geluAsync(x, options) {
      return runAsync(this, 16, options, [x])
    },
    silu(x, options) {
      return run(this, 17, options, x)
    },
    async siluAsync(x, options) {
      return runAsync(this, 17, options, [x])
    },
    softmax(x, options) {
      return run(this, 18, options, x)
    },
    async softmaxAsync(x, options) {
      return runAsync(this, 18, options, [x])
    },
    sum(x, options) {
      return run(this, 19, options, x)
    },
    async sumAsync(x, options) {
      return runAsync(this, 19, options, [x])
    },
    mean(x, options) {
      return run(this, 20, options, x)
    },
    async meanAsync(x, options) {
      return runAsync(this, 20, options, [x])
    },
    max(x, options) {
      return run(this, 21, options, x)
    },
    async maxAsync(x, options) {
      return runAsync(this, 21, options, [x])
    },
    argmax(x, options) {
      return run(this, 22, options, x)
    },
    async argmaxAsync(x, options) {
      return runAsync(this, 22, options, [x])
    },
    layernorm(x, options) {
      return run(this, 23, options, x)
    },
    async layernormAsync(x, options) {
      return runAsync(this, 23, options, [x])
    },
    rmsnorm(x, options) {
      return run(this, 24, options, x)
    },
    async rmsnormAsync(x, options) {
      return runAsync(this, 24, options, [x])
    },
    attention(q, k, v, options) {
      return run(this, 25, options, q, k, v)
    },
    async attentionAsync(q, k, v, options) {
      return runAsync(this, 25, options, [q, k, v])
    },
    ffn(x, w1, w2, options) {
      return run(this, 26, options, x, w1, w2)
    },
    async ffnAsync(x, w1, w2, options) {
      return runAsync(this, 26, options, [x, w1, w2])
    },
    embedding(table, ids, options) {
      return run(this, 27, options, table, ids)
    },
    async embeddingAsync(table, ids, options) {
      return runAsync(this, 27, options, [table, ids])
    },
    transpose(x, options) {
      return run(this, 28, options, x)
    },
    async transposeAsync(x, options) {
      return runAsync(this, 28, options, [x])
    },
    concat(x, options) {
      return run(this, 29, options, x)
    },
    async concatAsync(x, options) {
      return runAsync(this, 29, options, [x])
    },
    cast(x, options) {
      return run(this, 30, options, x)
    },
    async castAsync(x, options) {
      return runAsync(this, 30, options, [x])
    },
    floor(x, options) {
      return run(this, 31, options, x)
    },
    async floorAsync(x, options) {
      return runAsync(this, 31, options, [x])
    },
    round(x, options) {
      return run(this, 32, options, x)
    },
    async roundAsync(x, options) {
      return runAsync(this, 32, options, [x])
    },
    erf(x, options) {
      return run(this, 33, options, x)
    },
    async erfAsync(x, options) {
      return runAsync(this, 33, options, [x])
    },
    clamp(x, options) {
      return run(this, 34, options, x)
    },
    async clampAsync(x, options) {
      return runAsync(this, 34, options, [x])
    },
    maximum(a, b, options) {
      return run(this, 35, options, a, b)
    },
    async maximumAsync(a, b, options) {
      return runAsync(this, 35, options, [a, b])
    },
    minimum(a, b, options) {
      return run(this, 36, options, a, b)
    },
    async minimumAsync(a, b, options) {
      return runAsync(this, 36, options, [a, b])
    },
    sin(x, options) {
      return run(this, 37, options, x)
    },
    async sinAsync(x, options) {
      return runAsync(this, 37, options, [x])
    },
    cos(x, options) {
      return run(this, 38, options, x)
    },
    async cosAsync(x, options) {
      return runAsync(this, 38, options, [x])
    },
    log1p(x, options) {
      return run(this, 39, options, x)
    },
    async log1pAsync(x, options) {
      return runAsync(this, 39, options, [x])
    },
    expm1(x, options) {
      return run(this, 40, options, x)
    },
    async expm1Async(x, options) {
      return runAsync(this, 40, options, [x])
    },
    pow(a, b, options) {
      return run(this, 41, options, a, b)
    },
    async powAsync(a, b, options) {
      return runAsync(this, 41, options, [a, b])
    },
    min(x, options) {
      return run(this, 53, options, x)
    },
    async minAsync(x, options) {
      return runAsync(this, 53, options, [x])
    },
    argmin(x, options) {
      return run(this, 54, options, x)
    },
    async argminAsync(x, options) {
      return runAsync(this, 54, options, [x])
    },
    prod(x, options) {
      return run(this, 55, options, x)
    },
    async prodAsync(x, options) {
      return runAsync(this, 55, options, [x])
    },
    slice(x, options) {
      return run(this, 56, options, x)
    },
    async sliceAsync(x, options) {
      return runAsync(this, 56, options, [x])
    },
    pad(x, value, options) {
      return run(this, 57, options, x, value)
    },
    async padAsync(x, value, options) {
      return runAsync(this, 57, options, [x, value])
    },
    gather(x, ids, options) {
      return run(this, 58, options, x, ids)
    },
    async gatherAsync(x, ids, options) {
      return runAsync(this, 58, options, [x, ids])
    },
    rope(x, cos, sin, options) {
      return run(this, 59, options, x, cos, sin)
    },
    async ropeAsync(x, cos, sin, options) {
      return runAsync(this, 59, options, [x, cos, sin])
    },
    cumsum(x, options) {
      return run(this, 60, options, x)
    },
    async cumsumAsync(x, options) {
      return runAsync(this, 60, options, [x])
    },
    topk(x, options) {
      return run(this, 61, options, x)
    },
    async topkAsync(x, options) {
      return runAsync(this, 61, options, [x])
    },
    argtopk(x, options) {
      return run(this, 62, options, x)
    },
    async argtopkAsync(x, options) {
      return runAsync(this, 62, options, [x])
    },
    equal(a, b, options) {
      return run(this, 70, options, a, b)
    },
    async equalAsync(a, b, options) {
      return runAsync(this, 70, options, [a, b])
    },
    notEqual(a, b, options) {
      return run(this, 71, options, a, b)
    },
    async notEqualAsync(a, b, options) {
      return runAsync(this, 71, options, [a, b])
    },
    less(a, b, options) {
      return run(this, 72, options, a, b)
    },
    async lessAsync(a, b, options) {
      return runAsync(this, 72, options, [a, b])
    },
    lessEqual(a, b, options) {
      return run(this, 73, options, a, b)
    },
    async lessEqualAsync(a, b, options) {
      return runAsync(this, 73, options, [a, b])
    },
    greater(a, b, options) {
      return run(this, 74, options, a, b)
    },
    async greaterAsync(a, b, options) {
      return runAsync(this, 74, options, [a, b])
    },
    greaterEqual(a, b, options) {
      return run(this, 75, options, a, b)
    },
    async greaterEqualAsync(a, b, options) {
      return runAsync(this, 75, options, [a, b])
    },
    where(condition, a, b, options) {
      return run(this, 76, options, condition, a, b)
    },
    async whereAsync(condition, a, b, options) {
      return runAsync(this, 76, options, [condition, a, b])
    },
    quantizedMatmul(x, w, options) {
      return run(this, 77, options, x, w)
    },
    async quantizedMatmulAsync(x, w, options) {
      return runAsync(this, 77, options, [x, w])
    },
    dequantize(w, options) {
      return run(this, 78, options, w)
    },
    async dequantizeAsync(w, options) {
      return runAsync(this, 78, options, [w])
    },
  },
  tensor: {
    matmul(b, options) {
      return run(null, 0, options, this, b)
    },
    async matmulAsync(b, options) {
      return runAsync(null, 0, options, [this, b])
    },
    dot(b, options) {
      return run(null, 1, options, this, b)
    },
    async dotAsync(b, options) {
      return runAsync(null, 1, options, [this, b])
    },
    add(b, options) {
      return run(null, 2, options, this, b)
    },
    async addAsync(b, options) {
      return runAsync(null, 2, options, [this, b])
    },
    sub(b, options) {
      return run(null, 3, options, this, b)
    },
    async subAsync(b, options) {
      return runAsync(null, 3, options, [this, b])
    },
    mul(b, options) {
      return run(null, 4, options, this, b)
    },
    async mulAsync(b, options) {
      return runAsync(null, 4, options, [this, b])
    },
    div(b, options) {
      return run(null, 5, options, this, b)
    },
    async divAsync(b, options) {
      return runAsync(null, 5, options, [this, b])
    },
    scale(options) {
      return run(null, 6, options, this)
    },
    async scaleAsync(options) {
      return runAsync(null, 6, options, [this])
    },
    neg(options) {
      return run(null, 7, options, this)
    },
    async negAsync(options) {
      return runAsync(null, 7, options, [this])
    },
    abs(options) {
      return run(null, 8, options, this)
    },
    async absAsync(options) {
      return runAsync(null, 8, options, [this])
    },
    exp(options) {
      return run(null, 9, options, this)
    },
    async expAsync(options) {
      return runAsync(null, 9, options, [this])
    },
    log(options) {
      return run(null, 10, options, this)
    },
    async logAsync(options) {
      return runAsync(null, 10, options, [this])
    },
    sqrt(options) {
      return run(null, 11, options, this)
    },
    async sqrtAsync(options) {
      return runAsync(null, 11, options, [this])
    },
    rsqrt(options) {
      return run(null, 12, options, this)
    },
    async rsqrtAsync(options) {
      return runAsync(null, 12, options, [this])
    },
    relu(options) {
      return run(null, 13, options, this)
    },
    async reluAsync(options) {
      return runAsync(null, 13, options, [this])
    },
    sigmoid(options) {
      return run(null, 14, options, this)
    },
    async sigmoidAsync(options) {
      return runAsync(null, 14, options, [this])
    },
    tanh(options) {
      return run(null, 15, options, this)
    },
    async tanhAsync(options) {
      return runAsync(null, 15, options, [this])
    },
    gelu(options) {
      return run(null, 16, options, this)
    },
    async geluAsync(options) {
      return runAsync(null, 16, options, [this])
    },
    silu(options) {
      return run(null, 17, options, this)
    },
    async siluAsync(options) {
      return runAsync(null, 17, options, [this])
    },
    softmax(options) {
      return run(null, 18, options, this)
    },
    async softmaxAsync(options) {
      return runAsync(null, 18, options, [this])
    },
    sum(options) {
      return run(null, 19, options, this)
    },
    async sumAsync(options) {
      return runAsync(null, 19, options, [this])
    },
    mean(options) {
      return run(null, 20, options, this)
    },
    async meanAsync(options) {
      return runAsync(null, 20, options, [this])
    },
    max(options) {
      return run(null, 21, options, this)
    },
    async maxAsync(options) {
      return runAsync(null, 21, options, [this])
    },
    argmax(options) {
      return run(null, 22, options, this)
    },
    async argmaxAsync(options) {
      return runAsync(null, 22, options, [this])
    },
    layernorm(options) {
      return run(null, 23, options, this)
    },
    async layernormAsync(options) {
      return runAsync(null, 23, options, [this])
    },
    rmsnorm(options) {
      return run(null, 24, options, this)
    },
    async rmsnormAsync(options) {
      return runAsync(null, 24, options, [this])
    },
    attention(k, v, options) {
      return run(null, 25, options, this, k, v)
    },
    async attentionAsync(k, v, options) {
      return runAsync(null, 25, options, [this, k, v])
    },
    ffn(w1, w2, options) {
      return run(null, 26, options, this, w1, w2)
    },
    async ffnAsync(w1, w2, options) {
      return runAsync(null, 26, options, [this, w1, w2])
    },
    embedding(ids, options) {
      return run(null, 27, options, this, ids)
    },
    async embeddingAsync(ids, options) {
      return runAsync(null, 27, options, [this, ids])
    },
    transpose(options) {
      return run(null, 28, options, this)
    },
    async transposeAsync(options) {
      return runAsync(null, 28, options, [this])
    },
    concat(x, options) {
      return run(null, 29, options, this, x)
    },
    async concatAsync(x, options) {
      return runAsync(null, 29, options, [this, x])
    },
    cast(options) {
      return run(null, 30, options, this)
    },
    async castAsync(options) {
      return runAsync(null, 30, options, [this])
    },
    floor(options) {
      return run(null, 31, options, this)
    },
    async floorAsync(options) {
      return runAsync(null, 31, options, [this])
    },
    round(options) {
      return run(null, 32, options, this)
    },
    async roundAsync(options) {
      return runAsync(null, 32, options, [this])
    },
    erf(options) {
      return run(null, 33, options, this)
    },
    async erfAsync(options) {
      return runAsync(null, 33, options, [this])
    },
    clamp(options) {
      return run(null, 34, options, this)
    },
    async clampAsync(options) {
      return runAsync(null, 34, options, [this])
    },
    maximum(b, options) {
      return run(null, 35, options, this, b)
    },
    async maximumAsync(b, options) {
      return runAsync(null, 35, options, [this, b])
    },
    minimum(b, options) {
      return run(null, 36, options, this, b)
    },
    async minimumAsync(b, options) {
      return runAsync(null, 36, options, [this, b])
    },
    sin(options) {
      return run(null, 37, options, this)
    },
    async sinAsync(options) {
      return runAsync(null, 37, options, [this])
    },
    cos(options) {
      return run(null, 38, options, this)
    },
    async cosAsync(options) {
      return runAsync(null, 38, options, [this])
    },
    log1p(options) {
      return run(null, 39, options, this)
    },
    async log1pAsync(options) {
      return runAsync(null, 39, options, [this])
    },
    expm1(options) {
      return run(null, 40, options, this)
    },
    async expm1Async(options) {
      return runAsync(null, 40, options, [this])
    },
    pow(b, options) {
      return run(null, 41, options, this, b)
    },
    async powAsync(b, options) {
      return runAsync(null, 41, options, [this, b])
    },
    min(options) {
      return run(null, 53, options, this)
    },
    async minAsync(options) {
      return runAsync(null, 53, options, [this])
    },
    argmin(options) {
      return run(null, 54, options, this)
    },
    async argminAsync(options) {
      return runAsync(null, 54, options, [this])
    },
    prod(options) {
      return run(null, 55, options, this)
    },
    async prodAsync(options) {
      return runAsync(null, 55, options, [this])
    },
    slice(options) {
      return run(null, 56, options, this)
    },
    async sliceAsync(options) {
      return runAsync(null, 56, options, [this])
    },
    pad(value, options) {
      return run(null, 57, options, this, value)
    },
    async padAsync(value, options) {
      return runAsync(null, 57, options, [this, value])
    },
    gather(ids, options) {
      return run(null, 58, options, this, ids)
    },
    async gatherAsync(ids, options) {
      return runAsync(null, 58, options, [this, ids])
    },
    rope(cos, sin, options) {
      return run(null, 59, options, this, cos, sin)
    },
    async ropeAsync(cos, sin, options) {
      return runAsync(null, 59, options, [this, cos, sin])
    },
    cumsum(options) {
      return run(null, 60, options, this)
    },
    async cumsumAsync(options) {
      return runAsync(null, 60, options, [this])
    },
    topk(options) {
      return run(null, 61, options, this)
    },
    async topkAsync(options) {
      return runAsync(null, 61, options, [this])
    },
    argtopk(options) {
      return run(null, 62, options, this)
    },
    async argtopkAsync(options) {
      return runAsync(null, 62, options, [this])
    },
    equal(b, options) {
      return run(null, 70, options, this, b)
    },
    async equalAsync(b, options) {
      return runAsync(null, 70, options, [this, b])
    },
    notEqual(b, options) {
      return run(null, 71, options, this, b)
    },
    async notEqualAsync(b, options) {
      return runAsync(null, 71, options, [this, b])
    },
    less(b, options) {
      return run(null, 72, options, this, b)
    },
    async lessAsync(b, options) {
      return runAsync(null, 72, options, [this, b])
    },
    lessEqual(b, options) {
      return run(null, 73, options, this, b)
    },
    async lessEqualAsync(b, options) {
      return runAsync(null, 73, options, [this, b])
    },
    greater(b, options) {
      return run(null, 74, options, this, b)
    },
    async greaterAsync(b, options) {
      return runAsync(null, 74, options, [this, b])
    },
    greaterEqual(b, options) {
      return run(null, 75, options, this, b)
    },
    async greaterEqualAsync(b, options) {
      return runAsync(null, 75, options, [this, b])
    },
    where(a, b, options) {
      return run(null, 76, options, this, a, b)
    },
    async whereAsync(a, b, options) {
      return runAsync(null, 76, options, [this, a, b])
    },
    quantizedMatmul(w, options) {
      return run(null, 77, options, this, w)
    },
    async quantizedMatmulAsync(w, options) {
      return runAsync(null, 77, options, [this, w])
    },
    dequantize(options) {
      return run(null, 78, options, this)
    },
    async dequantizeAsync(options) {
      return runAsync(null, 78, options, [this])
    },
  },
  pipeline: {
    matmul(...args) {
      pipelineRecord(this, 0, args)
      return this
    },
    dot(...args) {
      pipelineRecord(this, 1, args)
      return this
    },
    add(...args) {
      pipelineRecord(this, 2, args)
      return this
    },
    bias(...args) {
      pipelineRecord(this, 2, args)
      return this
    },
    sub(...args) {
      pipelineRecord(this, 3, args)
      return this
    },
    mul(...args) {
      pipelineRecord(this, 4, args)
      return this
    },
    div(...args) {
      pipelineRecord(this, 5, args)
      return this
    },
    scale(...args) {
      pipelineRecord(this, 6, args)
      return this
    },
    neg(...args) {
      pipelineRecord(this, 7, args)
      return this
    },
    abs(...args) {
      pipelineRecord(this, 8, args)
      return this
    },
    exp(...args) {
      pipelineRecord(this, 9, args)
      return this
    },
    log(...args) {
      pipelineRecord(this, 10, args)
      return this
    },
    sqrt(...args) {
      pipelineRecord(this, 11, args)
      return this
    },
    rsqrt(...args) {
      pipelineRecord(this, 12, args)
      return this
    },
    relu(...args) {
      pipelineRecord(this, 13, args)
      return this
    },
    sigmoid(...args) {
      pipelineRecord(this, 14, args)
      return this
    },
    tanh(...args) {
      pipelineRecord(this, 15, args)
      return this
    },
    gelu(...args) {
      pipelineRecord(this, 16, args)
      return this
    },
    silu(...args) {
      pipelineRecord(this, 17, args)
      return this
    },
    softmax(...args) {
      pipelineRecord(this, 18, args)
      return this
    },
    sum(...args) {
      pipelineRecord(this, 19, args)
      return this
    },
    mean(...args) {
      pipelineRecord(this, 20, args)
      return this
    },
    max(...args) {
      pipelineRecord(this, 21, args)
      return this
    },
    argmax(...args) {
      pipelineRecord(this, 22, args)
      return this
    },
    layernorm(...args) {
      pipelineRecord(this, 23, args)
      return this
    },
    rmsnorm(...args) {
      pipelineRecord(this, 24, args)
      return this
    },
    attention(...args) {
      pipelineRecord(this, 25, args)
      return this
    },
    ffn(...args) {
      pipelineRecord(this, 26, args)
      return this
    },
    embedding(...args) {
      pipelineRecord(this, 27, args)
      return this
    },
    transpose(...args) {
      pipelineRecord(this, 28, args)
      return this
    },
    concat(...args) {
      pipelineRecord(this, 29, args)
      return this
    },
    cast(...args) {
      pipelineRecord(this, 30, args)
      return this
    },
    floor(...args) {
      pipelineRecord(this, 31, args)
      return this
    },
    round(...args) {
      pipelineRecord(this, 32, args)
      return this
    },
    erf(...args) {
      pipelineRecord(this, 33, args)
      return this
    },
    clamp(...args) {
      pipelineRecord(this, 34, args)
      return this
    },
    maximum(...args) {
      pipelineRecord(this, 35, args)
      return this
    },
    minimum(...args) {
      pipelineRecord(this, 36, args)
      return this
    },
    sin(...args) {
      pipelineRecord(this, 37, args)
      return this
    },
    cos(...args) {
      pipelineRecord(this, 38, args)
      return this
    },
    log1p(...args) {
      pipelineRecord(this, 39, args)
      return this
    },
    expm1(...args) {
      pipelineRecord(this, 40, args)
      return this
    },
    pow(...args) {
      pipelineRecord(this, 41, args)
      return this
    },
    min(...args) {
      pipelineRecord(this, 53, args)
      return this
    },
    argmin(...args) {
      pipelineRecord(this, 54, args)
      return this
    },
    prod(...args) {
      pipelineRecord(this, 55, args)
      return this
    },
    slice(...args) {
      pipelineRecord(this, 56, args)
      return this
    },
    pad(...args) {
      pipelineRecord(this, 57, args)
      return this
    },
    gather(...args) {
      pipelineRecord(this, 58, args)
      return this
    },
    rope(...args) {
      pipelineRecord(this, 59, args)
      return this
    },
    cumsum(...args) {
      pipelineRecord(this, 60, args)
      return this
    },
    topk(...args) {
      pipelineRecord(this, 61, args)
      return this
    },
    argtopk(...args) {
      pipelineRecord(this, 62, args)
      return this
    },
    equal(...args) {
      pipelineRecord(this, 70, args)
      return this
    },
    notEqual(...args) {
      pipelineRecord(this, 71, args)
      return this
    },
    less(...args) {
      pipelineRecord(this, 72, args)
      return this
    },
    lessEqual(...args) {
      pipelineRecord(this, 73, args)
      return this
    },
    greater(...args) {
      pipelineRecord(this, 74, args)
      return this
    },
    greaterEqual(...args) {
      pipelineRecord(this, 75, args)
      return this
    },
    where(...args) {
      pipelineRecord(this, 76, args)
      return this
    },
    quantizedMatmul(...args) {
      pipelineRecord(this, 77, args)
      return this
    },
    dequantize(...args) {
      pipelineRecord(this, 78, args)
      return this
    },
  },
})
