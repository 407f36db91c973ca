#!/usr/bin/env python3
"""Writes learn/text/vocabulary/unicode_classes.cc: Unicode's letters and numbers as ranges.

    scripts/unicode_classes.py > learn/text/vocabulary/unicode_classes.cc

The version is that of Python's unicodedata.
"""
import sys
import unicodedata

WIDTH = 110


def ranges_of(letter):
    """Returns (first, last) of each run of code points whose category begins with this letter."""
    found, first = [], None
    for code in range(sys.maxunicode + 2):
        inside = code <= sys.maxunicode and unicodedata.category(chr(code))[0] == letter
        if inside and first is None:
            first = code
        if not inside and first is not None:
            found.append((first, code - 1))
            first = None
    return found


def table(name, letter):
    lines, line = [], "   "
    for first, last in ranges_of(letter):
        item = f" {{{first:#x}, {last:#x}}},"
        if len(line) + len(item) > WIDTH:
            lines.append(line)
            line = "   "
        line += item
    return "\n".join([f"constexpr CodeRange {name}[] = {{", *lines, line, "};"])


print(f"""// Made by scripts/unicode_classes.py from Unicode {unicodedata.unidata_version}.
#include "learn/text/vocabulary/unicode_classes.h"

#include <algorithm>
#include <iterator>

namespace fedge::learn {{
namespace {{

struct CodeRange {{
  std::uint32_t first;
  std::uint32_t last;
}};

// clang-format off
{table("kLetters", "L")}

{table("kNumbers", "N")}
// clang-format on

template <std::size_t N>
bool contains(const CodeRange (&ranges)[N], std::uint32_t code) {{
  const auto* after =
      std::upper_bound(std::begin(ranges), std::end(ranges), code,
                       [](std::uint32_t c, const CodeRange& range) {{ return c < range.first; }});
  return after != std::begin(ranges) && code <= std::prev(after)->last;
}}

}}  // namespace

bool is_letter(std::uint32_t code) {{
  if (code < 0x80) return (code | 0x20U) >= 'a' && (code | 0x20U) <= 'z';
  return contains(kLetters, code);
}}

bool is_number(std::uint32_t code) {{
  if (code < 0x80) return code >= '0' && code <= '9';
  return contains(kNumbers, code);
}}

bool is_white_space(std::uint32_t code) {{
  return (code >= 9 && code <= 13) || code == ' ' || code == 0x85 || code == 0xa0 || code == 0x1680 ||
         (code >= 0x2000 && code <= 0x200a) || code == 0x2028 || code == 0x2029 || code == 0x202f ||
         code == 0x205f || code == 0x3000;
}}

}}  // namespace fedge::learn""")
