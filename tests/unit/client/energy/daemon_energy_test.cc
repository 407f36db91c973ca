// A daemon that measures the energy of its training, and describes its processor.
#include <doctest/doctest.h>

#include <atomic>

#include "client/energy/energy_meter.h"
#include "tests/unit/client/daemon_site.h"

namespace fedge::client {
namespace {

using site::kFirst;
using site::Site;

// Stands for the kernel's counters: each reading shows 2.5 joules less in the battery.
class DrainingBattery final : public EnergyMeter {
 public:
  Reading read() const override {
    return {.packages = {}, .batteries = {{"BAT0", 1000 - 2.5 * readings_++}}};
  }

 private:
  mutable std::atomic<int> readings_ = 0;
};

const DevicePower kPower{.hertz = {1e9, 2e9},
                         .volts = {0.7, 0.9},
                         .watts_lowest = 0.4,
                         .watts_highest = 1.5,
                         .cycles_per_flop = 0.25,
                         .send_bytes_per_second = 1e6,
                         .receive_bytes_per_second = 1e6};

template <class M>
const M& heard(const Site& site) {
  for (const protocol::Message& message : site.heard)
    if (const auto* found = std::get_if<M>(&message)) return *found;
  FAIL("the client has not sent this message");
  return std::get<M>(site.heard.front());
}

}  // namespace

TEST_CASE("daemon: an update says what its training consumed, and an answer describes the processor") {
  Site site;
  site.going = {kFirst};
  site.power = std::make_shared<const DevicePower>(kPower);
  site.meter = std::make_shared<const DrainingBattery>();
  bool wanted = false;
  SUBCASE("a run that asks for it") {
    wanted = true;
    site.work.text += "[status]\npower = true\n";
  }
  SUBCASE("a run that does not ask for a description") {}
  site.begin();
  REQUIRE(site.hears<protocol::RunAnswer>(kFirst));
  CHECK(heard<protocol::RunAnswer>(site).power == (wanted ? std::optional(kPower) : std::nullopt));
  site.tell(site.work.request(kFirst, 1));
  REQUIRE(site.hears<protocol::UpdateOffer>(kFirst));
  CHECK(heard<protocol::UpdateOffer>(site).joules == 2.5);
}

TEST_CASE("daemon: without a meter or counters nothing is said about energy") {
  Site site;
  site.going = {kFirst};
  SUBCASE("no meter") {}
  SUBCASE("a machine without counters") {
    site.meter = std::make_shared<const EnergyMeter>(site.data.path());
  }
  site.begin();
  REQUIRE(site.hears<protocol::RunAnswer>(kFirst));
  CHECK_FALSE(heard<protocol::RunAnswer>(site).power);
  site.tell(site.work.request(kFirst, 1));
  REQUIRE(site.hears<protocol::UpdateOffer>(kFirst));
  CHECK_FALSE(heard<protocol::UpdateOffer>(site).joules);
}

TEST_CASE("daemon: with noise on its updates a client says nothing about its energy") {
  Site site;
  site.going = {kFirst};
  site.power = std::make_shared<const DevicePower>(kPower);
  site.meter = std::make_shared<const DrainingBattery>();
  site.work.text +=
      "[status]\npower = true\n[local_privacy]\nclipping_norm = 1.0\nnoise_multiplier = 10.0\nfraction_bits "
      "= 14\n"
      "max_participations = 100\ndelta = 1e-5\n";
  site.begin();
  REQUIRE(site.hears<protocol::RunAnswer>(kFirst));
  REQUIRE(heard<protocol::RunAnswer>(site).ready);
  CHECK_FALSE(heard<protocol::RunAnswer>(site).power);
  site.tell(site.work.request(kFirst, 1));
  REQUIRE(site.hears<protocol::UpdateOffer>(kFirst));
  CHECK_FALSE(heard<protocol::UpdateOffer>(site).joules);
}

}  // namespace fedge::client
