#include "core/json_text.h"

#include <doctest/doctest.h>

namespace fedge {

TEST_CASE("json text: quotation marks, backslashes and control characters are escaped, all else stays") {
  CHECK(json_text("") == "\"\"");
  CHECK(json_text("a \"b\" c:\\d/e") == "\"a \\\"b\\\" c:\\\\d/e\"");
  CHECK(json_text("1\n2\t3\x01") == "\"1\\n2\\t3\\u0001\"");
  CHECK(json_text("caf\xc3\xa9") == "\"caf\xc3\xa9\"");
  // What is no UTF-8 would be no JSON either.
  CHECK(json_text("y\xffz") == "\"y\xef\xbf\xbdz\"");
}

}  // namespace fedge
