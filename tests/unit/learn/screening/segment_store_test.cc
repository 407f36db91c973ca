// Segments on disk: what is kept is durable, readable by the data set "arrays", and bounded.
#include "learn/screening/segment_store.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "core/config/document.h"
#include "learn/data/kinds.h"
#include "tests/unit/learn/tables/files.h"

namespace fedge::learn {
namespace {

using test::TemporaryDirectory;

KeptSegment made_segment(std::size_t samples, double seconds, float level, bool labelled = true) {
  KeptSegment segment{.seconds = seconds, .channels = 2};
  for (std::size_t i = 0; i < samples; ++i) {
    segment.values.insert(segment.values.end(), {level + static_cast<float>(i % 7), -level});
    if (labelled) segment.labels.push_back(static_cast<std::uint8_t>(i % 2));
  }
  return segment;
}

std::set<std::string> files_within(const std::filesystem::path& directory) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory))
    if (entry.is_regular_file() && entry.path().filename() != "lock")
      names.insert(entry.path().filename().string());
  return names;
}

Result<Dataset> read_segments(const std::filesystem::path& directory, const std::string& more = "") {
  auto spec = test::data_spec(
      "dataset = \"arrays\"\nshape = [64, 2]\ntask = \"segmentation\"\npoints = 64\nclass_count = 2\n"
      "split = { kind = \"file\" }\n" +
      more);
  if (!spec) return spec.error();
  spec->directory = directory.string();
  const auto source = source_of(*spec);
  REQUIRE(source);
  return (*source)->load(*spec, Split::kTrain);
}

}  // namespace

TEST_CASE("segment store: the data set reads what was kept, by side, and a restart continues") {
  const TemporaryDirectory directory;
  const SegmentStore::Rules rules{.test_share = 0, .window = 64};
  std::uint64_t bytes = 0;
  {
    const auto store = SegmentStore::open(directory.path() / "road", rules);
    REQUIRE(store);
    CHECK_FALSE((*store)->last_seconds());
    for (int i = 0; i < 4; ++i) CHECK((*store)->add(made_segment(i == 3 ? 200 : 50, 10.0 * i, 1)));
    CHECK((*store)->generation() == 4);
    CHECK((*store)->for_training() == 4);
    CHECK(*(*store)->last_seconds() == doctest::Approx(30 + 1.99));
    bytes = (*store)->bytes();
    // Another process cannot keep segments in the same place.
    CHECK_FALSE(SegmentStore::open(directory.path() / "road", rules));
  }
  CHECK(files_within(directory.path() / "road") ==
        std::set<std::string>{"train-0000000000.safetensors", "train-0000000001.safetensors",
                              "train-0000000002.safetensors", "train-0000000003.safetensors"});
  const auto data = read_segments(directory.path() / "road");
  REQUIRE_MESSAGE(data, data.error().message);
  CHECK(data->size() == 9);  // the last segment has six windows
  CHECK(data->targets.points.size() == 9 * 64);
  // The windows are padded around the 50 samples.
  CHECK(data->floats.span()[7 * 2] == 1);
  CHECK(data->floats.span()[8 * 2] == 2);
  // Files that a killed process has not finished are removed, and files of others stay.
  test::write_text(directory.path() / "road" / ".train-0000000009.safetensors.AbCdEf", "half");
  test::write_text(directory.path() / "road" / "notes.txt", "mine");
  const auto again = SegmentStore::open(directory.path() / "road", rules);
  REQUIRE(again);
  CHECK((*again)->bytes() == bytes);
  CHECK((*again)->for_training() == 4);
  CHECK((*again)->generation() == 4);
  CHECK(*(*again)->last_seconds() == doctest::Approx(31.99));
  CHECK((*again)->add(made_segment(50, 50, 1)));
  CHECK((*again)->generation() == 5);
  const auto names = files_within(directory.path() / "road");
  CHECK(names.contains("train-0000000004.safetensors"));
  CHECK(names.contains("notes.txt"));
  CHECK_FALSE(names.contains(".train-0000000009.safetensors.AbCdEf"));
}

TEST_CASE("segment store: the oldest segments leave, and disk space is bounded") {
  const TemporaryDirectory directory;
  const auto store = SegmentStore::open(directory.path(), {.most_bytes = 40'960, .window = 64});
  REQUIRE(store);
  for (int i = 0; i < 100; ++i) {
    CHECK((*store)->add(made_segment(60, i, 1, i % 10 != 0)));
    std::uint64_t used = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(directory.path()))
      if (entry.is_regular_file()) used += (entry.file_size() + 4095) / 4096 * 4096;
    CHECK(used <= 40'960);
    CHECK((*store)->bytes() >= used);
  }
  const auto names = files_within(directory.path());
  CHECK((names.contains("test-0000000099.safetensors") || names.contains("train-0000000099.safetensors")));
  CHECK_FALSE(names.contains("train-0000000001.safetensors"));
  CHECK(names.size() >= 7);
  CHECK((*store)->generation() == 100);
  const auto refused = (*store)->add(made_segment(20'000, 200, 1));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kResource);
  CHECK(files_within(directory.path()) == names);
}

TEST_CASE("segment store: segments without labels are kept apart, and may be moved once they have labels") {
  const TemporaryDirectory directory;
  const auto store =
      SegmentStore::open(directory.path(), {.most_bytes = 32'768, .test_share = 0, .window = 64});
  REQUIRE(store);
  CHECK((*store)->add(made_segment(50, 1, 1, false)));
  CHECK(files_within(directory.path()).empty());
  CHECK(files_within(directory.path() / "unlabelled") ==
        std::set<std::string>{"segment-0000000000.safetensors"});
  CHECK((*store)->generation() == 0);
  CHECK((*store)->for_training() == 0);
  // Its owner moves it; it still counts for the space, and leaves as the oldest one.
  std::filesystem::rename(directory.path() / "unlabelled" / "segment-0000000000.safetensors",
                          directory.path() / "train-0000000000.safetensors");
  std::size_t most = 0;
  for (int i = 1; i < 30; ++i) {
    CHECK((*store)->add(made_segment(50, i, 1)));
    most = std::max(most, files_within(directory.path()).size());
  }
  CHECK(most == 8);
  CHECK_FALSE(files_within(directory.path()).contains("train-0000000000.safetensors"));
}

TEST_CASE("segment store: all parts of an event have one side, and the sides have their share") {
  const TemporaryDirectory directory;
  const auto store = SegmentStore::open(directory.path(), {.test_share = 0.2, .window = 64});
  REQUIRE(store);
  // Every event has five parts.
  for (int i = 0; i < 1000; ++i) {
    KeptSegment segment = made_segment(std::size_t{50}, i, 1);
    segment.continued = i % 5 != 0;
    REQUIRE((*store)->add(segment));
  }
  std::size_t tests = 0;
  for (std::size_t event = 0; event < 200; ++event) {
    std::size_t parts = 0;
    for (std::size_t part = 0; part < 5; ++part) {
      char name[64];
      std::snprintf(name, sizeof name, "test-%010zu.safetensors", 5 * event + part);
      parts += std::filesystem::exists(directory.path() / name) ? std::size_t{1} : std::size_t{0};
    }
    CHECK((parts == 0 || parts == 5));
    tests += parts / 5;
  }
  CHECK(tests > 20);
  CHECK(tests < 60);
}

TEST_CASE("segment store: segments of another length or number of channels are refused") {
  const TemporaryDirectory directory;
  {
    const auto store = SegmentStore::open(directory.path(), {.window = 64});
    REQUIRE(store);
    REQUIRE((*store)->add(made_segment(50, 1, 1)));
    KeptSegment other{.seconds = 2, .channels = 1, .values = {1, 2, 3}, .labels = {0, 0, 1}};
    const auto refused = (*store)->add(other);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().message.find("the stream has 1 channels, but the segments") != std::string::npos);
  }
  const auto refused = SegmentStore::open(directory.path(), {.window = 128});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message.find("has windows of 64 samples, but `window`") != std::string::npos);
}

TEST_CASE("segment store: a directory that cannot be written is an error, and nothing counts as kept") {
  const TemporaryDirectory directory;
  test::write_text(directory.path() / "file", "");
  CHECK_FALSE(SegmentStore::open(directory.path() / "file", {}));
  const auto store = SegmentStore::open(directory.path() / "road", {.window = 64});
  REQUIRE(store);
  std::filesystem::remove_all(directory.path() / "road");
  CHECK_FALSE((*store)->add(made_segment(50, 1, 1)));
  CHECK((*store)->bytes() == 0);
  CHECK((*store)->for_training() == 0);
  CHECK_FALSE((*store)->last_seconds());
}

TEST_CASE("arrays: standardised samples have mean 0, deviation 1 and their strength") {
  const TemporaryDirectory directory;
  const auto store = SegmentStore::open(directory.path(), {.window = 64});
  REQUIRE(store);
  for (const float level : {1.0F, 5.0F}) REQUIRE((*store)->add(made_segment(64, 1, level)));
  const auto raw = read_segments(directory.path());
  const auto data = read_segments(directory.path(), "standardise = true\n");
  REQUIRE(raw);
  REQUIRE_MESSAGE(data, data.error().message);
  CHECK(data->shape == InputShape{64, 3, 1});
  REQUIRE(data->size() == raw->size());
  for (std::size_t s = 0; s < data->size(); ++s) {
    double mean = 0, square = 0, before = 0, spread = 0;
    for (std::size_t i = 0; i < 64; ++i)
      before += static_cast<double>(raw->floats.span()[(s * 64 + i) * 2]) / 64;
    for (std::size_t i = 0; i < 64; ++i) {
      const double value = static_cast<double>(raw->floats.span()[(s * 64 + i) * 2]);
      spread += (value - before) * (value - before) / 64;
      const float* step = data->floats.data() + (s * 64 + i) * 3;
      mean += static_cast<double>(step[0]) / 64;
      square += static_cast<double>(step[0] * step[0]) / 64;
      CHECK(step[1] == 0);  // it was constant
    }
    CHECK(std::abs(mean) < 1e-6);
    CHECK(square == doctest::Approx(1).epsilon(1e-4));
    CHECK(static_cast<double>(data->floats.data()[s * 192 + 2]) ==
          doctest::Approx(std::log10(1e-6 + std::sqrt(spread) / 2)).epsilon(1e-5));
  }
  const auto wrong =
      test::data_spec("dataset = \"arrays\"\nshape = [4, 4, 3]\nclass_count = 2\nstandardise = true\n");
  REQUIRE_FALSE(wrong);
  CHECK(wrong.error().message.find("standardise: needs samples of the shape [steps, numbers]") !=
        std::string::npos);
}

}  // namespace fedge::learn
