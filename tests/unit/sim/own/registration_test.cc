// A program that registers a part wrongly prints one sentence and ends with exit code 1.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <iostream>
#include <string>

#include "aggregation/aggregators/registry.h"
#include "aggregation/planners/planner.h"
#include "aggregation/samplers/sampler.h"
#include "aggregation/server_optimizers/server_optimizer.h"
#include "learn/data/kinds.h"
#include "learn/models/kinds.h"
#include "learn/objectives/kinds.h"
#include "tests/support/text.h"

using namespace fedge;
using namespace fedge::aggregation;
using fedge::test::contains;

namespace {

// Runs `call` in a child process, which must end with exit code 1; returns its last words.
template <class Call>
std::string last_words(Call&& call) {
  int words[2];
  REQUIRE(::pipe(words) == 0);
  std::cout.flush();  // else the child writes the buffer too
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ::dup2(words[1], STDERR_FILENO);
    call();
    ::_exit(0);
  }
  ::close(words[1]);
  std::string said;
  char buffer[512];
  for (ssize_t got = 0; (got = ::read(words[0], buffer, sizeof buffer)) > 0;)
    said.append(buffer, static_cast<std::size_t>(got));
  ::close(words[0]);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 1);
  return said;
}

AggregatorPart read_nothing(config::Reader&) { return {}; }
SamplerFactory read_no_sampler(config::Reader&) { return {}; }
learn::ModelFactory read_no_model(config::Reader&, learn::ModelSpec&) { return {}; }
std::shared_ptr<const learn::DataSource> read_no_data(config::Reader&) { return nullptr; }
PlannerPart read_no_planner(config::Reader&) { return {}; }
ServerOptimizerFactory read_no_optimizer(config::Reader&) { return {}; }
learn::ObjectiveFactory read_no_objective(config::Reader&, learn::ObjectiveSpec&) { return {}; }

}  // namespace

TEST_CASE(
    "registration: a part with a name that exists, or without a member, ends the program with a sentence") {
  const auto aggregator = [](AggregatorKind kind) { return last_words([&] { register_aggregator(kind); }); };
  const auto sampler = [](SamplerKind kind) { return last_words([&] { register_sampler(kind); }); };
  CHECK(aggregator({"trimmed_mean", "p", "s", {}, read_nothing})
            .ends_with(": there is already an aggregator trimmed_mean; choose another name\n"));
  CHECK(aggregator({"mine", "p", nullptr, {}, read_nothing})
            .ends_with(": the aggregator mine has no summary; set .summary in register_aggregator()\n"));
  CHECK(contains(aggregator({"mine", nullptr, "s", {}, read_nothing}), "mine has no paper; "));
  CHECK(contains(aggregator({"mine", "p", "s", {}, nullptr}), "mine has no read; "));
  CHECK(contains(aggregator({nullptr, "p", "s", {}, read_nothing}), ": an aggregator without a name; "));
  CHECK(sampler({"uniform", "p", "s", read_no_sampler})
            .ends_with(": there is already a sampler uniform; choose another name\n"));
  CHECK(sampler({"mine", "p", nullptr, read_no_sampler})
            .ends_with(": the sampler mine has no summary; set .summary in register_sampler()\n"));
  CHECK(last_words([] {
          learn::register_model({"mlp", "p", "s", {}, read_no_model});
        }).ends_with(": there is already a model mlp; choose another name\n"));
  CHECK(last_words([] {
          learn::register_dataset({"text", "p", "s", {}, read_no_data});
        }).ends_with(": there is already a data set text; choose another name\n"));
  CHECK(last_words([] {
          register_planner({"full", "p", "s", {}, read_no_planner});
        }).ends_with(": there is already a planner full; choose another name\n"));
  CHECK(last_words([] {
          register_server_optimizer({"adam", "p", "s", read_no_optimizer});
        }).ends_with(": there is already a server optimizer adam; choose another name\n"));
  CHECK(last_words([] {
          learn::register_objective({"plain", "p", "s", read_no_objective});
        }).ends_with(": there is already an objective plain; choose another name\n"));
}
