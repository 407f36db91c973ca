#include "apps/commands/privacy/privacy_commands.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>
#include <vector>

#include "apps/cli/validators.h"
#include "core/detail/json.h"
#include "privacy/differential/accounting/accountant.h"
#include "privacy/differential/accounting/calibration.h"

namespace fedge::apps {
namespace {

using privacy::AccountantKind;
using privacy::Mechanism;

// The options of a mechanism; `noise` is the one that sets its noise.
struct MechanismDoc {
  const char* name;
  const char* noise;
  std::vector<std::string> needed;
  std::vector<std::string> optional;
};

const std::vector<MechanismDoc>& mechanisms() {
  static const std::vector<MechanismDoc> table = {
      {"subsampled-gaussian", "noise-multiplier", {"sampling-rate"}, {}},
      {"gaussian", "noise-multiplier", {}, {}},
      {"fixed-cohort-gaussian", "noise-multiplier", {"sampling-rate"}, {}},
      {"laplace", "scale", {}, {"sampling-rate"}},
      {"skellam", "variance", {"l2"}, {"l1", "dimension", "beta", "sampling-rate"}},
      {"distributed-discrete-gaussian",
       "local-sigma",
       {"clients", "l2"},
       {"l1", "dimension", "beta", "sampling-rate"}},
      {"tree", "noise-multiplier", {}, {"max-participations", "min-separation"}},
  };
  return table;
}

struct NumberDoc {
  const char* name;
  const char* doc;
};
constexpr NumberDoc kNumbers[] = {
    {"sampling-rate",
     "Probability that a client is in a round; with a fixed cohort, the cohort's share of all clients"},
    {"noise-multiplier",
     "Standard deviation of the noise in the sum, divided by the clipping norm (fixed cohort: by twice the "
     "norm)"},
    {"scale", "laplace: scale b of the noise, divided by one client's L1 sensitivity"},
    {"variance", "skellam: variance of the noise in the sum, in squared units of the rounding grid"},
    {"local-sigma",
     "distributed-discrete-gaussian: standard deviation of each client's noise, in units of the rounding "
     "grid"},
    {"clients", "distributed-discrete-gaussian: number of clients whose noise is in the sum"},
    {"l2",
     "skellam, distributed-discrete-gaussian: clipping norm before rounding, in units of the rounding grid"},
    {"l1",
     "skellam, distributed-discrete-gaussian: L1 norm of an update after rounding, in units of the rounding "
     "grid; if given, --l2 is the norm after rounding, too; default: computed from --l2, --dimension and "
     "--beta"},
    {"dimension", "skellam, distributed-discrete-gaussian: number of parameters in an update; default: 1"},
    {"beta",
     "skellam, distributed-discrete-gaussian: the beta of conditional rounding; 0: unconditional; default: "
     "0.6065"},
    {"max-participations", "tree: largest number of rounds in which a client takes part; default: 1"},
    {"min-separation",
     "tree: smallest number of rounds that a client skips between two rounds in which it takes part; "
     "default: 0"},
};

std::string plain(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.10g", value);
  return text;
}

// The options of the selected mechanism.
class Numbers {
 public:
  Numbers(const PrivacyOptions& options) : options_(options) {}  // NOLINT(google-explicit-constructor)

  double operator()(const std::string& name, double fallback) const {
    const auto at = options_.numbers.find(name);
    return at == options_.numbers.end() ? fallback : at->second.value_or(fallback);
  }
  bool given(const std::string& name) const { return options_.numbers.at(name).has_value(); }

 private:
  const PrivacyOptions& options_;
};

const MechanismDoc& doc_of(const PrivacyOptions& options) {
  return *std::ranges::find(mechanisms(), options.mechanism, &MechanismDoc::name);
}

Result<void> check_numbers(const PrivacyOptions& options, bool needs_noise) {
  const MechanismDoc& doc = doc_of(options);
  const Numbers number(options);
  std::vector<std::string> needed = doc.needed;
  if (needs_noise) needed.emplace_back(doc.noise);
  for (const std::string& name : needed)
    if (!number.given(name)) return invalid("--mechanism " + options.mechanism + " needs --" + name);
  for (const auto& [name, value] : options.numbers) {
    const bool known = std::ranges::find(needed, name) != needed.end() ||
                       std::ranges::find(doc.optional, name) != doc.optional.end();
    if (value && !known)
      return invalid("--" + name + " cannot be used with --mechanism " + options.mechanism);
  }
  return {};
}

Result<std::uint32_t> whole(const Numbers& number, const std::string& name, double fallback) {
  const double value = number(name, fallback);
  if (value >= 0 && value <= UINT32_MAX && value == std::floor(value))
    return static_cast<std::uint32_t>(value);
  return invalid("--" + name + " must be an integer from 0 to 4294967295, not " + plain(value));
}

privacy::GridSensitivity sensitivity_of(const Numbers& number) {
  const double dimension = number("dimension", 1);
  if (number.given("l1")) return {number("l2", 1), number("l1", 1), dimension};
  return privacy::rounded_sensitivity(number("l2", 1), dimension, number("beta", std::exp(-0.5)));
}

Result<void> check_rounding(const Numbers& number) {
  const double beta = number("beta", 0.5);
  if (!(beta >= 0 && beta < 1)) return invalid("--beta must be at least 0 and below 1");
  if (!(number("l2", 1) >= 0)) return invalid("--l2 must be 0 or more");
  if (!(number("dimension", 1) >= 1)) return invalid("--dimension must be 1 or more");
  return {};
}

Result<Mechanism> mechanism_of(const PrivacyOptions& options) {
  const Numbers number(options);
  const double noise = number(doc_of(options).noise, 1);
  const double rate = number("sampling-rate", 1);
  FEDGE_TRY_VOID(check_rounding(number));
  if (options.mechanism == "laplace") return Mechanism(privacy::LaplaceMechanism{rate, noise});
  if (options.mechanism == "fixed-cohort-gaussian")
    return Mechanism(privacy::FixedCohortMechanism{rate, noise});
  if (options.mechanism == "skellam")
    return Mechanism(privacy::SkellamMechanism{rate, noise, sensitivity_of(number)});
  if (options.mechanism == "distributed-discrete-gaussian")
    return Mechanism(
        privacy::DistributedGaussianMechanism{rate, {noise, number("clients", 1)}, sensitivity_of(number)});
  if (options.mechanism == "tree") {
    if (options.steps > UINT32_MAX) return invalid("--steps must be at most 4294967295 for --mechanism tree");
    FEDGE_TRY(times, whole(number, "max-participations", 1));
    FEDGE_TRY(separation, whole(number, "min-separation", 0));
    const auto steps = static_cast<std::uint32_t>(options.steps);
    return Mechanism(privacy::TreeMechanism{noise, {steps, times, separation}});
  }
  return Mechanism(privacy::GaussianMechanism{rate, noise});
}

AccountantKind accountant_of(const PrivacyOptions& options) {
  return options.accountant == "rdp" ? AccountantKind::kRdp : AccountantKind::kPld;
}

std::uint64_t count_of(const PrivacyOptions& options) {
  return options.mechanism == "tree" ? 1 : options.steps;
}

std::string underscored(std::string name) {
  std::ranges::replace(name, '-', '_');
  return name;
}

// Rounds up, so that the printed number is still an upper bound.
std::string rounded_up(double value) {
  if (std::isinf(value)) return "infinite";
  char text[64];
  std::snprintf(text, sizeof text, "%.6f", value < 1e9 ? std::ceil(value * 1e6) / 1e6 : value);
  return text;
}

// The result, then the options on which it depends.
using NamedFigures = std::vector<std::pair<std::string, double>>;

Result<std::string> present(const PrivacyOptions& options, const NamedFigures& figures, bool steps) {
  const char* neighbours = options.mechanism == "fixed-cohort-gaussian" ? "replace-one" : "add-or-remove-one";
  if (options.format == "json") {
    nlohmann::ordered_json row;
    for (const auto& [name, value] : figures) {
      if (name == "rounds")
        row[name] = static_cast<std::uint64_t>(value);
      else
        row[name] = std::isinf(value) ? nlohmann::ordered_json() : nlohmann::ordered_json(value);
    }
    if (figures.front().first == "epsilon") row["unbounded"] = std::isinf(figures.front().second);
    row["mechanism"] = options.mechanism;
    for (const auto& [name, value] : options.numbers)
      if (value) row[underscored(name)] = *value;
    if (steps) row["steps"] = options.steps;
    row["accountant"] = options.accountant;
    row["neighbours"] = neighbours;
    return json_text(row) + "\n";
  }
  std::string text;
  const auto line = [&](std::string name, const std::string& value) {
    name.resize(std::max<std::size_t>(20, name.size() + 1), ' ');
    text += name + value + "\n";
  };
  for (std::size_t i = 0; i < figures.size(); ++i)
    line(figures[i].first,
         i == 0 && figures[i].first != "rounds" ? rounded_up(figures[i].second) : plain(figures[i].second));
  line("mechanism", options.mechanism);
  for (const auto& [name, value] : options.numbers)
    if (value) line(underscored(name), plain(*value));
  if (steps) line("steps", std::to_string(options.steps));
  line("accountant", options.accountant);
  line("neighbours", neighbours);
  return text;
}

Result<std::string> say_epsilon(const PrivacyOptions& options) {
  FEDGE_TRY_VOID(check_numbers(options, true));
  FEDGE_TRY(mechanism, mechanism_of(options));
  privacy::Accountant accountant(accountant_of(options));
  FEDGE_TRY_VOID(accountant.add({mechanism, count_of(options)}));
  FEDGE_TRY(epsilon, accountant.epsilon(options.delta));
  return present(options, {{"epsilon", epsilon}, {"delta", options.delta}}, true);
}

Result<std::string> say_noise(const PrivacyOptions& options) {
  FEDGE_TRY_VOID(check_numbers(options, false));
  FEDGE_TRY(mechanism, mechanism_of(options));
  FEDGE_TRY(noise, privacy::calibrate_noise({mechanism, count_of(options)}, {options.epsilon, options.delta},
                                            accountant_of(options)));
  const double value = options.mechanism == "skellam" ? noise * noise : noise;
  return present(
      options,
      {{underscored(doc_of(options).noise), value}, {"epsilon", options.epsilon}, {"delta", options.delta}},
      true);
}

Result<std::string> say_rounds(const PrivacyOptions& options) {
  FEDGE_TRY_VOID(check_numbers(options, true));
  FEDGE_TRY(mechanism, mechanism_of(options));
  FEDGE_TRY(rounds,
            privacy::allowed_rounds(mechanism, {options.epsilon, options.delta}, accountant_of(options)));
  return present(
      options,
      {{"rounds", static_cast<double>(rounds)}, {"epsilon", options.epsilon}, {"delta", options.delta}},
      false);
}

// `noise`: whether the command takes the amount of noise, which `fedge privacy noise` computes.
void add_options(CLI::App& command, PrivacyOptions& options, bool noise) {
  std::vector<std::string> names;
  for (const MechanismDoc& doc : mechanisms()) names.emplace_back(doc.name);
  command.add_option("--mechanism", options.mechanism, "Noise and sampling of the training")
      ->type_name("MECHANISM")
      ->capture_default_str()
      ->check(one_of(names));
  const auto is_noise = [](const char* name) {
    return std::ranges::any_of(mechanisms(),
                               [&](const MechanismDoc& doc) { return std::string(name) == doc.noise; });
  };
  for (const NumberDoc& number : kNumbers)
    if (noise || !is_noise(number.name))
      command.add_option(std::string("--") + number.name, options.numbers[number.name], number.doc);
  command
      .add_option("--delta", options.delta,
                  "Probability that the guarantee does not hold; choose it below 1 / number of clients")
      ->required();
  command.add_option("--accountant", options.accountant, "pld gives the lower epsilon, rdp is faster")
      ->type_name("ACCOUNTANT")
      ->capture_default_str()
      ->check(one_of({"pld", "rdp"}));
  add_format(command, options.format);
}

}  // namespace

PrivacyCommands::PrivacyCommands(CLI::App& app) {
  auto* parent = app.add_subcommand("privacy")->require_subcommand(1);
  epsilon_ = parent->add_subcommand("epsilon");
  noise_ = parent->add_subcommand("noise");
  rounds_ = parent->add_subcommand("rounds");
  for (auto* command : {epsilon_, rounds_}) add_options(*command, options_, true);
  add_options(*noise_, options_, false);
  for (auto* command : {epsilon_, noise_})
    command->add_option("--steps", options_.steps, "Number of rounds; tree: number of leaves")
        ->capture_default_str()
        ->check(between(0, privacy::kMostRounds));
  for (auto* command : {noise_, rounds_})
    command->add_option("--epsilon", options_.epsilon, "Largest epsilon of the whole training")->required();
}

std::optional<Result<std::string>> PrivacyCommands::run() const {
  if (*epsilon_) return say_epsilon(options_);
  if (*noise_) return say_noise(options_);
  if (*rounds_) return say_rounds(options_);
  return std::nullopt;
}

}  // namespace fedge::apps
