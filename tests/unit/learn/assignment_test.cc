// Tests what an assignment changes in training: parts, slices, nested slices, limits.
#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "learn/submodel.h"
#include "learn/task.h"
#include "tests/support/skip.h"
#include "tests/support/text.h"
#include "tests/unit/learn/small_problem.h"

using namespace fedge;
using namespace fedge::learn;

namespace {

TaskSpec task_spec() {
  TaskSpec spec;
  spec.data.partition.kind = PartitionKind::kDirichlet;
  spec.data.partition.clients = 20;
  spec.data.partition.alpha = 0.1;
  spec.data.partition.samples_per_client = 60;
  spec.model.hidden = {16, 10};
  spec.training.batch_size = 20;
  return spec;
}

// Returns null if Fashion-MNIST is not installed; the test case is then skipped.
std::shared_ptr<const Task> build(const TaskSpec& spec) {
  auto task = Task::build(spec, 42);
  if (!task && task.error().code == ErrorCode::kNotFound) {
    fedge::test::skip("Fashion-MNIST not found", "dataset-fashion-mnist");
    return nullptr;
  }
  REQUIRE_MESSAGE(task.has_value(), task.error().message);
  return std::move(task).value();
}

std::vector<float> initial_model(const Task& task) {
  std::vector<float> parameters(task.model().layout()->size());
  task.model().initialise(parameters, Rng(1));
  return parameters;
}

Assignment assignment_of(const Coverage* coverage, LocalModel local) {
  return {.client = ClientId(3), .round = RoundNumber(5), .coverage = coverage, .local = local};
}

std::vector<float> update_of(const Task& task, const Assignment& assignment, Trainer& trainer) {
  const auto global = initial_model(task);
  // NaN: every value must be written.
  std::vector<float> update(assignment.coverage != nullptr ? assignment.coverage->count() : global.size(),
                            std::nanf(""));
  const auto result = task.train(assignment, global, update, trainer);
  REQUIRE_MESSAGE(result.has_value(), result.error().message);
  CHECK(result->samples == SampleCount(60));
  CHECK(result->steps == (assignment.max_steps > 0 ? assignment.max_steps : 3));
  return update;
}

std::vector<float> update_of(const Task& task, const Assignment& assignment) {
  Trainer trainer = task.make_trainer();
  return update_of(task, assignment, trainer);
}

// Trains this model in a trainer from these values, on the client's samples with its random stream.
std::vector<float> difference(const Task& task, const Model& model, const std::vector<float>& start,
                              const TrainingOptions& options) {
  std::vector<float> trained = start;
  Trainer(model, task.spec().training)
      .train(trained, task.data(), task.samples_of(ClientId(3)), Rng(42).fork("train", 5, 3), options);
  for (std::size_t i = 0; i < trained.size(); ++i) trained[i] -= start[i];
  return trained;
}

std::vector<float> pack(const std::vector<float>& values, const Coverage& coverage) {
  std::vector<float> packed;
  for (std::size_t i = 0; i < values.size(); ++i)
    if (coverage.contains(i)) packed.push_back(values[i]);
  return packed;
}

std::string refusal(const Task& task, const Assignment& assignment) {
  const auto global = initial_model(task);
  std::vector<float> update(assignment.coverage != nullptr ? assignment.coverage->count() : global.size());
  Trainer trainer = task.make_trainer();
  const auto result = task.train(assignment, global, update, trainer);
  REQUIRE_FALSE(result.has_value());
  CHECK(result.error().code == ErrorCode::kInvalid);
  return result.error().message;
}

using fedge::test::contains;

}  // namespace

TEST_CASE("assignment: an update of a part is packed, and what training that part alone adds") {
  const auto task = build(task_spec());
  if (!task) return;
  const auto global = initial_model(*task);
  for (const Coverage& coverage :
       {learn::test::random_rows(*task->model().layout(), 0.3, Rng(1)),
        learn::test::random_ranges(global.size(), Rng(2)), Coverage::of({{0, 1}}), Coverage()}) {
    CAPTURE(coverage.count());
    const auto whole = difference(*task, task->model(), global, {.coverage = &coverage});
    CHECK(update_of(*task, assignment_of(&coverage, LocalModel::kWhole)) == pack(whole, coverage));
  }
}

TEST_CASE("assignment: everything as coverage, whole or sliced, is training without a coverage to the bit") {
  const auto task = build(task_spec());
  if (!task) return;
  const Coverage all = Coverage::all(task->model().layout()->size());
  const auto expected = update_of(*task, assignment_of(nullptr, LocalModel::kWhole));
  CHECK(update_of(*task, assignment_of(&all, LocalModel::kWhole)) == expected);
  CHECK(update_of(*task, assignment_of(&all, LocalModel::kSlice)) == expected);
  CHECK(update_of(*task, assignment_of(nullptr, LocalModel::kSlice)) == expected);
  // Without narrower widths to draw, nested training equals the slice's training.
  CHECK(update_of(*task, assignment_of(&all, LocalModel::kNested)) == expected);
}

TEST_CASE("assignment: a slice trains as the thinner model does from the values it takes out") {
  for (const std::string kind : {"plain", "proximal", "scaffold"}) {
    CAPTURE(kind);
    TaskSpec spec = task_spec();
    spec.training.objective = {kind, 0.3F};
    const auto task = build(spec);
    if (!task) return;
    const auto global = initial_model(*task);
    const Coverage slice = prefix_slice(task->model(), {7, 4});
    const auto thinner = make_submodel(task->model(), {7, 4});
    std::vector<float> correction(kind == "scaffold" ? global.size() : 0);
    for (std::size_t i = 0; i < correction.size(); ++i) correction[i] = 0.001F * static_cast<float>(i % 19);
    Assignment assignment = assignment_of(&slice, LocalModel::kSlice);
    assignment.correction = correction;
    const auto packed = pack(correction, slice);
    CHECK(update_of(*task, assignment) ==
          difference(*task, *thinner, pack(global, slice), {.correction = packed}));
  }
}

TEST_CASE("assignment: nested training draws from the shares that fit into the slice and the slice itself") {
  const auto task = build(task_spec());
  if (!task) return;
  const auto global = initial_model(*task);
  const Coverage slice = prefix_slice(task->model(), {8, 5});  // half of 16 and 10
  Assignment assignment = assignment_of(&slice, LocalModel::kNested);
  const std::vector<double> shares = {1.0, 0.25, 0.75, 0.5, 0.25};
  assignment.shares = shares;
  // A quarter of 10 is 2.5, rounded to 3; three quarters and the whole do not fit.
  const std::vector<Widths> networks = {{4, 3}, {8, 5}};
  const Widths own = {8, 5};
  const auto expected =
      difference(*task, task->model(), pack(global, slice), {.slice = &own, .nested = networks});
  const auto update = update_of(*task, assignment);
  CHECK(update == expected);
  // The slice is one of the networks to draw even if its share is not listed.
  assignment.shares = std::span(shares).first(2);
  CHECK(update_of(*task, assignment) == expected);
  CHECK(update != update_of(*task, assignment_of(&slice, LocalModel::kSlice)));
  // A network that is as wide as the slice in one layer still fits.
  const Coverage narrow = prefix_slice(task->model(), {8, 3});
  const std::vector<Widths> fitting = {{4, 3}, {8, 3}};
  const Widths narrow_widths = {8, 3};
  assignment.coverage = &narrow;
  assignment.shares = shares;
  CHECK(update_of(*task, assignment) ==
        difference(*task, task->model(), pack(global, narrow), {.slice = &narrow_widths, .nested = fitting}));
}

TEST_CASE("assignment: a trainer that did other assignments before gives the same bits") {
  const auto task = build(task_spec());
  if (!task) return;
  const Coverage rows = learn::test::random_rows(*task->model().layout(), 0.3, Rng(1));
  const Coverage slice = prefix_slice(task->model(), {8, 5});
  const std::vector<double> shares = {0.1, 0.25};
  Assignment nested = assignment_of(&slice, LocalModel::kNested);
  nested.shares = shares;
  const std::vector<Assignment> work = {assignment_of(&rows, LocalModel::kWhole), nested,
                                        assignment_of(nullptr, LocalModel::kWhole),
                                        assignment_of(&slice, LocalModel::kSlice)};
  Trainer trainer = task->make_trainer();
  for (int pass = 0; pass < 2; ++pass)
    for (std::size_t i = 0; i < work.size(); ++i) {
      CAPTURE(i);
      CHECK(update_of(*task, work[i], trainer) == update_of(*task, work[i]));
    }
}

TEST_CASE("assignment: max_steps makes so many steps of the same training") {
  const auto task = build(task_spec());
  if (!task) return;
  Assignment assignment = assignment_of(nullptr, LocalModel::kWhole);
  assignment.max_steps = 2;
  CHECK(update_of(*task, assignment) ==
        difference(*task, task->model(), initial_model(*task), {.max_steps = 2}));
  std::stop_source finish;
  finish.request_stop();
  assignment.finish = finish.get_token();
  const auto global = initial_model(*task);
  std::vector<float> update(global.size(), 7.0F);
  Trainer trainer = task->make_trainer();
  assignment.max_steps = 0;
  CHECK(task->train(assignment, global, update, trainer)->steps == 1);
  assignment.finish = {};
  assignment.max_steps = 1;
  CHECK(update_of(*task, assignment) == update);
}

TEST_CASE("assignment: what does not fit the model or the objective is refused, naming it") {
  TaskSpec spec = task_spec();
  const auto task = build(spec);
  if (!task) return;
  const std::size_t size = task->model().layout()->size();
  const Coverage beyond = Coverage::of({{5, size + 3}});
  for (const LocalModel local : {LocalModel::kWhole, LocalModel::kSlice, LocalModel::kNested})
    CHECK(contains(refusal(*task, assignment_of(&beyond, local)), "parameter " + std::to_string(size + 2)));
  const Coverage none = Coverage::of({{0, 100}});
  for (const LocalModel local : {LocalModel::kSlice, LocalModel::kNested})
    CHECK(contains(refusal(*task, assignment_of(&none, local)), "not a slice of the model: for dense1.bias"));

  Assignment assignment = assignment_of(nullptr, LocalModel::kNested);
  for (const double share : {0.0, -1.0, 1.5, std::nan("")}) {
    const std::vector<double> shares = {0.5, share};
    assignment.shares = shares;
    CHECK(contains(refusal(*task, assignment), "width fraction"));
  }
  const std::vector<double> many(1000, 0.5);
  assignment.shares = many;
  CHECK(contains(refusal(*task, assignment), "1000 width fractions"));

  const std::vector<float> correction(size);
  Assignment corrected = assignment_of(nullptr, LocalModel::kWhole);
  corrected.correction = correction;
  CHECK(contains(refusal(*task, corrected), "scaffold"));
  spec.training.objective.kind = "scaffold";
  const auto scaffold = build(spec);
  corrected.correction = std::span(correction).first(9);
  CHECK(contains(refusal(*scaffold, corrected), "9 values"));
}
