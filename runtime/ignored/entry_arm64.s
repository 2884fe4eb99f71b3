#include "textflag.h"

// func entry: asks for the action of each signal (rt_sigaction, 134); 1 is SIG_IGN.
TEXT ·entry(SB),NOSPLIT|NOFRAME,$0
	SUB	$64, RSP
	MOVD	$1, R19
	MOVD	$0, R20
ask:
	MOVD	R19, R0
	MOVD	$0, R1
	MOVD	RSP, R2
	MOVD	$8, R3
	MOVD	$134, R8
	SVC
	CBNZ	R0, next
	MOVD	0(RSP), R4
	CMP	$1, R4
	BNE	next
	SUB	$1, R19, R5
	MOVD	$1, R6
	LSL	R5, R6, R6
	ORR	R6, R20, R20
next:
	ADD	$1, R19
	CMP	$64, R19
	BLE	ask
	MOVD	R20, ·mask(SB)
	ADD	$64, RSP
	JMP	_rt0_arm64_linux(SB)
