#include "core/detail/json.h"

#include <doctest/doctest.h>

using namespace fedge;

TEST_CASE("json: a text nested deeper than is read is discarded before it is built") {
  const auto nested = [](std::size_t levels) { return std::string(levels, '[') + std::string(levels, ']'); };
  CHECK_FALSE(parse_json(nested(kMaxJsonLevels)).is_discarded());
  CHECK(parse_json(nested(kMaxJsonLevels + 1)).is_discarded());
  CHECK(parse_json(nested(1'000'000)).is_discarded());
  CHECK(parse_json(std::string(1'000'000, '[')).is_discarded());
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
  CHECK(parse_json(objects + "1" + std::string(100'000, '}')).is_discarded());
}
