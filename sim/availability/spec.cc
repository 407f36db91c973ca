#include "sim/availability/spec.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace fedge::sim {
namespace {

const std::vector<std::string> kKindNames = {"always", "gilbert_elliott", "diurnal", "common_shock", "trace"};

const std::string& kind_name(AvailabilityKind kind) { return kKindNames[static_cast<std::size_t>(kind)]; }

// Refuses keys that have no effect with the selected kind.
void check_keys(config::Reader& section, const AvailabilitySpec& spec) {
  struct Owned {
    std::vector<AvailabilityKind> kinds;
    std::vector<const char*> keys;
  };
  using enum AvailabilityKind;
  static const std::vector<Owned> owned = {{{kGilbertElliott, kCommonShock}, {"slot_seconds"}},
                                           {{kGilbertElliott}, {"p_up_down", "p_down_up"}},
                                           {{kDiurnal},
                                            {"up_mu", "up_sigma", "up_longest_seconds", "down_mu",
                                             "down_sigma", "down_longest_seconds", "hours", "start_hour"}},
                                           {{kCommonShock}, {"a", "z", "groups", "tied_to_labels"}},
                                           {{kTrace}, {"file", "period_seconds"}}};
  for (const auto& [kinds, keys] : owned) {
    if (std::find(kinds.begin(), kinds.end(), spec.kind) != kinds.end()) continue;
    for (const char* key : keys)
      if (section.has(key))
        section.refuse(key, "belongs to kind \"" + kind_name(kinds.front()) + "\"; kind is \"" +
                                kind_name(spec.kind) + "\"");
  }
}

void read_slots(config::Reader& section, AvailabilitySpec& spec) {
  spec.slot = seconds(section.number("slot_seconds", to_seconds(spec.slot), {0.001, 1e9},
                                     "gilbert_elliott, common_shock: length of a time slot in seconds. "
                                     "Availability is drawn once per slot."));
  spec.p_up_down =
      section.number("p_up_down", spec.p_up_down, {0.0, 1.0},
                     "gilbert_elliott: probability per slot that an available device becomes unavailable.");
  spec.p_down_up =
      section.number("p_down_up", spec.p_down_up, {1e-9, 1.0},
                     "gilbert_elliott: probability per slot that an unavailable device becomes available.");
}

void check_longest(config::Reader& section, const char* key, const IntervalLengths& lengths) {
  if (std::log(lengths.longest) < lengths.mu)
    section.fail(key, "is below the median length of the intervals, e^mu = " +
                          std::to_string(std::exp(lengths.mu)) + " seconds");
}

void read_diurnal(config::Reader& section, AvailabilitySpec& spec) {
  spec.up.mu = section.number("up_mu", spec.up.mu, {0.0, 20.0},
                              "diurnal: mean of the logarithm of the seconds that a device is available.");
  spec.up.sigma = section.number(
      "up_sigma", spec.up.sigma, {0.0, 10.0},
      "diurnal: standard deviation of the logarithm of the seconds that a device is available.");
  spec.up.longest =
      section.number("up_longest_seconds", spec.up.longest, {1.0, 1e9},
                     "diurnal: maximum length in seconds of an interval in which a device is available.");
  check_longest(section, "up_longest_seconds", spec.up);
  spec.down.mu =
      section.number("down_mu", spec.down.mu, {0.0, 20.0},
                     "diurnal: mean of the logarithm of the seconds that a device is unavailable.");
  spec.down.sigma = section.number(
      "down_sigma", spec.down.sigma, {0.0, 10.0},
      "diurnal: standard deviation of the logarithm of the seconds that a device is unavailable.");
  spec.down.longest =
      section.number("down_longest_seconds", spec.down.longest, {1.0, 1e9},
                     "diurnal: maximum length in seconds of an interval in which a device is unavailable.");
  check_longest(section, "down_longest_seconds", spec.down);
  const std::vector<double> hours =
      section.numbers("hours", std::vector<double>(spec.hours.begin(), spec.hours.end()), {0.0, 1e6},
                      "diurnal: 24 weights, one for each hour of the day from 0 h: the fraction of devices "
                      "that are available then. Only the ratios matter.");
  if (hours.size() != spec.hours.size())
    section.fail("hours", "has " + std::to_string(hours.size()) + " numbers; expected 24");
  else if (*std::max_element(hours.begin(), hours.end()) <= 0)
    section.fail("hours", "is zero in every hour; at least one hour must be above 0");
  else
    std::copy(hours.begin(), hours.end(), spec.hours.begin());
  spec.start_hour = section.number("start_hour", spec.start_hour, {0.0, 24.0},
                                   "diurnal: hour of the day at the start of the simulation.");
}

void read_shock(config::Reader& section, AvailabilitySpec& spec) {
  spec.a = section.number("a", spec.a, {0.001, 1.0},
                          "common_shock: probability per slot that a device is available if its group is not "
                          "struck by a failure.");
  spec.z = section.number("z", spec.z, {0.001, 1.0},
                          "common_shock: probability per slot that a group is not struck by a failure. 1 = "
                          "devices fail independently.");
  spec.groups = static_cast<std::size_t>(
      section.integer("groups", 1, {1, 10'000'000}, "common_shock: number of groups, of equal size."));
  spec.tied_to_labels = section.boolean(
      "tied_to_labels", spec.tied_to_labels,
      "common_shock: put devices with the same labels into the same group. false = random groups.");
}

void read_trace(config::Reader& section, AvailabilitySpec& spec) {
  spec.file = section.text("file", "",
                           "trace: CSV file with the header client,up_seconds,down_seconds and one line for "
                           "each interval in which a client is available.");
  spec.period =
      seconds(section.number("period_seconds", 0.0, {0.0, 1e9},
                             "trace: repeat the trace after this many seconds. 0 = do not repeat it."));
  if (spec.kind == AvailabilityKind::kTrace && spec.file.empty())
    section.fail("file", "is missing; kind \"trace\" needs a trace file");
}

}  // namespace

AvailabilitySpec read_availability(config::Reader& section) {
  AvailabilitySpec spec;
  spec.kind = static_cast<AvailabilityKind>(
      section.choice("kind", kKindNames, 0,
                     "Model of when devices are available. Only simulations in virtual time use it."));
  check_keys(section, spec);
  read_slots(section, spec);
  read_diurnal(section, spec);
  read_shock(section, spec);
  read_trace(section, spec);
  return spec;
}

}  // namespace fedge::sim
