#include "client/energy/energy_meter.h"

#include <charconv>
#include <fstream>
#include <system_error>
#include <vector>

namespace fedge::client {
namespace {

// No package consumes more. A counter that can wrap in less time than has passed says nothing.
constexpr double kMostWatts = 1000;
constexpr std::size_t kMostEntries = 256;  // of a directory

std::optional<std::string> line_of(const std::filesystem::path& file) {
  std::ifstream in(file);
  char text[64];
  in.read(text, sizeof text);
  std::string line(text, static_cast<std::size_t>(in.gcount()));
  if (line.empty()) return std::nullopt;
  return line.substr(0, line.find('\n'));
}

std::optional<std::uint64_t> number_in(const std::filesystem::path& file) {
  const auto line = line_of(file);
  std::uint64_t number = 0;
  if (!line) return std::nullopt;
  const auto end = std::from_chars(line->data(), line->data() + line->size(), number);
  if (end.ec != std::errc() || end.ptr != line->data() + line->size()) return std::nullopt;
  return number;
}

std::vector<std::filesystem::path> entries_of(const std::filesystem::path& directory) {
  std::vector<std::filesystem::path> entries;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(directory, error), end;
       !error && entry != end && entries.size() < kMostEntries; entry.increment(error))
    entries.push_back(entry->path());
  return entries;
}

// A package is "intel-rapl:0". Its parts, such as "intel-rapl:0:0", are contained in it, and the platform
// ("psys") contains all packages.
bool is_package(const std::filesystem::path& zone) {
  const std::string prefix = "intel-rapl:";
  const std::string directory = zone.filename().string();
  return directory.starts_with(prefix) && directory.find(':', prefix.size()) == std::string::npos &&
         line_of(zone / "name").value_or("").starts_with("package");
}

// Whether this is a battery of the machine, and not that of a mouse or a headset.
bool is_battery(const std::filesystem::path& supply) {
  return line_of(supply / "type") == "Battery" && line_of(supply / "scope") != "Device";
}

// Joules left in a battery that is discharging.
std::optional<double> left_in(const std::filesystem::path& battery) {
  if (!is_battery(battery) || line_of(battery / "status") != "Discharging") return std::nullopt;
  if (const auto microwatt_hours = number_in(battery / "energy_now"))
    return static_cast<double>(*microwatt_hours) * 3600e-6;
  const auto microampere_hours = number_in(battery / "charge_now");
  const auto microvolts = number_in(battery / "voltage_min_design");
  if (!microampere_hours || !microvolts) return std::nullopt;
  return static_cast<double>(*microampere_hours) * 1e-6 * 3600 * static_cast<double>(*microvolts) * 1e-6;
}

// What the same batteries have lost; nothing if they are others, or one has gained.
std::optional<double> drained(const std::map<std::string, double>& before,
                              const std::map<std::string, double>& after) {
  if (before.empty() || before.size() != after.size()) return std::nullopt;
  double joules = 0;
  for (const auto& [name, left] : before) {
    const auto found = after.find(name);
    if (found == after.end() || found->second > left) return std::nullopt;
    joules += left - found->second;
  }
  return joules;
}

}  // namespace

EnergyMeter::Reading EnergyMeter::read() const {
  Reading reading;
  for (const auto& zone : entries_of(sysfs_ / "class" / "powercap")) {
    if (!is_package(zone)) continue;
    if (const auto microjoules = number_in(zone / "energy_uj"))
      reading.packages[zone.filename().string()] = *microjoules;
  }
  for (const auto& supply : entries_of(sysfs_ / "class" / "power_supply"))
    if (const auto joules = left_in(supply)) reading.batteries[supply.filename().string()] = *joules;
  return reading;
}

std::optional<double> EnergyMeter::between(const Reading& before, const Reading& after) const {
  if (before.packages.empty() && after.packages.empty()) {
    return drained(before.batteries, after.batteries);
  }
  if (before.packages.size() != after.packages.size()) return std::nullopt;
  const double passed = std::chrono::duration<double>(after.when - before.when).count();
  double joules = 0;
  for (const auto& [name, begin] : before.packages) {
    const auto found = after.packages.find(name);
    const auto range = number_in(sysfs_ / "class" / "powercap" / name / "max_energy_range_uj");
    if (found == after.packages.end() || !range) return std::nullopt;
    if (passed * kMostWatts * 1e6 >= static_cast<double>(*range)) return std::nullopt;
    const std::uint64_t end = found->second;
    if (begin > *range || end > *range) return std::nullopt;
    joules += static_cast<double>(end >= begin ? end - begin : *range - begin + end) * 1e-6;
  }
  return joules;
}

double EnergyMeter::battery_level() const {
  double sum = 0;
  std::size_t count = 0;
  for (const auto& supply : entries_of(sysfs_ / "class" / "power_supply")) {
    const auto percent = number_in(supply / "capacity");
    if (!percent || *percent > 100 || !is_battery(supply)) continue;
    sum += static_cast<double>(*percent) / 100;
    ++count;
  }
  return count == 0 ? 1 : sum / static_cast<double>(count);
}

std::string EnergyMeter::source() const {
  const Reading now = read();
  return !now.packages.empty() ? "rapl" : !now.batteries.empty() ? "battery" : "nothing";
}

}  // namespace fedge::client
