#include "core/text.h"

#include <doctest/doctest.h>

using namespace fedge;

TEST_CASE("text: UTF-8 of every length passes") {
  CHECK(check_text("", 0, "t"));
  CHECK(check_text("plain, \xc3\xa4, \xe2\x82\xac, \xf0\x9f\x8c\x8d", 100, "t"));
  CHECK(check_text("\xed\x9f\xbf \xee\x80\x80 \xf4\x8f\xbf\xbf", 100, "t"));
}

TEST_CASE("text: bytes that are not UTF-8 are refused at their place") {
  // Lone continuation, overlong slash, overlong NUL, surrogate, beyond U+10FFFF, truncated, 0xff.
  for (const char* bad : {"ab\x80", "ab\xc0\xaf", "ab\xe0\x80\x80", "ab\xed\xa0\x80", "ab\xf4\x90\x80\x80",
                          "ab\xe2\x82", "ab\xff", "ab\xf0\x80\x80\x80", "ab\xc3("}) {
    const auto result = check_text(bad, 100, "name");
    REQUIRE_FALSE(result);
    CHECK(result.error().message == "name is not valid UTF-8 at byte 2");
  }
}

TEST_CASE("text: control characters are refused, line ends and tabs only where they are allowed") {
  for (const std::string& bad :
       {std::string("a\0b", 3), std::string("a\x1b[31m"), std::string("a\x7f"), std::string("a\xc2\x9b"),
        std::string("a\xe2\x80\xae"), std::string("a\rb")}) {
    CHECK_FALSE(check_text(bad, 100, "t"));
    CHECK_FALSE(check_text(bad, 100, "t", LineEnds::kAllowed));
  }
  CHECK_FALSE(check_text("a\nb", 100, "t"));
  CHECK(check_text("a\n\tb", 100, "t", LineEnds::kAllowed));
}

TEST_CASE("text: a text above its length is refused") {
  CHECK(check_text(std::string(8, 'a'), 8, "t"));
  CHECK_FALSE(check_text(std::string(9, 'a'), 8, "t"));
}

TEST_CASE("text: what leaves is cut between characters and cleaned, so that it always passes") {
  CHECK(clean_text("a\nb\x80"
                   "c",
                   100) == "a?b?c");
  CHECK(clean_text("ab\xe2\x82\xac", 4) == "ab");
  CHECK(clean_text("ab\xe2\x82\xac", 5) == "ab\xe2\x82\xac");
  std::string every;
  for (int byte = 0; byte < 256; ++byte) every += static_cast<char>(byte);
  CHECK(check_text(clean_text(every, 1000), 1000, "t"));
}

TEST_CASE("json text: quotation marks, backslashes and control characters are escaped, all else stays") {
  CHECK(json_text(std::string("")) == "\"\"");
  CHECK(json_text(std::string("a \"b\" c:\\d/e")) == "\"a \\\"b\\\" c:\\\\d/e\"");
  CHECK(json_text(std::string("1\n2\t3\x01")) == "\"1\\n2\\t3\\u0001\"");
  CHECK(json_text(std::string("caf\xc3\xa9")) == "\"caf\xc3\xa9\"");
  // Invalid UTF-8 would make invalid JSON.
  CHECK(json_text(std::string("y\xffz")) == "\"y\xef\xbf\xbdz\"");
}
