/* syscall(): see hook_syscall.c. vfork (58), clone (56) and clone3 (435) may have to be jumped to. */
	.text
	.globl	syscall
	.type	syscall, @function
syscall:
	.cfi_startproc
	endbr64
	cmpq	$56, %rdi
	je	1f
	cmpq	$58, %rdi
	je	1f
	cmpq	$435, %rdi
	jne	2f
1:	pushq	%rdi
	.cfi_adjust_cfa_offset 8
	pushq	%rsi
	.cfi_adjust_cfa_offset 8
	pushq	%rdx
	.cfi_adjust_cfa_offset 8
	pushq	%rcx
	.cfi_adjust_cfa_offset 8
	pushq	%r8
	.cfi_adjust_cfa_offset 8
	pushq	%r9
	.cfi_adjust_cfa_offset 8
	subq	$8, %rsp
	.cfi_adjust_cfa_offset 8
	call	shim_syscall_jump
	addq	$8, %rsp
	.cfi_adjust_cfa_offset -8
	popq	%r9
	.cfi_adjust_cfa_offset -8
	popq	%r8
	.cfi_adjust_cfa_offset -8
	popq	%rcx
	.cfi_adjust_cfa_offset -8
	popq	%rdx
	.cfi_adjust_cfa_offset -8
	popq	%rsi
	.cfi_adjust_cfa_offset -8
	popq	%rdi
	.cfi_adjust_cfa_offset -8
	testq	%rax, %rax
	jz	2f
	movq	%rax, %r11
	xorl	%eax, %eax
	jmpq	*%r11
	/* shim_syscall(return address, number, the six arguments in memory) */
2:	movq	8(%rsp), %r10
	movq	(%rsp), %rax
	subq	$56, %rsp
	.cfi_adjust_cfa_offset 56
	movq	%rsi, (%rsp)
	movq	%rdx, 8(%rsp)
	movq	%rcx, 16(%rsp)
	movq	%r8, 24(%rsp)
	movq	%r9, 32(%rsp)
	movq	%r10, 40(%rsp)
	movq	%rdi, %rsi
	movq	%rax, %rdi
	movq	%rsp, %rdx
	call	shim_syscall
	addq	$56, %rsp
	.cfi_adjust_cfa_offset -56
	jmp	__x86_return_thunk
	.cfi_endproc
	.size	syscall, .-syscall

/* How functions marked LEAP return: the compiler gives it this name. %rcx is the caller's to lose, and returns nothing. */
	.section .text.by_leap, "ax", @progbits
	.globl	__x86_return_thunk
	.hidden	__x86_return_thunk
	.type	__x86_return_thunk, @function
__x86_return_thunk:
	.cfi_startproc
	cmpl	$0, shim_leaps(%rip)
	je	1f
	popq	%rcx
	.cfi_def_cfa_offset 0
	.cfi_register %rip, %rcx
	jmp	*%rcx
	.cfi_def_cfa_offset 8
	.cfi_offset %rip, -8
1:	ret
	.cfi_endproc
	.size	__x86_return_thunk, .-__x86_return_thunk
	.section .note.GNU-stack, "", @progbits
