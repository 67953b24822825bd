.adead 1
; Two layers of a small classifier: x · w1 + b1, relu, · w2 + b2, then probabilities per row.

input  x  f32[2,4]
const  w1 f32[4,3] = 0.5 -0.25 1.0
                   = -1.0 0.75 0.125
                   = 0.25 0.5 -0.5
                   = 1.5 -0.125 0.0
const  b1 f32[3]   = 0.1 -0.2 0.3
const  w2 f32[3,2] = 1.0 -1.0
                   = 0.5 0.25
                   = -0.75 2.0
const  b2 f32[2]   = 3d4ccccd bd4ccccd      ; ±0.05 by its bits
temp   h  f32[2,3]
temp   z  f32[2,2]
output p  f32[2,2]
output best i64[2]

h = matmul x w1 - b1 activation=relu
z = matmul h w2 - b2
free h
p = softmax z
best = argmax z axis=-1
halt
