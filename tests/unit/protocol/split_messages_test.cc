// Messages of split training whose fields do not fit each other are refused before anybody uses them.
#include "protocol/split_messages.h"

#include <doctest/doctest.h>

#include <functional>
#include <limits>
#include <span>
#include <string>

#include "protocol/codec.h"
#include "protocol/limits.h"

using namespace fedge;
using namespace fedge::protocol;

namespace {

SplitValues first_part() {
  return {.run = RunId(1),
          .round = RoundNumber(2),
          .values = std::vector<std::byte>(8),
          .steps = 3,
          .total = 2,
          .last = true,
          .sent = {2},
          .targets = {1, 2}};
}

// What is wrong with the message; empty if it is accepted.
std::string fault_of(const std::function<void(SplitValues&)>& change) {
  SplitValues message = first_part();
  change(message);
  const std::string encoded = encode(message);
  const auto decoded = decode<SplitValues>(std::as_bytes(std::span(encoded)));
  return decoded ? "" : decoded.error().message;
}

}  // namespace

TEST_CASE("split messages: a message within its limits comes back, one beyond them is refused") {
  CHECK(fault_of([](SplitValues&) {}).empty());
  const auto refused = [](const std::function<void(SplitValues&)>& change, const std::string& words) {
    const std::string fault = fault_of(change);
    CHECK_MESSAGE(fault.find(words) != std::string::npos, fault);
  };
  refused([](SplitValues& m) { m.parts = 0; }, "part or parts");
  refused([](SplitValues& m) { m.parts = kMaxSplitParts + 1; }, "part or parts");
  refused([](SplitValues& m) { m.part = m.parts; }, "part or parts");
  refused([](SplitValues& m) { m.values.clear(); }, "another size than their part");
  refused([](SplitValues& m) { m.values.resize(kMaxSplitPart + 1); }, "another size than their part");
  refused([](SplitValues& m) { m.parts = 2; }, "another size than their part");
  refused([](SplitValues& m) { m.sent.clear(), m.targets.clear(); }, "belong to part 0");
  refused([](SplitValues& m) { m.part = 1, m.parts = 2; }, "belong to part 0");
  refused([](SplitValues& m) { m.kind = SplitKind::kGradients; }, "belong to part 0");
  refused([](SplitValues& m) { m.sent = {kMaxSplitTokens + 1}, m.targets.clear(); },
          "more than 65536 tokens");
  // A sum of 32-bit numbers that would wrap to 2.
  refused([](SplitValues& m) { m.sent = {0xffffffff, 3}; }, "more than 65536 tokens");
  refused([](SplitValues& m) { m.targets.push_back(1); }, "targets are not one for each token");
  refused([](SplitValues& m) { m.samples = {1, 2}; }, "samples are not one for each sequence");
  refused([](SplitValues& m) { m.losses = {1}; }, "losses belong to part 0 of gradients");
  refused(
      [](SplitValues& m) {
        m = {.run = m.run, .round = m.round, .kind = SplitKind::kGradients, .values = m.values};
        m.losses = {std::numeric_limits<double>::quiet_NaN()};
      },
      "not finite");
}
