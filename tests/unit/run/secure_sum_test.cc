// What the sum of masked updates may weigh once it has no masks.
#include <doctest/doctest.h>

#include <vector>

#include "run/secure_update.h"

namespace fedge::run {

TEST_CASE(
    "secure sum: it weighs no more than its updates may together, and that is all that can be checked") {
  const privacy::MaskingSpec spec{.codec = protocol::Codec::kMasked64, .max_weight = 200};
  const auto check = [&](const std::vector<std::uint64_t>& weights) {
    return check_weights(spec, weights, 2);
  };
  CHECK(check({260, 0, 400}));
  const auto heavy = check({260, 401});
  REQUIRE_FALSE(heavy);
  CHECK(heavy.error().code == ErrorCode::kInvalid);
  CHECK(heavy.error().message.find("has a weight of 401, at most 400 is possible") != std::string::npos);
  CHECK_FALSE(check({100'000'060}));
  CHECK_FALSE(check({UINT64_MAX}));
  // 60 of an honest client and 340 of another one, of which nobody can tell which is whose.
  CHECK(check({60 + 340}));
}

}  // namespace fedge::run
