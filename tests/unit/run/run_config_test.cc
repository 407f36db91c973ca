#include "run/run_config.h"

#include <doctest/doctest.h>

#include "tests/support/text.h"

using namespace fedge;

namespace {

Result<run::RunConfig> read_run(const std::string& text) {
  const auto document = config::parse_toml(text, "run.toml");
  REQUIRE(document);
  return run::read_run_config(*document);
}

std::string complaint(const std::string& text) {
  const auto run = read_run(text);
  REQUIRE_FALSE(run);
  CHECK(run.error().code == ErrorCode::kInvalid);
  return run.error().message;
}

using fedge::test::contains;

}  // namespace

TEST_CASE("run file: an empty one is a run of ten clients, all of which are waited for") {
  const auto run = read_run("");
  REQUIRE(run);
  CHECK(run->name == "run");
  CHECK(run->wait_for_clients == 10);
  CHECK(run->chunk_size == 256 << 10);
}

TEST_CASE("run file: the id is that of the contents, not of their order or spelling") {
  const auto one = read_run("[run]\nrounds = 3\nseed = 4\n");
  const auto same = read_run("# the same\nrun = { seed = 4, rounds = 3 }\n");
  const auto other = read_run("[run]\nrounds = 3\nseed = 5\n");
  REQUIRE((one && same && other));
  CHECK(one->id == same->id);
  CHECK(one->id != other->id);
  CHECK(one->task_text == other->task_text);  // clients receive the seed separately
}

TEST_CASE("run file: what could never run is refused by file, line and key") {
  CHECK(contains(complaint("[run]\nname = \"\"\n"), "run.toml:2: run.name: is empty"));
  CHECK(contains(complaint("[run]\nname = \"a\\u0007b\"\n"), "run.name: cannot be sent to clients"));
  CHECK(
      contains(complaint("[run]\nname = \"" + std::string(2000, 'x') + "\"\n"), "run.name: cannot be sent"));
  CHECK(contains(complaint("[run]\nchunk_size = 4098\n"), "run.chunk_size: must be a multiple of 4"));
  CHECK(contains(complaint("[run]\nwait_for_clients = 11\n"),
                 "run.wait_for_clients: must be at most data.partition.clients, which is 10"));
  const auto many = read_run("[sampling]\nclients_per_round = 20\n");
  REQUIRE(many);
  CHECK(many->sampling.clients_per_round == 10);
  CHECK(many->notes ==
        std::vector<std::string>{"run.toml:2: sampling.clients_per_round: is 20, but the data is "
                                 "partitioned over 10 clients; 10 is used"});
  const auto held_out = read_run("[data]\nvalidation = 0.1\n");
  REQUIRE(held_out);
  CHECK(held_out->notes ==
        std::vector<std::string>{"run.toml:2: data.validation: accuracy and loss are measured on validation "
                                 "samples, 0.1 of the training samples, instead of the test samples"});
  CHECK(contains(held_out->task_text, "validation"));  // a client partitions by itself
  CHECK(!contains(read_run("")->task_text, "validation"));
  CHECK(contains(complaint("[data]\nvalidation = 0.6\n"), "run.toml:2: data.validation: "));
  // Sampling with replacement may draw a client twice. Without the key, a suitable default applies.
  const auto drawn = read_run("[sampling]\nkind = \"md\"\nclients_per_round = 20\n");
  REQUIRE(drawn);
  CHECK(drawn->sampling.clients_per_round == 20);
  const auto few = read_run("[data]\npartition = { clients = 3 }\n");
  REQUIRE(few);
  CHECK(few->sampling.clients_per_round == 3);
  CHECK(contains(complaint("[sampling]\nmin_available = 11\n"),
                 "sampling.min_available: must be at most data.partition.clients, which is 10"));
  CHECK(contains(complaint("[run]\nround = 3\n"), "rounds"));  // did you mean
}
