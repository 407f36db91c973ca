// Data sets of tables and arrays whose samples have labels, points or values.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "core/rng.h"
#include "learn/data/batch.h"
#include "learn/data/files/own_data.h"
#include "learn/data/kinds.h"
#include "learn/data/selection.h"
#include "learn/statistics/federated_statistics.h"
#include "tests/support/text.h"
#include "tests/unit/learn/tables/files.h"

namespace fedge::learn {
namespace {

using fedge::test::contains;
using test::data_spec;
using test::TemporaryDirectory;

const std::string kTable = "dataset = \"csv\"\nnumeric = [\"a\"]\nsplit = { test = 0 }\n";

Result<Dataset> load_csv(const std::string& keys, const std::string& text) {
  const TemporaryDirectory directory;
  auto spec = data_spec(kTable + keys);
  if (!spec) return spec.error();
  spec->directory = test::write_text(directory.path() / "t.csv", text).string();
  const auto source = source_of(*spec);
  REQUIRE(source);
  return (*source)->load(*spec, Split::kTrain);
}

std::string task_error(const std::string& keys, const std::string& text = "a,b,c\n1,2,3\n") {
  const auto data = load_csv(keys, text);
  return data ? "no error" : data.error().message;
}

template <class T>
std::string npy_text(const std::string& descr, const std::string& shape, const std::vector<T>& values) {
  const std::string dictionary =
      "{'descr': '" + descr + "', 'fortran_order': False, 'shape': (" + shape + "), }\n";
  std::string text = "\x93NUMPY";
  text += std::string("\x01\x00", 2);
  text += static_cast<char>(dictionary.size());
  text += std::string(1, '\0') + dictionary;
  text.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
  return text;
}

Result<Dataset> load_npy(const std::string& keys, const std::string& y) {
  const TemporaryDirectory directory;
  auto spec = data_spec("dataset = \"arrays\"\nshape = [2]\nsplit = { test = 0 }\n" + keys);
  if (!spec) return spec.error();
  test::write_text(directory.path() / "x.npy", npy_text<float>("<f4", "3, 2", {1, 2, 3, 4, 5, 6}));
  test::write_text(directory.path() / "y.npy", y);
  spec->directory = directory.path().string();
  const auto source = source_of(*spec);
  REQUIRE(source);
  return (*source)->load(*spec, Split::kTrain);
}

std::string npy_error(const std::string& keys, const std::string& y) {
  const auto data = load_npy(keys, y);
  return data ? "no error" : data.error().message;
}

const std::string kRegression = "task = \"regression\"\ntarget_columns = [\"b\", \"c\"]\n";

}  // namespace

TEST_CASE("task data: values of a table are normalised by the given constants") {
  const auto data = load_csv(kRegression + "target_mean = [10, 0]\ntarget_deviation = [2, 1]\n",
                             "c,b,a\n-1.5,14,1\n7,9,2\n");
  REQUIRE_MESSAGE(data, data.error().message);
  CHECK(data->classes == 1);
  CHECK(data->target() == TargetShape{TargetKind::kValues, 2, 1});
  CHECK(data->targets.values == std::vector<float>{2, -1.5F, -0.5F, 7});
  CHECK(target_scale(*data) == std::vector<float>{2, 1});
}

TEST_CASE("task data: labels of a table are 0 or 1, and a window has the values of its last row") {
  const auto labels =
      load_csv("task = \"multi-label\"\ntarget_columns = [\"b\", \"c\"]\n", "a,b,c\n1,0,1.0\n2,1,1\n");
  REQUIRE_MESSAGE(labels, labels.error().message);
  CHECK(labels->targets.values == std::vector<float>{0, 1, 1, 1});
  CHECK(labels->class_names == std::vector<std::string>{"b", "c"});

  const std::string rows = "a,b,c\n1,0,1\n2,1,0\n3,0,0\n4,0,0\n5,0,1\n";
  const auto values = load_csv(kRegression + "window = 2\n", rows);
  REQUIRE_MESSAGE(values, values.error().message);
  CHECK(values->targets.values == std::vector<float>{1, 0, 0, 0});
  const auto any = load_csv("task = \"multi-label\"\ntarget_columns = [\"b\", \"c\"]\nwindow = 2\n", rows);
  REQUIRE_MESSAGE(any, any.error().message);
  CHECK(any->targets.values == std::vector<float>{1, 1, 0, 0});
}

TEST_CASE("task data: booleans of JSON lines are labels, and its numbers are values") {
  const TemporaryDirectory directory;
  const auto load = [&](const std::string& keys) {
    auto spec = data_spec("dataset = \"jsonl\"\nnumeric = [\"a\"]\nsplit = { test = 0 }\n" + keys);
    REQUIRE_MESSAGE(spec, spec.error().message);
    spec->directory =
        test::write_text(directory.path() / "t.jsonl",
                         "{\"a\": 1, \"b\": true, \"c\": 2.5}\n{\"c\": -1, \"b\": false, \"a\": 2}\n")
            .string();
    return (*source_of(*spec))->load(*spec, Split::kTrain);
  };
  const auto labels = load("task = \"multi-label\"\ntarget_columns = [\"b\"]\n");
  REQUIRE_MESSAGE(labels, labels.error().message);
  CHECK(labels->targets.values == std::vector<float>{1, 0});
  const auto values = load("task = \"regression\"\ntarget_columns = [\"c\"]\n");
  REQUIRE_MESSAGE(values, values.error().message);
  CHECK(values->targets.values == std::vector<float>{2.5F, -1});
}

TEST_CASE("task data: each row of a window is a point, and the sample's label is the most frequent class") {
  const auto data = load_csv(
      "task = \"segmentation\"\ntarget = \"b\"\nclasses = [\"x\", \"y\", \"z\"]\nwindow = 3\nhop = 1\n",
      "a,b\n1,x\n2,y\n3,y\n4,z\n");
  REQUIRE_MESSAGE(data, data.error().message);
  CHECK(data->target() == TargetShape{TargetKind::kPoints, 3, 3});
  CHECK(data->classes == 3);
  CHECK(data->labels == std::vector<Label>{1, 1});
  CHECK(data->targets.points == std::vector<Label>{0, 1, 1, 1, 1, 2});
}

TEST_CASE("task data: a table's wrong targets are named") {
  CHECK(contains(task_error(kRegression, "a,b,c\n1,2,x\n"),
                 "t.csv:2: column \"c\": \"x\" is not a finite number"));
  CHECK(contains(task_error(kRegression, "a,b,c\n1,2,nan\n"), "is not a finite number"));
  CHECK(contains(task_error(kRegression, "a,b,c\n1,2000,0\n"),
                 "column \"b\": 2000 is more than 1024 deviations from the mean"));
  CHECK(contains(task_error("task = \"multi-label\"\ntarget_columns = [\"b\"]\n", "a,b\n1,2\n"),
                 "2 is not a label, expected 0 or 1"));
  CHECK(contains(task_error("task = \"regression\"\ntarget = \"b\"\n"),
                 "data.target: has no effect with task = \"regression\""));
  CHECK(contains(task_error("task = \"regression\"\n"), "data.target_columns"));
  CHECK(contains(task_error("task = \"regression\"\ntarget_columns = []\n"), "is empty"));
  CHECK(contains(task_error("task = \"regression\"\ntarget_columns = [\"a\"]\n"), "is also a feature"));
  CHECK(contains(task_error(kRegression + "classes = [\"x\", \"y\"]\n"), "data.classes: has no effect"));
  CHECK(contains(task_error(kRegression + "target_mean = [1]\n"), "data.target_columns names 2 columns"));
  CHECK(contains(task_error("target = \"b\"\nclasses = [\"x\", \"y\"]\ntarget_mean = [1]\n"),
                 "data.target_mean: has no effect"));
  CHECK(contains(task_error("task = \"segmentation\"\ntarget = \"b\"\nclasses = [\"x\", \"y\"]\n"),
                 "set data.window"));
}

TEST_CASE("task data: arrays of labels, points and values") {
  const auto labels = load_npy("task = \"multi-label\"\nclasses = [\"p\", \"q\"]\n",
                               npy_text<std::int64_t>("<i8", "3, 2", {0, 1, 1, 1, 0, 0}));
  REQUIRE_MESSAGE(labels, labels.error().message);
  CHECK(labels->targets.values == std::vector<float>{0, 1, 1, 1, 0, 0});
  CHECK(labels->labels == std::vector<Label>{0, 0, 0});

  const auto points = load_npy("task = \"segmentation\"\nclass_count = 3\npoints = 2\n",
                               npy_text<std::int64_t>("<i8", "3, 2", {0, 1, 2, 2, 1, 1}));
  REQUIRE_MESSAGE(points, points.error().message);
  CHECK(points->targets.points == std::vector<Label>{0, 1, 2, 2, 1, 1});
  CHECK(points->labels == std::vector<Label>{0, 2, 1});

  const auto values = load_npy("task = \"regression\"\ntarget_mean = [1]\ntarget_deviation = [2]\n",
                               npy_text<float>("<f4", "3,", {1, 2, -3}));
  REQUIRE_MESSAGE(values, values.error().message);
  CHECK(values->targets.values == std::vector<float>{0, 0.5F, -2});

  CHECK(
      contains(npy_error("task = \"regression\"\nvalue_count = 2\n", npy_text<float>("<f4", "3,", {1, 2, 3})),
               "expected 2 numbers for each sample"));
  CHECK(contains(npy_error("task = \"regression\"\n", npy_text<float>("<f4", "3,", {1, 2, 5000})),
                 "the value at [2] is more than 1024 deviations from the mean"));
  CHECK(contains(
      npy_error("task = \"multi-label\"\nclass_count = 1\n", npy_text<float>("<f4", "3,", {1, 0, 0.5F})),
      "the value at [2] is not a label"));
  CHECK(contains(npy_error("task = \"segmentation\"\nclass_count = 3\npoints = 2\n",
                           npy_text<std::int64_t>("<i8", "3, 2", {0, 1, 2, 3, 1, 1})),
                 "the value at [1, 1] is 3, expected a label from 0 to 2"));
  CHECK(contains(npy_error("task = \"segmentation\"\nclass_count = 3\n",
                           npy_text<std::int64_t>("<i8", "3, 2", {0, 1, 2, 2, 1, 1})),
                 "expected one integer for each sample"));
  CHECK(contains(
      npy_error("class_count = 3\nvalue_count = 2\n", npy_text<std::int64_t>("<i8", "3,", {0, 1, 2})),
      "data.value_count: has no effect with task = \"classification\""));
}

TEST_CASE("task data: parts and sums of data sets keep the targets of their samples") {
  const auto data = load_csv(kRegression, "a,b,c\n1,10,11\n2,20,21\n3,30,31\n");
  REQUIRE_MESSAGE(data, data.error().message);
  const std::vector<std::uint32_t> chosen = {2, 0};
  std::vector<Dataset> parts;
  parts.push_back(select_samples(*data, chosen));
  CHECK(parts[0].targets.values == std::vector<float>{30, 31, 10, 11});
  parts.push_back(select_samples(*data, std::vector<std::uint32_t>{1}));
  const auto joined = join_samples(std::move(parts));
  REQUIRE(joined);
  CHECK(joined->targets.values == std::vector<float>{30, 31, 10, 11, 20, 21});
  CHECK(joined->target() == data->target());
}

TEST_CASE("task data: statistics count the targets, and normalise them") {
  const std::string keys = kTable + kRegression + "name = \"t\"\nnormalise = \"federated\"\n" +
                           "partition = { kind = \"own\", clients = 1 }\n";
  const TemporaryDirectory directory;
  auto spec = data_spec(keys);
  REQUIRE_MESSAGE(spec, spec.error().message);
  spec->directory =
      test::write_text(directory.path() / "t.csv", "a,b,c\n1,5000,1\n2,7000,2\n3,9000,3\n").string();
  const auto info = describe(*spec);
  REQUIRE(info);
  CHECK(info->columns.size() == 3);
  const auto data = load_own(*spec, Purpose::kTraining, 0, Rng(1));
  REQUIRE_MESSAGE(data, data.error().message);
  const auto statistics = statistics_of(*info, *data, std::vector<std::uint32_t>{0, 1, 2});
  REQUIRE_MESSAGE(statistics, statistics.error().message);
  CHECK(statistics->result().columns[1].name == "b");
  CHECK(statistics->result().columns[1].mean == doctest::Approx(7000).epsilon(1e-3));
  CHECK(statistics->result().labels.empty());
  const Normalisation by = statistics->normalisation();
  BatchBuffer buffer(1, false, 3);
  const Batch batch = buffer.read(*data, std::vector<std::uint32_t>{0, 1, 2}, /*flip=*/false, &by);
  CHECK(static_cast<double>(batch.values[0]) == doctest::Approx(-1.2247).epsilon(1e-3));
  CHECK(static_cast<double>(batch.values[2]) == doctest::Approx(0).epsilon(1e-3));
  CHECK(static_cast<double>(batch.values[4]) == doctest::Approx(1.2247).epsilon(1e-3));
  const auto scale = target_scale(info->columns, by, info->target_scale);
  CHECK(static_cast<double>(scale[0]) == doctest::Approx(2000 * std::sqrt(2.0 / 3)).epsilon(1e-3));
}

TEST_CASE("task data: statistics count each label, and the class of each point") {
  const std::vector<std::uint32_t> all = {0, 1, 2};
  for (const bool points : {false, true}) {
    CAPTURE(points);
    DatasetInfo info{.shape = {1, 1, 1},
                     .classes = points ? std::size_t{2} : std::size_t{1},
                     .outputs = 2,
                     .class_names = {"p", "q"},
                     .columns = {.period = 1, .at = {0}, .names = {"a"}},
                     .kind = points ? TargetKind::kPoints : TargetKind::kLabels,
                     .points = points ? std::size_t{2} : std::size_t{1}};
    Dataset data{
        .shape = info.shape, .classes = info.classes, .floats = AlignedBuffer<float>(3), .labels = {0, 0, 0}};
    std::ranges::fill(data.floats.span(), 1.0F);
    data.columns = info.columns;
    data.targets.shape = info.target();
    if (points) data.targets.points = {0, 1, 1, 1, 1, 1};
    if (!points) data.targets.values = {1, 1, 0, 1, 0, 1};
    const StatisticsShape shape = StatisticsShape::of(info);
    auto sums = count_values(shape, data, all, FederatedStatistics::create(info)->edges());
    REQUIRE_MESSAGE(sums, sums.error().message);
    CHECK((*sums)[StatisticsShape::kLabels] == 1);
    CHECK((*sums)[StatisticsShape::kLabels + 1] == (points ? 5 : 3));
    CHECK(check_counts(shape, *sums, 3).has_value());
    ++(*sums)[StatisticsShape::kLabels + 1];
    CHECK_FALSE(check_counts(shape, *sums, 3).has_value());
  }
}

}  // namespace fedge::learn
