// EnergyMeter: the energy that this machine consumes, read from the kernel's counters. Intel's and AMD's RAPL
// counters (powercap) count the processor packages; without them, a battery that is discharging counts the
// whole device. A machine without either reports nothing: its energy is unknown. All programs of the machine
// are counted, not this one alone. Thread-safe; a reading takes a few small files.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

namespace fedge::client {

class EnergyMeter {
 public:
  // `sysfs`: where the kernel's files are; another directory in tests.
  explicit EnergyMeter(std::filesystem::path sysfs = "/sys") : sysfs_(std::move(sysfs)) {}
  virtual ~EnergyMeter() = default;

  // The counters at one moment.
  struct Reading {
    std::map<std::string, std::uint64_t> packages;  // microjoules, by name of the counter
    std::map<std::string, double> batteries;        // joules left in those that are discharging, by name
    std::chrono::steady_clock::time_point when = std::chrono::steady_clock::now();
  };
  virtual Reading read() const;
  // Joules between two readings. Nothing if a counter has come or gone, or may have wrapped around more than
  // once, which takes over four minutes at 1000 W; or if a battery has gained or is not discharging.
  std::optional<double> between(const Reading& before, const Reading& after) const;
  // Level of the batteries together, from 0 to 1; 1 without a battery. Whatever they are doing.
  double battery_level() const;
  // What is read: "rapl", "battery" or "nothing", for a log.
  std::string source() const;

 private:
  std::filesystem::path sysfs_;
};

}  // namespace fedge::client
