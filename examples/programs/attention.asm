.agpu 1
; One block of a transformer: 4 positions of width 8 in 2 heads, then the feed-forward part.
; 0x1000 token ids, 0x2000 their table (10 rows), 0x3000 and 0x4000 the weights, 0x5000 the result.

init
alloc 16 r0
alloc 320 r1
alloc 128 r2
copy_h2d 0x1000 r0 16
copy_h2d 0x2000 r1 320
embedding r1 r0 r2 4 8
free r0
free r1

alloc 128 r3
multihead_attn r2 r2 r2 r3 4 8 2
add r2 r3 r2 32
layernorm r2 r3 4 8
free r2

alloc 512 r4
alloc 512 r5
alloc 128 r6
copy_h2d 0x3000 r4 512
copy_h2d 0x4000 r5 512
ffn r3 r4 r5 r6 4 8 16
add r3 r6 r3 32
gelu r3 r3 32
sync
copy_d2h r3 0x5000 128
shutdown
end
