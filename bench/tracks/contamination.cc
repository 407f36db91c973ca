// Measures how a hostile client's data changes the model of a client that excludes it, with FedAvg, naive
// resolution and tracks. Also measures what the disagreement costs the other clients. Client 0 excludes
// client 1; in a second study clients 2 and 3 exclude it as well.
//   bench_contamination RUN.toml [SEEDS]      prints the tables of docs/experiments/tracks.md
#include <unistd.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "bench/tracks/federations.h"
#include "bench/tracks/poisoned_data.h"
#include "core/parameters.h"
#include "core/platform/files.h"
#include "core/platform/thread_pool.h"
#include "learn/evaluation/evaluate.h"

namespace {

using namespace fedge;
using namespace fedge::bench;

const ClientId kHostile(1);
constexpr std::array kPoisons = {Poison::kNone, Poison::kLabelFlip, Poison::kBackdoor};
constexpr const char* kWithdrawn = R"({ kind = "full", clients = ["1"] })";

// One way of treating the disagreement. `runs` is indexed by seed and by the poison of client 1.
struct Method {
  const char* name;
  std::vector<std::array<History, 3>> runs = {};
  // References by seed, computed in the same way:
  std::vector<History> without = {};  // a federation without client 1
  std::vector<History> plain = {};    // a federation without the disagreement
};
using Methods = std::array<Method, 4>;

using Settings = std::vector<std::string>;

struct Study {
  std::vector<ClientId> owners;  // the clients that exclude client 1
  Settings settings;
  Methods methods = {Method{"FedAvg"}, Method{"naive"}, Method{"tracks"}, Method{"tracks, strict"}};
};

struct Laboratory {
  config::Document run;
  std::filesystem::path scratch;
  std::shared_ptr<const learn::Dataset> test;
  learn::Dataset triggers;
  ThreadPool pool{2};

  double accuracy(const Model& model, const learn::Model& kind, const learn::Dataset& data) {
    return 100 * learn::evaluate(kind, model, data, pool)->accuracy;
  }
};

Result<run::RunConfig> configure(const Laboratory& laboratory, const Settings& settings) {
  config::Document document = laboratory.run;
  for (const std::string& setting : settings) FEDGE_TRY_VOID(config::set(document, setting));
  return run::read_run_config(document);
}

Result<History> simulate(Laboratory& laboratory, const learn::Task& task, Settings settings,
                         const std::string& disagreement) {
  settings.push_back("tracks.disagreement=[" + disagreement + "]");
  FEDGE_TRY(config, configure(laboratory, settings));
  return simulated_federation({config, task, *laboratory.test}, laboratory.pool);
}

std::string disagreement_of(std::span<const ClientId> owners) {
  std::string clients;
  for (const ClientId owner : owners)
    clients += (clients.empty() ? "\"" : ", \"") + std::to_string(owner.value()) + "\"";
  return R"({ kind = "inbound", against = ["1"], clients = [)" + clients + "] }";
}

// One seed with one poison of client 1's data.
struct Case {
  Settings settings;
  std::size_t poison;
  const learn::Task& task;
};

Result<void> run_methods(Laboratory& laboratory, Study& study, const Case& run) {
  FEDGE_TRY(config, configure(laboratory, run.settings));
  const Setup setup{run.task, config.seed, config.rounds};
  std::vector<ClientId> all;
  std::vector<ClientId> others;
  for (std::uint32_t c = 0; c < run.task.clients(); ++c) {
    all.emplace_back(c);
    if (ClientId(c) != kHostile) others.emplace_back(c);
  }
  auto& [fedavg, naive, tracks, strict] = study.methods;
  fedavg.runs.back()[run.poison] = plain_federation(setup, all);
  naive.runs.back()[run.poison] = naive_federation(setup, study.owners, kHostile);
  FEDGE_TRY(ours, simulate(laboratory, run.task, run.settings, disagreement_of(study.owners)));
  tracks.runs.back()[run.poison] = ours;
  Settings strictly = run.settings;
  strictly.emplace_back("tracks.strict=true");
  FEDGE_TRY(ours_strict, simulate(laboratory, run.task, strictly, disagreement_of(study.owners)));
  strict.runs.back()[run.poison] = ours_strict;
  if (kPoisons[run.poison] != Poison::kNone) return {};
  fedavg.without.push_back(plain_federation(setup, others));
  fedavg.plain.push_back(fedavg.runs.back()[run.poison]);
  naive.without.push_back(fedavg.without.back());
  naive.plain.push_back(fedavg.plain.back());
  FEDGE_TRY(without, simulate(laboratory, run.task, run.settings, kWithdrawn));
  FEDGE_TRY(plain, simulate(laboratory, run.task, run.settings, ""));
  for (Method* method : {&tracks, &strict}) {
    method->without.push_back(without);
    method->plain.push_back(plain);
  }
  return {};
}

// Runs one more seed with the first `poisons` poisons.
Result<void> run_seed(Laboratory& laboratory, Study& study, std::uint64_t seed, std::size_t poisons) {
  Settings settings = study.settings;
  settings.push_back("run.seed=" + std::to_string(seed));
  for (Method& method : study.methods) method.runs.emplace_back();
  FEDGE_TRY(config, configure(laboratory, settings));
  FEDGE_TRY(honest, learn::Task::build(config.task, config.seed));
  FEDGE_TRY_VOID(run_methods(laboratory, study, {settings, 0, *honest}));
  settings.push_back("data.directory=" + laboratory.scratch.string());
  for (std::size_t poison = 1; poison < poisons; ++poison) {
    FEDGE_TRY_VOID(write_training_set(kPoisons[poison], honest->samples_of(kHostile), laboratory.scratch));
    FEDGE_TRY(poisoned_config, configure(laboratory, settings));
    FEDGE_TRY(task, learn::Task::build(poisoned_config.task, poisoned_config.seed));
    FEDGE_TRY_VOID(run_methods(laboratory, study, {settings, poison, *task}));
  }
  return {};
}

double distance(const Model& a, const Model& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double difference = static_cast<double>(a[i]) - static_cast<double>(b[i]);
    sum += difference * difference;
  }
  return std::sqrt(sum);
}

bool same_bits(const Model& a, const Model& b) { return model_hash(a) == model_hash(b); }

std::string spread(const std::vector<double>& values) {
  const auto n = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.2f ± %.2f", mean, n > 1 ? std::sqrt(squares / (n - 1)) : 0.0);
  return text.data();
}

// Prints the owner's model round by round, with client 1 honest and hostile.
void print_rounds(Laboratory& laboratory, const learn::Model& kind, const Methods& methods,
                  std::size_t poison) {
  std::printf("| round |");
  for (std::size_t m = 0; m < 3; ++m)
    std::printf(" %s: as without it | distance | accuracy, %% |", methods[m].name);
  std::printf("\n| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
  for (std::size_t round = 0; round < methods[0].without[0].size(); ++round) {
    std::printf("| %zu |", round + 1);
    for (std::size_t m = 0; m < 3; ++m) {
      const Model& hostile = methods[m].runs[0][poison][round].owners;
      std::printf(" %s | %.4g | %.2f |",
                  same_bits(hostile, methods[m].without[0][round].owners) ? "yes" : "no",
                  distance(hostile, methods[m].runs[0][0][round].owners),
                  laboratory.accuracy(hostile, kind, *laboratory.test));
    }
    std::printf("\n");
  }
}

// Returns the figure of each seed.
std::vector<double> each(std::size_t seeds, const std::function<double(std::size_t)>& figure) {
  std::vector<double> values;
  for (std::size_t seed = 0; seed < seeds; ++seed) values.push_back(figure(seed));
  return values;
}

// Prints the owner's model after the last round, over all seeds.
void print_ends(Laboratory& laboratory, const learn::Model& kind, const Methods& methods) {
  const std::size_t seeds = methods[0].without.size();
  std::printf(
      "| | label flip: distance | accuracy, %% | backdoor: distance | accuracy, %% | square taken for class "
      "0, %% "
      "| rounds as without it |\n| --- | --- | --- | --- | --- | --- | --- |\n");
  for (const Method& method : methods) {
    const auto apart = [&](std::size_t poison) {
      return spread(each(seeds, [&](std::size_t s) {
        return distance(method.runs[s][poison].back().owners, method.runs[s][0].back().owners);
      }));
    };
    const auto accuracy = [&](std::size_t poison, const learn::Dataset& data) {
      return spread(each(seeds, [&](std::size_t s) {
        return laboratory.accuracy(method.runs[s][poison].back().owners, kind, data);
      }));
    };
    std::size_t same = 0;
    std::size_t rounds = 0;
    for (std::size_t s = 0; s < seeds; ++s)
      for (std::size_t poison = 1; poison < 3; ++poison)
        for (std::size_t r = 0; r < method.without[s].size(); ++r, ++rounds)
          same += same_bits(method.runs[s][poison][r].owners, method.without[s][r].owners) ? 1U : 0U;
    std::printf("| %s | %s | %s | %s | %s | %s | %zu of %zu |\n", method.name, apart(1).c_str(),
                accuracy(1, *laboratory.test).c_str(), apart(2).c_str(),
                accuracy(2, *laboratory.test).c_str(), accuracy(2, laboratory.triggers).c_str(), same,
                rounds);
  }
  const auto clean = [&](const learn::Dataset& data) {
    return spread(each(seeds, [&](std::size_t s) {
      return laboratory.accuracy(methods[2].without[s].back().owners, kind, data);
    }));
  };
  std::printf("| a federation without it | | %s | | %s | %s | |\n", clean(*laboratory.test).c_str(),
              clean(*laboratory.test).c_str(), clean(laboratory.triggers).c_str());
  std::printf("\nDistance of the reference without client 1 from the simulator's, after each round:\n\n");
  for (std::size_t seed = 0; seed < seeds; ++seed) {
    std::printf("seed %zu:", seed + 1);
    for (std::size_t r = 0; r < methods[0].without[seed].size(); ++r)
      std::printf(" %.1e", distance(methods[0].without[seed][r].owners, methods[2].without[seed][r].owners));
    std::printf("\n");
  }
}

// Prints the cost of the disagreement after the last round, with client 1 honest.
void print_fairness(Laboratory& laboratory, const learn::Model& kind, const Methods& methods) {
  const std::size_t seeds = methods[0].without.size();
  const auto accuracy = [&](const Model& model) {
    return laboratory.accuracy(model, kind, *laboratory.test);
  };
  std::printf(
      "| | others' accuracy, %% | minus that of one model for all | distance from it | rounds as with one "
      "model "
      "for all | owners' accuracy, %% |\n| --- | --- | --- | --- | --- | --- |\n");
  for (const Method& method : methods) {
    const auto last = [&](std::size_t s) -> const Models& { return method.runs[s][0].back(); };
    const auto others = each(seeds, [&](std::size_t s) { return accuracy(last(s).others); });
    const auto minus =
        each(seeds, [&](std::size_t s) { return others[s] - accuracy(method.plain[s].back().others); });
    const auto apart =
        each(seeds, [&](std::size_t s) { return distance(last(s).others, method.plain[s].back().others); });
    const auto owners = each(seeds, [&](std::size_t s) { return accuracy(last(s).owners); });
    std::size_t same = 0;
    std::size_t rounds = 0;
    for (std::size_t s = 0; s < seeds; ++s)
      for (std::size_t r = 0; r < method.plain[s].size(); ++r, ++rounds)
        same += same_bits(method.runs[s][0][r].others, method.plain[s][r].others) ? 1U : 0U;
    std::printf("| %s | %s | %s | %s | %zu of %zu | %s |\n", method.name, spread(others).c_str(),
                spread(minus).c_str(), spread(apart).c_str(), same, rounds, spread(owners).c_str());
  }
}

Result<void> run(Laboratory& laboratory, std::uint64_t seeds) {
  const Settings skewed = {"data.partition.kind=dirichlet", "data.partition.alpha=0.1"};
  const std::vector<ClientId> one = {ClientId(0)};
  const std::vector<ClientId> three = {ClientId(0), ClientId(2), ClientId(3)};
  std::array studies = {Study{one, {}}, Study{one, skewed}, Study{three, {}}, Study{three, skewed}};
  Study& first = studies.front();
  for (std::uint64_t seed = 1; seed <= seeds; ++seed)
    for (Study& study : studies)
      FEDGE_TRY_VOID(run_seed(laboratory, study, seed, &study == &first ? kPoisons.size() : 1));
  FEDGE_TRY(config, configure(laboratory, {}));
  FEDGE_TRY(kind, learn::make_model(config.task.model, laboratory.test->shape, laboratory.test->classes));
  std::printf("## Label flip, seed 1: client 0's model\n\n");
  print_rounds(laboratory, *kind, first.methods, 1);
  std::printf("\n## Backdoor, seed 1: client 0's model\n\n");
  print_rounds(laboratory, *kind, first.methods, 2);
  std::printf("\n## After the last round, %d seeds: client 0's model\n\n", static_cast<int>(seeds));
  print_ends(laboratory, *kind, first.methods);
  for (const Study& study : studies) {
    std::printf("\n## Client 1 honest, excluded by %zu, %s\n\n", study.owners.size(),
                study.settings.empty() ? "labels alike" : "Dirichlet 0.1");
    print_fairness(laboratory, *kind, study.methods);
  }
  return {};
}

Result<void> start(const std::string& path, std::uint64_t seeds) {
  FEDGE_TRY(text, read_file(path, std::size_t{1} << 20));
  FEDGE_TRY(document, config::parse_toml(text, path));
  FEDGE_TRY(test, learn::load_test({}));
  std::string scratch = (std::filesystem::temp_directory_path() / "bench-contamination-XXXXXX").string();
  if (::mkdtemp(scratch.data()) == nullptr) return system_error("cannot make directory", scratch, errno);
  Laboratory laboratory{.run = document, .scratch = scratch, .test = test, .triggers = triggered(*test)};
  const auto done = run(laboratory, seeds);
  std::error_code ignored;
  std::filesystem::remove_all(scratch, ignored);
  return done;
}

}  // namespace

int main(int argc, char** argv) {
  const long seeds = argc > 2 ? std::strtol(argv[2], nullptr, 10) : 5;
  if (argc < 2 || argc > 3 || seeds < 1 || seeds > 1000) {
    std::fprintf(stderr, "usage: bench_contamination RUN.toml [seeds]\n");
    return 2;
  }
  if (const auto done = start(argv[1], static_cast<std::uint64_t>(seeds)); !done) {
    std::fprintf(stderr, "bench_contamination: %s\n", done.error().message.c_str());
    return 1;
  }
  return 0;
}
