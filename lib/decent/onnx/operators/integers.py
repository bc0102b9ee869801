"""Integers of shapes, for helpers of several families."""


# Div (opset 7) of sizes, and all helpers that divide them: rounded down. A division by 0, and of the smallest integer
# by -1, would end the process.
def _quotient(self, a: int, b: int) -> int:
    assert b > 0, "an integer is divided by {}".format(b)
    return a // b
