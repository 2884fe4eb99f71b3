#include "textflag.h"

// func entry: asks for the action of each signal (rt_sigaction, 13); 1 is SIG_IGN.
TEXT ·entry(SB),NOSPLIT|NOFRAME,$0
	SUBQ	$64, SP
	MOVQ	$1, R12
	MOVQ	$0, R13
ask:
	MOVQ	R12, DI
	MOVQ	$0, SI
	MOVQ	SP, DX
	MOVQ	$8, R10
	MOVQ	$13, AX
	SYSCALL
	CMPQ	AX, $0
	JNE	next
	CMPQ	0(SP), $1
	JNE	next
	MOVQ	R12, CX
	SUBQ	$1, CX
	MOVQ	$1, AX
	SHLQ	CX, AX
	ORQ	AX, R13
next:
	ADDQ	$1, R12
	CMPQ	R12, $64
	JLE	ask
	MOVQ	R13, ·mask(SB)
	ADDQ	$64, SP
	JMP	_rt0_amd64_linux(SB)
