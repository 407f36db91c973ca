#include "sim/spec.h"

#include <algorithm>

namespace fedge::sim {
namespace {

SimulationSpec read_section(config::Reader& section) {
  SimulationSpec spec;
  config::Reader device = section.section("device");
  spec.samples_per_second =
      device.number("samples_per_second", 1000.0, {1e-3, 1e12},
                    "Median training speed of a device in samples per second. The speed is the same for "
                    "every part of the model and every number of adapter ranks.");
  spec.speed_sigma = device.number(
      "sigma", 0.0, {0.0, 10.0}, "Sigma of the log-normal distribution of the training speed over clients.");
  spec.speeds = device.numbers(
      "speeds", spec.speeds, {1e-6, 1e6},
      "Factors of samples_per_second, dealt to the devices in turn: with [1, 1, 2] every third "
      "device is twice as fast.");
  if (spec.speeds.empty()) device.fail("speeds", "is empty");
  spec.capabilities = device.numbers(
      "capabilities", spec.capabilities, {0.001, 1.0},
      "Fractions of a model that devices can train. Each device gets one of these values, drawn uniformly.");
  if (spec.capabilities.empty()) device.fail("capabilities", "is empty");
  spec.capabilities_dealt = device.choice("capability_order", {"drawn", "dealt"}, 0,
                                          "How devices get their capabilities.\ndrawn: uniformly at "
                                          "random.\ndealt: in turn, like the speeds, "
                                          "so that fast devices can be those that hold much.") == 1;
  section.adopt(device);
  config::Reader coordinator = section.section("coordinator");
  spec.coordinator_samples_per_second =
      coordinator.number("samples_per_second", 0.0, {0.0, 1e12},
                         "Split training: speed of the coordinator in samples per second, for the whole "
                         "model. It serves clients in "
                         "the order in which their activations arrive. 0: it needs no time.");
  section.adopt(coordinator);
  config::Reader network = section.section("network");
  spec.latency = seconds(network.number("latency", 0.02, {0.0, 3600.0}, "Median one-way delay in seconds."));
  spec.latency_sigma = network.number("latency_sigma", 0.0, {0.0, 10.0},
                                      "Sigma of the log-normal distribution of the delay over sites. A site "
                                      "is a device, or a group of devices with common_shock.");
  spec.down_mbps = network.number("down_mbps", 50.0, {1e-6, 1e9},
                                  "Median download rate of a client in Mbit/s (10^6 bit/s).");
  spec.up_mbps =
      network.number("up_mbps", 10.0, {1e-6, 1e9}, "Median upload rate of a client in Mbit/s (10^6 bit/s).");
  spec.bandwidth_sigma = network.number(
      "sigma", 0.0, {0.0, 10.0},
      "Sigma of the log-normal distribution of the download rate and of the upload rate over clients.");
  spec.listening = network.number("listening", 1.0, {0.0, 1.0},
                                  "Fraction of devices that accept connections from other clients in runs "
                                  "with peer-to-peer distribution. The others only open connections.");
  section.adopt(network);
  config::Reader dropout = section.section("dropout");
  spec.dropout_probability =
      dropout.number("probability", 0.0, {0.0, 1.0}, "Probability that a client disconnects during a task.");
  spec.dropout_offline =
      seconds(dropout.number("offline_seconds", 60.0, {0.0, 1e9},
                             "Seconds that a client stays disconnected after a simulated dropout."));
  section.adopt(dropout);
  constexpr std::int64_t kMebibyte = 1 << 20;
  spec.client_memory = static_cast<std::size_t>(
      kMebibyte *
      section.integer(
          "client_memory_mb", 512, {1, 1 << 24},
          "Memory, in MiB, for what simulated clients keep between tasks (SCAFFOLD, FedDyn, MOON, "
          "error feedback, layers of their own). The rest is in a file in the output directory. Does "
          "not affect the result."));
  spec.participants = section.boolean(
      "participants", false,
      "Write the participants of each round, and each client's evaluations, as NumPy columns into the output "
      "directory (participants/).");
  auto labels = ClientLabels::parse(section.texts(
      "labels", std::vector<std::string>(),
      "Labels of clients, for sampling.where: entries such as \"ward-3: 0-49, 60\", a label and the numbers "
      "of the clients that have it. A client may have several labels."));
  if (!labels)
    section.fail("labels", labels.error().message);
  else
    spec.labels = std::move(*labels);
  config::Reader energy = section.section("energy");
  spec.energy = read_energy(energy);
  const SimulationSpec defaults;
  if (spec.energy.on && (spec.samples_per_second != defaults.samples_per_second ||
                         spec.speed_sigma != defaults.speed_sigma || spec.speeds != defaults.speeds))
    energy.fail("kind",
                "is \"clusters\", and then clusters decide the speed of devices; remove samples_per_second, "
                "sigma and speeds from [simulation.device]",
                {"simulation.device"});
  section.adopt(energy);
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

Result<Experiment> read_experiment(const config::Document& document, bool concrete) {
  SimulationSpec simulation;
  FEDGE_TRY(
      run, run::read_run_config(document, [&](const run::RunConfig& config, config::Reader& root) {
        config::Reader section = root.section("simulation");
        simulation = read_section(section);
        root.adopt(section);
        if (concrete && simulation.attack.kind != AttackKind::kNone)
          root.fail("simulation.attack.kind", "needs --mode abstract: real client processes are not hostile");
        if (concrete && simulation.participants)
          root.fail("simulation.participants", "needs --mode abstract: real processes do not record it");
        if (concrete && simulation.availability.kind != AvailabilityKind::kAlways)
          root.fail("simulation.availability.kind",
                    "needs --mode abstract: real client processes are always available");
        if (const auto fits = check_attack(simulation, config); !fits)
          root.fail_at(fits.error(), {"simulation.attack", "strategy", "training.partial_work"});
        if (const auto fits = check_energy(simulation, config); !fits)
          root.fail_at(fits.error(), {"simulation.energy", "strategy"});
        if (const auto fits = check_directory(simulation, config); !fits)
          root.fail_at(fits.error(), {"simulation.directory", "status", "sampling.kind"});
        if (const std::size_t highest = simulation.labels.highest();
            highest > 0 && highest >= config.task.data.partition.clients)
          root.fail("simulation.labels",
                    "names client " + std::to_string(highest) + ", but the clients of the run are 0 to " +
                        std::to_string(config.task.data.partition.clients - 1),
                    {"data.partition.clients"});
        if (const auto fits = check_where(simulation, config); !fits)
          root.fail_at(fits.error(), {"sampling.where", "simulation.labels"});
        if (const auto fits = check_availability(simulation, config); !fits && !concrete)
          root.fail_at(fits.error(), {"simulation.availability", "run.wait_for_clients",
                                      "data.partition.clients", "sampling.clients_per_round"});
      }));
  return Experiment{std::move(run), std::move(simulation)};
}

bool computes_on_arrival(const SimulationSpec& spec, const run::RunConfig& config) {
  const protocol::Compression& format = config.compression.format;
  const bool known_size = !format.zstd && format.codec != protocol::Codec::kSparse;
  const bool known_work =
      !config.task.training.personal.on() && config.task.training.objective.kind != "rank_pruning";
  const bool needs_values = config.secure.on || config.dissemination.serverless ||
                            spec.attack.kind != AttackKind::kNone || config.status.every > Duration::zero() ||
                            config.sampling.traits.draw == aggregation::Draw::kBeforeUpload;
  return known_size && known_work && !needs_values;
}

std::optional<std::string> cannot_continue(const SimulationSpec& spec) {
  if (spec.attack.kind == AttackKind::kNone) return std::nullopt;
  return "a checkpoint does not contain what hostile clients (simulation.attack) know";
}

Result<void> check_attack(const SimulationSpec& spec, const run::RunConfig& config) {
  if (spec.attack.kind != AttackKind::kNone && config.task.training.local_model == LocalModel::kSplit)
    return invalid(
        "simulation.attack: hostile clients of split training are not simulated, because the coordinator "
        "trains a "
        "part of their updates");
  if (!spec.attack.needs_honest()) return {};
  const std::string attack = "simulation.attack.kind: \"alie\", \"ipm\" and \"min_max\" need ";
  if (!config.strategy.planner_traits.whole_model)
    return invalid(attack + "whole updates, but strategy.planner \"" + config.strategy.planner_kind +
                   "\" trains parts of the model");
  if (config.strategy.schedule.buffered)
    return invalid(attack + "all updates of a round, but strategy.schedule \"buffered\" has no rounds");
  if (config.task.training.partial_work > 0)
    return invalid(attack +
                   "to know how much honest clients train, but with training.partial_work that amount "
                   "depends on their speed");
  return {};
}

Result<void> check_energy(const SimulationSpec& spec, const run::RunConfig& config) {
  if (spec.energy.on && config.task.training.local_model == LocalModel::kSplit)
    return invalid(
        "simulation.energy: the energy of split training is not simulated, because devices compute in turns "
        "with the coordinator; remove [simulation.energy]");
  if (!spec.energy.on && config.strategy.planner_traits.reads_power)
    return invalid("simulation.energy.kind: the planner " + config.strategy.planner_kind +
                   " needs devices that describe their energy; set it to \"clusters\"");
  return {};
}

Result<void> check_directory(const SimulationSpec& spec, const run::RunConfig& config) {
  const bool wanted =
      config.status.every > Duration::zero() && config.status.via == protocol::StatusSpec::Via::kDirectory;
  if (!wanted || spec.directory.kind != DirectorySpec::Kind::kNone) return {};
  return invalid(
      "status.via: is \"directory\", but the simulation has no directory; set simulation.directory.kind to "
      "\"memory\", \"chord\", \"pastry\" or \"kademlia\"");
}

Result<void> check_where(const SimulationSpec& spec, const run::RunConfig& config) {
  const aggregation::ClientFilter& where = config.sampling.where;
  if (where.matches_all()) return {};
  std::size_t matching = 0;
  for (std::uint32_t client = 0; client < config.task.data.partition.clients; ++client)
    matching += where.matches(spec.labels.of(ClientId(client))) ? 1U : 0U;
  const std::size_t needed = std::max(config.wait_for_clients, config.sampling.min_available);
  if (matching >= needed) return {};
  return invalid("sampling.where: only " + std::to_string(matching) +
                 " clients of the simulation have such labels (simulation.labels), but the run waits for " +
                 std::to_string(needed) + " clients (run.wait_for_clients, sampling.min_available)");
}

Result<void> check_availability(const SimulationSpec& spec, const run::RunConfig& config) {
  const std::size_t clients = config.task.data.partition.clients;
  if (spec.availability.kind == AvailabilityKind::kAlways || clients == 1) return {};
  if (config.wait_for_clients < clients) return {};
  return invalid("run.wait_for_clients: is " + std::to_string(clients) +
                 " (all clients, the default), but with simulation.availability all clients may never be "
                 "available at the same time; set it to a lower number, for example " +
                 std::to_string(std::min(config.sampling.clients_per_round, clients - 1)));
}

std::vector<config::KeyDoc> describe_simulation() {
  std::vector<config::KeyDoc> docs;
  const config::Table empty;
  config::Reader section(empty, "simulation", "", &docs);
  read_section(section);
  return docs;
}

}  // namespace fedge::sim
