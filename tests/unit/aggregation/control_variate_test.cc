#include "aggregation/control_variate.h"

#include <doctest/doctest.h>

#include <map>
#include <random>
#include <vector>

#include "tests/support/aggregation.h"

namespace fedge::aggregation {

TEST_CASE("control variate: hand-computed, two of four clients over two rounds") {
  // eta = 0.5; round 1: c = 0, c_0+ = -delta / (2 * 0.5) = -1, c_1+ = -delta / (1 * 0.5) = 4; c = 3 / 4.
  ControlVariate control(1, 4, 0.5);
  Update first = test_update(0, {1.0F});
  first.steps = 2;
  Update second = test_update(1, {-2.0F});
  second.steps = 1;
  REQUIRE(control.add(first));
  REQUIRE(control.add(second));
  std::vector<float> c(1);
  control.read(0, c);
  CHECK(c[0] == 0.0F);  // unchanged until the round ends
  control.close();
  control.read(0, c);
  CHECK(c[0] == 0.75F);
  // Round 2, client 0: c_0+ - c_0 = -c - delta / (2 * 0.5) = -0.75 - 0.25 = -1; c = 0.75 - 1 / 4.
  first = test_update(0, {0.25F});
  first.steps = 2;
  REQUIRE(control.add(first));
  control.close();
  control.read(0, c);
  CHECK(c[0] == 0.5F);
}

TEST_CASE(
    "control variate: however large an update is, one client moves c by 16384 over the clients at most") {
  const auto moved = [](float delta) {
    ControlVariate control(1, 4, 1.0);
    Update update = test_update(0, {delta});
    update.steps = 1;
    REQUIRE(control.add(update));
    control.close();
    std::vector<float> c(1);
    control.read(0, c);
    return c[0];
  };
  CHECK(moved(-1e9F) == 4096.0F);
  CHECK(moved(1e9F) == -4096.0F);
  CHECK(moved(-16384.0F) == 4096.0F);
  CHECK(moved(-16380.0F) == 4095.0F);
  // The sum of a million clients' largest changes fits into 64 bits.
  static_assert(0x1p14 / kControlUnit * 1e6 < 0x1p63);
}

TEST_CASE("control variate: c stays the mean of all clients' c_k, exactly, whoever takes part") {
  constexpr std::size_t kParameters = 70'000;  // more than one piece
  constexpr std::size_t kClients = 7;
  constexpr double kRate = 0.05;
  std::mt19937 engine(3);
  std::normal_distribution<float> values(0, 0.01F);
  ControlVariate control(kParameters, kClients, kRate);
  // Each client's control variate as the client computes it: in the same units, from the server variate that
  // it received.
  std::vector<std::vector<ControlUnits>> kept(kClients, std::vector<ControlUnits>(kParameters));
  for (int round = 0; round < 6; ++round) {
    std::vector<float> sent(kParameters);
    control.read(0, sent);
    for (std::uint32_t client = 0; client < kClients; ++client) {
      if (engine() % 3 == 0) continue;
      std::vector<float> delta(kParameters);
      for (float& value : delta) value = values(engine);
      Update update = test_update(client, delta, 1, client % 2 == 0);
      update.steps = 1 + engine() % 40;
      const double scale = 1.0 / (static_cast<double>(update.steps) * kRate);
      for (std::size_t i = 0; i < kParameters; ++i)
        kept[client][i] += control_change(sent[i], delta[i], scale);
      REQUIRE(control.add(update));
    }
    control.close();
    std::vector<float> c(kParameters);
    control.read(0, c);
    for (std::size_t i = 0; i < kParameters; ++i) {
      ControlUnits sum = 0;
      for (const auto& one : kept) sum += one[i];
      REQUIRE(c[i] == static_cast<float>(static_cast<double>(sum) * (kControlUnit / kClients)));
    }
  }
}

}  // namespace fedge::aggregation
