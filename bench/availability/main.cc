// Measures the availability generators with a million devices. Costs: finding each device's first phase, then
// walking through all changes of a day, device by device and in order of time as the simulator does. Quality:
// prints the diurnal generator's statistics beside those measured on phones.
//   bench_availability [devices]
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

#include "sim/availability/availability.h"
#include "sim/event_queue.h"

namespace {

using namespace fedge;
using namespace fedge::sim;

constexpr double kDay = 86'400;

// Processor seconds: other programs do not count.
double now() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

[[noreturn]] void give_up(const std::string& message) {
  std::fprintf(stderr, "benchmark: %s\n", message.c_str());
  std::exit(1);
}

std::unique_ptr<Availability> make(const AvailabilitySpec& spec, std::size_t devices) {
  auto made = make_availability(spec, {devices, nullptr}, Rng(1));
  if (!made) give_up(made.error().message);
  return std::move(*made);
}

void measure(const char* name, const AvailabilitySpec& spec, std::uint32_t devices) {
  const double start = now();
  const auto availability = make(spec, devices);
  const double made = now();
  std::vector<Phase> phases;
  phases.reserve(devices);
  for (std::uint32_t c = 0; c < devices; ++c) phases.push_back(availability->first(ClientId(c)));
  const double ready = now();
  std::uint64_t changes = 0;
  const Time end(seconds(kDay));
  for (std::uint32_t c = 0; c < devices; ++c)
    for (Phase phase = phases[c]; phase.until && *phase.until < end; ++changes)
      phase = availability->next(ClientId(c), phase);
  const double walked = now();
  EventQueue<std::uint32_t> queue;
  for (std::uint32_t c = 0; c < devices; ++c)
    if (phases[c].until) queue.push(*phases[c].until, c);
  while (!queue.empty()) {
    const auto change = queue.pop();
    if (change.at >= end) break;
    Phase& phase = phases[change.payload];
    phase = availability->next(ClientId(change.payload), phase);
    if (phase.until) queue.push(*phase.until, change.payload);
  }
  const double ordered = now();
  const double each = changes > 0 ? (walked - ready) * 1e9 / static_cast<double>(changes) : 0;
  std::printf("%-16s %8.2f %8.2f %10.2f %10.0f %12.2f %12.2f\n", name, made - start, ready - made,
              static_cast<double>(changes) / devices, each, walked - ready, ordered - walked);
}

// Writes three up intervals of one hour a day for each device, at hours that differ between devices.
std::filesystem::path write_trace(std::uint32_t devices) {
  const auto path = std::filesystem::temp_directory_path() / "fedge-bench-trace.csv";
  std::ofstream file(path);
  file << "client,up_seconds,down_seconds\n";
  for (std::uint32_t c = 0; c < devices; ++c)
    for (int i = 0; i < 3; ++i) {
      const std::uint32_t up = c * 7919 % 20'000 + static_cast<std::uint32_t>(i) * 28'800;
      file << c << ',' << up << ',' << up + 3600 << '\n';
    }
  return path;
}

// Availability of phones over five days, in percent of the time.
struct Shares {
  std::array<double, 24> by_hour{};
  std::vector<double> by_phone;  // sorted
  std::vector<double> stays;     // stays of each phone, sorted
  double mean = 0;
  double whole[2] = {};          // seconds of gaps [0] and stays [1] that begin and end within the five days
  std::uint64_t wholes[2] = {};  // their numbers
  double in_long = 0;            // percent of the up time that falls into stays of an hour or more
};

void add_stay(double from, double end, Shares& shares) {
  for (double at = from; at < end;) {
    const double hour = std::floor(at / 3600);
    const double until = std::min(end, (hour + 1) * 3600);
    shares.by_hour[static_cast<std::size_t>(hour) % 24] += until - at;
    at = until;
  }
  if (end - from >= 3600) shares.in_long += end - from;
}

Shares five_days(const Availability& availability, std::uint32_t phones) {
  Shares shares;
  for (std::uint32_t c = 0; c < phones; ++c) {
    double up = 0;
    double stays = 0;
    double from = 0;
    for (Phase phase = availability.first(ClientId(c));; phase = availability.next(ClientId(c), phase)) {
      const double end = std::min(phase.until ? to_seconds(*phase.until) : 1e12, 5 * kDay);
      if (phase.up) {
        add_stay(from, end, shares);
        up += end - from;
        ++stays;
      }
      if (from > 0 && end < 5 * kDay) {
        shares.whole[phase.up ? 1 : 0] += end - from;
        ++shares.wholes[phase.up ? 1 : 0];
      }
      from = end;
      if (end >= 5 * kDay) break;
    }
    shares.by_phone.push_back(up / (5 * kDay) * 100);
    shares.stays.push_back(stays);
  }
  const double total = std::accumulate(shares.by_hour.begin(), shares.by_hour.end(), 0.0);
  shares.in_long *= 100 / total;
  for (double& hour : shares.by_hour) hour *= 100 / (5 * 3600.0 * phones);
  shares.mean = total * 100 / (5 * kDay * phones);
  std::sort(shares.by_phone.begin(), shares.by_phone.end());
  std::sort(shares.stays.begin(), shares.stays.end());
  return shares;
}

void compare_with_phones(std::uint32_t phones) {
  const AvailabilitySpec spec{.kind = AvailabilityKind::kDiurnal};
  const Shares shares = five_days(*make(spec, phones), phones);
  std::printf("\ndiurnal, %u phones over five days   generated  measured\n", phones);
  std::printf("up, %% of the time                    %8.2f       9.5\n", shares.mean);
  std::printf("of it in stays of an hour or more, %% %8.1f        79\n", shares.in_long);
  for (const int up : {1, 0})
    std::printf("%s seen whole, mean, s              %8.0f  %8d\n", up == 1 ? "stays" : "gaps ",
                shares.whole[up] / static_cast<double>(shares.wholes[up]), up == 1 ? 2054 : 11'758);
  const std::array<double, 5> at = {0.05, 0.25, 0.5, 0.75, 0.95};
  const std::array<double, 5> measured = {0, 1.3, 5.5, 13, 33};
  const std::array<double, 5> stays = {1, 5, 12, 27, 61};
  for (std::size_t i = 0; i < at.size(); ++i) {
    const auto place = static_cast<std::size_t>(at[i] * phones);
    std::printf("%2.0f %% of phones: up, %% of the time    %8.2f  %8.1f; stays %3.0f, measured %.0f\n",
                at[i] * 100, shares.by_phone[place], measured[i], shares.stays[place], stays[i]);
  }
  const double mean = std::accumulate(spec.hours.begin(), spec.hours.end(), 0.0) / 24;
  for (std::size_t h = 0; h < 24; ++h)
    std::printf("hour %2zu: up, %% of the time          %8.2f  %8.1f; as part of the mean %+.1f %%\n", h,
                shares.by_hour[h], spec.hours[h],
                (shares.by_hour[h] / shares.mean * mean / spec.hours[h] - 1) * 100);
}

}  // namespace

int main(int count, char** arguments) {
  const auto devices = static_cast<std::uint32_t>(count > 1 ? std::atoi(arguments[1]) : 1'000'000);
  std::printf("%u devices, a day; %zu bytes a device; seconds of processor time\n", devices, sizeof(Phase));
  std::printf("%-16s %8s %8s %10s %10s %12s %12s\n", "kind", "make, s", "first, s", "changes a", "ns a",
              "by device,", "by time,");
  std::printf("%-16s %8s %8s %10s %10s %12s %12s\n", "", "", "", "device", "change", "s a day", "s a day");
  measure("always", {}, devices);
  measure("gilbert_elliott", {.kind = AvailabilityKind::kGilbertElliott}, devices);
  measure("diurnal", {.kind = AvailabilityKind::kDiurnal}, devices);
  AvailabilitySpec shock{.kind = AvailabilityKind::kCommonShock};
  shock.groups = std::min<std::size_t>(100, devices);
  measure("common_shock", shock, devices);
  const auto file = write_trace(devices);
  measure("trace", {.kind = AvailabilityKind::kTrace, .file = file.string(), .period = seconds(kDay)},
          devices);
  std::filesystem::remove(file);
  compare_with_phones(std::min<std::uint32_t>(devices, 40'000));
}
