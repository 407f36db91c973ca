// `fedge privacy` as a user starts it, and as docs/algorithms/privacy-accounting.md shows it.
#include <doctest/doctest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/integration/run_program.h"

using namespace fedge;
using test::Outcome;
using test::run;

namespace {

struct PrivacyExample {
  std::string command;
  std::string output;
};

// The commands behind "$ " in console blocks, each with the output that the page shows.
std::vector<PrivacyExample> examples_in(const std::string& path) {
  std::ifstream file(path);
  REQUIRE(file);
  std::vector<PrivacyExample> examples;
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("```"))
      inside = line == "```console";
    else if (inside && line.starts_with("$ "))
      examples.push_back({line.substr(2), ""});
    else if (inside && !examples.empty())
      examples.back().output += line + "\n";
  }
  return examples;
}

nlohmann::json json_of(const std::string& arguments) {
  const Outcome outcome = run("fedge privacy " + arguments + " --format json");
  REQUIRE_MESSAGE(outcome.code == 0, outcome.output);
  return nlohmann::json::parse(outcome.output);
}

void refuses(const std::string& arguments, const std::string& named) {
  const Outcome outcome = run("fedge privacy " + arguments);
  CHECK(outcome.code != 0);
  CHECK_MESSAGE(outcome.output.find(named) != std::string::npos, outcome.output);
}

}  // namespace

TEST_CASE("privacy command: the page's examples print what it says") {
  const auto examples = examples_in(FEDGE_SOURCE_DIR "/docs/algorithms/privacy-accounting.md");
  REQUIRE(examples.size() == 3);
  for (const PrivacyExample& example : examples) {
    const Outcome outcome = run(example.command);
    CHECK(outcome.code == 0);
    CHECK(outcome.output == example.output);
  }
}

TEST_CASE("privacy command: epsilon of every mechanism, as JSON") {
  const auto sampled = json_of(
      "epsilon --mechanism subsampled-gaussian --sampling-rate 0.2 --noise-multiplier 1 --steps 50 --delta "
      "1e-3");
  CHECK(sampled["epsilon"].get<double>() == doctest::Approx(7.0657694).epsilon(1e-6));
  CHECK(sampled["neighbours"] == "add-or-remove-one");
  const auto gaussian =
      json_of("epsilon --mechanism gaussian --noise-multiplier 10 --steps 100 --delta 1e-5");
  CHECK(gaussian["epsilon"].get<double>() == doctest::Approx(4.3771781).epsilon(1e-6));
  const auto tree = json_of(
      "epsilon --mechanism tree --noise-multiplier 7 --steps 2000 --max-participations 6 --min-separation "
      "313 "
      "--delta 1e-10");
  CHECK(tree["epsilon"].get<double>() == doctest::Approx(8.52609).epsilon(1e-5));
  const auto cohort = json_of(
      "epsilon --mechanism fixed-cohort-gaussian --sampling-rate 0.01 --noise-multiplier 2 --delta 1e-5");
  CHECK(cohort["neighbours"] == "replace-one");
  // Pure differential privacy: 4 times 1/2, and hardly less for a tiny delta.
  const auto laplace = json_of("epsilon --mechanism laplace --scale 2 --steps 4 --delta 1e-15");
  CHECK(laplace["epsilon"].get<double>() == doctest::Approx(2).epsilon(1e-3));
  const auto skellam =
      json_of("epsilon --mechanism skellam --variance 1e8 --l2 1 --l1 1 --delta 1e-5 --accountant rdp");
  const auto alike =
      json_of("epsilon --mechanism gaussian --noise-multiplier 1e4 --delta 1e-5 --accountant rdp");
  CHECK(skellam["epsilon"].get<double>() == doctest::Approx(alike["epsilon"].get<double>()).epsilon(1e-3));
  const auto distributed = json_of(
      "epsilon --mechanism distributed-discrete-gaussian --local-sigma 3 --clients 100 --l2 6 --l1 6 --delta "
      "1e-5 "
      "--accountant rdp");
  const auto central =
      json_of("epsilon --mechanism gaussian --noise-multiplier 5 --delta 1e-5 --accountant rdp");
  CHECK(distributed["epsilon"].get<double>() ==
        doctest::Approx(central["epsilon"].get<double>()).epsilon(1e-3));
}

TEST_CASE("privacy command: without noise there is no bound, and the JSON is still JSON") {
  const auto none = json_of("epsilon --sampling-rate 0.01 --noise-multiplier 0 --delta 1e-5");
  CHECK(none["epsilon"].is_null());
  CHECK(none["unbounded"] == true);
  const Outcome table = run("fedge privacy epsilon --sampling-rate 0.01 --noise-multiplier 0 --delta 1e-5");
  CHECK(table.output.find("infinite") != std::string::npos);
  CHECK(json_of("epsilon --sampling-rate 0 --noise-multiplier 0 --delta 1e-5")["epsilon"] == 0);
}

TEST_CASE("privacy command: noise for a guarantee keeps it, and so do the rounds it allows") {
  const auto noise = json_of("noise --sampling-rate 0.05 --steps 20 --epsilon 1 --delta 1e-5");
  const std::string multiplier = noise["noise_multiplier"].dump();
  const auto kept =
      json_of("epsilon --sampling-rate 0.05 --steps 20 --delta 1e-5 --noise-multiplier " + multiplier);
  CHECK(kept["epsilon"].get<double>() <= 1);
  CHECK(kept["epsilon"].get<double>() > 0.9999);
  CHECK(json_of("rounds --sampling-rate 0.05 --epsilon 1 --delta 1e-5 --noise-multiplier " +
                multiplier)["rounds"] == 20);
}

TEST_CASE("privacy command: what is missing, out of place or out of range is named") {
  refuses("epsilon --delta 1e-5", "--sampling-rate");
  refuses("epsilon --mechanism laplace --delta 1e-5", "--scale");
  refuses("epsilon --mechanism gaussian --noise-multiplier 1 --variance 3 --delta 1e-5", "--variance");
  refuses("epsilon --sampling-rate 1.5 --noise-multiplier 1 --delta 1e-5", "sampling rate");
  refuses("epsilon --sampling-rate 0.5 --noise-multiplier -1 --delta 1e-5", "noise multiplier");
  refuses("epsilon --sampling-rate 0.5 --noise-multiplier nan --delta 1e-5", "noise multiplier");
  refuses("epsilon --sampling-rate 0.5 --noise-multiplier 1 --delta 1", "delta");
  refuses("noise --sampling-rate 0.5 --noise-multiplier 1 --epsilon 1 --delta 1e-5", "--noise-multiplier");
  refuses("noise --sampling-rate 0.5 --epsilon 0 --delta 1e-5", "epsilon");
  refuses("epsilon --mechanism tree --noise-multiplier 1 --max-participations 1.5 --delta 1e-5",
          "--max-participations");
  refuses("epsilon --mechanism skellam --variance 1 --l2 1 --beta 2 --delta 1e-5", "--beta");
  refuses("epsilon --mechanism magic --delta 1e-5", "magic");
}
