/* How long an instruction of amd64 is. Used to tell where instructions begin, from the start of a function on: what is not known
 * ends that. */
#ifndef SHIM_INSN_H
#define SHIM_INSN_H

#include "platform.h"

struct insn {
	u32 len, at; /* at: of the opcode */
	u32 two; /* its second byte is the one that counts, behind 0f */
};

/* The bytes of a memory operand or register behind an opcode. */
static inline u32 shim_insn_operand(const u8 *p)
{
	u32 mod = p[0] >> 6, rm = p[0] & 7, n = 1;
	if (mod == 3)
		return n;
	if (rm == 4) {
		n++;
		if (mod == 0 && (p[1] & 7) == 5)
			n += 4;
	} else if (mod == 0 && rm == 5) {
		n += 4;
	}
	return n + (mod == 1 ? 1 : mod == 2 ? 4 : 0);
}

/* A bit for each of the 32 opcodes from the first of its eight words on. */
static inline int shim_insn_in(const u32 words[8], u8 op)
{
	return words[op >> 5] >> (op & 31) & 1;
}

/* Prefixes of vectors (VEX, EVEX): map says which opcodes follow. */
static inline u32 shim_insn_vector(const u8 *p, u32 map)
{
	u8 op = p[0];
	if (map == 0 || map > 6 || map == 4)
		return 0;
	if (map == 1 && op == 0x77)
		return 1;
	return 1 + shim_insn_operand(p + 1) + (map == 3 || (map == 1 && ((op >= 0x70 && op <= 0x73) || op == 0xc2 || (op >= 0xc4 && op <= 0xc6))));
}

/* 0: not known. 16 bytes may be read. */
static inline u32 shim_insn(const u8 *p, struct insn *in)
{
	/* Opcodes with an operand, with a byte behind it, with four bytes (two, if they are short), and those that there are none of. */
	static const u32 operand[8] = {0x0f0f0f0f, 0x0f0f0f0f, 0x00000000, 0x00000a08, 0x0000fffb, 0x00000000, 0xff0f00c3, 0xc0c00000};
	static const u32 byte[8] = {0x10101010, 0x10101010, 0x00000000, 0xffff0c00, 0x00000009, 0x00ff0100, 0x00002043, 0x000008ff};
	static const u32 word[8] = {0x20202020, 0x20202020, 0x00000000, 0x00000300, 0x00000002, 0x00000200, 0x00000080, 0x00000300};
	static const u32 none[8] = {0xc0c040c0, 0x80808080, 0x00000000, 0x00000003, 0x04000004, 0x00000000, 0x00704000, 0x00000400};
	static const u32 two_operand[8] = {0xffff200f, 0x0000ff0f, 0xffffffff, 0xf37fffff, 0xffff0000, 0xfffff838, 0xffff00ff, 0xffffffff};
	static const u32 two_none[8] = {0x00009410, 0xfa4000f0, 0x00000000, 0x0c000000, 0x00000000, 0x000000c0, 0x00000000, 0x00000000};
	u32 short_size = 0, wide = 0, i = 0, n;
	u8 op;
	for (; i < 14; i++) {
		op = p[i];
		if (op == 0x66)
			short_size = 1;
		else if (op != 0x2e && op != 0x36 && op != 0x3e && op != 0x26 && op != 0x64 && op != 0x65 && op != 0x67 && op != 0xf0 && op != 0xf2 &&
			 op != 0xf3)
			break;
	}
	op = p[i];
	in->two = 0;
	if (op == 0xc5 || op == 0xc4 || op == 0x62) {
		u32 map = op == 0xc5 ? 1 : op == 0xc4 ? p[i + 1] & 31u : p[i + 1] & 7u;
		i += op == 0xc5 ? 2 : op == 0xc4 ? 3 : 4;
		n = shim_insn_vector(p + i, map);
		in->at = i;
		in->two = 1;
		return in->len = n ? i + n : 0;
	}
	if ((op & 0xf0) == 0x40) {
		wide = op & 8;
		op = p[++i];
	}
	in->at = i;
	n = i + 1;
	if (op == 0x0f) {
		op = p[n++];
		in->at++;
		in->two = 1;
		if (op == 0x38 || op == 0x3a)
			return in->len = n + 1 + shim_insn_operand(p + n + 1) + (op == 0x3a);
		if (op >= 0x80 && op <= 0x8f)
			return in->len = n + 4;
		if (shim_insn_in(two_none, op) || (op == 0x78 && i))
			return in->len = 0;
		if (shim_insn_in(two_operand, op))
			n += shim_insn_operand(p + n);
		return in->len = n + ((op >= 0x70 && op <= 0x73) || op == 0xa4 || op == 0xac || op == 0xba || op == 0xc2 || (op >= 0xc4 && op <= 0xc6));
	}
	if (shim_insn_in(none, op) || (op == 0x8f && (p[n] & 0x38)))
		return in->len = 0;
	if (shim_insn_in(operand, op))
		n += shim_insn_operand(p + n);
	if (shim_insn_in(byte, op))
		n++;
	if (shim_insn_in(word, op))
		n += short_size && !wide ? 2 : 4;
	switch (op) {
	case 0xa0:
	case 0xa1:
	case 0xa2:
	case 0xa3:
		n += 8;
		break;
	case 0xc2:
	case 0xca:
		n += 2;
		break;
	case 0xc8:
		n += 3;
		break;
	case 0xf6:
		n += (p[in->at + 1] & 0x30) == 0;
		break;
	case 0xf7:
		n += (p[in->at + 1] & 0x30) ? 0 : short_size && !wide ? 2 : 4;
		break;
	default:
		if (op >= 0xb8 && op <= 0xbf)
			n += wide ? 8 : short_size ? 2 : 4;
	}
	return in->len = n;
}

#endif
