// The bytes of digits.bin (see digits.h), as read-only data of the program.

  .section .rodata
  .global decent_digits
  .hidden decent_digits
  .type decent_digits, %object
  .size decent_digits, 1797 * 65
decent_digits:
  .incbin DECENT_DIGITS_BIN
decent_digits_end:
  .if decent_digits_end - decent_digits != 1797 * 65
  .error "digits.bin must hold 1797 samples: 64 pixels each, then a label each"
  .endif

  .section .note.GNU-stack, "", %progbits
