// Models, objectives and data sets that a program registers, on a client: what they reveal when they fail,
// and which directory they see.
#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "client/prepared_run.h"
#include "core/config/document.h"
#include "learn/objectives/kinds.h"
#include "tests/support/own/kinds.h"
#include "tests/support/text.h"
#include "tests/support/tiny_dataset.h"

namespace fedge::client {
namespace {

using test::contains;

// Adds nothing to the gradient, or throws.
class OwnNothing final : public learn::Objective {
 public:
  explicit OwnNothing(bool throws) : throws_(throws) {}
  void add_gradient(std::span<const float>, std::span<const float>, std::span<float>) const override {
    if (throws_) throw std::out_of_range("index 7");
  }

 private:
  bool throws_;
};

// A data set that remembers the directories in which it was to look.
class OwnPlace final : public learn::DataSource {
 public:
  Result<learn::DatasetInfo> describe(const learn::DataSpec& spec) const override {
    seen.push_back(spec.directory);
    return learn::DatasetInfo{{1, 2, 1}, 2, 2, {}};
  }
  Result<learn::Dataset> load(const learn::DataSpec&, learn::Split) const override {
    return Error{ErrorCode::kNotFound, "there is no file"};
  }
  static inline std::vector<std::string> seen;
};

void register_parts() {
  test::register_own_kinds();
  static const bool registered = [] {
    learn::register_objective({.name = "own_nothing",
                               .paper = "",
                               .summary = "",
                               .read = [](config::Reader& section, learn::ObjectiveSpec&) {
                                 const bool throws = section.boolean("throws", false, "Whether it fails.");
                                 return learn::ObjectiveFactory([throws](const learn::ObjectiveSpec&) {
                                   return std::make_shared<OwnNothing>(throws);
                                 });
                               }});
    learn::register_dataset({.name = "own_place",
                             .paper = "",
                             .summary = "",
                             .traits = {},
                             .read = [](config::Reader&) -> std::shared_ptr<const learn::DataSource> {
                               return std::make_shared<OwnPlace>();
                             }});
    return true;
  }();
  REQUIRE(registered);
}

// The result of client 0's training in a run with these settings.
Result<WorkResult> worked(const std::string& settings, bool masked) {
  register_parts();
  const test::TemporaryDirectory data;
  test::write_tiny_dataset(data);
  const auto document = config::parse_toml(
      "[data]\ndirectory = \"" + data.path().string() + "\"\npartition = { clients = 5 }\n" + settings,
      "test.toml");
  REQUIRE(document);
  config::Reader root(document->root, "", "test.toml");
  const WorkSpec spec = read_work(root);
  const auto right = root.finish();
  REQUIRE_MESSAGE(right, right.error().message);
  const auto task = learn::Task::build(spec.task, 3);
  REQUIRE_MESSAGE(task, task.error().message);
  const Coverage all = Coverage::all((*task)->model().layout()->size());
  LocalWork worker(**task, spec.compression, 3);
  if (masked) worker.hide_failures();
  ClientMemory memory;
  const std::vector<float> model(all.count(), 0.25F);
  return worker.run(
      {.client = ClientId(0), .round = RoundNumber(1), .coverage = all, .control = {}, .stop = {}}, model,
      memory);
}

}  // namespace

TEST_CASE("own parts: where updates are masked, training that fails in one is zeros that count for nothing") {
  // Each step multiplies the parameters by about -10^4.
  const std::string diverges =
      "[training]\nlocal_epochs = 20\noptimizer = { learning_rate = 1000, weight_decay = 10 }\n"
      "objective = { kind = \"own_nothing\" }\n";
  const std::string throws = "[training]\nobjective = { kind = \"own_nothing\", throws = true }\n";
  const std::string fails = "[model]\nkind = \"own_bias\"\nfault = \"train\"\n";
  for (const auto& [settings, reason] :
       {std::pair{diverges, "the training loss is not finite"},
        std::pair{throws, "the objective own_nothing threw an exception: index 7"},
        std::pair{fails, "the model own_bias threw an exception: index 7"}}) {
    const auto open = worked(settings, false);
    REQUIRE_FALSE(open);
    CHECK(contains(open.error().message, reason));
    const auto hidden = worked(settings, true);
    REQUIRE_MESSAGE(hidden, hidden.error().message);
    REQUIRE(hidden->fault);
    CHECK(contains(hidden->fault->message, reason));
    CHECK(hidden->training.samples == SampleCount(0));
    CHECK(std::ranges::all_of(hidden->values.span(), [](float value) { return value == 0; }));
  }
  const auto well = worked("[training]\nobjective = { kind = \"own_nothing\" }\n", true);
  REQUIRE(well);
  CHECK_FALSE(well->fault);
}

TEST_CASE("own parts: a coordinator does not choose a data set's directory, also beside a trainer program") {
  register_parts();
  const test::TemporaryDirectory state;
  const test::TemporaryDirectory mine;
  const protocol::RunDescription description{
      .run = RunId(1),
      .name = "r",
      .seed = 5,
      .task = "[data]\ndataset = \"own_place\"\ndirectory = \"/theirs\"\n[model]\nkind = \"softmax\"\n",
      .layout = {}};
  for (const bool trainer : {false, true})
    for (const bool own : {false, true}) {
      OwnPlace::seen.clear();
      ClientSide side{.client = ClientId(3), .state_directory = state.path(), .trainer = nullptr};
      if (trainer) side.trainer = std::make_shared<ExternalTrainer>(TrainerOptions{.command = {"none"}});
      if (own) side.data_directories.emplace("own_place", mine.path());
      CHECK_FALSE(prepare_run(description, side));
      REQUIRE_FALSE(OwnPlace::seen.empty());
      for (const std::string& directory : OwnPlace::seen)
        CHECK(directory == (own ? mine.path().string() : std::string()));
    }
}

}  // namespace fedge::client
