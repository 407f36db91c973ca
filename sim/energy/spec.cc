#include "sim/energy/spec.h"

#include <cmath>
#include <string>

#include "core/text.h"

namespace fedge::sim {
namespace {

constexpr double kVoltageExponent = 1.2;
constexpr std::size_t kMostClusters = 64;
constexpr double kMostWatts = 1000;

std::vector<ClusterSpec> default_clusters() {
  return {{"little", 0.3, 0.324e9, 1.704e9, 0.55, 0.90, 0.20e-9, 0.125},
          {"big", 0.5, 0.402e9, 2.367e9, 0.55, 1.00, 0.60e-9, 0.0625},
          {"prime", 0.2, 0.500e9, 2.914e9, 0.55, 1.05, 0.90e-9, 0.125}};
}

ClusterSpec read_cluster(config::Reader& table) {
  ClusterSpec cluster;
  cluster.name = table.text("name", std::nullopt, "Name of the cluster in results.");
  cluster.share = table.number("share", 1.0, {0.0, 1e6},
                               "Share of the devices that train on this cluster. Only the ratios matter.");
  cluster.lowest_hertz =
      1e6 * table.number("lowest_mhz", std::nullopt, {1e-3, 1e6}, "Lowest frequency in MHz.");
  cluster.highest_hertz =
      1e6 * table.number("highest_mhz", std::nullopt, {1e-3, 1e6}, "Highest frequency in MHz.");
  cluster.lowest_volts =
      table.number("lowest_volts", std::nullopt, {1e-3, 100.0}, "Voltage at the lowest frequency.");
  cluster.highest_volts =
      table.number("highest_volts", std::nullopt, {1e-3, 100.0}, "Voltage at the highest frequency.");
  cluster.farads =
      1e-9 * table.number("capacitance_nf", std::nullopt, {1e-9, 1e6},
                          "Effective capacitance C in nF with all cores active. Dynamic power is C V^2 f.");
  cluster.cycles_per_flop =
      table.number("cycles_per_flop", std::nullopt, {1e-6, 1e6},
                   "Cycles of the cluster for a floating-point operation of training, on all its cores.");
  if (cluster.highest_hertz < cluster.lowest_hertz) table.fail("highest_mhz", "is below lowest_mhz");
  if (cluster.highest_volts < cluster.lowest_volts) table.fail("highest_volts", "is below lowest_volts");
  return cluster;
}

}  // namespace

EnergySpec read_energy(config::Reader& section) {
  EnergySpec spec;
  spec.on = section.choice("kind", {"none", "clusters"}, 0,
                           "Whether devices have a processor and a radio that consume energy.\nnone: no; a "
                           "device trains as simulation.device.samples_per_second says.\nclusters: each "
                           "device trains on one of the clusters, which also decide its speed.") == 1;
  for (const char* key :
       {"clusters", "frequencies", "governor", "awake_watts", "send_watts", "receive_watts"})
    if (!spec.on && section.has(key)) section.refuse(key, "has no effect without kind = \"clusters\"");
  std::vector<config::Reader> tables =
      section.tables("clusters",
                     "The processor clusters of the devices. Not set: three synthetic ones, little (30 % of "
                     "the devices), big (50 %) and prime (20 %).");
  double shares = 0;
  for (config::Reader& table : tables) {
    spec.clusters.push_back(read_cluster(table));
    shares += spec.clusters.back().share;
    section.adopt(table);
  }
  if (tables.empty()) spec.clusters = default_clusters();
  if (!tables.empty() && !(shares > 0)) section.fail("clusters", "have no shares above 0");
  if (tables.size() > kMostClusters)
    section.fail("clusters", "are " + std::to_string(tables.size()) + ", at most " +
                                 std::to_string(kMostClusters) + " are allowed");
  spec.frequencies = static_cast<std::size_t>(section.integer(
      "frequencies", 8, {1, static_cast<std::int64_t>(kMaxFrequencies)},
      "Number of frequencies of each cluster, evenly spaced. 1: only the highest frequency."));
  spec.governor = static_cast<Governor>(
      section.choice("governor", {"highest", "lowest", "random"}, 0,
                     "Frequency at which a device trains if its task names none.\nhighest: the "
                     "highest.\nlowest: the lowest.\nrandom: a frequency drawn for each task."));
  spec.awake_watts = section.number("awake_watts", spec.awake_watts, {0.0, kMostWatts},
                                    "Power of the rest of a device while it works for the run, in watts.");
  spec.send_watts = section.number("send_watts", spec.send_watts, {0.0, kMostWatts},
                                   "Power of the radio while it sends, in watts.");
  spec.receive_watts = section.number("receive_watts", spec.receive_watts, {0.0, kMostWatts},
                                      "Power of the radio while it receives, in watts.");
  for (const ClusterSpec& cluster : spec.clusters) {
    DevicePower power = describe_cluster(cluster, spec);
    power.send_bytes_per_second = power.receive_bytes_per_second = 1;  // those of each device's link
    if (const auto valid = check_power(power); !valid)
      section.fail("clusters", "cluster \"" + cluster.name + "\": " + valid.error().message);
    else if (power.watts_highest > kMostWatts)
      section.fail("clusters",
                   "cluster \"" + cluster.name + "\" would consume " + number_text(power.watts_highest) +
                       " W at its highest frequency; at most " + number_text(kMostWatts) + " W are allowed");
  }
  config::Reader battery = section.section("battery");
  spec.battery = read_battery(battery);
  if (spec.battery.on() && !spec.on)
    battery.fail("capacity_wh",
                 "needs devices that consume energy; set simulation.energy.kind to \"clusters\"",
                 {"simulation.energy.kind"});
  section.adopt(battery);
  return spec;
}

DevicePower describe_cluster(const ClusterSpec& cluster, const EnergySpec& spec) {
  DevicePower power{.hertz = {},
                    .volts = {},
                    .cycles_per_flop = cluster.cycles_per_flop,
                    .awake_watts = spec.awake_watts,
                    .send_watts = spec.send_watts,
                    .receive_watts = spec.receive_watts};
  const std::size_t steps = cluster.highest_hertz > cluster.lowest_hertz ? spec.frequencies : 1;
  for (std::size_t step = 0; step < steps; ++step) {
    const double part = steps == 1 ? 1 : static_cast<double>(step) / static_cast<double>(steps - 1);
    power.hertz.push_back(cluster.lowest_hertz + (cluster.highest_hertz - cluster.lowest_hertz) * part);
    power.volts.push_back(cluster.lowest_volts +
                          (cluster.highest_volts - cluster.lowest_volts) * std::pow(part, kVoltageExponent));
  }
  const auto watts = [&](std::size_t step) {
    return cluster.farads * power.volts[step] * power.volts[step] * power.hertz[step];
  };
  power.watts_lowest = watts(0);
  power.watts_highest = watts(steps - 1);
  return power;
}

}  // namespace fedge::sim
