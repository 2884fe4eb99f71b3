/* syscall(): see hook_syscall.c. clone (220) and clone3 (435) may have to be jumped to. */
	.text
	.globl	syscall
	.type	syscall, %function
syscall:
	.cfi_startproc
	stp	x29, x30, [sp, #-80]!
	.cfi_adjust_cfa_offset 80
	.cfi_rel_offset x29, 0
	.cfi_rel_offset x30, 8
	mov	x29, sp
	/* The six arguments in memory; the number behind them. */
	stp	x1, x2, [sp, #16]
	stp	x3, x4, [sp, #32]
	stp	x5, x6, [sp, #48]
	str	x0, [sp, #64]
	cmp	x0, #220
	b.eq	1f
	cmp	x0, #435
	b.ne	2f
1:	bl	shim_syscall_jump
	cbz	x0, 2f
	mov	x16, x0
	ldp	x1, x2, [sp, #16]
	ldp	x3, x4, [sp, #32]
	ldp	x5, x6, [sp, #48]
	ldr	x0, [sp, #64]
	ldp	x29, x30, [sp], #80
	.cfi_remember_state
	.cfi_adjust_cfa_offset -80
	.cfi_restore x29
	.cfi_restore x30
	br	x16
	.cfi_restore_state
2:	ldr	x1, [sp, #64]
	ldr	x0, [sp, #8]
	add	x2, sp, #16
	bl	shim_syscall
	ldp	x29, x30, [sp], #80
	.cfi_adjust_cfa_offset -80
	.cfi_restore x29
	.cfi_restore x30
	ret
	.cfi_endproc
	.size	syscall, .-syscall
	.section .note.GNU-stack, "", %progbits
