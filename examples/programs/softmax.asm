.agpu 1
; Every row of a 3 × 5 matrix, scaled by a temperature first.

init
alloc 60 r0
alloc 60 r1
copy_h2d 0x1000 r0 60
scale r0 r0 15 0.5
softmax r0 r1 3 5
sync
copy_d2h r1 0x2000 60
free r0
free r1
shutdown
end
