// The meter reads a directory that stands for the kernel's.
#include "client/energy/energy_meter.h"

#include <doctest/doctest.h>

#include <fstream>
#include <string>

#include "core/energy/power_file.h"
#include "tests/unit/learn/idx_fixture.h"

namespace fedge::client {
namespace {

class FakeKernel {
 public:
  std::filesystem::path path() const { return scratch_.path(); }
  void write(const std::string& file, const std::string& text) const {
    const auto place = scratch_.path() / "class" / file;
    std::filesystem::create_directories(place.parent_path());
    std::ofstream(place) << text << "\n";
  }
  void package(int number, std::uint64_t microjoules, std::uint64_t range = 262'143'328'850) const {
    const std::string zone = "powercap/intel-rapl:" + std::to_string(number) + "/";
    write(zone + "name", "package-" + std::to_string(number));
    write(zone + "energy_uj", std::to_string(microjoules));
    write(zone + "max_energy_range_uj", std::to_string(range));
  }
  void battery(const std::string& status, std::uint64_t microwatt_hours) const {
    write("power_supply/BAT0/type", "Battery");
    write("power_supply/BAT0/status", status);
    write("power_supply/BAT0/energy_now", std::to_string(microwatt_hours));
  }

 private:
  learn::test::TemporaryDirectory scratch_;
};

// The readings of two moments that are this far apart.
EnergyMeter::Reading later(EnergyMeter::Reading reading, double seconds) {
  reading.when +=
      std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(seconds));
  return reading;
}

}  // namespace

TEST_CASE("energy meter of a machine: without counters the energy is unknown") {
  const FakeKernel kernel;
  const EnergyMeter meter(kernel.path());
  CHECK(meter.source() == "nothing");
  CHECK_FALSE(meter.between(meter.read(), meter.read()));
  CHECK(EnergyMeter("/nonexistent").source() == "nothing");
}

TEST_CASE("energy meter of a machine: packages add up, and their parts are not counted again") {
  const FakeKernel kernel;
  kernel.package(0, 1'000'000);
  kernel.package(1, 5'000'000);
  kernel.write("powercap/intel-rapl:0:0/energy_uj", "900000");
  kernel.write("powercap/intel-rapl:0:0/max_energy_range_uj", "262143328850");
  kernel.write("powercap/intel-rapl/enabled", "1");
  kernel.package(2, 77);
  kernel.write("powercap/intel-rapl:2/name", "psys");  // the platform, with all packages
  const EnergyMeter meter(kernel.path());
  CHECK(meter.source() == "rapl");
  const auto before = meter.read();
  kernel.package(0, 3'500'000);
  kernel.package(1, 5'250'000);
  kernel.write("powercap/intel-rapl:0:0/energy_uj", "3000000");
  kernel.write("powercap/intel-rapl:2/energy_uj", "9000000");
  CHECK(meter.between(before, later(meter.read(), 10)).value() == doctest::Approx(2.75));
}

TEST_CASE("energy meter of a machine: a counter that wraps is followed, unless it may have wrapped twice") {
  const FakeKernel kernel;
  kernel.package(0, 262'143'000'000);
  const EnergyMeter meter(kernel.path());
  const auto before = meter.read();
  kernel.package(0, 671'150);
  const auto after = meter.read();
  CHECK(meter.between(before, later(after, 60)).value() == doctest::Approx(1.0));
  // 262 kJ last for 262 seconds at 1000 W.
  CHECK_FALSE(meter.between(before, later(after, 263)));
}

TEST_CASE("energy meter of a machine: counters that come, go or are damaged give nothing") {
  const FakeKernel kernel;
  kernel.package(0, 1'000'000);
  const EnergyMeter meter(kernel.path());
  const auto before = meter.read();
  kernel.package(1, 1'000'000);
  CHECK_FALSE(meter.between(before, meter.read()));
  kernel.write("powercap/intel-rapl:1/energy_uj", "many");
  CHECK(meter.between(before, meter.read()));
  kernel.write("powercap/intel-rapl:0/max_energy_range_uj", "10");
  CHECK_FALSE(meter.between(before, meter.read()));
  kernel.write("powercap/intel-rapl:0/energy_uj", "");
  CHECK_FALSE(meter.between(before, meter.read()));
}

TEST_CASE("energy meter of a machine: a battery counts only while it is discharging") {
  const FakeKernel kernel;
  kernel.battery("Discharging", 20'000'000);
  kernel.write("power_supply/AC/type", "Mains");
  const EnergyMeter meter(kernel.path());
  CHECK(meter.source() == "battery");
  const auto before = meter.read();
  kernel.battery("Discharging", 19'999'000);
  CHECK(meter.between(before, meter.read()).value() == doctest::Approx(3.6));
  kernel.battery("Discharging", 20'001'000);
  CHECK_FALSE(meter.between(before, meter.read()));
  kernel.battery("Charging", 19'998'000);
  CHECK_FALSE(meter.between(before, meter.read()));
  CHECK(meter.source() == "nothing");
}

TEST_CASE("energy meter of a machine: two batteries that take turns give nothing") {
  const FakeKernel kernel;
  kernel.battery("Discharging", 20'000'000);
  kernel.write("power_supply/BAT1/type", "Battery");
  kernel.write("power_supply/BAT1/status", "Not charging");
  kernel.write("power_supply/BAT1/energy_now", "11000000");
  const EnergyMeter meter(kernel.path());
  const auto before = meter.read();
  kernel.battery("Not charging", 5'000'000);
  kernel.write("power_supply/BAT1/status", "Discharging");
  CHECK_FALSE(meter.between(before, meter.read()));
}

TEST_CASE("energy meter of a machine: a battery that states its charge is converted by its voltage") {
  const FakeKernel kernel;
  kernel.write("power_supply/BAT1/type", "Battery");
  kernel.write("power_supply/BAT1/status", "Discharging");
  kernel.write("power_supply/BAT1/charge_now", "4000000");
  kernel.write("power_supply/BAT1/voltage_min_design", "3850000");
  const EnergyMeter meter(kernel.path());
  const auto before = meter.read();
  kernel.write("power_supply/BAT1/charge_now", "3999000");
  CHECK(meter.between(before, meter.read()).value() == doctest::Approx(13.86));
}

TEST_CASE("power file: what is written reads back exactly") {
  const learn::test::TemporaryDirectory scratch;
  const DevicePower power{.hertz = {1e9 / 3, 1.7e9},
                          .volts = {0.55, 1.0 / 1.1},
                          .watts_lowest = 0.1 / 3,
                          .watts_highest = 0.28,
                          .cycles_per_flop = 0.125,
                          .awake_watts = 0.25,
                          .send_watts = 0.8,
                          .receive_watts = 0.5,
                          .send_bytes_per_second = 1e7 / 7,
                          .receive_bytes_per_second = 6.25e6};
  std::ofstream(scratch.path() / "power.toml") << power_file_text(power);
  const auto read = read_power_file(scratch.path() / "power.toml");
  REQUIRE_MESSAGE(read, read.error().message);
  CHECK(*read == power);
}

TEST_CASE("power file: errors name the file, the line and the key") {
  const learn::test::TemporaryDirectory scratch;
  const auto file = scratch.path() / "power.toml";
  const auto error_of = [&](const std::string& text) {
    std::ofstream(file) << text;
    const auto read = read_power_file(file);
    REQUIRE_FALSE(read);
    const std::string message = read.error().message;
    REQUIRE(message.starts_with(file.string()));
    return message.substr(file.string().size());
  };
  const std::string rest =
      "volts = [0.5, 0.9]\nwatts_lowest = 0.1\nwatts_highest = 1\ncycles_per_flop = 0.1\n"
      "send_bytes_per_second = 1e6\nreceive_bytes_per_second = 1e6\n";
  CHECK(error_of("hertz = [1e9, 2e9]\nwats = 3\n" + rest).find("wats") != std::string::npos);
  CHECK(error_of("hertz = [1e9, -2e9]\n" + rest).find(":1: hertz") == 0);
  CHECK(error_of("hertz = [2e9, 1e9]\n" + rest) == ": the frequencies are not in ascending order");
  CHECK(error_of(rest).find("hertz is required but missing") != std::string::npos);
  CHECK_FALSE(read_power_file(scratch.path() / "none.toml"));
}

}  // namespace fedge::client
