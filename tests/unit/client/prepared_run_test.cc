#include "client/prepared_run.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "client/local/client_memory.h"
#include "core/config/document.h"
#include "tests/support/tiny_dataset.h"

namespace fedge::client {
namespace {

// The description of a run with this text, as client `number` receives it.
protocol::RunDescription described(const std::string& text, std::uint64_t run, std::uint32_t number) {
  auto document = config::parse_toml(text, "run");
  REQUIRE(document);
  config::Reader root(document->root, "", "run");
  const auto task = learn::Task::build_for(read_work(root).task, 5, ClientId(number));
  REQUIRE_MESSAGE(task, task.error().message);
  return {
      .run = RunId(run), .name = "r", .seed = 5, .task = text, .layout = (*task)->model().layout()->hash()};
}

// Returns the label counts that client 3 publishes when it starts in this state directory.
std::vector<double> published(const test::TemporaryDirectory& data, const test::TemporaryDirectory& state,
                              std::uint64_t run, const std::string& epsilon = "1.0") {
  const std::string text =
      "[data]\ndirectory = \"" + data.path().string() +
      "\"\n[status]\nevery_seconds = 1\nlabels = \"dp_histogram\"\nepsilon = " + epsilon + "\n";
  const protocol::RunDescription description = described(text, run, 3);
  const auto prepared = prepare_run(description, {.client = ClientId(3), .state_directory = state.path()});
  REQUIRE_MESSAGE(prepared, prepared.error().message);
  return (*prepared)->labels;
}

}  // namespace

TEST_CASE("prepared run: a client publishes the same noisy counts in every run, and another client others") {
  const test::TemporaryDirectory data, state, elsewhere;
  test::write_tiny_dataset(data);
  const std::vector<double> first = published(data, state, 1);
  REQUIRE(first.size() == 10);
  CHECK(published(data, state, 1) == first);
  CHECK(published(data, state, 2) == first);
  // Forgetting an ended run does not renew the noise.
  forget_run(state.path(), RunId(1));
  CHECK(published(data, state, 1) == first);
  // The noise must not be a function of public values: the run's description and the client's number. It must
  // also differ when its scale is halved: two counts with proportional noise would reveal it.
  const std::vector<double> others = published(data, elsewhere, 1);
  const std::vector<double> half = published(data, state, 1, "2.0");
  for (std::size_t label = 0; label < first.size(); ++label) {
    CHECK(others[label] != first[label]);
    const double count = 2 * half[label] - first[label];  // the true count if the noise were proportional
    CHECK(std::abs(count - std::round(count)) > 1e-9);
  }
}

TEST_CASE(
    "prepared run: a client with a limit takes part where its own noise keeps it at its own delta, whatever "
    "the "
    "coordinator's is") {
  const test::TemporaryDirectory data, state;
  test::write_tiny_dataset(data);
  const std::string text = "[data]\ndirectory = \"" + data.path().string() + "\"\n";
  // A hundred updates with noise 10 are one with noise 1: epsilon 4.377178 at delta 1e-5.
  const std::string noise =
      "[local_privacy]\nclipping_norm = 1.0\nnoise_multiplier = 10.0\nfraction_bits = 14\n"
      "max_participations = 100\ndelta = 1e-5\n";
  const auto take_part = [&](const std::string& task, double most) {
    return prepare_run(described(task, 1, 3),
                       {.client = ClientId(3), .state_directory = state.path(), .max_epsilon = most});
  };
  const auto ready = take_part(text + noise, 4.38);
  REQUIRE_MESSAGE(ready, ready.error().message);
  CHECK((*ready)->local_privacy->max_participations == 100);
  const auto too_much = take_part(text + noise, 4.37);
  REQUIRE_FALSE(too_much);
  CHECK(too_much.error().code == ErrorCode::kRefused);
  CHECK(too_much.error().message.find("--max-epsilon 4.37, but the updates of this client in this run and in "
                                      "earlier runs may together reach epsilon = 4.37") != std::string::npos);
  // A large delta of the coordinator does not weaken the limit; the owner's delta counts.
  const std::string sloppy = std::string(noise).replace(noise.find("1e-5"), 4, "0.1");
  const auto careless = take_part(text + sloppy, 4.37);
  REQUIRE_FALSE(careless);
  CHECK(careless.error().message.find("epsilon = 4.37") != std::string::npos);
  CHECK(careless.error().message.find("at delta = 1e-05") != std::string::npos);
  // Noise 1 gives epsilon 2.317789 at delta 0.01 (Balle and Wang 2018, theorem 8, by bisection).
  const auto content = [&](double most) {
    return prepare_run(
        described(text + noise, 1, 3),
        {.client = ClientId(3), .state_directory = state.path(), .max_epsilon = most, .max_delta = 0.01});
  };
  CHECK(content(2.32));
  CHECK_FALSE(content(2.31));
  const auto none = take_part(text, 100);
  REQUIRE_FALSE(none);
  CHECK(none.error().message.find("differential_privacy.kind = \"local\"") != std::string::npos);
}

TEST_CASE("prepared run: where noise hides a client's updates it does not tell its labels besides") {
  const test::TemporaryDirectory data, state;
  test::write_tiny_dataset(data);
  std::string noise;
  SUBCASE("noise of its own alone") {
    noise =
        "[local_privacy]\nclipping_norm = 1.0\nnoise_multiplier = 10.0\nfraction_bits = 14\n"
        "max_participations = 100\ndelta = 1e-5\n";
  }
  SUBCASE("masks alone") {
    noise = config::canonical_toml({{"masking", {privacy::to_table({.max_weight = 1000}), ""}}});
  }
  SUBCASE("noise that all of a sum add") {
    privacy::MaskingSpec spec{.max_weight = 1000};
    spec.uniform_weight = 1;
    spec.clipping_norm = 1;
    spec.noise_multiplier = 5;
    spec.max_participations = 100;
    noise = config::canonical_toml({{"masking", {privacy::to_table(spec), ""}}});
  }
  for (const char* labels : {"sets", "dp_histogram"}) {
    const std::string text = "[data]\ndirectory = \"" + data.path().string() +
                             "\"\n[status]\nevery_seconds = 1\nlabels = \"" + labels + "\"\n" + noise;
    const auto refused =
        prepare_run(described(text, 1, 3), {.client = ClientId(3), .state_directory = state.path()});
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == ErrorCode::kRefused);
    CHECK_MESSAGE(refused.error().message.find("status.labels") != std::string::npos,
                  refused.error().message);
  }
}

TEST_CASE(
    "prepared run: a client that wants noise takes part where enough of it is added, and nowhere else") {
  const test::TemporaryDirectory data, state;
  test::write_tiny_dataset(data);
  const std::string text = "[data]\ndirectory = \"" + data.path().string() + "\"\n";
  const auto take_part = [&](const std::string& task, double epsilon, double corrupt) {
    ClientSide side{.client = ClientId(3), .state_directory = state.path(), .require_noise = epsilon};
    side.rules.assumptions.corrupt = corrupt;
    return prepare_run(described(task, 1, 3), side);
  };
  const auto masked = [&](double noise) {
    privacy::MaskingSpec spec{.max_weight = 1000};
    if (noise > 0) {
      spec.uniform_weight = 1;
      spec.clipping_norm = 1;
      spec.noise_multiplier = noise;
      spec.max_participations = 100;
    }
    spec.rules.assumptions.corrupt = 0;
    spec.rules.min_survivors = 5;
    return text + config::canonical_toml({{"masking", {privacy::to_table(spec), ""}}});
  };
  // A hundred sums with noise 10 equal one with noise 1: epsilon 4.377178 at delta 1e-5. Four of five members
  // are honest; each adds half of the noise.
  const auto enough = take_part(masked(5), 4.38, 0.2);
  REQUIRE_MESSAGE(enough, enough.error().message);
  CHECK_FALSE(take_part(masked(5), 4.37, 0.2));
  CHECK_FALSE(take_part(masked(5), 4.38, 0.33));  // three honest members add too little noise
  CHECK_FALSE(take_part(masked(0.001), 100, 0.2));
  for (const std::string& bare : {text, masked(0)}) {
    const auto refused = take_part(bare, 1000, 0.2);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == ErrorCode::kRefused);
    CHECK(refused.error().message.find("--require-noise 1000, but no client of this run adds noise") !=
          std::string::npos);
  }
  const std::string local =
      "[local_privacy]\nclipping_norm = 1.0\nnoise_multiplier = 10.0\nfraction_bits = 14\n"
      "max_participations = 100\ndelta = 1e-5\n";
  CHECK(take_part(text + local, 4.38, 0.2));
  CHECK_FALSE(take_part(text + local, 4.37, 0.2));
  // A coordinator does not get a new budget by starting another run.
  auto releases = client::PrivateReleases::read(state.path());
  REQUIRE(releases);
  REQUIRE(releases->count({RunId(900), {RoundNumber(1), TrackId()}, 1, enough->get()->noise}, {.most = 1}));
  const auto again = take_part(masked(5), 4.38, 0.2);
  REQUIRE_FALSE(again);
  CHECK_MESSAGE(again.error().message.find("in this run and in earlier runs") != std::string::npos,
                again.error().message);
  CHECK(take_part(masked(5), 4.5, 0.2));
}

TEST_CASE("prepared run: a client insists on the grid that its noise is accounted for on") {
  const test::TemporaryDirectory data, state;
  test::write_tiny_dataset(data);
  const auto refusal = [&](int bits, std::uint64_t weight, double noise) -> std::string {
    privacy::MaskingSpec spec{.fraction_bits = bits, .uniform_weight = weight, .max_weight = weight};
    spec.clipping_norm = 1;
    spec.noise_multiplier = noise;
    spec.max_participations = noise > 0 ? 100 : 0;
    const std::string text = "[data]\ndirectory = \"" + data.path().string() + "\"\n" +
                             config::canonical_toml({{"masking", {privacy::to_table(spec), ""}}});
    const auto made =
        prepare_run(described(text, 1, 3), {.client = ClientId(3), .state_directory = state.path()});
    return made ? "" : made.error().message;
  };
  CHECK(refusal(11, 1, 5) == "");
  CHECK(refusal(8, 8, 5) == "");
  CHECK(refusal(11, 1, 0.03125) == "");
  CHECK(refusal(-64, 1, 0) == "");
  CHECK_MESSAGE(refusal(10, 1, 5).find("fraction_bits: is too coarse for noise: clipping_norm is 1024 units "
                                       "of the sums, but must be at least 2048") != std::string::npos,
                refusal(10, 1, 5));
  CHECK(refusal(-64, 1, 1000).find("is too coarse for noise") != std::string::npos);
  CHECK_MESSAGE(refusal(11, 1, 0.03)
                        .find("the standard deviation of a client's noise is 61.44 units of the sums, but "
                              "must be at least 64") != std::string::npos,
                refusal(11, 1, 0.03));
}

TEST_CASE(
    "A3 prepared run: a coordinator that names a directory of texts gets none unless this device named one") {
  const test::TemporaryDirectory diary, shared, state;
  const std::string secret(400, 's');
  const std::string given(400, 'g');
  diary.write("diary.txt", {secret.begin(), secret.end()});
  shared.write("shared.txt", {given.begin(), given.end()});
  const std::string text = "[data]\ndataset = \"text\"\ncontext = 10\ndirectory = \"" +
                           diary.path().string() +
                           "\"\n[data.partition]\nkind = \"natural\"\nclients = 1\n[model]\n"
                           "kind = \"transformer\"\nlayers = 1\nwidth = 8\nheads = 2\n";
  const protocol::RunDescription description = described(text, 1, 0);
  const auto refused = prepare_run(description, {.client = ClientId(0), .state_directory = state.path()});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message.find("--data") != std::string::npos);
  const auto prepared = prepare_run(description, {.client = ClientId(0),
                                                  .state_directory = state.path(),
                                                  .data_directories = {{"text", shared.path()}}});
  REQUIRE_MESSAGE(prepared, prepared.error().message);
  const auto tokens = (*prepared)->task->data().text.tokens;
  CHECK(std::ranges::count(tokens, learn::Token{'g' - ' '}) == static_cast<std::ptrdiff_t>(tokens.size()));
  // The fortunes corpus reads all files of a directory.
  diary.write("diary", {secret.begin(), secret.end()});
  const std::string fortunes = std::string(text).replace(text.find("\"text\""), 6, "\"fortunes\"");
  const auto own =
      prepare_run(described(fortunes, 1, 0), {.client = ClientId(0), .state_directory = state.path()});
  if (own) {
    const auto said = (*own)->task->data().text.tokens;  // Debian's fortunes, if installed
    CHECK(std::ranges::search_n(said, 300, learn::Token{'s' - ' '}).empty());
  } else {
    CHECK_MESSAGE(own.error().message.find(diary.path().string()) == std::string::npos, own.error().message);
  }
}

TEST_CASE(
    "prepared run: activations leave a device only if its owner allows it, and never where updates are "
    "hidden") {
  const test::TemporaryDirectory data, state;
  for (const char* name : {"a.txt", "b.txt"}) {
    const std::string text(3000, 'x');
    data.write(name, {text.begin(), text.end()});
  }
  const std::string text =
      "[data]\ndataset = \"text\"\ncontext = 16\npartition = { kind = \"natural\", clients = 2 }\n"
      "directory = \"" +
      data.path().string() +
      "\"\n[model]\nkind = \"llama\"\nlayers = 2\nwidth = 16\nheads = 2\nadapter = { rank = 2 }\n"
      "[training]\nlocal_model = \"split\"\n";
  const std::string noise =
      "[local_privacy]\nclipping_norm = 1.0\nnoise_multiplier = 10.0\nfraction_bits = 14\n"
      "max_participations = 100\ndelta = 1e-5\n";
  const std::string masks =
      "[masking]\nbits = 32\nfraction_bits = 16\nmax_abs = 8.0\nuniform_weight = 0\nmax_weight = 100\n"
      "corrupt = 0.1\ndropout = 0.1\ncomplete_below = 0\nmin_clients = 2\n";
  const auto refusal = [&](const std::string& task, bool splits, bool only_secure = false) {
    const auto ready = prepare_run(described(task, 1, 1), {.client = ClientId(1),
                                                           .state_directory = state.path(),
                                                           .data_directories = {{"text", data.path()}},
                                                           .only_secure = only_secure,
                                                           .splits = splits,
                                                           .shared_bases = state.path() / "bases"});
    if (ready) CHECK((*ready)->base.shared.empty());  // each client has other matrices
    return ready ? "accepted" : std::string(to_string(ready.error().code)) + ": " + ready.error().message;
  };
  CHECK(refusal(text, true) == "accepted");
  CHECK(refusal(text, false).find("start it with --allow-split if it may") != std::string::npos);
  // No run file says so, but a lying coordinator can.
  CHECK(refusal(text + noise, true).find("promises to hide this client's updates") != std::string::npos);
  CHECK(refusal(text + masks, true).find("promises to hide this client's updates") != std::string::npos);
  CHECK(refusal(text, true, true).find("--only-secure") != std::string::npos);
}

TEST_CASE("prepared run: what a client keeps for itself outlives its process, if the update was accepted") {
  const test::TemporaryDirectory data, state, other;
  test::write_tiny_dataset(data);
  const std::string text = "[data]\ndirectory = \"" + data.path().string() +
                           "\"\n[model]\nkind = \"softmax\"\npersonal = [\"dense1.bias\"]\n";
  const auto update = [&](const test::TemporaryDirectory& place, std::uint32_t round, std::uint32_t last) {
    // A new process each time.
    const auto run =
        prepare_run(described(text, 1, 3), {.client = ClientId(3), .state_directory = place.path()});
    REQUIRE_MESSAGE(run, run.error().message);
    const learn::Model& model = (*run)->task->model();
    LoadedModel loaded{.model = ParameterVector(model.layout())};
    model.initialise(loaded.model.values(), Rng(1));
    protocol::TrainRequest request{
        .run = RunId(1), .round = RoundNumber(round), .coverage = model.layout()->trainable()};
    request.last_round = RoundNumber(last);
    const auto result = work_on(**run, {.client = ClientId(3), .request = request, .loaded = loaded});
    REQUIRE_MESSAGE(result, result.error().message);
    return std::vector<float>(result->values.span().begin(), result->values.span().end());
  };
  update(state, 1, 0);
  const std::vector<float> second = update(state, 2, 1);
  CHECK(update(state, 2, 1) == second);  // the same task again
  CHECK(update(other, 2, 0) != second);  // without what the first task left
  update(other, 1, 0);
  CHECK(update(other, 2, 1) == second);
  CHECK(update(other, 2, 0) == update(state, 2, 0));  // the first update did not count
}

}  // namespace fedge::client
