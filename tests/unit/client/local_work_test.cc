#include "client/local/local_work.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "aggregation/control_variate.h"
#include "aggregation/planners/planner.h"
#include "core/config/document.h"
#include "tests/support/aggregation.h"
#include "tests/support/tiny_dataset.h"

namespace fedge::client {
namespace {

constexpr float kRate = 0.1F;
constexpr std::uint64_t kSeed = 3;

// Five clients with eight samples each of the tiny data set, and these settings.
struct Federation {
  explicit Federation(const std::string& settings) {
    test::write_tiny_dataset(data);
    const auto document = config::parse_toml(
        "[data]\ndirectory = \"" + data.path().string() + "\"\npartition = { clients = 5 }\n" + settings,
        "test.toml");
    REQUIRE(document);
    config::Reader root(document->root, "", "test.toml");
    spec = read_work(root);
    const auto finished = root.finish();
    REQUIRE_MESSAGE(finished, finished.error().message);
    auto built = learn::Task::build(spec.task, kSeed);
    REQUIRE(built);
    task = *built;
    model.resize(task->model().layout()->size());
    task->model().initialise(model, Rng(kSeed).fork("model"));
  }
  std::size_t size() const { return model.size(); }

  WorkResult work(const WorkOrder& order, ClientMemory& memory) const {
    LocalWork worker(*task, spec.compression, kSeed);
    if (spec.local_privacy) worker.make_private(*spec.local_privacy);
    auto result = worker.run(order, model, memory);
    REQUIRE(result);
    return std::move(*result);
  }

  test::TemporaryDirectory data;
  WorkSpec spec;
  std::shared_ptr<const learn::Task> task;
  std::vector<float> model;
};

WorkOrder order_of(std::uint32_t client, std::uint32_t round, const Coverage& coverage,
                   std::span<const float> control = {}) {
  return {.client = ClientId(client),
          .round = RoundNumber(round),
          .coverage = coverage,
          .control = control,
          .stop = {}};
}

std::vector<float> values_of(const WorkResult& result) {
  return {result.values.span().begin(), result.values.span().end()};
}

std::unique_ptr<aggregation::Planner> planner(const std::string& kind, const Federation& federation) {
  const auto factory =
      aggregation::read_part(aggregation::kind_named(aggregation::planner_kinds(), kind), "").make;
  auto made = factory({federation.task->model().layout(), 5, Rng(kSeed)});
  REQUIRE_MESSAGE(made, made.error().message);
  return std::move(*made);
}

const std::string kMlp = "[model]\nkind = \"mlp\"\nhidden = [20, 10]\n";
const std::string kTraining =
    "[training]\noptimizer = { learning_rate = 0.1 }\nbatch_size = 4\nlocal_epochs = 2\n";
const std::string kScaffold = kTraining + "objective = { kind = \"scaffold\" }\n";

}  // namespace

TEST_CASE("scaffold: while all control variates are 0 training has the bits of plain training") {
  const Federation plain(kMlp + kTraining);
  const Federation scaffold(kMlp + kScaffold);
  const Coverage all = Coverage::all(plain.size());
  const std::vector<float> zeros(plain.size(), 0.0F);
  for (const std::uint32_t client : {0U, 3U})
    for (const std::uint32_t round : {1U, 2U}) {
      ClientMemory fresh;
      ClientMemory frozen;
      const auto expected = values_of(plain.work(order_of(client, round, all), fresh));
      CHECK(values_of(scaffold.work(order_of(client, round, all, zeros), frozen)) == expected);
      // The learned drift changes the client's next training.
      CHECK(values_of(scaffold.work(order_of(client, round, all, zeros), frozen)) != expected);
    }
}

TEST_CASE("scaffold: after one step over all samples c_k is the client's gradient, whatever c and c_k were") {
  const std::string once = "objective = { kind = \"scaffold\" }\n";
  const std::string training = "[training]\noptimizer = { learning_rate = 0.1 }\nbatch_size = 100\n";
  const Federation plain(training);
  const Federation scaffold(training + once);
  const Coverage all = Coverage::all(plain.size());
  Rng rng(1);
  std::vector<float> control(plain.size());
  ClientMemory memory;
  for (std::size_t i = 0; i < control.size(); ++i) {
    control[i] = static_cast<float>(0.1 * rng.normal());
    memory.control.push_back(static_cast<std::int64_t>(std::ldexp(0.1 * rng.normal(), 28)));
  }
  ClientMemory none;
  const auto step = values_of(plain.work(order_of(1, 1, all), none));  // -0.1 times the gradient
  scaffold.work(order_of(1, 1, all, control), memory);
  for (std::size_t i = 0; i < step.size(); ++i)
    REQUIRE(std::abs(std::ldexp(static_cast<double>(memory.control[i]), -28) +
                     static_cast<double>(step[i] / kRate)) < 1e-5);
}

TEST_CASE(
    "scaffold: N c is the sum of all c_k to the last unit, with partial participation and compression") {
  for (const char* compression : {"", "[compression]\nkind = \"int8\"\n"}) {
    CAPTURE(compression);
    const Federation federation(kScaffold + compression);
    const Coverage all = Coverage::all(federation.size());
    aggregation::ControlVariate server(federation.size(), 5, static_cast<double>(kRate));
    std::vector<ClientMemory> memories(5);
    std::vector<float> control(federation.size());
    Rng draws(7);
    for (std::uint32_t round = 1; round <= 4; ++round) {
      server.read(0, control);
      for (std::uint32_t client = 0; client < 5; ++client) {
        if (draws.uniform() < 0.4) continue;
        const WorkResult result = federation.work(order_of(client, round, all, control), memories[client]);
        auto update = aggregation::test_update(client, values_of(result));
        update.steps = result.training.steps;
        REQUIRE(server.add(update));
      }
      server.close();
      server.read(0, control);
      std::size_t moved = 0;
      for (std::size_t i = 0; i < control.size(); ++i) {
        std::int64_t sum = 0;
        for (const ClientMemory& memory : memories)
          if (!memory.control.empty()) sum += memory.control[i];
        REQUIRE(control[i] == static_cast<float>(static_cast<double>(sum) * (0x1p-28 / 5)));
        if (sum != 0) ++moved;
      }
      CHECK(moved > control.size() / 2);
    }
  }
}

TEST_CASE(
    "upload: a client of fedplt sends 4 bytes for each parameter it trains, r_k d of them, and no more") {
  const Federation federation(kMlp + kTraining);
  for (const char* kind : {"full", "fedplt", "random_mask"}) {
    CAPTURE(kind);
    const auto plans = planner(kind, federation);
    std::set<std::size_t> sizes;
    for (std::uint32_t client = 0; client < 5; ++client) {
      const Coverage coverage = plans->plan({RoundNumber(1), ClientId(client), Rng(9)});
      ClientMemory memory;
      const WorkResult result = federation.work(order_of(client, 1, coverage), memory);
      const auto manifest = result.shape(Digest{}, coverage, 4096);
      const double trained = plans->share(ClientId(client)) * static_cast<double>(federation.size());
      CHECK(static_cast<double>(result.payload().size()) == doctest::Approx(4 * trained).epsilon(1e-12));
      CHECK(manifest.payload_size == result.payload().size());
      sizes.insert(result.payload().size());
    }
    CHECK(*sizes.rbegin() <= 4 * federation.size());
    if (kind == std::string("full"))
      CHECK(sizes == std::set<std::size_t>{4 * federation.size()});
    else  // 784-20-10-10 with the output layer whole: a fifth of 15,700 + 210, plus 110
      CHECK(*sizes.begin() == 4 * (15'910 / 5 + 110));
  }
}

TEST_CASE("local work: of a private update's training nothing is told, and its norm is that of the noise") {
  const Federation federation(
      kMlp + kTraining +
      "[local_privacy]\nclipping_norm = 0.01\nnoise_multiplier = 5.0\nfraction_bits = 22\n"
      "max_participations = 1\ndelta = 1e-5\n");
  const Secret root{Digest{1}};
  const Coverage part = Coverage::of({{0, 100}, {500, 4'000}});
  WorkOrder order = order_of(2, 1, part);
  order.noise.emplace(fedge::run::PrivateSum::Noise{&root, {RoundNumber(1), TrackId()}});
  ClientMemory memory;
  const WorkResult result = federation.work(order, memory);
  CHECK(result.training.samples == SampleCount(1));
  CHECK(result.training.steps == 1);
  CHECK(result.training.mean_loss == 0);
  CHECK(result.training.rms_loss == 0);
  REQUIRE(result.values.size() == 3'600);
  // The noise contributes 0.1 in each value; the update itself has a norm of at most 0.01.
  CHECK(result.norm == doctest::Approx(0.1 * 60).epsilon(0.05));
  order.noise->task.round = RoundNumber(2);
  const WorkResult later = federation.work(order, memory);
  CHECK(values_of(later) != values_of(result));
}

namespace {

// Trains with a test trainer whose update has this value in every parameter.
Result<WorkResult> trained_elsewhere(const Federation& federation, const WorkOrder& order,
                                     const Result<float>& value, bool masked) {
  LocalWork worker(*federation.task, federation.spec.compression, kSeed,
                   {.train = [&](const WorkOrder&, std::span<const float>,
                                 std::span<float> update) -> Result<learn::TrainingResult> {
                     if (!value) return value.error();
                     std::ranges::fill(update, *value);
                     return learn::TrainingResult{.samples = SampleCount(8), .steps = 2, .mean_loss = 3};
                   }});
  if (masked) worker.hide_failures();
  if (federation.spec.local_privacy) worker.make_private(*federation.spec.local_privacy);
  ClientMemory memory;
  return worker.run(order, federation.model, memory);
}

constexpr float kNotFinite = std::numeric_limits<float>::infinity();

}  // namespace

TEST_CASE("local work: where updates are masked, training that diverges is zeros that count for nothing") {
  const Federation federation(kMlp + kTraining);
  const WorkOrder order = order_of(1, 1, Coverage::of({{0, 50}}));
  CHECK_FALSE(trained_elsewhere(federation, order, kNotFinite, false));
  // The result also hides whether the trainer program sent invalid values.
  for (const Result<float>& value :
       {Result<float>(kNotFinite), Result<float>(invalid("not a finite number"))}) {
    const auto done = trained_elsewhere(federation, order, value, true);
    REQUIRE(done);
    CHECK(values_of(*done) == std::vector<float>(50));
    CHECK(done->training.samples == SampleCount(0));
    CHECK(done->training.mean_loss == 0);
    CHECK(done->fault);
  }
  const auto well = trained_elsewhere(federation, order, 0.5F, true);
  REQUIRE(well);
  CHECK_FALSE(well->fault);
  CHECK(well->training.samples == SampleCount(8));
  // A missing trainer program does not depend on the data and may fail openly.
  CHECK_FALSE(trained_elsewhere(federation, order, Error{ErrorCode::kUnavailable, "gone"}, true));
}

TEST_CASE("local work: where a client noises its updates, training that diverges is noise and nothing more") {
  const Federation federation(
      kMlp + kTraining +
      "[local_privacy]\nclipping_norm = 0.01\nnoise_multiplier = 5.0\nfraction_bits = 22\n"
      "max_participations = 1\ndelta = 1e-5\n");
  const Secret root{Digest{1}};
  const Coverage part = Coverage::of({{500, 4'100}});
  WorkOrder order = order_of(2, 1, part);
  order.noise.emplace(fedge::run::PrivateSum::Noise{&root, {RoundNumber(1), TrackId()}});
  const auto diverged = trained_elsewhere(federation, order, kNotFinite, false);
  const auto zeros = trained_elsewhere(federation, order, 0.0F, false);
  REQUIRE(diverged);
  REQUIRE(zeros);
  CHECK(diverged->fault);
  CHECK(diverged->release);
  CHECK(values_of(*diverged) == values_of(*zeros));
  CHECK(diverged->release == zeros->release);
  CHECK(diverged->training.samples == zeros->training.samples);
  CHECK(diverged->norm == doctest::Approx(0.1 * 60).epsilon(0.05));
}

TEST_CASE("error feedback: what a part left out stays with its parameters until they are sent again") {
  const Federation plain(kMlp + kTraining);
  const Federation sparse(kMlp + kTraining + "[compression]\nkind = \"top_k\"\nfraction = 0.1\n");
  const auto plans = planner("random_mask", plain);
  ClientMemory memory;
  std::vector<float> before(plain.size(), 0.0F);
  for (std::uint32_t round = 1; round <= 3; ++round) {
    const Coverage coverage = plans->plan({RoundNumber(round), ClientId(2), Rng(9).fork("plan", round)});
    ClientMemory none;
    const auto update = values_of(plain.work(order_of(2, round, coverage), none));
    const auto sent = values_of(sparse.work(order_of(2, round, coverage), memory));
    REQUIRE(memory.residual.size() == plain.size());
    std::size_t position = 0;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < plain.size(); ++i) {
      if (!coverage.contains(i)) {
        REQUIRE(memory.residual[i] == before[i]);
        continue;
      }
      // sent + error = update + last error, and each sent value is sent in full.
      REQUIRE(memory.residual[i] + sent[position] == before[i] + update[position]);
      REQUIRE((sent[position] == 0.0F || memory.residual[i] == 0.0F));
      if (sent[position] != 0.0F) ++kept;
      ++position;
    }
    CHECK(kept > 0);
    CHECK(kept <= static_cast<std::size_t>(std::lround(0.1 * static_cast<double>(position))));
    CHECK(memory.residual != before);
    before = memory.residual;
  }
}

TEST_CASE("local work: of a run that masks its updates none can be had to be sent in the clear") {
  const auto clear = OutgoingUpdate::in_the_clear({}, std::nullopt);
  CHECK(clear);
  const auto masked = OutgoingUpdate::in_the_clear({}, privacy::MaskingSpec{});
  REQUIRE_FALSE(masked);
  CHECK(masked.error().code == ErrorCode::kRefused);
}

namespace {

// The relative error of recovering client 0's update from two sums without noise. The first sum holds all
// five clients' updates in round 1, the second those of the other four in `round`, after one parameter of the
// model has changed.
double differencing_error(const Federation& federation, std::uint32_t round) {
  const Coverage all = Coverage::all(federation.size());
  Federation moved("[model]\nkind = \"mlp\"\nhidden = [16]\n[training]\nbatch_size = 4\n");
  moved.model = federation.model;
  moved.model.back() += 1e-3F;  // a bias of the last layer
  std::vector<double> difference(federation.size());
  std::vector<float> victim;
  for (std::uint32_t client = 0; client < 5; ++client) {
    ClientMemory memory;
    const auto update = values_of(federation.work(order_of(client, 1, all), memory));
    if (client == 0) victim = update;
    for (std::size_t i = 0; i < update.size(); ++i) difference[i] += static_cast<double>(update[i]);
  }
  for (std::uint32_t client = 1; client < 5; ++client) {
    ClientMemory memory;
    const auto update = values_of(moved.work(order_of(client, round, all), memory));
    for (std::size_t i = 0; i < update.size(); ++i) difference[i] -= static_cast<double>(update[i]);
  }
  double error = 0;
  double norm = 0;
  for (std::size_t i = 0; i < victim.size(); ++i) {
    const auto truth = static_cast<double>(victim[i]);
    error += (difference[i] - truth) * (difference[i] - truth);
    norm += truth * truth;
  }
  return std::sqrt(error / norm);
}

}  // namespace

TEST_CASE(
    "differencing: sums from nearly the same model give a missing client's update away, as THREATS says") {
  const Federation federation("[model]\nkind = \"mlp\"\nhidden = [16]\n[training]\nbatch_size = 4\n");
  const double same_round = differencing_error(federation, 1);
  const double next_round = differencing_error(federation, 2);
  MESSAGE("relative error with one parameter moved: " << same_round << ", in the next round: " << next_round);
  CHECK(same_round < 0.05);
  CHECK(next_round < 1);
}

}  // namespace fedge::client
