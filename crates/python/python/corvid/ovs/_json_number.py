"""The numbers of JSON texts.

It owns the decision whether a number is an integer or a real, and the messages about wrong
numbers.  A number without a fraction is an integer if it fits in 64 bits, however it is written.
"""

import math
import re

_match = re.compile("(-)?(0|[1-9][0-9]*)(?:\\.([0-9]+))?(?:[eE]([-+]?[0-9]+))?$").match

_INT64_MAX = 2 ** 63 - 1
# Longer digit strings exceed the range of doubles, unless an exponent brings them back.
_DIGITS_MAX = 19
# Exponents of this magnitude and more are refused.
_EXPONENT_MAX = 2 ** 63


def parse(text):
    """Returns the int or float that `text` stands for, or a message in a string."""
    match = _match(text)
    if match is None:
        return _complaint(text)
    sign, whole, fraction, exponent = match.groups()
    power = 0
    if exponent is not None:
        magnitude = exponent.lstrip("+-").lstrip("0")
        power = int(magnitude or "0") if len(magnitude) < 20 else _EXPONENT_MAX
        if exponent[0] == "-":
            power = -power
        if abs(power) >= _EXPONENT_MAX:
            return "exponent outside valid range"
    digits = whole
    if fraction is not None and fraction.strip("0"):
        digits += fraction
        power -= len(fraction)
    digits = digits.lstrip("0")
    if not digits:
        return 0
    limit = _INT64_MAX + 1 if sign else _INT64_MAX
    if len(digits) <= _DIGITS_MAX:
        integer = _scale(int(digits), power, limit)
        if integer is not None:
            return -integer if sign else integer
    real = float(text)
    if math.isinf(real):
        return "number outside valid range"
    # A number too small for a double is zero.
    return real if real else 0


def _scale(significand, power, limit):
    """Returns `significand` times ten to the `power`, or None if it is no integer up to `limit`."""
    if significand > limit:
        return None
    while power > 0 and significand <= limit:
        significand *= 10
        power -= 1
    while power < 0 and significand % 10 == 0:
        significand //= 10
        power += 1
    return significand if power == 0 and significand <= limit else None


def _complaint(text):
    """Returns the message about a `text` that consists of number characters but is no number."""
    if re.match("-?0[0-9]", text):
        return "leading zeros not allowed"
    if not re.match("-?[0-9]", text):
        return "'-' must be followed by digit"
    if re.match("-?[0-9]+\\.(?![0-9])", text):
        return "decimal point must be followed by digit"
    # The original complains so about every "e" before a sign, and never about an "E".
    if re.search("e(?![0-9])", text):
        return "exponent must contain at least one digit"
    return "syntax error in number"
