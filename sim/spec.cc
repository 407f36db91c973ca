#include "sim/spec.h"

#include <algorithm>

namespace fedge::sim {
namespace {

SimulationSpec read_section(config::Reader& section) {
  SimulationSpec spec;
  config::Reader device = section.section("device");
  spec.samples_per_second = device.number(
      "samples_per_second", 1000.0, {1e-3, 1e12},
      "Median training speed of a device, samples a second, whatever part of the model or how many of its "
      "ranks a step trains.");
  spec.speed_sigma =
      device.number("sigma", 0.0, {0.0, 10.0}, "Log-normal spread of that speed over clients.");
  spec.capabilities =
      device.numbers("capabilities", spec.capabilities, {0.001, 1.0},
                     "Share of a model that a device can train: each has one of these, evenly drawn.");
  if (spec.capabilities.empty()) device.fail("capabilities", "is empty");
  section.adopt(device);
  config::Reader network = section.section("network");
  spec.latency = seconds(network.number("latency", 0.02, {0.0, 3600.0}, "Median one-way delay, seconds."));
  spec.latency_sigma = network.number("latency_sigma", 0.0, {0.0, 10.0},
                                      "Log-normal spread of the delay over sites: a device's own, or its "
                                      "group's where groups fail together.");
  spec.down_mbps = network.number("down_mbps", 50.0, {1e-6, 1e9}, "Median rate to a client, 10^6 bit/s.");
  spec.up_mbps = network.number("up_mbps", 10.0, {1e-6, 1e9}, "Median rate from a client, 10^6 bit/s.");
  spec.bandwidth_sigma =
      network.number("sigma", 0.0, {0.0, 10.0}, "Log-normal spread of both rates over clients.");
  spec.listening = network.number("listening", 1.0, {0.0, 1.0},
                                  "Share of devices that accept links from others, where clients exchange "
                                  "models; the others only connect.");
  section.adopt(network);
  config::Reader dropout = section.section("dropout");
  spec.dropout_probability =
      dropout.number("probability", 0.0, {0.0, 1.0}, "Chance that a client vanishes while it has work.");
  spec.dropout_offline = seconds(dropout.number("offline_seconds", 60.0, {0.0, 1e9},
                                                "How long a client that vanished stays away, seconds."));
  section.adopt(dropout);
  config::Reader availability = section.section("availability");
  spec.availability = read_availability(availability);
  section.adopt(availability);
  config::Reader directory = section.section("directory");
  spec.directory = read_directory(directory);
  section.adopt(directory);
  config::Reader attack = section.section("attack");
  spec.attack = read_attack(attack);
  section.adopt(attack);
  return spec;
}

}  // namespace

Result<SimulationSpec> read_simulation(const config::Document& document) {
  config::Reader root(document.root, "", document.name);
  config::Reader section = root.section("simulation");
  const SimulationSpec spec = read_section(section);
  root.adopt(section);
  for (const auto& [key, value] : document.root) root.ignore(key);
  FEDGE_TRY_VOID(root.finish());
  return spec;
}

Result<void> check_attack(const SimulationSpec& spec, const run::RunConfig& config) {
  if (!spec.attack.needs_honest()) return {};
  const std::string attack = "simulation.attack.kind alie, ipm and min_max are made of ";
  if (config.strategy.planner_kind != aggregation::planner_kinds().front().name)
    return invalid(attack + "whole updates; strategy.planner \"" + config.strategy.planner_kind +
                   "\" makes parts");
  if (config.strategy.schedule.buffered)
    return invalid(attack + "the updates of one round; strategy.schedule \"buffered\" has no rounds");
  if (config.task.training.partial_work > 0)
    return invalid(attack +
                   "what honest clients will have trained; training.partial_work leaves that to their speed");
  return {};
}

Result<void> check_directory(const SimulationSpec& spec, const run::RunConfig& config) {
  const bool wanted =
      config.status.every > Duration::zero() && config.status.via == protocol::StatusSpec::Via::kDirectory;
  if (!wanted || spec.directory.kind != DirectorySpec::Kind::kNone) return {};
  return invalid(
      "status.via is \"directory\", and the simulation has none; set simulation.directory.kind to memory, "
      "chord, pastry or kademlia");
}

Result<void> check_availability(const SimulationSpec& spec, const run::RunConfig& config) {
  const std::size_t clients = config.task.data.partition.clients;
  if (spec.availability.kind == AvailabilityKind::kAlways || clients == 1) return {};
  if (config.wait_for_clients < clients) return {};
  return invalid("run.wait_for_clients is all " + std::to_string(clients) +
                 " clients, as it is by default, and with simulation.availability they may never be there at "
                 "once; set it to " +
                 std::to_string(std::min(config.sampling.clients_per_round, clients - 1)) + ", for example");
}

std::vector<config::KeyDoc> describe_simulation() {
  std::vector<config::KeyDoc> docs;
  const config::Table empty;
  config::Reader section(empty, "simulation", "", &docs);
  read_section(section);
  return docs;
}

}  // namespace fedge::sim
